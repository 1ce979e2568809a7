//! Tests of the decision whether the controller is active, and of what the agent tells the controller about writes.

use super::*;
use crate::Object;
use crate::takeover::{LeaseSeen, Mode};
use endpointslice::model::{EndpointSlice, Metadata, Service, ServiceSpec};
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use fleetnet_runtime::process::shutdown::Shutdown;
use fleetnet_runtime::{NAMESPACE_TERMINATING, WriteEnd};
use std::time::Duration;

const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
const LEASE: Source = Source::KubeControllerManagerLease;

/// Controller in its runs, as the agent runs it.
struct Runs {
    serving: Serving,
    ends: Shutdown,
    requeue: Vec<Key>,
    registry: Registry,
}

impl Runs {
    fn new(mode: Mode) -> Self {
        let registry = Registry::new();
        let serving = Serving::new(&Settings::with_mode(mode), &registry).expect("its metrics are the only ones");
        let mut runs = Self { serving, ends: Shutdown::new().1, requeue: Vec::new(), registry };
        runs.begin_run();
        runs
    }

    fn begin_run(&mut self) {
        let (end_of_run, ends) = Shutdown::new();
        self.serving.begin_run(end_of_run);
        (self.ends, self.requeue) = (ends, Vec::new());
    }

    fn observe(&mut self, source: Source, object: Watched, at: Timestamp) {
        self.serving.observe(source, Change::Applied(object), at, &mut self.requeue);
    }

    fn complete(&mut self, sources: &[Source]) {
        for source in sources {
            self.serving.watch(*source, WatchNews::State(WatchState::Complete), NOON, &mut self.requeue);
        }
    }

    fn leads(&mut self, at: Timestamp) {
        self.serving.process(ProcessNews::Leads, at, &mut self.requeue);
    }

    /// Plans a key and applies the effect of the plan, as the engine does.
    fn plan(&mut self, key: &Key, now: Timestamp) -> Plan<Source, SliceReceipt, Effect> {
        let mut plan = self.serving.plan(key, now);
        if let Some(effect) = plan.effect.take() {
            self.serving.planned(key, effect, now);
        }
        plan
    }

    /// Decides whether the controller is active. Begins a new run if the decision requires it. Returns the time of the
    /// next decision.
    fn decide(&mut self, now: Timestamp) -> Option<Timestamp> {
        let again = self.plan(&Key::Takeover, now).again;
        if self.ends.is_requested() {
            self.begin_run();
        }
        again
    }

    /// True if the controller is active in this run. If not, the metric says so.
    fn is_active(&self) -> bool {
        let is_active = self.serving.controller.is_serving();
        assert!(is_active || !self.shows_serving());
        is_active
    }

    fn shows_serving(&self) -> bool {
        self.serving.is_serving.get() == 1
    }
}

/// Returns the Lease of a kube-controller-manager that stopped an hour ago.
fn old_lease() -> Watched {
    let renewed = Some(NOON - Duration::from_secs(3_600));
    Watched::Lease(LeaseSeen { renewed, duration: Duration::from_secs(15) })
}

/// Returns a controller with complete watches. No other controller is active, so this controller becomes active once it
/// leads.
fn following() -> Runs {
    let duration = Duration::from_secs(15);
    let mut runs = Runs::new(Mode::Auto);
    runs.observe(LEASE, old_lease(), NOON);
    runs.complete(&[Source::Input(Input::EndpointSlice), LEASE]);
    assert_eq!(runs.decide(NOON), Some(NOON + duration));
    assert_eq!(runs.decide(NOON + duration), None);
    assert!(!runs.is_active(), "it does not lead");
    runs
}

fn leading() -> Runs {
    let mut runs = following();
    runs.leads(NOON);
    assert_eq!(runs.decide(NOON + Duration::from_secs(15)), None);
    assert!(runs.is_active());
    runs.leads(NOON + Duration::from_secs(15));
    runs.observe(LEASE, old_lease(), NOON + Duration::from_secs(15));
    runs.complete(&[Source::Input(Input::EndpointSlice), LEASE]);
    runs.requeue.clear();
    runs
}

fn somebody_makes_a_slice(runs: &mut Runs, service: &str, at: Timestamp) {
    let labels = [(LABEL_SERVICE_NAME, service), (LABEL_MANAGED_BY, "endpointslice-controller.k8s.io")];
    let name = format!("{service}-1").into();
    let metadata = Metadata { namespace: "ns".into(), name, labels: labels.into(), ..Metadata::default() };
    let slice = EndpointSlice { metadata, ..EndpointSlice::default() };
    let object = Watched::Input(Box::new(Object::EndpointSlice(slice)));
    runs.observe(Source::Input(Input::EndpointSlice), object, at);
}

#[test]
fn who_leads_stops_when_another_changes_a_slice() {
    let mut runs = leading();
    let at = NOON + Duration::from_secs(1_000);
    somebody_makes_a_slice(&mut runs, "web", at);
    assert!(runs.requeue.contains(&Key::Takeover));
    runs.plan(&Key::Takeover, at);
    assert!(!runs.is_active() && runs.ends.is_requested(), "at once, and the run ends");
    assert_eq!(runs.decide(at), Some(at + Duration::from_secs(180)));
    assert!(!runs.is_active());
}

/// Rule Y4: A replica does not lead, or begins to lead
/// Then: The member agent's EndpointSlice controller is active only in the leader. `fleetnet_endpointslices_serving` is
/// 1 there, once the controller has listed its inputs. A change before the replica leads does not count as a foreign
/// write, because the earlier leader may have made the change
#[test]
fn who_does_not_lead_does_not_serve_and_takes_a_changed_slice_for_its_leaders() {
    let mut runs = following();
    runs.requeue.clear();
    let at = NOON + Duration::from_secs(1_000);
    somebody_makes_a_slice(&mut runs, "web", at);
    assert!(!runs.requeue.contains(&Key::Takeover));
    assert!(!runs.is_active(), "another does");
    runs.leads(at);
    assert_eq!(runs.decide(at), None, "it goes on where the leader was");
    assert!(runs.is_active());
}

#[test]
fn serving_beside_another_controller_still_waits_for_the_leader() {
    let mut runs = Runs::new(Mode::On);
    runs.decide(NOON);
    assert!(!runs.is_active(), "it holds nothing for what another does");
    runs.leads(NOON);
    assert_eq!((runs.decide(NOON), runs.is_active()), (None, true));
}

/// Also rule Y4.
#[test]
fn a_replica_that_follows_again_is_inactive() {
    let mut runs = Runs::new(Mode::On);
    runs.leads(NOON);
    runs.decide(NOON);
    assert!(runs.is_active());
    runs.requeue.clear();
    runs.serving.process(ProcessNews::Follows, NOON, &mut runs.requeue);
    assert!(runs.requeue.contains(&Key::Takeover));
    runs.decide(NOON);
    assert!(!runs.is_active());
    runs.leads(NOON);
    runs.decide(NOON);
    assert!(runs.is_active());
}

/// Also rule Y4.
#[test]
fn the_metric_is_1_only_while_all_inputs_are_listed() {
    let mut runs = active();
    assert!(runs.shows_serving());
    let pods = Source::Input(Input::Pod);
    runs.serving.watch(pods, WatchNews::State(WatchState::Absent), NOON, &mut runs.requeue);
    assert!(runs.is_active() && !runs.shows_serving(), "the agent may not read pods any more");
    runs.complete(&[pods]);
    assert!(runs.shows_serving());
    runs.begin_run();
    assert!(!runs.shows_serving());
    runs.complete(&Input::ALL.map(Source::Input));
    runs.serving.process(ProcessNews::Follows, NOON, &mut runs.requeue);
    runs.decide(NOON);
    assert!(!runs.shows_serving());
}

/// Also rule Y1.
#[test]
fn a_leader_stops_when_the_lease_of_kube_controller_manager_is_deleted() {
    let mut runs = leading();
    let name = ObjectName::new("kube-system", "kube-controller-manager");
    let gone = Change::Removed { name, uid: "u".into(), how: fleetnet_runtime::Removal::Deleted };
    let at = NOON + Duration::from_secs(1_000);
    runs.serving.observe(LEASE, gone, at, &mut runs.requeue);
    assert!(runs.requeue.contains(&Key::Takeover));
    assert_eq!((runs.decide(at), runs.is_active()), (None, false));
}

/// Also rule Y5.
#[test]
fn a_slice_that_another_changed_between_two_runs_is_noticed() {
    let mut runs = following();
    somebody_makes_a_slice(&mut runs, "web", NOON);
    runs.leads(NOON);
    runs.decide(NOON + Duration::from_secs(15));
    assert!(runs.is_active(), "before it led, the leader may have made it");
    runs.requeue.clear();
    somebody_makes_a_slice(&mut runs, "web", NOON + Duration::from_secs(16));
    assert_eq!(runs.requeue, [], "the list shows it as it was");
    somebody_makes_a_slice(&mut runs, "api", NOON + Duration::from_secs(17));
    assert_eq!(runs.requeue, [Key::Takeover], "and this one is new");
}

fn web() -> ObjectName {
    ObjectName::new("ns", "web")
}

/// Returns an active controller that knows the Service `ns/web` and has listed everything.
fn active() -> Runs {
    let mut runs = Runs::new(Mode::On);
    runs.leads(NOON);
    runs.decide(NOON);
    let metadata = Metadata { namespace: "ns".into(), name: "web".into(), uid: "u".into(), ..Metadata::default() };
    let spec = ServiceSpec { selector: [("app", "web")].into(), ..ServiceSpec::default() };
    let service = Object::Service(Service { metadata, spec });
    runs.observe(Source::Input(Input::Service), Watched::Input(Box::new(service)), NOON);
    runs.complete(&Input::ALL.map(Source::Input));
    assert!(runs.requeue.contains(&Key::Service(web())));
    runs
}

fn failure(status: u16, message: &str) -> WriteFailure<Source> {
    WriteFailure {
        source: Source::Input(Input::EndpointSlice),
        cluster: "member".to_owned(),
        kind: "EndpointSlice".to_owned(),
        name: ObjectName::new("ns", "web-1"),
        verb: "patch",
        status,
        reason: String::new(),
        message: message.to_owned(),
    }
}

fn terminating() -> WriteFailure<Source> {
    WriteFailure { reason: NAMESPACE_TERMINATING.to_owned(), ..failure(403, "it is being terminated") }
}

/// Plans the Service, and lets the first write of the plan fail. Returns the Events.
fn events_of_a_failed_write(runs: &mut Runs, failure: &WriteFailure<Source>) -> Vec<Event<Source>> {
    let key = Key::Service(web());
    let write = runs.plan(&key, NOON).writes.remove(0);
    runs.serving.write(&key, WriteNews::Begun(&write), NOON, &mut runs.requeue);
    let ended =
        WriteEnded { request: &write, end: WriteEnd::Denied, receipt: None, failure: Some(failure), is_reported: true };
    runs.serving.write(&key, WriteNews::Ended(ended), NOON, &mut runs.requeue)
}

#[test]
fn a_failed_write_of_a_slice_is_reported_on_its_service() {
    let reported = events_of_a_failed_write(&mut active(), &failure(500, "no space left"));
    let message = "Error updating Endpoint Slices for Service ns/web: failed to update web-1 EndpointSlice for \
                   Service ns/web: no space left";
    let expected = Event {
        source: Source::Input(Input::Service),
        name: web(),
        uid: "u".into(),
        severity: Severity::Warning,
        component: "endpoint-slice-controller", // as in kube-controller-manager: users filter Events by it
        reason: "FailedToUpdateEndpointSlices",
        message: message.to_owned(),
    };
    assert_eq!(reported, [expected]);
}

/// Rule Y12: A write fails because the namespace of the slice is being deleted
/// Then: The member agent's EndpointSlice controller emits no Event, and counts no failed sync
#[test]
fn in_a_terminating_namespace_nothing_is_reported_and_no_sync_fails() {
    let of = |failure: WriteFailure<Source>| {
        let mut runs = active();
        let events = events_of_a_failed_write(&mut runs, &failure).len();
        let syncs = metrics(&runs).lines().filter(|line| line.contains("_syncs{")).map(str::to_owned).collect();
        (events, syncs)
    };
    let failed = r#"endpoint_slice_controller_syncs{result="error"} 1"#.to_owned();
    assert_eq!(of(terminating()), (0, Vec::<String>::new()));
    assert_eq!(of(failure(403, "no")), (1, vec![failed]));
}

#[test]
fn a_fight_over_a_slice_is_reported_on_its_service() {
    let mut runs = active();
    let fight = |by: Option<&str>| Fight {
        source: Source::Input(Input::EndpointSlice),
        cluster: "member".to_owned(),
        kind: "EndpointSlice",
        name: ObjectName::new("ns", "web-1"),
        by: by.map(str::to_owned),
    };
    let key = Key::Service(web());
    let events = runs.serving.fight(&key, &fight(Some("field manager \"x\"")), &mut Vec::new());
    let texts: Vec<_> = events.iter().map(|event| (event.source, &*event.name.name, event.reason)).collect();
    assert_eq!(texts, [(Source::Input(Input::Service), "web", "WritesUndone")]);
    assert_eq!(runs.serving.fight(&key, &fight(None), &mut Vec::new()), []);
}

/// Returns all metrics in the text format of Prometheus.
fn metrics(runs: &Runs) -> String {
    prometheus::TextEncoder::new().encode_to_string(&runs.registry.gather()).expect("metrics are text")
}

/// Also rule A16.
#[test]
fn a_plan_made_twice_is_the_same_and_counts_and_switches_nothing() {
    let mut runs = active();
    let before = metrics(&runs);
    for key in [Key::Service(web()), Key::Takeover] {
        let first = format!("{:?}", runs.serving.plan(&key, NOON));
        assert_eq!(format!("{:?}", runs.serving.plan(&key, NOON)), first, "{key:?}");
    }
    assert_eq!(metrics(&runs), before);
    assert!(runs.is_active() && !runs.ends.is_requested());
    assert!(!runs.plan(&Key::Service(web()), NOON).writes.is_empty());
    assert_ne!(metrics(&runs), before, "the slices of the Service are counted when the effect is applied");
}

/// Rule Y13: Many Services change
/// Then: The member agent's EndpointSlice controller has at most `--concurrent-service-endpoint-syncs` writes of slices
/// in flight
#[test]
fn slices_of_pods_have_a_share_of_the_writes_and_the_word_on_serving_waits_for_none_of_them() {
    let runs = Runs::new(Mode::On);
    let slices = runs.serving.flow(&Key::Service(web()));
    assert_eq!(slices, runs.serving.flow(&Key::Service(ObjectName::new("other", "api"))), "one share for all");
    assert_eq!(slices.most_in_flight, 5);
    let takeover = runs.serving.flow(&Key::Takeover);
    assert_eq!((takeover.id == slices.id, takeover.most_in_flight), (false, usize::MAX));
}
