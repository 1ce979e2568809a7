//! Faults in the responses that a client gets from memkube: a missing header, another time or another text.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use memkube::BoxError;
use memkube::Service;
use regex::{Captures, Regex};
use std::task::{Context, Poll};

/// Part of memkube's response that a fault can change.
pub(super) struct Answered {
    method: Method,
    headers: HeaderMap,
    /// Whole body of the response, or one event of a watch.
    text: String,
}

/// Function that changes a response.
pub(super) type Change = fn(&mut Answered);

/// Faults in responses. Each entry has a description, the file in `table/` that should detect the fault, and the
/// change.
pub(super) const ALL: [(&str, &str, Change); 5] = [
    ("updates move creationTimestamp", "verbs", |answered| {
        if answered.method == Method::PUT || answered.method == Method::PATCH {
            answered
                .replace(r#"("creationTimestamp":)"[^"]*""#, |found| format!(r#"{}"2026-05-31T12:00:00Z""#, &found[1]));
        }
    }),
    ("causes are of other fields", "metadata", |answered| {
        answered.replace(r#"("field":")"#, |found| format!("{}other.", &found[1]));
    }),
    ("answers lack the time to retry", "pages", |answered| {
        answered.headers.remove("retry-after");
    }),
    ("answers may be cached", "verbs", |answered| {
        answered.headers.insert("cache-control", HeaderValue::from_static("public, max-age=9999"));
    }),
    ("bookmarks are of versions to come", "watches", |answered| {
        answered.replace(r#"("type":"BOOKMARK".*"resourceVersion":")(\d+)"#, |found| {
            let version: u64 = found[2].parse().unwrap_or_default();
            format!("{}{}", &found[1], version + 1000)
        });
    }),
];

impl Answered {
    fn replace(&mut self, pattern: &str, with: impl Fn(&Captures<'_>) -> String) {
        let pattern = Regex::new(pattern).expect("written here, and the test of the planted faults goes through it");
        self.text = pattern.replace_all(&self.text, |found: &Captures<'_>| with(found)).into_owned();
    }
}

/// Body of the response that a client gets.
type Seen = UnsyncBoxBody<Bytes, BoxError>;

/// Service that runs memkube and changes its responses.
#[derive(Clone)]
pub(super) struct FaultyAnswers {
    inner: Service,
    change: Change,
}

impl FaultyAnswers {
    pub(super) fn new(inner: Service, change: Change) -> Self {
        Self { inner, change }
    }

    async fn ask(mut self, request: Request<Body>) -> Result<Response<Seen>, BoxError> {
        let (method, change) = (request.method().clone(), self.change);
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let (mut parts, body) = tower::Service::call(&mut self.inner, request).await?.into_parts();
        if watches {
            let body = body.map_frame(move |frame| {
                let (method, headers) = (method.clone(), HeaderMap::new());
                frame.map_data(|event| {
                    let mut answered = Answered { method, headers, text: String::from_utf8_lossy(&event).into_owned() };
                    change(&mut answered);
                    answered.text.into()
                })
            });
            return Ok(Response::from_parts(parts, body.boxed_unsync()));
        }
        let bytes = body.collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut answered = Answered { method, headers: parts.headers, text };
        change(&mut answered);
        parts.headers = answered.headers;
        let body = Full::from(answered.text).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

impl tower::Service<Request<Body>> for FaultyAnswers {
    type Response = Response<Seen>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().ask(request))
    }
}
