//! Tests of the renewal of tokens, against a hub and a member that the test simulates, in paused time.
#![expect(clippy::disallowed_types, reason = "the servers are plain functions, which cannot await a lock")]

use std::sync::{Arc, Mutex};

use http::Response;
use kube::client::Body;
use tempfile::TempDir;
use tokio::time::Instant;
use tower::{BoxError, service_fn};

use super::*;
use crate::io::token::claims::tests::token;

const ACCOUNT: &str = "system:serviceaccount:fleet-member-west:member-agent";
const MINUTE: Duration = Duration::from_mins(1);

/// Hub and member of a test.
struct World {
    state: Arc<Mutex<State>>,
    folder: TempDir,
    begin: Instant,
}

struct State {
    /// Token in the Secret.
    stored: String,
    /// Version of the Secret. A write with another version gets 409.
    version: u64,
    /// Status with which the hub answers instead of a token.
    hub_fails: Option<u16>,
    member_fails: Option<u16>,
    /// Longest life that the hub grants.
    longest: u64,
    /// User of the tokens that the hub issues.
    account: String,
    issued: u64,
    /// Requests with their minute: `POST hub 0`, `PATCH member 0`, …
    log: Vec<String>,
    /// True if a user replaces the Secret's token between the read and the write of the agent.
    user_interferes: bool,
}

fn token_for(account: &str, number: u64, life: Option<u64>) -> String {
    let expiry = life.map(|life| format!(r#","exp":{}"#, 1000 + life)).unwrap_or_default();
    token(&format!(r#"{{"sub":"{account}","iat":1000,"number":{number}{expiry}}}"#))
}

impl World {
    fn new(first: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), first).unwrap();
        let state = State {
            stored: first.to_owned(),
            version: 7,
            hub_fails: None,
            member_fails: None,
            longest: u64::MAX,
            account: ACCOUNT.to_owned(),
            issued: 0,
            log: Vec::new(),
            user_interferes: false,
        };
        Self { state: Arc::new(Mutex::new(state)), folder, begin: Instant::now() }
    }

    fn expiring() -> Self {
        Self::new(&token_for(ACCOUNT, 0, Some(3600)))
    }

    fn cluster(&self, name: &'static str) -> Cluster {
        let (state, begin) = (Arc::clone(&self.state), self.begin);
        let client = Client::new(
            service_fn(move |request: Request<Body>| {
                let state = Arc::clone(&state);
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect_bytes().await.unwrap();
                    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let mut state = state.lock().unwrap();
                    state.log.push(format!("{} {name} {}", parts.method, begin.elapsed().as_secs() / 60));
                    let (code, answer) = if name == "hub" {
                        state.hub(parts.uri.path(), &body)
                    } else {
                        state.member(&parts.method, parts.uri.path(), &body)
                    };
                    let answer = Body::from(answer.to_string().into_bytes());
                    Ok::<_, BoxError>(Response::builder().status(code).body(answer).unwrap())
                }
            }),
            "default",
        );
        Cluster::from_clients(name, client.clone(), client)
    }

    fn renewal(&self) -> Renewal {
        Renewal {
            issuer: self.cluster("hub"),
            own: self.cluster("member"),
            secret_namespace: "fleet-system".to_owned(),
            secret_name: "fleetnet-hub".to_owned(),
            token_file: self.folder.path().join("token"),
        }
    }

    /// Runs the renewal for this time. The file follows the Secret after each attempt, as with a kubelet. Returns the
    /// outcomes.
    async fn run(&self, time: Duration) -> Vec<String> {
        let outcomes = Mutex::new(Vec::new());
        let report = |outcome: &Result<Outcome, RenewalError>| {
            outcomes.lock().unwrap().push(match outcome {
                Ok(Outcome::Renewed(_)) => "renewed".to_owned(),
                Ok(Outcome::NotRenewable(why)) => (*why).to_owned(),
                Err(error) => error.to_string(),
            });
            std::fs::write(self.folder.path().join("token"), &self.state.lock().unwrap().stored).unwrap();
        };
        let (_state, leadership) = watch::channel(Leadership::Leading { until: None });
        let run = self.renewal().run(leadership, Jitter::new(1), report);
        tokio::time::timeout(time, run).await.unwrap_err();
        outcomes.into_inner().unwrap()
    }

    fn with(self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.state.lock().unwrap());
        self
    }

    fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }
}

fn status(code: u16) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "no", "reason": "Reason"}))
}

impl State {
    fn hub(&mut self, path: &str, body: &Value) -> (u16, Value) {
        if let Some(code) = self.hub_fails {
            return status(code);
        }
        assert_eq!(path, "/api/v1/namespaces/fleet-member-west/serviceaccounts/member-agent/token");
        self.issued += 1;
        let life = body["spec"]["expirationSeconds"].as_u64().unwrap().min(self.longest);
        (201, json!({"status": {"token": token_for(&self.account, self.issued, Some(life))}}))
    }

    fn member(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if let Some(code) = self.member_fails {
            return status(code);
        }
        assert_eq!(path, "/api/v1/namespaces/fleet-system/secrets/fleetnet-hub");
        if *method == Method::GET {
            let version = self.version.to_string();
            self.version += u64::from(self.user_interferes);
            return (
                200,
                json!({"metadata": {"resourceVersion": version}, "data": {KEY: STANDARD.encode(&self.stored)}}),
            );
        }
        if body["metadata"]["resourceVersion"] != json!(self.version.to_string()) {
            return status(409);
        }
        self.version += 1;
        let written = STANDARD.decode(body["data"][KEY].as_str().unwrap()).unwrap();
        self.stored = String::from_utf8(written).unwrap();
        (200, json!({}))
    }
}

/// Rule K11: The token for the hub expires, and `--hub-token-secret` names its Secret
/// Then: The leader renews the token at its start, then every 8 h or at a third of the token's life. It writes the new
/// token only over the token that it uses, and only a token of the same account. After a failure it tries again within
/// 10 minutes. A token that does not expire stays
#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_at_the_start_and_then_every_eight_hours() {
    let world = World::expiring();
    assert_eq!(world.run(MINUTE * 60 * 17).await, ["renewed"; 3]);
    let round =
        |minute| [format!("GET member {minute}"), format!("POST hub {minute}"), format!("PATCH member {minute}")];
    assert_eq!(world.log(), [round(0), round(480), round(960)].concat());
    assert_eq!(Claims::of(&world.state.lock().unwrap().stored).unwrap().life(), Some(TOKEN_LIFE));
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn a_short_token_is_renewed_at_a_third_of_its_life() {
    let world = World::expiring().with(|state| state.longest = 3600);
    assert_eq!(world.run(MINUTE * 59).await.len(), 3, "at 0, 20 and 40 minutes");
    let world = World::expiring().with(|state| state.longest = 60);
    assert_eq!(world.run(MINUTE * 8).await.len(), 3, "at 0, 3 and 6 minutes");
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn after_a_hub_outage_of_29_days_the_token_is_renewed_within_ten_minutes() {
    let world =
        World::new(&token_for(ACCOUNT, 0, Some(TOKEN_LIFE.as_secs()))).with(|state| state.hub_fails = Some(503));
    let failed = world.run(MINUTE * 60 * 24 * 29).await;
    assert!(failed.iter().all(|outcome| outcome.starts_with("the TokenRequest failed: 503")), "{failed:?}");
    // 30 s, 1, 2, 4, 8 min, then 10 min each, each shortened by up to a quarter.
    assert!((4176..=5600).contains(&failed.len()), "{} attempts", failed.len());
    let world = world.with(|state| state.hub_fails = None);
    assert_eq!(world.run(MINUTE * 10).await, ["renewed"]);
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_expire_or_is_of_a_user_stays_as_it_is() {
    for (first, why) in [
        (token_for(ACCOUNT, 0, None), "it does not expire"),
        (token_for("jane", 0, Some(60)), "it is not the token of a service account"),
        ("static".to_owned(), "it is not the token of a service account"),
    ] {
        let world = World::new(&first);
        assert_eq!(world.run(MINUTE * 60 * 9).await, [why; 2]);
        assert_eq!(world.log(), [""; 0], "no request");
    }
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn a_token_that_a_user_puts_into_the_secret_is_not_overwritten() {
    let another_hub = token_for("system:serviceaccount:fleet-member-north:member-agent", 0, Some(3600));
    let world = World::expiring().with(|state| state.stored.clone_from(&another_hub));
    let failed = world.run(Duration::from_secs(5)).await;
    assert!(failed[0].contains("the Secret fleet-system/fleetnet-hub has another token"), "{failed:?}");
    assert_eq!(world.log(), ["GET member 0"]);

    let world = World::expiring().with(|state| state.user_interferes = true);
    let failed = world.run(Duration::from_secs(5)).await;
    assert!(failed[0].starts_with("writing the new token to its Secret failed: 409"), "{failed:?}");
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn a_wrong_answer_never_replaces_a_token() {
    let world = World::expiring().with(|state| state.account = "system:serviceaccount:other:account".to_owned());
    let before = world.state.lock().unwrap().stored.clone();
    assert!(world.run(Duration::from_secs(5)).await[0].ends_with("is of another user"));
    assert_eq!(world.state.lock().unwrap().stored, before);
}

#[tokio::test(start_paused = true)]
async fn the_error_names_what_failed_and_the_remedy() {
    type Change = fn(&mut State);
    let table: [(Change, &str); 4] = [
        (|it| it.hub_fails = Some(403), "apply deploy/hub-member.yaml in the hub"),
        (|it| it.hub_fails = Some(401), "fleetnet join MEMBER --apply --context CONTEXT"),
        (|it| it.member_fails = Some(403), "apply deploy/member-agent.yaml in the member"),
        (|it| it.member_fails = Some(404), "reading the Secret of the token failed: 404"),
    ];
    for (change, part) in table {
        let failed = World::expiring().with(change).run(Duration::from_secs(5)).await;
        assert!(failed[0].contains(part), "{part}: {failed:?}");
    }
}

/// Also rule K11.
#[tokio::test(start_paused = true)]
async fn only_a_leader_renews_its_token() {
    let world = World::expiring();
    let (state, leadership) = watch::channel(Leadership::Waiting { holder: None });
    let outcomes = Mutex::new(0);
    let run = world.renewal().run(leadership, Jitter::new(1), |_| *outcomes.lock().unwrap() += 1);
    let mut run = std::pin::pin!(run);
    tokio::time::timeout(Duration::from_hours(24), &mut run).await.unwrap_err();
    assert_eq!(*outcomes.lock().unwrap(), 0);
    state.send_replace(Leadership::Leading { until: None });
    tokio::time::timeout(Duration::from_secs(1), &mut run).await.unwrap_err();
    assert_eq!(*outcomes.lock().unwrap(), 1);
    state.send_replace(Leadership::Waiting { holder: None });
    tokio::time::timeout(Duration::from_hours(24), &mut run).await.unwrap_err();
    assert_eq!(*outcomes.lock().unwrap(), 1);
}
