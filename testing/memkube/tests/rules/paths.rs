//! Tests of requests that are not about a resource. Faults and the policy apply to these requests too.

use crate::support::{CONFIG_MAPS, Server};
use http::{Method, Request};
use kube::client::Body;
use memkube::auth::Policy;
use memkube::faults::{Answer, Fault, Faults};
use memkube::{Call, PathCall, Status, User};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const PATHS: [&str; 8] = ["/", "/readyz", "/version", "/api/v1", "/apis", "/apis/ex.io/v1", "/openapi/v3", "/nothing"];

/// Implementation of [`Faults`] that returns the same fault for each request that is not about a resource.
struct OnPaths(Fault);

impl Faults for OnPaths {
    fn path(&self, _: &PathCall) -> Fault {
        self.0.clone()
    }
}

fn asking(fault: Fault) -> Server {
    let server = Server::new();
    server.memkube.set_faults(Some(Arc::new(OnPaths(fault))));
    server
}

#[tokio::test(start_paused = true)]
async fn discovery_and_health_can_be_refused() {
    let server = asking(Fault { refuse: Some(Status::internal("down")), ..Fault::default() });
    for path in PATHS {
        assert_eq!(server.get(path).await.refusal(), (500, "Internal error occurred: down"), "{path}");
    }
    assert_eq!(server.get(CONFIG_MAPS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn discovery_and_health_can_be_cut_off() {
    let server = asking(Fault { answer: Answer::Cut, ..Fault::default() });
    for path in PATHS {
        let request = Request::get(path).body(Body::empty()).unwrap();
        assert!(matches!(server.send(request).await, Err(kube::Error::Service(_))), "{path}");
    }
    let options = Request::options(CONFIG_MAPS).body(Body::empty()).unwrap();
    assert!(matches!(server.send(options).await, Err(kube::Error::Service(_))));
}

#[tokio::test(start_paused = true)]
async fn discovery_can_be_slow_and_answered_otherwise() {
    let fault = Fault {
        delay_before: Duration::from_secs(2),
        delay_after: Duration::from_secs(3),
        answer: Answer::Replaced(Box::new(Status::too_many_requests(7))),
        ..Fault::default()
    };
    let server = asking(fault);
    let begin = Instant::now();
    assert_eq!(server.get("/apis").await.code, 429);
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

/// Policy that allows the user `tester` only the health paths.
struct HealthAlone;

impl Policy for HealthAlone {
    fn allows(&self, _: &Call) -> bool {
        true
    }

    fn allows_path(&self, user: &User, verb: &str, path: &str) -> bool {
        (&*user.name, verb, path) == ("tester", "get", "/healthz")
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_asked_for_paths() {
    let server = Server::new();
    server.memkube.set_policy(Arc::new(HealthAlone));
    assert_eq!(server.get("/healthz").await.code, 200);
    let refused = server.get("/apis").await;
    assert_eq!(
        refused.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden",
            "message": "forbidden: User \"tester\" cannot get path \"/apis\"", "code": 403,
        })
    );
    let posted = server.call(Method::POST, "/healthz", "", "").await;
    assert_eq!(posted.refusal(), (403, "forbidden: User \"tester\" cannot post path \"/healthz\""));
}
