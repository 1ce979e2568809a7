//! Faults in decoding a request: memkube ignores a parameter, a header or a member of the body.

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use memkube::BoxError;
use memkube::Service;
use serde_json::Value;
use std::task::{Context, Poll};

/// Part of a request that a fault can change.
pub(super) struct ChangedRequest {
    method: http::Method,
    headers: http::HeaderMap,
    path: String,
    /// Query parameters, each as encoded `name=value`.
    query: Vec<String>,
    /// Body of the request as JSON; null if the request has no body, or the body is not JSON.
    body: Value,
}

/// Function that changes a request.
pub(super) type Change = fn(&mut ChangedRequest);

/// Faults in decoding requests. Each entry has a description, the file in `table/` that should detect the fault, and
/// the change.
pub(super) const ALL: [(&str, &str, Change); 24] = [
    ("label selectors are ignored", "selectors", |request| request.forget("labelSelector")),
    ("field selectors are ignored", "selectors", |request| request.forget("fieldSelector")),
    ("watches ignore label selectors", "watches", |request| request.forget_of_watches("labelSelector")),
    ("watches ignore field selectors", "watches", |request| request.forget_of_watches("fieldSelector")),
    ("lists of all namespaces are of one", "everywhere", |request| request.take_one_namespace(false)),
    ("watches of all namespaces are of one", "everywhere", |request| request.take_one_namespace(true)),
    ("pages have no limit", "pages", |request| request.forget("limit")),
    ("every page is the first", "pages", |request| request.forget("continue")),
    ("dry runs take effect", "verbs", |request| request.forget("dryRun")),
    ("unknown fields are never rejected", "verbs", |request| request.forget("fieldValidation")),
    ("watches begin with what is there", "watches", |request| request.forget_of_watches("resourceVersion")),
    ("lists are always the newest", "pages", |request| request.forget("resourceVersion")),
    ("how a resourceVersion is to match is ignored", "pages", |request| request.forget("resourceVersionMatch")),
    ("lists are never streamed", "watches", |request| request.forget("sendInitialEvents")),
    ("watches have no bookmarks", "watches", |request| request.forget("allowWatchBookmarks")),
    ("preconditions of deletes are not checked", "deletion", |request| request.forget_member("/preconditions")),
    ("propagation is ignored", "deletion", |request| request.forget_member("/propagationPolicy")),
    ("conflicts are not noticed", "verbs", |request| request.forget_member("/metadata/resourceVersion")),
    ("finalizers are not kept", "deletion", |request| request.forget_member("/metadata/finalizers")),
    ("names are not generated", "metadata", |request| request.forget_member("/metadata/generateName")),
    ("merge patches remove nothing", "patches", |request| without_nulls(&mut request.body)),
    ("JSON patches test nothing", "patches", ChangedRequest::forget_tests),
    ("strategic merge patches are merge patches", "strategic", |request| {
        request.content_type("application/strategic-merge-patch+json", "application/merge-patch+json");
    }),
    ("metadata alone is never answered", "forms", |request| {
        request.headers.remove("accept");
    }),
];

impl ChangedRequest {
    fn forget(&mut self, parameter: &str) {
        self.query.retain(|pair| pair.split('=').next() != Some(parameter));
    }

    fn forget_of_watches(&mut self, parameter: &str) {
        if self.query.iter().any(|pair| pair.starts_with("watch=")) {
            self.forget(parameter);
        }
    }

    /// Changes a request for all namespaces into a request for one namespace. If `watches` is true, this function
    /// changes only watches, otherwise only lists.
    fn take_one_namespace(&mut self, watches: bool) {
        let is_watch = self.query.iter().any(|pair| pair.starts_with("watch="));
        for (all, plural) in [("/api/v1", "configmaps"), ("/apis/conformance.test/v1", "widgets")] {
            if self.method == http::Method::GET && is_watch == watches && self.path == format!("{all}/{plural}") {
                self.path = format!("{all}/namespaces/default/{plural}");
            }
        }
    }

    fn forget_member(&mut self, pointer: &str) {
        let Some((parent, name)) = pointer.rsplit_once('/') else { return };
        if let Some(Value::Object(parent)) = self.body.pointer_mut(parent) {
            parent.remove(name);
        }
    }

    fn forget_tests(&mut self) {
        if let Value::Array(operations) = &mut self.body {
            operations.retain(|operation| operation["op"] != "test");
        }
    }

    fn content_type(&mut self, from: &str, to: &'static str) {
        if self.headers.get("content-type").is_some_and(|value| value == from) {
            self.headers.insert("content-type", http::HeaderValue::from_static(to));
        }
    }
}

fn without_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(without_nulls);
    }
}

/// Service that changes requests before memkube gets them.
#[derive(Clone)]
pub(super) struct FaultyRequests {
    inner: Service,
    change: Change,
}

impl FaultyRequests {
    pub(super) fn new(inner: Service, change: Change) -> Self {
        Self { inner, change }
    }

    async fn ask(mut self, request: Request<kube::client::Body>) -> Result<Response<memkube::Body>, BoxError> {
        let (mut parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let query = parts.uri.query().unwrap_or_default();
        let mut request = ChangedRequest {
            method: parts.method.clone(),
            headers: parts.headers.clone(),
            path: parts.uri.path().to_owned(),
            query: query.split('&').filter(|pair| !pair.is_empty()).map(str::to_owned).collect(),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        };
        let body = request.body.clone();
        (self.change)(&mut request);
        // Forward an unchanged body byte by byte: encoding the body again would lose duplicate JSON members.
        let bytes = if request.body == body { bytes.to_vec() } else { serde_json::to_vec(&request.body)? };
        parts.uri = Uri::try_from(format!("{}?{}", request.path, request.query.join("&")))?;
        (parts.method, parts.headers) = (request.method, request.headers);
        let request = Request::from_parts(parts, kube::client::Body::from(bytes));
        tower::Service::call(&mut self.inner, request).await
    }
}

impl tower::Service<Request<kube::client::Body>> for FaultyRequests {
    type Response = Response<memkube::Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().ask(request))
    }
}
