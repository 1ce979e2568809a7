//! Tests of the request for a token, against an API server that the test simulates.

use super::*;
use crate::io::token::claims::tests::token;
use fleetnet_types::Timestamp;
use http::Response;
use kube::client::Body;
use serde_json::json;
use tower::{BoxError, ServiceExt as _, service_fn};

/// Returns a client of an API server that knows this user, and answers a TokenRequest with this status and token.
fn client(user: &'static str, status: u16, issued: String) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let issued = issued.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let (status, answer) = match path.as_str() {
                "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                    (201, json!({"metadata": {}, "status": {"userInfo": {"username": user}}}))
                }
                "/api/v1/namespaces/fleet-member-a/serviceaccounts/member-agent/token" => {
                    assert_eq!(body["spec"], json!({"audiences": ["stream"], "expirationSeconds": 3600}));
                    let failure =
                        json!({"kind": "Status", "status": "Failure", "code": status, "message": "no", "reason": "x"});
                    (status, if status == 201 { json!({"status": {"token": issued}}) } else { failure })
                }
                other => panic!("a request to {other}"),
            };
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            Ok::<_, BoxError>(Response::builder().status(status).body(body).unwrap())
        }
    });
    Client::new(service.map_err(BoxError::from), "default")
}

const ACCOUNT: &str = "system:serviceaccount:fleet-member-a:member-agent";

async fn requested(user: &'static str, status: u16, issued: &str) -> Result<AudienceToken, String> {
    let clock = Clock::virtual_at(Timestamp(1_000_000_000));
    let requested = request(&client(user, status, issued.to_owned()), "stream", &clock).await;
    requested.map_err(|error| error.to_string())
}

/// Rule J16: The token of a stream gets old
/// Then: After two thirds of its life, the member agent requests a new token and opens a new stream
///
/// Also rule J23.
#[tokio::test(start_paused = true)]
async fn a_token_is_used_for_two_thirds_of_its_own_life() {
    let table = [
        (token(r#"{"iat":100,"exp":1000}"#), 600),
        (token(r#"{"exp":1300}"#), 200),
        ("static".to_owned(), 2400),
        (token(r#"{"exp":10}"#), 2400),
        (token(r#"{"iat":100,"exp":1000000}"#), 2400),
    ];
    for (issued, seconds) in table {
        let requested = requested(ACCOUNT, 201, &issued).await.expect("a token");
        assert_eq!(requested, AudienceToken { token: issued, renew_after: Duration::from_secs(seconds) });
        assert!(!format!("{requested:?}").contains(&requested.token), "a token is never logged");
    }
}

/// Also rule J16.
#[tokio::test(start_paused = true)]
async fn without_a_token_the_reason_says_what_to_do() {
    let error = async |user, status, issued| requested(user, status, issued).await.expect_err("no token");
    let user = error("kubernetes-admin", 201, "token").await;
    assert!(user.contains("\"kubernetes-admin\" of this agent in the hub is no ServiceAccount"), "{user}");
    assert!(error(ACCOUNT, 403, "").await.contains("apply deploy/hub-member.yaml in the hub"));
    assert!(error(ACCOUNT, 500, "").await.contains("issued no token"));
    assert!(error(ACCOUNT, 201, "").await.contains("the answer has no token"));
}
