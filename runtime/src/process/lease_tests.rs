//! Tests of leader election on a small Lease API in this process, under paused time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::*;
use crate::limits::LeaseTimes;
use fleetnet_types::Timestamp;

const NAMESPACE: &str = "fleet-system";
const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

/// Fault of the simulated Lease server.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Responds with 500 and does not execute the request.
    Fails,
    /// Never responds and does not execute the request.
    Silent,
    /// Executes the request but never responds.
    LosesAnswer,
    /// Responds with 403.
    Forbids,
}

type Hook = Box<dyn FnMut(&Method, &str, &mut BTreeMap<String, Value>) + Send>;

#[derive(Default)]
struct State {
    leases: BTreeMap<String, Value>,
    version: u64,
    /// Present fault of the server, if any. The second value is true if the fault also applies to reads.
    fault: Option<(Fault, bool)>,
    /// Present fault of the requests about one Lease.
    fault_of: Option<(String, Fault)>,
    /// Lease that each read returns in place of the present one.
    old: Option<Value>,
    /// True if candidates have no right to watch.
    denies_watches: bool,
    /// True if the server ends each watch at once.
    ends_watches: bool,
    /// Time that the server takes for a response.
    delay: Duration,
    /// Function that the server calls before each request, to change a Lease at that moment.
    before: Option<Hook>,
    /// Method and Lease name of each request so far.
    log: Vec<String>,
}

type Answer = UnsyncBoxBody<Bytes, std::io::Error>;

fn response(status: u16, body: &Value) -> Response<Answer> {
    let body = Answer::new(Full::from(body.to_string()).map_err(|never| match never {}));
    Response::builder().status(status).body(body).unwrap()
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                if let Some(query) = head.uri.query().filter(|query| query.contains("watch=true")) {
                    return Ok(server.watch(query));
                }
                let answer = server.handle(&head.method, head.uri.path(), body);
                let delay = server.0.lock().unwrap().delay;
                sleep(delay).await;
                match answer {
                    Some((status, body)) => Ok::<_, std::io::Error>(response(status, &body)),
                    None => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    fn handle(&self, method: &Method, path: &str, body: Value) -> Option<(u16, Value)> {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
        let name = match path.strip_prefix(&collection).unwrap().strip_prefix('/') {
            Some(name) => name.to_owned(),
            None => body["metadata"]["name"].as_str().unwrap().to_owned(),
        };
        let mut state = self.0.lock().unwrap();
        state.log.push(format!("{method} {name}"));
        let state = &mut *state;
        if let Some(before) = &mut state.before {
            before(method, &name, &mut state.leases);
        }
        let of_lease = state.fault_of.as_ref().filter(|(lease, _)| *lease == name).map(|(_, fault)| (*fault, true));
        match of_lease.or(state.fault).filter(|(_, all)| *all || *method != Method::GET) {
            Some((Fault::Silent, _)) => None,
            Some((Fault::Fails, _)) => Some((500, json!({"message": "etcd is away"}))),
            Some((Fault::Forbids, _)) => Some((403, json!({"message": "not for you"}))),
            Some((Fault::LosesAnswer, _)) => {
                state.apply(method, name, body);
                None
            }
            None => Some(state.apply(method, name, body)),
        }
    }

    /// Responds to a watch of one Lease: sends each change of the Lease after the given version.
    fn watch(&self, query: &str) -> Response<Answer> {
        let of = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)).unwrap().to_owned();
        let (name, after) = (of("fieldSelector=metadata.name%3D"), of("resourceVersion="));
        self.0.lock().unwrap().log.push(format!("WATCH {name}"));
        if self.0.lock().unwrap().denies_watches {
            return response(403, &json!({"code": 403, "message": "not for you"}));
        }
        if self.0.lock().unwrap().ends_watches {
            return response(200, &json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}));
        }
        let server = self.clone();
        let lines = stream::unfold(after, move |after| {
            let (server, name) = (server.clone(), name.clone());
            async move {
                loop {
                    let lease = server.lease(&name).unwrap_or_default();
                    if let Some(version) =
                        lease["metadata"]["resourceVersion"].as_str().filter(|version| *version != after)
                    {
                        let line = format!("{}\n", json!({"type": "MODIFIED", "object": lease}));
                        return Some((Ok::<_, std::io::Error>(Frame::data(Bytes::from(line))), version.to_owned()));
                    }
                    sleep(Duration::from_millis(1)).await;
                }
            }
        });
        Response::new(Answer::new(StreamBody::new(lines)))
    }

    fn lease(&self, name: &str) -> Option<Value> {
        self.0.lock().unwrap().leases.get(name).cloned()
    }

    fn holder(&self, name: &str) -> String {
        self.lease(name).map_or_else(String::new, |lease| lease["spec"]["holderIdentity"].as_str().unwrap().to_owned())
    }

    /// Writes the Lease as another client does.
    fn put(&self, name: &str, spec: Value) {
        let mut state = self.0.lock().unwrap();
        state.version += 1;
        let metadata = json!({"name": name, "namespace": NAMESPACE, "resourceVersion": state.version.to_string()});
        state.leases.insert(name.to_owned(), json!({"metadata": metadata, "spec": spec}));
    }

    /// Returns a server with the Lease `one` of another process.
    fn with_lease_of_other() -> Self {
        let server = Self::default();
        server.put_lease("one", "other", "2027-01-15T08:00:00.000000Z");
        server
    }

    fn put_lease(&self, name: &str, holder: &str, renew_time: &str) {
        self.put(name, json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renew_time}));
    }

    fn remove(&self, name: &str) {
        self.0.lock().unwrap().leases.remove(name);
    }

    fn fault(&self, fault: Option<(Fault, bool)>) {
        self.0.lock().unwrap().fault = fault;
    }

    fn fault_of(&self, lease: &str, fault: Option<Fault>) {
        self.0.lock().unwrap().fault_of = fault.map(|fault| (lease.to_owned(), fault));
    }

    fn before(&self, hook: impl FnMut(&Method, &str, &mut BTreeMap<String, Value>) + Send + 'static) {
        self.0.lock().unwrap().before = Some(Box::new(hook));
    }

    fn writes(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        state.log.iter().filter(|entry| !entry.starts_with("GET") && !entry.starts_with("WATCH")).cloned().collect()
    }

    fn forget_log(&self) {
        self.0.lock().unwrap().log.clear();
    }
}

impl State {
    fn apply(&mut self, method: &Method, name: String, mut object: Value) -> (u16, Value) {
        let lease = self.leases.get(&name);
        match (method, lease) {
            (&Method::GET, Some(lease)) => return (200, self.old.as_ref().unwrap_or(lease).clone()),
            (&Method::POST, Some(_)) => return (409, json!({"reason": "AlreadyExists"})),
            (&Method::GET | &Method::PUT, None) => return (404, json!({"reason": "NotFound"})),
            (&Method::PUT, Some(lease))
                if lease["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] =>
            {
                return (409, json!({"reason": "Conflict"}));
            }
            _ => {}
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.leases.insert(name, object.clone());
        (200, object)
    }
}

/// Process that takes part in an election, and the ways to stop it.
struct Candidate {
    state: watch::Receiver<Leadership>,
    task: JoinHandle<()>,
    release: oneshot::Sender<()>,
}

impl Candidate {
    fn start(server: &Server, identity: &str, names: &[&str]) -> Self {
        Self::with_clock(server, identity, names, &Clock::virtual_at(START))
    }

    /// Returns a candidate that already leads.
    async fn leading(server: &Server, identity: &str, names: &[&str]) -> Self {
        let mut candidate = Self::start(server, identity, names);
        candidate.leads().await;
        candidate
    }

    /// Returns a new server, and the candidate `a`, which leads with the Lease `one` of this server.
    async fn leading_one() -> (Server, Self) {
        let server = Server::default();
        let candidate = Self::leading(&server, "a", &["one"]).await;
        (server, candidate)
    }

    fn with_default_times(server: &Server, identity: &str, names: &[&str]) -> Self {
        Self::run(
            LeaseConfig { times: LeaseTimes::default(), ..config(server, identity, names) },
            &Clock::virtual_at(START),
        )
    }

    fn with_clock(server: &Server, identity: &str, names: &[&str], clock: &Clock) -> Self {
        Self::run(config(server, identity, names), clock)
    }

    fn run(config: LeaseConfig, clock: &Clock) -> Self {
        let (release, released) = oneshot::channel();
        let (state, task) = elect(config, clock, Metrics::unregistered(), released).unwrap();
        Self { state, task, release }
    }

    /// Ends the process without a release, as SIGKILL does.
    async fn kill(self) {
        self.task.abort();
        self.task.await.unwrap_err();
    }

    async fn reaches(&mut self, wanted: impl FnMut(&Leadership) -> bool) {
        let reached = self.state.wait_for(wanted);
        let reached = timeout(Duration::from_secs(600), reached).await;
        reached.expect("it takes minutes at most").expect("the election goes on");
    }

    async fn leads(&mut self) {
        self.reaches(Leadership::may_write).await;
    }

    async fn waits_for(&mut self, lease: &str, identity: &str) {
        let holder = Holder { lease: lease.to_owned(), identity: identity.to_owned() };
        let waiting = Leadership::Waiting { holder: Some(holder) };
        self.reaches(|state| *state == waiting).await;
    }

    async fn loses(&mut self) {
        assert!(self.is_leading());
        self.reaches(|state| !state.may_write()).await;
    }

    async fn stop(self) {
        self.release.send(()).unwrap();
        self.task.await.unwrap();
    }

    fn is_leading(&self) -> bool {
        self.state.borrow().may_write()
    }

    /// True if it leads, and has led since [`Candidate::leads`] without a break.
    fn has_led_on(&self) -> bool {
        self.is_leading() && !self.state.has_changed().unwrap()
    }
}

fn config(server: &Server, identity: &str, names: &[&str]) -> LeaseConfig {
    LeaseConfig {
        client: server.client(),
        namespace: NAMESPACE.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        identity: identity.to_owned(),
        times: LeaseTimes {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        },
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_does_not_exist_is_made_as_client_go_makes_it() {
    let (server, _candidate) = Candidate::leading_one().await;
    let lease = server.lease("one").unwrap();
    assert_eq!(lease["apiVersion"], "coordination.k8s.io/v1");
    assert_eq!(lease["kind"], "Lease");
    assert_eq!(
        lease["spec"],
        json!({
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2027-01-15T08:00:00.000000Z",
            "renewTime": "2027-01-15T08:00:00.000000Z",
            "leaseTransitions": 0,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_every_two_seconds_and_nothing_but_its_time_changes() {
    let (server, _candidate) = Candidate::leading_one().await;
    server.forget_log();
    tokio::time::sleep(Duration::from_millis(20_500)).await;
    assert_eq!(server.writes(), ["PUT one"; 10]);
    assert_eq!(
        server.lease("one").unwrap()["spec"],
        json!({
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2027-01-15T08:00:00.000000Z",
            "renewTime": "2027-01-15T08:00:20.000000Z",
            "leaseTransitions": 0,
        })
    );
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn a_leader_may_write_until_ten_seconds_after_it_sent_its_last_renewal() {
    let (_server, candidate) = Candidate::leading_one().await;
    tokio::time::sleep(Duration::from_millis(20_500)).await;
    let Leadership::Leading { until } = *candidate.state.borrow() else { panic!("it leads") };
    assert_eq!(until, Some(Instant::now() + Duration::from_millis(9_500)));
}

/// Also rule K1.
#[tokio::test(start_paused = true)]
async fn a_lease_of_another_is_taken_once_we_have_seen_it_unchanged_for_its_duration_whatever_its_times_say() {
    for renew_time in ["1999-01-01T00:00:00.000000Z", "2027-01-15T08:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let server = Server::default();
        server.put_lease("one", "other", renew_time);
        let start = Instant::now();
        let mut candidate = Candidate::start(&server, "a", &["one"]);
        candidate.waits_for("one", "other").await;
        candidate.leads().await;
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(15) && waited <= Duration::from_millis(19_400), "{waited:?}");
    }
}

/// Rule K18: An agent's container starts again in its pod after a crash (SIGKILL, out of memory, a failed liveness
/// probe), and the environment variable `POD_UID` has the UID of the pod, as in the manifests
/// Then: The agent takes the Leases of its earlier process at once, because the kubelet starts a container again only
/// when its last process has ended. It does not take the Leases of processes in other pods before they expire. Without
/// the variable, it waits until the Leases expire
#[tokio::test(start_paused = true)]
async fn a_process_takes_the_lease_of_the_crashed_process_of_its_pod_at_once_and_no_other() {
    let ours = "hub-agent_host.example_pod-1.b";
    for (holder, is_earlier) in [
        ("hub-agent_host.example_pod-1.a", true),
        ("hub-agent_host.example_pod-2.a", false),
        ("member-agent_host.example_pod-1.a", false),
        ("hub-agent_other.example_pod-1.a", false),
        ("hub-agent_host.example_pod-1", false),
        ("hub-agent_host.example_a", false),
        ("host.example_a", false),
    ] {
        let server = Server::default();
        server.put_lease("one", holder, "2027-01-15T08:00:00.000000Z");
        let start = Instant::now();
        Candidate::start(&server, ours, &["one"]).leads().await;
        assert_eq!(start.elapsed() < Duration::from_secs(1), is_earlier, "{holder} after {:?}", start.elapsed());
        assert_eq!(server.holder("one"), ours);
    }
    // Without the UID of the pod, two processes of one host are never taken for one another.
    let server = Server::default();
    server.put_lease("one", "hub-agent_host.example_a", "2027-01-15T08:00:00.000000Z");
    let start = Instant::now();
    Candidate::start(&server, "hub-agent_host.example_b", &["one"]).leads().await;
    assert!(start.elapsed() >= Duration::from_secs(15), "{:?}", start.elapsed());
}

/// Also rule K18.
#[tokio::test(start_paused = true)]
async fn a_process_stops_leading_when_the_next_process_of_its_pod_has_its_lease() {
    let server = Server::default();
    let mut earlier = Candidate::leading(&server, "hub-agent_host_pod.a", &["one"]).await;
    let next = Candidate::leading(&server, "hub-agent_host_pod.b", &["one"]).await;
    earlier.loses().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(next.is_leading() && !earlier.is_leading(), "a process that has led waits for others of its pod too");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_is_never_taken_though_its_holders_clock_is_years_behind() {
    let server = Server::default();
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    server.put_lease("one", "other", "1999-01-01T00:00:00.000000Z");
    for second in (10..59).step_by(7) {
        server.put_lease("one", "other", &format!("1999-01-01T00:00:{second}.000000Z"));
        tokio::time::sleep(Duration::from_secs(14)).await;
        candidate.waits_for("one", "other").await;
    }
    assert_eq!(server.writes(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_and_waited_for_as_ever_while_the_wall_clock_is_set() {
    for hour in [3_600_000_000, -3_600_000_000] {
        let (server, clock) = (Server::default(), Clock::virtual_at(START));
        let mut leader = Candidate::with_clock(&server, "a", &["one"], &clock);
        leader.leads().await;
        let mut candidate = Candidate::with_clock(&server, "b", &["one"], &clock);
        tokio::time::sleep(Duration::from_millis(500)).await;
        for _ in 0..3 {
            clock.set_by(hour);
            server.forget_log();
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(server.writes(), ["PUT one"; 10], "renewed every two seconds, and taken by nobody");
        }
        assert_eq!(server.holder("one"), "a");

        // The holder's process ends without a release. The other candidate must not take the Lease before it has seen
        // no change of it for the lease duration.
        leader.task.abort();
        clock.set_by(hour);
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(server.holder("one"), "a");
        clock.set_by(hour);
        candidate.leads().await;
        let renewed = 1_800_000_000 + 60 + 5 * hour / 1_000_000;
        let acquired = server.lease("one").unwrap()["spec"]["acquireTime"].as_str().unwrap().to_owned();
        let acquired: jiff::Timestamp = acquired.parse().unwrap();
        let after = acquired.as_second() - renewed;
        // The candidate watches the Lease, so it takes it after 15 s. The limits allow for timestamps in whole seconds.
        assert!((14..=16).contains(&after), "taken {after} s after it was last renewed");
    }
}

/// Also rule K1.
#[tokio::test(start_paused = true)]
async fn a_write_that_leaves_the_spec_as_it_is_does_not_prolong_a_lease() {
    let server = Server::default();
    let start = Instant::now();
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    for _ in 0..7 {
        server.put_lease("one", "other", "2027-01-15T08:00:00.000000Z");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    candidate.leads().await;
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Also rule K1.
#[tokio::test(start_paused = true)]
async fn the_duration_that_counts_is_the_one_that_the_holder_promised() {
    let server = Server::default();
    server.put("one", json!({"holderIdentity": "other", "leaseDurationSeconds": 60}));
    let start = Instant::now();
    let _candidate = Candidate::leading(&server, "a", &["one"]).await;
    assert!(start.elapsed() >= Duration::from_secs(60));

    let server = Server::default();
    server.put("one", json!({"holderIdentity": "other"}));
    let start = Instant::now();
    let _candidate = Candidate::leading(&server, "a", &["one"]).await;
    assert!(start.elapsed() >= Duration::from_secs(15), "without a promise ours counts");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_counts_and_keeps_what_others_wrote_beside() {
    let server = Server::default();
    server.put(
        "one",
        json!({"holderIdentity": "other", "leaseDurationSeconds": 1, "leaseTransitions": 4, "strategy": "Oldest"}),
    );
    server.0.lock().unwrap().leases.get_mut("one").unwrap()["metadata"]["annotations"] = json!({"kept": "yes"});
    let _candidate = Candidate::leading(&server, "a", &["one"]).await;
    let lease = server.lease("one").unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 5);
    assert_eq!(lease["spec"]["strategy"], "Oldest");
    assert_eq!(lease["metadata"]["annotations"]["kept"], "yes");
}

/// Rule K5: An agent stops
/// Then: The agent starts no new write, waits up to 10 s for the writes in flight, then releases its Leases. If the
/// server may still execute a write, the agent does not release its Leases, and the Leases expire. A waiting replica
/// watches the Leases and takes released Leases at once; without the right to watch them, within 2.2 retry periods (1.1
/// s). If a read still shows the holder, the replica reads again after as long
#[tokio::test(start_paused = true)]
async fn a_graceful_stop_releases_the_lease() {
    let (server, first) = Candidate::leading_one().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.stop().await;
    assert_eq!(
        server.lease("one").unwrap()["spec"],
        json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": "2027-01-15T08:00:00.500000Z",
            "renewTime": "2027-01-15T08:00:00.500000Z",
            "leaseTransitions": 0,
        })
    );
    let _second = Candidate::leading(&server, "b", &["one"]).await;
    assert_eq!(server.lease("one").unwrap()["spec"]["leaseTransitions"], 1);
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    for (denies_watches, longest) in [(false, Duration::from_millis(2)), (true, Duration::from_millis(4_400))] {
        let server = Server::default();
        server.0.lock().unwrap().denies_watches = denies_watches;
        let first = Candidate::leading(&server, "a", &["one", "two"]).await;
        let mut second = Candidate::start(&server, "b", &["one", "two"]);
        second.waits_for("one", "a").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let watches = server.0.lock().unwrap().log.iter().filter(|entry| **entry == "WATCH one").count();
        assert!(watches <= 2, "one watch for as long as it lasts, or one a minute: {watches}");
        let stopped_at = Instant::now();
        first.stop().await;
        second.leads().await;
        assert!(stopped_at.elapsed() <= longest, "{:?}", stopped_at.elapsed());
    }
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn a_release_that_reads_do_not_show_is_looked_at_once_in_each_retry_period() {
    let server = Server::default();
    server.0.lock().unwrap().delay = Duration::from_millis(1);
    server.put_lease("one", "other", "2027-01-15T08:00:00.000000Z");
    let old = server.lease("one");
    server.put_lease("one", "", "2027-01-15T08:00:01.000000Z");
    server.0.lock().unwrap().old = old;
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    candidate.waits_for("one", "other").await;
    server.forget_log();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let requests = server.0.lock().unwrap().log.len();
    assert!((2..=6).contains(&requests), "{requests} requests in 10 s");
    server.0.lock().unwrap().old = None;
    candidate.leads().await;
}

/// Rule K1: Another process has the Lease
/// Then: The agent takes the Lease when its `spec` has stayed the same for as long as the lease duration in this
/// `spec`. The agent measures this duration with its own clock, and ignores the times in the Lease. It watches the
/// Lease, so it knows the last renewal, and takes the Lease at the moment of its expiry
#[tokio::test(start_paused = true)]
async fn a_watched_lease_is_taken_at_the_moment_of_its_expiry() {
    for into_period in [1, 900, 1_900].map(Duration::from_millis) {
        let (server, first) = Candidate::leading_one().await;
        let mut second = Candidate::start(&server, "b", &["one"]);
        second.waits_for("one", "a").await;
        tokio::time::sleep(Duration::from_secs(20) + into_period).await;
        server.forget_log();
        first.kill().await;
        let killed = Instant::now();
        second.leads().await;
        let late = (killed.elapsed() + into_period).saturating_sub(Duration::from_secs(15));
        assert!(late <= Duration::from_millis(5), "{late:?} after the expiry");
    }
}

/// Also rule K1.
#[tokio::test(start_paused = true)]
async fn while_a_watch_shows_renewals_nobody_reads_the_lease() {
    let (server, _first) = Candidate::leading_one().await;
    let mut second = Candidate::start(&server, "b", &["one"]);
    second.waits_for("one", "a").await;
    server.forget_log();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let reads = server.0.lock().unwrap().log.iter().filter(|entry| entry.starts_with("GET")).count();
    assert_eq!(reads, 0, "reads in 10 minutes");
}

/// Also rule K1.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_begun_again_once_a_second() {
    let server = Server::default();
    server.0.lock().unwrap().ends_watches = true;
    server.put_lease("one", "other", "2027-01-15T08:00:00.000000Z");
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    candidate.waits_for("one", "other").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let watches = server.0.lock().unwrap().log.iter().filter(|entry| entry.starts_with("WATCH")).count();
    assert!((9..=11).contains(&watches), "{watches} watches in 10 s");
    candidate.leads().await;
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn the_other_leases_of_a_killed_leader_are_free_when_its_first_one_has_expired() {
    let names = ["one", "three", "two"];
    let server = Server::default();
    let mut first = Candidate::with_default_times(&server, "a", &names);
    first.leads().await;
    let mut second = Candidate::with_default_times(&server, "b", &names);
    second.waits_for("one", "a").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    first.kill().await;
    let killed = Instant::now();
    second.leads().await;
    assert!(killed.elapsed() <= Duration::from_millis(3_005), "{:?}", killed.elapsed());
    assert!(names.iter().all(|name| server.holder(name) == "b"));

    // An agent of another kind is not deposed with them.
    let server = Server::default();
    server.put_lease("one", "a", "2027-01-15T08:00:00.000000Z");
    server.put("two", json!({"holderIdentity": "other", "leaseDurationSeconds": 60}));
    let begun = Instant::now();
    let mut candidate = Candidate::with_default_times(&server, "b", &["one", "two"]);
    candidate.leads().await;
    assert!(begun.elapsed() >= Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_deposed_once_and_leads_again_is_waited_for() {
    let server = Server::default();
    let lead_again = || ["one", "two"].map(|name| server.put_lease(name, "other", "2027-01-15T08:00:00.000000Z"));
    lead_again();
    let mut candidate = Candidate::leading(&server, "a", &["one", "two"]).await;
    for _ in 0..3 {
        lead_again();
        candidate.loses().await;
        let lost = Instant::now();
        candidate.leads().await;
        assert!(lost.elapsed() >= Duration::from_secs(12), "{:?}", lost.elapsed());
    }
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn a_deposed_leader_that_leads_again_keeps_its_other_leases() {
    let names = ["one", "two"];
    let server = Server::with_lease_of_other();
    server.put_lease("two", "other", "2027-01-15T08:00:00.000000Z");
    let mut candidate = Candidate::leading(&server, "a", &names).await;
    for name in names {
        server.put_lease(name, "other", "2027-01-15T08:01:00.000000Z");
    }
    candidate.loses().await;
    candidate.waits_for("one", "other").await;
    server.remove("one");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server.holder("two"), "other", "it holds what has not expired");
    candidate.leads().await;
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn five_leases_cost_three_writes_a_second() {
    let server = Server::default();
    let mut candidate = Candidate::with_default_times(&server, "a", &["1", "2", "3", "4", "5"]);
    candidate.leads().await;
    server.forget_log();
    tokio::time::sleep(Duration::from_millis(60_100)).await;
    assert_eq!(server.writes().len(), 120 + 4 * 15);
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn a_leader_that_loses_one_lease_among_several_leads_again_with_all_of_them() {
    let server = Server::default();
    let mut candidate = Candidate::with_default_times(&server, "a", &["one", "two"]);
    candidate.leads().await;
    server.put("two", json!({"holderIdentity": "thief", "leaseDurationSeconds": 5}));
    candidate.loses().await;
    candidate.leads().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(candidate.is_leading());
    assert_eq!((server.holder("one"), server.holder("two")), ("a".to_owned(), "a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_a_release_leaves_the_lease_to_expire() {
    let (server, candidate) = Candidate::leading_one().await;
    drop(candidate.release);
    candidate.task.await.unwrap();
    assert_eq!(server.holder("one"), "a");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_without_a_lease_stops_without_a_write() {
    let server = Server::with_lease_of_other();
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    candidate.waits_for("one", "other").await;
    candidate.stop().await;
    assert_eq!(server.writes(), [] as [&str; 0]);
}

/// Also rule K2.
#[tokio::test(start_paused = true)]
async fn leadership_is_lost_ten_seconds_after_the_last_renewal_was_sent_and_before_anybody_may_take_over() {
    for fault in [Fault::Fails, Fault::Silent, Fault::Forbids] {
        let (server, mut candidate) = Candidate::leading_one().await;
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        let last_renewal = Instant::now() - Duration::from_millis(500);
        server.fault(Some((fault, true)));

        candidate.loses().await;
        assert_eq!(last_renewal.elapsed(), Duration::from_secs(10));

        server.fault(None);
        candidate.leads().await;
        assert_eq!(server.lease("one").unwrap()["spec"]["leaseTransitions"], 0, "nobody else has led");
    }
}

/// Rule K2: A leader cannot renew its Lease
/// Then: The leader stops leading when the renew deadline (`--leader-election-renew-deadline`) has passed since the
/// leader sent its last successful renewal. If one answer is lost, the leader still has time for a second attempt. It
/// renews each of its Leases for itself. The process does not end: it keeps its views, and leads again as soon as it
/// can renew its Lease, unless another replica has taken it
#[tokio::test(start_paused = true)]
async fn the_time_that_an_answer_is_under_way_is_not_added_to_the_deadline() {
    let server = Server::default();
    server.0.lock().unwrap().delay = Duration::from_secs(3);
    let start = Instant::now();
    let mut candidate = Candidate::leading(&server, "a", &["one"]).await;
    assert_eq!(start.elapsed(), Duration::from_secs(6), "a look and a write, sent after 3 s");
    tokio::time::sleep(Duration::from_millis(1)).await;
    server.fault(Some((Fault::Silent, true)));
    candidate.loses().await;
    assert_eq!(
        start.elapsed(),
        Duration::from_secs(16),
        "the first renewal was sent after 6 s, and answered after 9 s"
    );
}

/// Also rule K2.
#[tokio::test(start_paused = true)]
async fn a_fault_shorter_than_the_deadline_is_survived() {
    for fault in [Fault::Fails, Fault::Silent, Fault::LosesAnswer] {
        let (server, candidate) = Candidate::leading_one().await;
        for _ in 0..5 {
            server.fault(Some((fault, true)));
            tokio::time::sleep(Duration::from_secs(4)).await;
            server.fault(None);
            tokio::time::sleep(Duration::from_secs(8)).await;
            assert!(candidate.has_led_on());
        }
        assert_eq!(server.lease("one").unwrap()["spec"]["leaseTransitions"], 0);
    }
}

/// Rule K3: Another process takes the Lease of a leader, or may take it
/// Then: The former leader stops leading at once, and becomes a candidate. The hub agent ends its slice streams, and
/// the member agent ends its own. Only the leader exports metrics about members and about unfinished writes. A leader
/// that did not run for a while (SIGSTOP, a frozen machine) sends no write after its renew deadline. It does not matter
/// what it handles first when it goes on
#[tokio::test(start_paused = true)]
async fn leadership_is_lost_at_once_when_another_has_the_lease() {
    let (server, mut candidate) = Candidate::leading_one().await;
    let start = Instant::now();
    server.put_lease("one", "thief", "2027-01-15T08:00:00.000000Z");
    candidate.loses().await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    candidate.waits_for("one", "thief").await;
    assert_eq!(server.holder("one"), "thief");
    candidate.leads().await;
    assert_eq!(start.elapsed(), Duration::from_secs(17), "it leads again when the other has not renewed");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_touched_or_deleted_by_an_administrator_goes_on() {
    let (server, candidate) = Candidate::leading_one().await;

    let mut spec = server.lease("one").unwrap()["spec"].take();
    spec["preferredHolder"] = json!("a");
    server.put("one", spec);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(server.lease("one").unwrap()["spec"]["preferredHolder"], "a");
    assert_eq!(server.lease("one").unwrap()["spec"]["renewTime"], "2027-01-15T08:00:02.000000Z");

    server.remove("one");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(server.holder("one"), "a");
    assert!(candidate.has_led_on());
}

/// Rule K4: An agent needs several Leases
/// Then: The agent takes all Leases or none. If the agent does not get one of the Leases, the agent releases the Leases
/// that it has taken. The first Lease decides between replicas. The others keep only agents of another kind away: they
/// last 15 s, and are renewed every 4 s. When the first Lease of a holder has expired, its others are free too
#[tokio::test(start_paused = true)]
async fn of_several_leases_none_is_touched_while_one_belongs_to_another() {
    let server = Server::default();
    server.put_lease("two", "other", "2027-01-15T08:00:00.000000Z");
    let mut candidate = Candidate::start(&server, "a", &["one", "two", "three"]);
    for second in 10..40 {
        server.put_lease("two", "other", &format!("2027-01-15T08:00:{second}.000000Z"));
        tokio::time::sleep(Duration::from_secs(5)).await;
        candidate.waits_for("two", "other").await;
    }
    assert_eq!(server.writes(), [] as [&str; 0]);
    assert_eq!(server.lease("one"), None);

    server.put("two", json!({"holderIdentity": ""}));
    candidate.leads().await;
    assert_eq!(server.writes(), ["POST one", "POST three", "PUT two"]);
}

/// Also rule K4.
#[tokio::test(start_paused = true)]
async fn acquired_leases_are_released_when_another_acquires_the_next_one() {
    let server = Server::default();
    server.before(|method, name, leases| {
        if *method == Method::POST && name == "two" && !leases.contains_key("two") {
            let spec = json!({"holderIdentity": "other", "leaseDurationSeconds": 15});
            leases.insert("two".to_owned(), json!({"metadata": {"resourceVersion": "1000"}, "spec": spec}));
        }
    });
    let mut candidate = Candidate::start(&server, "a", &["one", "two"]);
    candidate.waits_for("two", "other").await;
    assert!(!candidate.is_leading());
    assert_eq!(server.holder("one"), "");
    assert_eq!(server.holder("two"), "other");
    assert_eq!(server.writes(), ["POST one", "POST two", "PUT one"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_for_several_leases_one_has_all_and_the_other_none_and_neither_waits_for_ever() {
    let server = Server::default();
    let names = ["one", "two", "three"];
    let reversed = ["three", "two", "one"];
    let mut first = Candidate::start(&server, "a", &names);
    let mut second = Candidate::start(&server, "b", &reversed);
    for round in 0..10 {
        tokio::select! {
            () = first.leads() => {}
            () = second.leads() => {}
        }
        let holders: Vec<String> = names.iter().map(|name| server.holder(name)).collect();
        assert!(holders.iter().all(|holder| *holder == holders[0]), "{holders:?}");
        assert!(first.is_leading() != second.is_leading());

        // The leader stops, and a new candidate replaces it.
        if first.is_leading() {
            first.stop().await;
            second.leads().await;
            first = Candidate::start(&server, &format!("a{round}"), &names);
        } else {
            second.stop().await;
            first.leads().await;
            second = Candidate::start(&server, &format!("b{round}"), &reversed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn candidates_for_overlapping_leases_do_not_wait_for_each_other() {
    let server = Server::default();
    let both = Candidate::leading(&server, "both", &["one", "two"]).await;
    let mut only_two = Candidate::start(&server, "only", &["two"]);
    only_two.waits_for("two", "both").await;
    both.stop().await;
    only_two.leads().await;
    let mut both = Candidate::start(&server, "both", &["one", "two"]);
    both.waits_for("two", "only").await;
    assert_eq!(server.holder("one"), "", "what cannot be used is left to others");
    only_two.stop().await;
    both.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_a_write_without_an_answer_releases_the_lease_of_that_write() {
    let server = Server::default();
    server.fault(Some((Fault::LosesAnswer, false)));
    let candidate = Candidate::start(&server, "a", &["one"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.holder("one"), "a");
    server.fault(None);
    candidate.stop().await;
    assert_eq!(server.holder("one"), "");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_server_is_away_ends_all_the_same() {
    let (server, candidate) = Candidate::leading_one().await;
    server.fault(Some((Fault::Silent, true)));
    let start = Instant::now();
    candidate.stop().await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_waited_for() {
    let server = Server::default();
    server.fault(Some((Fault::Forbids, true)));
    let mut candidate = Candidate::start(&server, "a", &["one"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*candidate.state.borrow(), Leadership::Waiting { holder: None });
    server.fault(None);
    candidate.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_can_never_be_taken_costs_few_requests() {
    let server = Server::default();
    server.put("one", json!({"holderIdentity": ""}));
    server.before(|method, name, leases| {
        // Somebody else creates the second Lease at each attempt, and deletes it.
        match (method, name) {
            (&Method::POST, "two") => {
                drop(leases.insert("two".to_owned(), json!({"metadata": {"resourceVersion": "1000"}})));
            }
            (&Method::GET, "two") => drop(leases.remove("two")),
            _ => {}
        }
    });
    let candidate = Candidate::with_default_times(&server, "a", &["one", "two"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let requests = server.0.lock().unwrap().log.len();
    assert!((100..=1_000).contains(&requests), "{requests} requests in a minute");
    assert!(!candidate.is_leading());
}

/// Also rule K2.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_about_another_lease_costs_no_leadership() {
    let server = Server::default();
    let mut candidate = Candidate::with_default_times(&server, "a", &["one", "two"]);
    candidate.leads().await;
    server.fault_of("two", Some(Fault::Silent));
    tokio::time::sleep(Duration::from_millis(5_900)).await;
    server.fault_of("two", None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(candidate.has_led_on());
    assert_eq!(server.lease("one").unwrap()["spec"]["leaseTransitions"], 0);
}

/// Rule K7: The flags for the durations of a Lease contradict each other
/// Then: The agent prints a message with the names of the flags, and exits
#[tokio::test(start_paused = true)]
async fn settings_out_of_order_are_rejected_by_flag() {
    let server = Server::default();
    let good = config(&server, "a", &["one"]);
    good.validate().unwrap();
    let rejection = |config: LeaseConfig| config.validate().unwrap_err().to_string();
    let seconds = Duration::from_secs;
    for (times, flag) in [
        (LeaseTimes { duration: seconds(10), ..good.times }, "--leader-election-lease-duration"),
        (LeaseTimes { renew_deadline: seconds(2), ..good.times }, "--leader-election-renew-deadline"),
        (LeaseTimes { retry_period: seconds(0), ..good.times }, "--leader-election-retry-period"),
    ] {
        assert!(rejection(LeaseConfig { times, ..good.clone() }).contains(flag), "{flag}");
    }
    assert!(rejection(LeaseConfig { names: Vec::new(), ..good.clone() }).contains("name"));

    let (_release, released) = oneshot::channel();
    let bad = LeaseConfig { identity: String::new(), ..good };
    assert!(elect(bad, &Clock::virtual_at(START), Metrics::unregistered(), released).is_err());
}

/// Rule A11: A hub is its own member, and the hub agent and the member agent need one Lease (bug B21)
/// Then: The agent without the Lease logs that the other agent (hub agent or member agent) has the Lease. The log line
/// also says what to do: set another `--leader-election-namespace` for one of the agents
#[test]
fn b21_an_agent_of_another_kind_that_holds_our_lease_is_known_by_its_identity() {
    let ours = "hub-agent_host_uuid";
    assert_eq!(other_kind("member-agent_host_uuid", ours), Some("member-agent"));
    assert_eq!(other_kind("hub-agent_elsewhere_uuid", ours), None);
    assert_eq!(other_kind("hub-net-controller-manager-5d_uuid", ours), None, "a Go agent");
}

#[test]
fn identities_name_kind_and_host_and_are_never_equal() {
    let first = identity("hub-agent");
    let parts: Vec<&str> = first.split('_').collect();
    assert_eq!((parts.len(), parts[0]), (3, "hub-agent"));
    assert!(!parts[1].is_empty());
    let dashes: Vec<usize> = parts[2].match_indices('-').map(|(index, _)| index).collect();
    assert_eq!((parts[2].len(), dashes), (36, vec![8, 13, 18, 23]));
    assert_eq!(&parts[2][14..15], "4");
    assert_ne!(first, identity("hub-agent"));
}
