//! Member agent as an implementation of the runtime's `Logic`: [`Member`].
//!
//! The fleet half (exports and imports) and the EndpointSlice controller share one process and one watch each of Services and
//! EndpointSlices. So the fleet half can export a slice of the controller as soon as the server has answered the controller's
//! write, before the watch shows the slice.

use crate::endpoints::takeover::LeaseSeen;
use crate::endpoints::{self, Serving, SliceReceipt};
use crate::fleet::{self as part, Fleet};
use crate::latency::Latencies;
use crate::settings::Parts;
pub use crate::source::{Object, Source};
use endpointslice::model::{EndpointSlice, Metadata};
use fleetnet_agent::blocking_reasons::BlockingReasons;
use fleetnet_agent::convert;
use fleetnet_core::member;
use fleetnet_core::model::{self as fleet, Kind};
use fleetnet_runtime::{Change, Event, Fight, FlowId, Logic, Plan, Request, WatchState, WriteEnd, WriteFailure};
use fleetnet_types::{ObjectName, Timestamp};
use tokio::sync::watch;

/// Member agent: the fleet half (exports and imports), and the EndpointSlice controller unless it is off.
pub struct Member {
    fleet: Fleet,
    endpoints: Option<Serving>,
    /// Flow (unit of fair queueing) of the Services whose slices the EndpointSlice controller makes.
    flow: FlowId,
    /// Flow (unit of fair queueing) of the decision whether the EndpointSlice controller is active. It has its own flow, so
    /// that the decision does not wait behind other keys.
    takeover_flow: FlowId,
}

/// Key of a plan of the member agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Key of the fleet half: an export, an import or the heartbeat.
    Fleet(member::Key),
    /// Service whose EndpointSlices the controller makes.
    Endpoints(ObjectName),
    /// Decision whether the EndpointSlice controller is active.
    Takeover,
}

/// Data that the engine returns when a write has succeeded.
#[derive(Clone, Debug, PartialEq)]
pub enum Receipt {
    /// Receipt of a write of the fleet half.
    Fleet(convert::Receipt),
    /// Receipt of a write to a slice of this cluster.
    Endpoints(SliceReceipt),
}

/// Effect of a plan besides its writes: log lines, metrics and state changes.
#[derive(Debug)]
pub enum Effect {
    /// Effect of a plan of the fleet half.
    Fleet(part::Effect),
    /// Effect of a plan for the EndpointSlices of a Service.
    Endpoints(Box<endpoints::Effect>),
    /// Decision whether the EndpointSlice controller is active.
    Takeover(endpoints::Decided),
}

impl From<convert::Receipt> for Receipt {
    fn from(receipt: convert::Receipt) -> Self {
        Self::Fleet(receipt)
    }
}

impl Member {
    /// Returns an agent with an empty view. `endpoints` is the EndpointSlice controller, `None` if it is off.
    pub fn new(
        settings: member::Settings,
        parts: Parts,
        latencies: Latencies,
        blocking_reasons: BlockingReasons<member::Key>,
        endpoints: Option<Serving>,
    ) -> Self {
        Self {
            fleet: Fleet::new(settings, parts, latencies, blocking_reasons),
            endpoints,
            flow: FlowId::of("EndpointSlice controller"),
            takeover_flow: FlowId::of("takeover"),
        }
    }

    /// Returns a watch channel with the reason why this agent is not ready, even if all watches of this cluster are complete. The
    /// value is `None` while there is no such reason.
    pub fn blocked(&self) -> watch::Receiver<Option<String>> {
        self.fleet.blocked()
    }

    /// Returns the Event for a Service whose slices could not be written. If the namespace is being deleted, returns no Event.
    fn slices_are_not_written(&self, key: &Key, failure: &WriteFailure<Source>) -> Vec<Event<Source>> {
        match (key, &self.endpoints) {
            // fault Y12.2: if !convert::is_of_terminating_namespace(failure) ~>
            (Key::Endpoints(service), Some(serving)) if !convert::is_of_terminating_namespace(failure) => {
                let reported = serving.rejected(service, failure.verb, &failure.name.name, &failure.message);
                reported.into_iter().map(record).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Calls the EndpointSlice controller, and requeues the Services that the controller returns for planning.
    fn tell_endpoints(&mut self, requeue: &mut Vec<Key>, tell: impl FnOnce(&mut Serving, &mut Vec<ObjectName>)) {
        let Some(serving) = &mut self.endpoints else { return };
        let mut services = Vec::new();
        tell(serving, &mut services);
        if serving.has_news() {
            requeue.push(Key::Takeover);
        }
        requeue.extend(services.into_iter().map(Key::Endpoints));
    }
}

fn take_in(serving: &mut Serving, source: Source, change: Change<Local>, at: Timestamp, requeue: &mut Vec<ObjectName>) {
    match (change, source.input()) {
        (Change::Applied(Local::Endpoints(object)), _) => serving.apply(*object, at, requeue),
        (Change::Applied(Local::Lease(lease)), _) => serving.lease_seen(lease, at),
        (Change::Removed { name, .. }, Some(input)) => serving.remove(input, &name.namespace, &name.name, at, requeue),
        (Change::Removed { .. }, None) => serving.lease_gone(at),
        (Change::Undecodable { name }, Some(input)) => {
            serving.undecodable(input, &name.namespace, &name.name, at, requeue);
        }
        (Change::Undecodable { .. }, None) => {}
    }
}

/// Object in the form in which the EndpointSlice controller reads it.
enum Local {
    Endpoints(Box<endpoints::Object>),
    Lease(LeaseSeen),
}

/// Splits a change into a change for the fleet half and a change for the EndpointSlice controller.
fn split(source: Source, change: Change<Object>) -> (Option<Change<fleet::Object>>, Option<Change<Local>>) {
    let is_fleets = matches!(source, Source::Fleet(_));
    let is_local = source.input().is_some() || source == Source::KubeControllerManagerLease;
    match change {
        Change::Applied(Object::Both(fleets, local)) => {
            (Some(Change::Applied(fleets)), Some(Change::Applied(Local::Endpoints(local))))
        }
        Change::Applied(Object::Fleet(object)) => {
            let taken = source.input() == Some(endpoints::Input::EndpointSlice);
            let slice = taken.then(|| endpoints::Object::EndpointSlice(another_managers(&object.meta().name)));
            (Some(Change::Applied(object)), slice.map(|slice| Change::Applied(Local::Endpoints(Box::new(slice)))))
        }
        Change::Applied(Object::Endpoints(local)) => (None, Some(Change::Applied(Local::Endpoints(local)))),
        Change::Applied(Object::Lease(lease)) => (None, Some(Change::Applied(Local::Lease(lease)))),
        Change::Undecodable { name } => (
            is_fleets.then(|| Change::Undecodable { name: name.clone() }),
            is_local.then_some(Change::Undecodable { name }),
        ),
        Change::Removed { name, uid, how } => (
            is_fleets.then(|| Change::Removed { name: name.clone(), uid: uid.clone(), how }),
            is_local.then_some(Change::Removed { name, uid, how }),
        ),
    }
}

/// Returns a placeholder for a slice of another manager. The EndpointSlice controller needs only the name of such a slice, so
/// that no new slice gets the same name.
fn another_managers(name: &ObjectName) -> EndpointSlice {
    let metadata = Metadata { namespace: (&*name.namespace).into(), name: (&*name.name).into(), ..Metadata::default() };
    EndpointSlice { metadata, ..EndpointSlice::default() }
}

impl Logic for Member {
    type Source = Source;
    type Object = Object;
    type Key = Key;
    type Receipt = Receipt;
    type Effect = Effect;

    fn observe(&mut self, source: Source, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        let (fleets, local) = split(source, change);
        if let Some(local) = local {
            self.tell_endpoints(requeue, |serving, services| take_in(serving, source, local, at, services));
        }
        if let (Source::Fleet(kind), Some(change)) = (source, fleets)
            && !self.fleet.knows(kind, &change)
        {
            let mut keys = Vec::new();
            self.fleet.observe(kind, change, at, &mut keys);
            requeue.extend(keys.into_iter().map(Key::Fleet));
        }
    }

    fn watch_state(&mut self, source: Source, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        self.tell_endpoints(requeue, |serving, services| match source.input() {
            Some(input) => serving.watch_state(input, state, at, services),
            None if source == Source::KubeControllerManagerLease => serving.lease_view(state, at),
            None => {}
        });
        if let Source::Fleet(kind) = source {
            let mut keys = Vec::new();
            self.fleet.watch_state(kind, state, at, &mut keys);
            requeue.extend(keys.into_iter().map(Key::Fleet));
        }
    }

    fn in_touch(&mut self, source: Source, in_touch: bool, _at: Timestamp, requeue: &mut Vec<Key>) {
        if let Source::Fleet(kind) = source {
            let mut keys = Vec::new();
            self.fleet.in_touch(kind, in_touch, &mut keys);
            requeue.extend(keys.into_iter().map(Key::Fleet));
        }
    }

    fn clock_set(&mut self, microseconds: i64) {
        self.fleet.clock_set(microseconds);
        if let Some(serving) = &mut self.endpoints {
            serving.clock_set(microseconds);
        }
    }

    fn announce_stop(&mut self, now: Timestamp) -> Vec<Request<Source, Receipt>> {
        self.fleet.announce_stop(now).map(convert::request).into_iter().collect()
    }

    fn wants(&self, source: Source) -> bool {
        match (source, source.input(), &self.endpoints) {
            (Source::Fleet(_), _, _) => true,
            (_, Some(input), Some(serving)) => serving.wants(input),
            (_, None, Some(serving)) => serving.wants_lease(),
            (_, _, None) => false,
        }
    }

    fn reading(&self, source: Source) -> u64 {
        match (source.input(), &self.endpoints) {
            (Some(input), Some(serving)) => serving.reading(input),
            _ => 0,
        }
    }

    fn relisted(&mut self, source: Source, _at: Timestamp, requeue: &mut Vec<Key>) {
        if let Some(input) = source.input() {
            self.tell_endpoints(requeue, |serving, services| serving.relisted(input, services));
        }
    }

    fn leads(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        self.fleet.leads();
        if let Some(serving) = &mut self.endpoints {
            serving.leads(at);
            requeue.push(Key::Takeover);
        }
    }

    fn plan(&self, key: &Key, now: Timestamp) -> Plan<Source, Receipt, Effect> {
        match (key, &self.endpoints) {
            (Key::Fleet(key), _) => {
                let (plan, events, effect) = self.fleet.plan(key, now);
                Plan { events, effect: Some(Effect::Fleet(effect)), ..convert::plan(plan) }
            }
            (Key::Takeover, Some(serving)) => {
                let decided = serving.decide(now);
                Plan { again: decided.again(), effect: Some(Effect::Takeover(decided)), ..Plan::default() }
            }
            (Key::Endpoints(service), Some(serving)) => plan(serving.plan(service, now)),
            (Key::Takeover | Key::Endpoints(_), None) => Plan::default(),
        }
    }

    fn planned(&mut self, key: &Key, effect: Effect, at: Timestamp) {
        match (key, effect, &mut self.endpoints) {
            (Key::Fleet(key), Effect::Fleet(effect), _) => self.fleet.planned(key, effect),
            (Key::Takeover, Effect::Takeover(decided), Some(serving)) => serving.decided(decided),
            (Key::Endpoints(service), Effect::Endpoints(effect), Some(serving)) => {
                serving.planned(service, *effect, at);
            }
            _ => {}
        }
    }

    fn flow(&self, key: &Key) -> FlowId {
        match key {
            Key::Fleet(key) => self.fleet.flow(key),
            Key::Endpoints(_) => self.flow,
            Key::Takeover => self.takeover_flow,
        }
    }

    fn most_in_flight(&self, flow: FlowId) -> usize {
        match &self.endpoints {
            // fault Y13.1: flow == self.flow ~> false
            Some(serving) if flow == self.flow => serving.concurrent_syncs(),
            _ => usize::MAX,
        }
    }

    fn begun(&mut self, key: &Key, request: &Request<Source, Receipt>) {
        if let (Key::Endpoints(service), Some(Receipt::Endpoints(receipt)), Some(serving)) =
            (key, &request.receipt, &mut self.endpoints)
        {
            serving.write_begun(service, &target(request), receipt);
        }
    }

    fn ended(
        &mut self,
        key: &Key,
        request: &Request<Source, Receipt>,
        end: WriteEnd,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        let service = match key {
            Key::Endpoints(service) => service,
            Key::Fleet(key) => {
                let mut keys = Vec::new();
                self.fleet.ended(key, kind_of(request.source), end, at, &mut keys);
                return requeue.extend(keys.into_iter().map(Key::Fleet));
            }
            Key::Takeover => return,
        };
        let (slice, verb) = (target(request), &request.verb);
        let write = endpoints::Written { service, slice: &slice, verb, end };
        self.tell_endpoints(requeue, |serving, services| serving.write_ended(&write, at, services));
    }

    /// Counts the sync of the Service as failed. A failure in a namespace that is being deleted does not count, because the API
    /// server accepts no new slices there.
    fn not_done(&mut self, key: &Key, failure: &WriteFailure<Source>, at: Timestamp) {
        if let (Key::Endpoints(service), Some(serving)) = (key, &mut self.endpoints)
            // fault Y12.1: && !convert::is_of_terminating_namespace(failure) ~>
            && !convert::is_of_terminating_namespace(failure)
        {
            serving.not_done(service, at);
        }
    }

    fn written(&mut self, receipt: Receipt, at: Timestamp) -> Vec<Event<Source>> {
        match receipt {
            Receipt::Fleet(receipt) => self.fleet.written(receipt, at),
            Receipt::Endpoints(receipt) => {
                if let Some(serving) = &self.endpoints {
                    serving.written(receipt.operation);
                }
                Vec::new()
            }
        }
    }

    fn rejected(&mut self, key: &Key, failure: &WriteFailure<Source>) -> Vec<Event<Source>> {
        match key {
            Key::Fleet(key) => self.fleet.rejected(key, failure),
            Key::Endpoints(_) | Key::Takeover => self.slices_are_not_written(key, failure),
        }
    }

    fn renews(&self, key: &Key) -> bool {
        *key == Key::Fleet(member::Key::Heartbeat)
    }

    fn fight(&mut self, key: &Key, fight: &Fight<Source>, requeue: &mut Vec<Key>) -> Vec<Event<Source>> {
        match (key, kind_of(fight.source)) {
            (Key::Fleet(key), Some(kind)) => {
                let over = (kind, fight.name.clone());
                let mut keys = Vec::new();
                let reported = self.fleet.fight(key, over, fight, &mut keys);
                requeue.extend(keys.into_iter().map(Key::Fleet));
                reported
            }
            (Key::Endpoints(service), _) => self.fleet.fight_over_slice(service, fight),
            (Key::Fleet(_), None) | (Key::Takeover, _) => Vec::new(),
        }
    }

    fn failed(&mut self, key: &Key, failure: &WriteFailure<Source>) -> Vec<Event<Source>> {
        match key {
            Key::Fleet(key) => self.fleet.failed(key, failure),
            Key::Endpoints(_) | Key::Takeover => self.slices_are_not_written(key, failure),
        }
    }
}

/// Returns the kind if the fleet half reads this source; `None` for other sources.
fn kind_of(source: Source) -> Option<Kind> {
    match source {
        Source::Fleet(kind) => Some(kind),
        _ => None,
    }
}

fn plan(planned: endpoints::Planned) -> Plan<Source, Receipt, Effect> {
    let request = |write: endpoints::SliceWrite| Request {
        source: Source::Fleet(Kind::EndpointSlice),
        name: ObjectName::new(&*write.namespace, &*write.name),
        verb: write.verb,
        receipt: Some(Receipt::Endpoints(write.receipt)),
    };
    Plan {
        writes: planned.writes.into_iter().map(request).collect(),
        events: planned.events.into_iter().map(record).collect(),
        again: planned.again,
        effect: planned.effect.map(Effect::Endpoints),
    }
}

fn target(request: &Request<Source, Receipt>) -> ObjectName {
    request.name.clone()
}

fn record(event: endpoints::ServiceEvent) -> Event<Source> {
    Event {
        source: Source::Fleet(Kind::Service),
        name: event.service,
        uid: (&*event.uid).into(),
        severity: event.severity,
        component: endpoints::Controller::COMPONENT,
        reason: event.reason,
        message: event.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::Settings;
    use crate::endpoints::takeover::Mode;
    use crate::{export, import};
    use endpointslice::model::{Service, ServiceSpec};
    use fleetnet_runtime::NAMESPACE_TERMINATING;
    use fleetnet_runtime::logging::Captured;
    use prometheus::Registry;
    use std::collections::BTreeMap;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

    /// Plans a key and applies the effect of the plan, as the engine does.
    fn plan(member: &mut Member, key: &Key) -> Plan<Source, Receipt, Effect> {
        let mut plan = member.plan(key, NOON);
        if let Some(effect) = plan.effect.take() {
            member.planned(key, effect, NOON);
        }
        plan
    }

    fn member() -> Member {
        member_with(Parts::ALL, &Registry::new())
    }

    fn member_with(parts: Parts, registry: &Registry) -> Member {
        let settings = member::Settings {
            cluster: "member-1".into(),
            hub_namespace: "fleet-member-member-1".into(),
            fleet_system_namespace: "fleet-system".into(),
            source_ranges: BTreeMap::new(),
            derived_service_grace_micros: 0,
            announces: None,
            leader: "one".into(),
            takeover_after_micros: 0,
        };
        let latencies = Latencies::new("member-1", registry).expect("the only ones");
        let serving = Serving::new(&Settings::with_mode(Mode::On), registry).expect("the only one");
        let blocking_reasons = BlockingReasons::new(registry).expect("the only one");
        let mut member = Member::new(settings, parts, latencies, blocking_reasons, Some(serving));
        member.leads(NOON, &mut Vec::new());
        plan(&mut member, &Key::Takeover);
        let metadata = Metadata { namespace: "ns".into(), name: "web".into(), uid: "u".into(), ..Metadata::default() };
        let service = Service { metadata, spec: ServiceSpec::default() };
        let change = Change::Applied(Object::Endpoints(Box::new(endpoints::Object::Service(service))));
        member.observe(Source::Fleet(Kind::Service), change, NOON, &mut Vec::new());
        member
    }

    fn failure(status: u16, message: &str) -> WriteFailure<Source> {
        WriteFailure {
            source: Source::Fleet(Kind::EndpointSlice),
            cluster: "member".to_owned(),
            kind: "EndpointSlice".to_owned(),
            name: ObjectName::new("ns", "web-1"),
            verb: "patch",
            status,
            reason: String::new(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn a_failed_write_of_a_slice_is_reported_on_its_service() {
        let key = Key::Endpoints(ObjectName::new("ns", "web"));
        let reported = member().failed(&key, &failure(500, "no space left"));
        let texts: Vec<_> =
            reported.iter().map(|event| (&*event.name.name, event.reason, event.message.as_str())).collect();
        let message = "Error updating Endpoint Slices for Service ns/web: failed to update web-1 EndpointSlice for \
                       Service ns/web: no space left";
        assert_eq!(texts, [("web", "FailedToUpdateEndpointSlices", message)]);
    }

    #[test]
    fn in_a_terminating_namespace_nothing_is_reported() {
        let key = Key::Endpoints(ObjectName::new("ns", "web"));
        let going = WriteFailure { reason: NAMESPACE_TERMINATING.to_owned(), ..failure(403, "it is being terminated") };
        assert!(member().failed(&key, &going).is_empty());
        assert_eq!(member().failed(&key, &failure(403, "no")).len(), 1);
    }

    #[test]
    fn a_namespace_that_goes_is_no_error_of_its_services_syncs() {
        let key = Key::Endpoints(ObjectName::new("ns", "web"));
        let errors = |failure: WriteFailure<Source>| {
            let registry = Registry::new();
            let mut member = member_with(Parts::ALL, &registry);
            let metadata =
                Metadata { namespace: "ns".into(), name: "web".into(), uid: "u".into(), ..Metadata::default() };
            let spec = ServiceSpec { selector: [("app", "web")].into(), ..ServiceSpec::default() };
            let service =
                Change::Applied(Object::Endpoints(Box::new(endpoints::Object::Service(Service { metadata, spec }))));
            member.observe(Source::Fleet(Kind::Service), service, NOON, &mut Vec::new());
            for source in [Source::Fleet(Kind::Service), Source::Fleet(Kind::EndpointSlice), Source::Pod, Source::Node]
            {
                member.watch_state(source, WatchState::Complete, NOON, &mut Vec::new());
                member.relisted(source, NOON, &mut Vec::new());
            }
            let write = plan(&mut member, &key).writes.remove(0);
            member.begun(&key, &write);
            member.ended(&key, &write, WriteEnd::NotDone, NOON, &mut Vec::new());
            member.not_done(&key, &failure, NOON);
            let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text");
            text.lines().filter(|line| line.contains("_syncs{")).map(str::to_owned).collect::<Vec<_>>()
        };
        let going = WriteFailure { reason: NAMESPACE_TERMINATING.to_owned(), ..failure(403, "it is being terminated") };
        assert_eq!(errors(going), [""; 0]);
        assert_eq!(errors(failure(403, "no")), [r#"endpoint_slice_controller_syncs{result="error"} 1"#]);
    }

    /// Returns all metrics in the text format of Prometheus.
    fn metrics(registry: &Registry) -> String {
        prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text")
    }

    #[test]
    fn a_plan_made_twice_is_the_same_and_logs_counts_and_switches_nothing() {
        let registry = Registry::new();
        let mut member = member_with(Parts::ALL, &registry);
        let metadata = Metadata { namespace: "ns".into(), name: "web".into(), uid: "u".into(), ..Metadata::default() };
        let spec = ServiceSpec { selector: [("app", "web")].into(), ..ServiceSpec::default() };
        let service =
            Change::Applied(Object::Endpoints(Box::new(endpoints::Object::Service(Service { metadata, spec }))));
        member.observe(Source::Fleet(Kind::Service), service, NOON, &mut Vec::new());
        let kinds = export::LOCAL.into_iter().chain(import::LOCAL).chain(import::REMOTE).map(Source::Fleet);
        for source in kinds.chain([Source::Fleet(Kind::EndpointSlice), Source::Pod, Source::Node]) {
            member.watch_state(source, WatchState::Complete, NOON, &mut Vec::new());
            member.relisted(source, NOON, &mut Vec::new());
        }
        let slice = convert::observe(Kind::EndpointSliceImport, DISTRIBUTED_SLICE).expect("decodable").object;
        let slice = Change::Applied(Object::Fleet(slice));
        member.observe(Source::Fleet(Kind::EndpointSliceImport), slice, NOON, &mut Vec::new());

        let log = Captured::at(4, &["member_agent", "fleetnet_agent"]);
        let before = metrics(&registry);
        let web = Key::Endpoints(ObjectName::new("ns", "web"));
        let distributed = Key::Fleet(member::Key::SliceImport("distributed".into()));
        for key in [web.clone(), distributed.clone(), Key::Fleet(member::Key::Heartbeat), Key::Takeover] {
            let first = format!("{:?}", member.plan(&key, NOON));
            assert_eq!(format!("{:?}", member.plan(&key, NOON)), first, "{key:?}");
        }
        assert_eq!(log.take(), [""; 0]);
        assert_eq!(metrics(&registry), before);
        let reading = member.reading(Source::Pod);

        // Until here, plans were made but their effects were not applied. When the effect of a plan is applied, metrics and the
        // log change.
        assert!(!plan(&mut member, &web).writes.is_empty());
        assert_ne!(metrics(&registry), before, "the slices of the Service are counted");
        plan(&mut member, &distributed);
        assert_eq!(log.take().len(), 1, "the log says why the slice is not imported");
        assert_eq!(member.reading(Source::Pod), reading, "it serves as before");
    }

    const DISTRIBUTED_SLICE: &[u8] = br#"{
        "metadata": {"namespace": "fleet-member-member-1", "name": "distributed", "uid": "g", "resourceVersion": "1"},
        "spec": {
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
            "endpointSliceReference": {
                "clusterId": "member-2", "namespace": "work", "name": "app-1", "namespacedName": "work/app-1",
                "uid": "s", "resourceVersion": "1", "generation": 1, "exportedSince": "2026-11-21T03:46:15Z"
            },
            "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"}
        }
    }"#;

    #[test]
    fn the_reason_why_a_slice_is_not_imported_is_logged_from_level_2() {
        const MCS: &[u8] = br#"{
            "metadata": {"namespace": "work", "name": "app", "uid": "m", "resourceVersion": "2"},
            "spec": {"serviceImport": {"name": "app"}}
        }"#;
        let lines = |verbosity| {
            let mut member = member();
            let learn = |member: &mut Member, kind, json| {
                let object = convert::observe(kind, json).expect("readable").object;
                member.observe(Source::Fleet(kind), Change::Applied(Object::Fleet(object)), NOON, &mut Vec::new());
            };
            let log = Captured::at(verbosity, &["member_agent"]);
            let key = Key::Fleet(member::Key::SliceImport("distributed".into()));
            learn(&mut member, Kind::EndpointSliceImport, DISTRIBUTED_SLICE);
            plan(&mut member, &key);
            assert!(log.take().is_empty(), "nothing can be said before all is known");
            for kind in export::LOCAL.into_iter().chain(import::LOCAL).chain(import::REMOTE) {
                member.watch_state(Source::Fleet(kind), WatchState::Complete, NOON, &mut Vec::new());
            }
            plan(&mut member, &key);
            learn(&mut member, Kind::MultiClusterService, MCS);
            plan(&mut member, &key);
            log.take()
        };
        let none: [&str; 0] = [];
        assert_eq!(lines(1), none);
        let expected = [
            "DEBUG not imported: no MultiClusterService imports this Service slice=distributed service=work/app",
            "DEBUG not imported yet: the derived Service does not exist slice=distributed service=work/app",
        ];
        assert_eq!(lines(2), expected);
        assert_eq!(lines(4), expected);
    }

    #[test]
    fn slices_of_pods_have_a_share_of_the_writes_and_the_word_on_serving_waits_for_none_of_them() {
        let mut member = member();
        let slices = member.flow(&Key::Endpoints(ObjectName::new("ns", "web")));
        assert_eq!(slices, member.flow(&Key::Endpoints(ObjectName::new("other", "api"))), "one share for all");
        assert_ne!(slices, member.flow(&Key::Takeover));
        assert_eq!((member.most_in_flight(slices), member.most_in_flight(FlowId::of("ns"))), (5, usize::MAX));
        let mut requeue = Vec::new();
        member.leads(NOON, &mut requeue);
        assert_eq!(requeue, [Key::Takeover], "a new leader decides again");
    }

    #[test]
    fn pods_are_watched_and_services_and_slices_relisted_once_it_serves() {
        let local = [Source::Fleet(Kind::Service), Source::Fleet(Kind::EndpointSlice), Source::Pod, Source::Node];
        let member = member();
        assert_eq!(local.map(|source| (member.wants(source), member.reading(source))), [(true, 1); 4]);
        assert_eq!(member.reading(Source::Fleet(Kind::ServiceExport)), 0, "the fleet needs no relist");
    }

    #[test]
    fn a_part_that_makes_no_claims_lets_imports_go_that_nobody_claims() {
        let alone = Parts { multi_cluster_service: true, ..Parts::NONE };
        let exporting = Parts { export: true, ..Parts::NONE };
        for (parts, expected) in [(alone, 1), (exporting, 0)] {
            let mut member = member_with(parts, &Registry::new());
            for kind in [Kind::ServiceImport, Kind::InternalServiceImport] {
                member.watch_state(Source::Fleet(kind), WatchState::Complete, NOON, &mut Vec::new());
            }
            let mut requeue = Vec::new();
            let change = Change::Applied(Object::Fleet(fleet::Object::ServiceImport(dying_import())));
            member.observe(Source::Fleet(Kind::ServiceImport), change, NOON, &mut requeue);
            let key = Key::Fleet(member::Key::Import(ObjectName::new("work", "app")));
            assert!(requeue.contains(&key), "{parts:?}");
            assert_eq!(plan(&mut member, &key).writes.len(), expected, "{parts:?}");
        }
    }

    fn dying_import() -> fleet::ServiceImport {
        fleet::ServiceImport {
            meta: fleet::Meta {
                name: ObjectName::new("work", "app"),
                uid: "u".into(),
                resource_version: 1,
                generation: 1,
                created: fleetnet_types::Timestamp(0),
                deleting: true,
                finalizers: fleet::Finalizers { ours: true, others: Vec::new() },
            },
            owners: Vec::new(),
            claims: fleet::Claims::default(),
            status: fleet::ImportStatus::default(),
        }
    }

    #[test]
    fn what_the_fleet_knows_of_a_service_stays_when_the_controller_asks_for_it_and_it_cannot_be_decoded() {
        let mut member = member();
        let undecodable = || Change::Undecodable { name: ObjectName::new("ns", "web") };
        let is_known = |member: &Member| {
            member
                .fleet
                .knows(Kind::Service, &split(Source::Fleet(Kind::Service), undecodable()).0.expect("the fleet's too"))
        };
        assert!(!is_known(&member));
        let json = br#"{"metadata":{"namespace":"ns","name":"web","uid":"u","resourceVersion":"7"},"spec":{}}"#;
        let service = convert::observe(Kind::Service, json).expect("readable").object;
        member.observe(Source::Fleet(Kind::Service), Change::Applied(Object::Fleet(service)), NOON, &mut Vec::new());
        assert!(is_known(&member));
    }
}
