//! Reviews by an API server: who a client is (TokenReview), and if this user may do something (SubjectAccessReview).

use http::{HeaderValue, Request};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tower::service_fn;

use crate::limits::TOKEN_FILE_BYTES;
use crate::tasks::unless_panicked;

/// Access that a user needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// `get` of a path, such as `/metrics`.
    Path(&'a str),
    /// A verb on all objects of a resource in a namespace.
    Resource { verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str },
}

/// API server that reviews clients.
#[derive(Clone)]
pub struct Reviews(Client);

impl Reviews {
    /// Returns reviews by the API server of a client. Their requests run on the present runtime, also if another
    /// runtime asks for them. A connection of the client belongs to the runtime that opened it, and the engine may use
    /// this connection next.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(on_this_runtime(client))
    }

    /// Returns the user of a token; `None` if the API server does not accept the token. With an audience, it accepts
    /// only a token for this audience.
    ///
    /// # Errors
    /// If the API server gives no answer.
    pub async fn user(&self, token: &str, audience: Option<&str>) -> Result<Option<UserInfo>, kube::Error> {
        let audiences = audience.map(|audience| vec![audience.to_owned()]);
        let spec = TokenReviewSpec { token: token.to_owned(), audiences };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.0.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        // An API server without support for audiences leaves out the field. Its answer is then not about the audience.
        let is_for = |audience: &str| status.audiences.iter().flatten().any(|of| of == audience);
        let is_accepted = status.authenticated == Some(true) && audience.is_none_or(is_for);
        Ok(status.user.filter(|_| is_accepted))
    }

    /// True if a user may do something.
    ///
    /// # Errors
    /// If the API server gives no answer.
    pub async fn may(&self, user: &UserInfo, wanted: Wanted<'_>) -> Result<bool, kube::Error> {
        let UserInfo { extra, groups, uid, username } = user.clone();
        let mut spec = SubjectAccessReviewSpec { extra, groups, uid, user: username, ..Default::default() };
        match wanted {
            Wanted::Path(path) => {
                spec.non_resource_attributes =
                    Some(NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) });
            }
            Wanted::Resource { verb, group, resource, namespace } => {
                spec.resource_attributes = Some(ResourceAttributes {
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    namespace: Some(namespace.to_owned()),
                    ..ResourceAttributes::default()
                });
            }
        }
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.0.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok(status.allowed)
    }
}

/// Returns a client whose requests run on the present runtime.
fn on_this_runtime(client: Client) -> Client {
    let runtime = Handle::current();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let mut sending = JoinSet::new();
        sending.spawn_on(async move { client.send(request).await }, &runtime);
        async move {
            let sent = sending.join_next().await.map(unless_panicked);
            let gone = || kube::Error::Service("the engine has ended".into());
            sent.and_then(Result::ok).unwrap_or_else(|| Err(gone()))
        }
    });
    Client::new(service, "default")
}

/// Returns the token in a header `Authorization: Bearer <token>`. `None` for other headers, and for a text longer than
/// any token.
#[must_use]
pub fn bearer(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, token) = authorization.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let fits = u64::try_from(token.len()).is_ok_and(|length| length < TOKEN_FILE_BYTES);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && fits).then_some(token)
}

impl std::fmt::Debug for Reviews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Reviews")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use serde_json::{Value, json};
    use tower::BoxError;

    /// Returns reviews by an API server that accepts each token for these audiences.
    fn accepted_for(audiences: Value) -> Reviews {
        let service = service_fn(move |_: Request<Body>| {
            let status = json!({"authenticated": true, "user": {"username": "somebody"}, "audiences": audiences});
            let answer = Body::from(json!({"metadata": {}, "spec": {}, "status": status}).to_string().into_bytes());
            async move { Response::builder().status(201).body(answer).map_err(BoxError::from) }
        });
        Reviews::new(Client::new(service, "default"))
    }

    #[test]
    fn a_header_has_a_bearer_token_or_none() {
        let long = format!("Bearer {}", "a".repeat(65_536));
        for (header, token) in [
            ("Bearer a.b", Some("a.b")),
            ("bearer  a.b ", Some("a.b")),
            ("Basic c2NyYXBlcg==", None),
            ("Bearer ", None),
            ("a.b", None),
            (&long, None),
        ] {
            let header = HeaderValue::from_bytes(header.as_bytes()).expect("valid");
            assert_eq!(bearer(&header), token, "{header:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_about_another_audience_accepts_no_token() {
        for (audiences, wanted, expected) in [
            (json!(["stream", "other"]), Some("stream"), true),
            (json!(["other"]), Some("stream"), false),
            (Value::Null, Some("stream"), false),
            (Value::Null, None, true),
        ] {
            let user = accepted_for(audiences.clone()).user("token", wanted).await.expect("an answer");
            assert_eq!(user.is_some(), expected, "{audiences} for {wanted:?}");
        }
    }
}
