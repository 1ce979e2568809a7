//! Fleet half of the member agent ([`Fleet`]): exports and imports. Uses the view and the plans of the crate `fleetnet_core`.
//! Adds latency metrics, Events and blocking reasons.

use crate::identity::IdentityReport;
use crate::latency::Latencies;
use crate::observed::{Known, Observed};
use crate::settings::Parts;
use fleetnet_agent::blocking_reasons::BlockingReasons;
use fleetnet_agent::convert::{self, Receipt};
use fleetnet_core::handshake;
use fleetnet_core::member::latency::Import;
use fleetnet_core::member::{Key, Planner, ReadValues, Settings};
use fleetnet_core::model::{Kind, Object};
use fleetnet_core::plan::{BlockingReason, Plan, Sample, Write};
use fleetnet_runtime::{Change, Event, Fight, FlowId, WatchState, WriteEnd, WriteFailure};
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};
use tokio::sync::watch;
use tracing::debug;

const COMPONENT: &str = "member-agent";

/// View of exports and imports, the parts of the agent that are on, and their metrics.
pub(crate) struct Fleet {
    view: Planner,
    parts: Parts,
    latencies: Latencies,
    observed: Observed,
    blocking_reasons: BlockingReasons<Key>,
    identity: IdentityReport,
}

/// Effect of a plan besides its writes: log lines, metrics and state changes.
#[derive(Debug, Default)]
pub struct Effect {
    blocking_reasons: Vec<BlockingReason>,
    /// True if the plan writes to no other object than the user's object. Then no server can reject a write to another object
    /// any more, so the condition of the user's object must no longer report an earlier rejection.
    forget_rejection: bool,
    not_imported: Option<NotImported>,
    /// Values that the plan read; `None` if the part of the key is off.
    reads: Option<ReadValues>,
}

/// Distributed slice that is not imported yet, with the reason, for the log.
#[derive(Debug)]
struct NotImported {
    slice: Text,
    service: ObjectName,
    why: &'static str,
}

/// Returns the kind of the user's object that this key plans. A condition of this object reports rejected writes. `None` for
/// keys that plan other objects.
fn reporting_kind(key: &Key) -> Option<Kind> {
    match key {
        Key::Export(_) => Some(Kind::ServiceExport),
        Key::MultiClusterService(_) => Some(Kind::MultiClusterService),
        Key::SliceExport(_) | Key::Import(_) | Key::SliceImport(_) | Key::Heartbeat => None,
    }
}

/// Returns the kind of the object that a key plans, for metrics.
fn planned_kind(key: &Key) -> Kind {
    match key {
        Key::Export(_) => Kind::ServiceExport,
        Key::SliceExport(_) => Kind::EndpointSlice,
        Key::MultiClusterService(_) => Kind::MultiClusterService,
        Key::Import(_) => Kind::ServiceImport,
        Key::SliceImport(_) => Kind::EndpointSliceImport,
        Key::Heartbeat => Kind::MemberAgent,
    }
}

impl Fleet {
    /// Returns a fleet half with an empty view.
    pub(crate) fn new(
        settings: Settings,
        parts: Parts,
        latencies: Latencies,
        blocking_reasons: BlockingReasons<Key>,
    ) -> Self {
        let (view, observed, identity) = (Planner::new(settings), Observed::default(), IdentityReport::new());
        Self { view, parts, latencies, observed, blocking_reasons, identity }
    }

    fn runs(&self, key: &Key) -> bool {
        match key {
            Key::Export(_) | Key::SliceExport(_) => self.parts.export,
            Key::Import(_) => self.parts.import || self.parts.multi_cluster_service,
            Key::SliceImport(_) => self.parts.import,
            Key::MultiClusterService(_) => self.parts.multi_cluster_service,
            Key::Heartbeat => true, // only the settings decide whether there is a heartbeat
        }
    }

    /// If an imported slice was deleted, remembers the generation of its source slice whose latency was measured. The
    /// annotation with this generation is deleted with the slice. If the hub removed the EndpointSliceImport, forgets the
    /// generation.
    fn remember_observed(&mut self, source: Kind, change: &Change<Object>) {
        let Change::Removed { name, .. } = change else { return };
        match source {
            Kind::EndpointSliceImport => self.observed.forget(&name.name),
            Kind::EndpointSlice => {
                let observed = self.view.slices.get(name).and_then(|slice| slice.observed_generation);
                let is_imported = name.namespace == self.view.settings.fleet_system_namespace;
                if let Some(generation) = observed.filter(|_| is_imported) {
                    self.note_observed(&name.name, generation);
                }
            }
            _ => {}
        }
    }

    /// Records the generation of the source slice whose latency was measured when `slice` was imported. Returns what the record
    /// had about the slice before. Keeps no record of a slice that the hub does not distribute.
    fn note_observed(&mut self, slice: &Text, generation: i64) -> Known {
        let known = self.observed.note(slice, generation);
        if self.view.owner_of_distributed_slice(slice).is_none() {
            self.observed.forget(slice); // the hub removed the EndpointSliceImport before the imported slice
        }
        known
    }

    /// Observes the latency of exports that got the hub's outcome of conflict resolution since the last call.
    fn measure_services(&mut self) {
        for latency in self.view.service_latencies() {
            self.latencies.service_exported(&latency);
        }
    }

    /// Returns the user's object that Events about a key refer to, as kind, name and UID. `None` if the object does not exist,
    /// or if the key has none.
    fn about(&self, key: &Key) -> Option<(Kind, ObjectName, Uid)> {
        let export = |name: &ObjectName| {
            let export = self.view.exports.get(name)?;
            Some((Kind::ServiceExport, name.clone(), export.meta.uid.clone()))
        };
        let mcs = |name: &ObjectName| {
            let mcs = self.view.multi_cluster_services.get(name)?;
            Some((Kind::MultiClusterService, name.clone(), mcs.meta.uid.clone()))
        };
        match key {
            Key::Export(service) => export(service),
            Key::SliceExport(slice) => {
                let service = self.view.slices.get(slice)?.service.clone()?;
                export(&ObjectName::new(slice.namespace.clone(), service))
            }
            Key::MultiClusterService(name) => mcs(name),
            Key::Import(name) => self.view.multi_cluster_services_of_import(name).find_map(mcs),
            Key::SliceImport(name) => {
                self.view.multi_cluster_services_of_import(&self.view.owner_of_distributed_slice(name)?).find_map(mcs)
            }
            Key::Heartbeat => None,
        }
    }

    /// True if an object is undecodable now, but the fleet half still has its last decoded state. The fleet half then keeps
    /// this state, because possibly only the decoder of the EndpointSlice controller has failed.
    pub(crate) fn knows(&self, source: Kind, change: &Change<Object>) -> bool {
        let Change::Undecodable { name } = change else { return false };
        match source {
            Kind::Service => self.view.services.get(name).is_some(),
            Kind::EndpointSlice => self.view.slices.get(name).is_some(),
            _ => false,
        }
    }

    pub(crate) fn observe(&mut self, source: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        self.remember_observed(source, &change);
        self.view.apply(source, change, at, requeue);
        self.measure_services();
        if matches!(source, Kind::EndpointSliceImport | Kind::InternalServiceImport) {
            let view = &self.view;
            self.latencies.forget_departed(|cluster| view.is_origin(cluster));
        }
    }

    pub(crate) fn watch_state(&mut self, source: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        self.view.watch_state(source, state, at, requeue);
    }

    /// Records whether the watch of EndpointSlices has contact with the API server. Without contact, this member stops its
    /// heartbeat, because its exported slices may be out of date.
    pub(crate) fn in_touch(&mut self, source: Kind, in_touch: bool, requeue: &mut Vec<Key>) {
        match source {
            Kind::EndpointSlice if in_touch => self.view.slices_followed(requeue),
            Kind::EndpointSlice => self.view.slices_lost(requeue),
            _ => {}
        }
    }

    pub(crate) fn clock_set(&mut self, microseconds: i64) {
        self.view.clock_set(microseconds);
    }

    pub(crate) fn announce_stop(&self, now: Timestamp) -> Option<Write> {
        handshake::announce_stop(&self.view, now)
    }

    /// Plans a key. Returns the plan, the Events that belong to no write, and the effect of the plan.
    pub(crate) fn plan<S: From<Kind>>(&self, key: &Key, now: Timestamp) -> (Plan, Vec<Event<S>>, Effect) {
        if !self.runs(key) {
            return (Plan::default(), Vec::new(), Effect::default());
        }
        let (mut plan, reads) = match key {
            Key::Import(name) if !self.parts.import => self.view.plan_unclaimed_import(name),
            _ => self.view.plan_and_reads(key, now),
        };
        let reads = Some(reads);
        let has_only_writes_of = |kind| plan.writes.iter().all(|write: &Write| write.kind() == kind);
        let forget_rejection = reporting_kind(key).is_some_and(has_only_writes_of);
        let not_imported = if plan.writes.is_empty() { self.why_not_imported(key) } else { None };
        let blocking_reasons = std::mem::take(&mut plan.blocking_reasons);
        let events = match key {
            Key::Heartbeat => self.identity.events(&blocking_reasons, self.view.own_cluster_uid()),
            _ => Vec::new(),
        };
        (plan, convert::events(events), Effect { blocking_reasons, forget_rejection, not_imported, reads })
    }

    /// Applies the effect of a key's plan.
    pub(crate) fn planned(&mut self, key: &Key, effect: Effect) {
        if !self.runs(key) {
            return;
        }
        if let Some(reads) = effect.reads {
            self.view.planned(key, reads);
        }
        if let Some(NotImported { slice, service, why }) = effect.not_imported {
            debug!(%slice, %service, "{why}");
        }
        if effect.forget_rejection {
            self.view.forget_rejection(key);
        }
        if *key == Key::Heartbeat {
            self.identity.note(&effect.blocking_reasons, self.view.own_cluster_uid());
        }
        self.blocking_reasons.note(key, planned_kind(key), effect.blocking_reasons);
    }

    /// Returns the reason why the distributed slice of this key is not imported yet. `None` if the slice is imported, or if the
    /// reason is not known.
    fn why_not_imported(&self, key: &Key) -> Option<NotImported> {
        let Key::SliceImport(slice) = key else { return None };
        let service = self.view.owner_of_distributed_slice(slice)?;
        let imported = ObjectName::new(self.view.settings.fleet_system_namespace.clone(), slice.clone());
        let kinds = [Kind::EndpointSliceImport, Kind::EndpointSlice, Kind::MultiClusterService, Kind::Service];
        if !self.view.watches.complete(&kinds) || self.view.slices.get(&imported).is_some() {
            return None;
        }
        let why = if self.view.multi_cluster_services_of_import(&service).next().is_none() {
            "not imported: no MultiClusterService imports this Service"
        } else {
            "not imported yet: the derived Service does not exist"
        };
        Some(NotImported { slice: slice.clone(), service, why })
    }

    /// Returns a watch channel with the reason why this agent is not ready, even if all watches of this cluster are complete. The
    /// value is `None` while there is no such reason.
    pub(crate) fn blocked(&self) -> watch::Receiver<Option<String>> {
        self.identity.blocked()
    }

    pub(crate) fn leads(&mut self) {
        self.identity.leads();
    }

    /// Records the end of a write. The view already contains the state of the object that the server returned.
    pub(crate) fn ended(
        &mut self,
        key: &Key,
        kind: Option<Kind>,
        end: WriteEnd,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        match (key, end) {
            (Key::Heartbeat, WriteEnd::Done { .. }) => self.view.renewal_written(at, requeue),
            (Key::Heartbeat, WriteEnd::Denied) => self.view.renewal_denied(at, requeue),
            (Key::SliceImport(slice), WriteEnd::Done { version: Some(version) })
                if kind == Some(Kind::EndpointSlice) =>
            {
                self.view.imported_slice_written(slice, version);
            }
            _ => {}
        }
    }

    /// Returns the flow of a key. Keys of exports and claims have one flow per namespace. Keys of distributed slices have one
    /// flow per exporting member.
    pub(crate) fn flow(&self, key: &Key) -> FlowId {
        match key {
            Key::Export(name) | Key::SliceExport(name) | Key::MultiClusterService(name) | Key::Import(name) => {
                FlowId::of(&name.namespace)
            }
            Key::SliceImport(name) => {
                self.view.origin_of_distributed_slice(name).map_or(FlowId::default(), |c| FlowId::of(c))
            }
            Key::Heartbeat => FlowId::of("heartbeat"),
        }
    }

    pub(crate) fn written<S: From<Kind>>(&mut self, receipt: Receipt, at: Timestamp) -> Vec<Event<S>> {
        match &receipt.sample {
            Some(Sample::SliceImported { origin, first, exported_since }) => {
                let known = receipt
                    .imported
                    .as_ref()
                    .map_or(Known::Nothing, |(slice, generation)| self.note_observed(slice, *generation));
                if known != Known::Generation {
                    let first = *first && known == Known::Nothing;
                    self.latencies.slice_imported(origin, first, *exported_since, at);
                    if let Some(since) = exported_since {
                        let import = if first { Import::First } else { Import::Later };
                        self.view.slice_imported(origin, import, *since, at);
                    }
                }
            }
            Some(Sample::ServiceExported { service }) => self.view.service_exported(service, at),
            Some(Sample::LatencyReported) => self.view.latency_reported(at),
            None => {}
        }
        self.measure_services();
        convert::events(receipt.events)
    }

    pub(crate) fn rejected<S: Copy + From<Kind> + PartialEq>(
        &mut self,
        key: &Key,
        failure: &WriteFailure<S>,
    ) -> Vec<Event<S>> {
        let about = self.about(key);
        let is_beside = about.as_ref().is_some_and(|(kind, ..)| S::from(*kind) != failure.source);
        if is_beside && reporting_kind(key).is_some() {
            self.view.write_rejected(key, convert::rejection_message(failure)); // the condition reports the rejection
            return Vec::new();
        }
        convert::rejection_event(about, failure, COMPONENT)
    }

    /// Records that another writer undoes the writes of this key, or no longer undoes them. Returns the Event. Also requeues the
    /// user's object, so that its condition reports the other writer.
    pub(crate) fn fight<S: From<Kind>>(
        &mut self,
        key: &Key,
        over: (Kind, ObjectName),
        fight: &Fight<S>,
        requeue: &mut Vec<Key>,
    ) -> Vec<Event<S>> {
        let about = self.about(key);
        let named = about.as_ref().map(|(kind, name, _)| (*kind, name.clone()));
        self.view.disputed(named, over, convert::fight_message(fight), requeue);
        convert::fight_event(about, fight, COMPONENT)
    }

    /// Returns the Event about another writer that undoes writes of the EndpointSlice controller for a Service.
    pub(crate) fn fight_over_slice<S: From<Kind>>(&self, service: &ObjectName, fight: &Fight<S>) -> Vec<Event<S>> {
        let stored = self.view.services.get(service);
        let about = stored.map(|stored| (Kind::Service, service.clone(), stored.meta.uid.clone()));
        convert::fight_event(about, fight, COMPONENT)
    }

    pub(crate) fn failed<S: From<Kind>>(&mut self, key: &Key, failure: &WriteFailure<S>) -> Vec<Event<S>> {
        convert::denial_event(self.about(key), failure, COMPONENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{export, import};
    use fleetnet_runtime::Removal;
    use prometheus::Registry;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn fleet() -> Fleet {
        let settings = Settings {
            cluster: "member-1".into(),
            hub_namespace: "fleet-member-member-1".into(),
            fleet_system_namespace: "fleet-system".into(),
            source_ranges: BTreeMap::new(),
            derived_service_grace_micros: 0,
            announces: None,
            leader: "one".into(),
            takeover_after_micros: 0,
        };
        let registry = Registry::new();
        let latencies = Latencies::new("member-1", &registry).expect("the only ones");
        Fleet::new(settings, Parts::ALL, latencies, BlockingReasons::new(&registry).expect("the only one"))
    }

    fn hears(fleet: &mut Fleet, kind: Kind, json: &Value) {
        let observed = convert::observe(kind, json.to_string().as_bytes()).expect("an object");
        fleet.observe(kind, Change::Applied(observed.object), NOON, &mut Vec::new());
    }

    fn loses(fleet: &mut Fleet, kind: Kind, namespace: &str, name: &str) {
        let uid = format!("uid-{name}");
        let change = Change::Removed { name: ObjectName::new(namespace, name), uid: uid.into(), how: Removal::Deleted };
        fleet.observe(kind, change, NOON, &mut Vec::new());
    }

    /// Delivers a distributed slice to `fleet`, and an imported slice of the same name. The annotation of the imported slice
    /// says that the latency was measured for generation 2 of the source slice.
    fn imports(fleet: &mut Fleet, name: &str, namespace: &str) {
        let reference = json!({ "namespace": "work", "name": "app-1" });
        let distributed_slice = json!({
            "metadata": { "namespace": "fleet-member-member-1", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" },
            "spec": { "endpoints": [], "endpointSliceReference": reference, "ownerServiceReference": reference },
        });
        hears(fleet, Kind::EndpointSliceImport, &distributed_slice);
        let annotations = json!({ "networking.fleet.azure.com/last-observed-generation": "2" });
        let imported_slice = json!({
            "metadata": {
                "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
                "annotations": annotations,
            },
            "addressType": "IPv4", "endpoints": [],
        });
        hears(fleet, Kind::EndpointSlice, &imported_slice);
    }

    #[test]
    fn nothing_is_remembered_of_imported_slices_that_are_gone_in_whatever_order() {
        let mut fleet = fleet();
        for number in 0..100 {
            let name = format!("member-2-work-app-{number}");
            imports(&mut fleet, &name, "fleet-system");
            if number % 2 == 0 {
                loses(&mut fleet, Kind::EndpointSlice, "fleet-system", &name);
                loses(&mut fleet, Kind::EndpointSliceImport, "fleet-member-member-1", &name);
            } else {
                loses(&mut fleet, Kind::EndpointSliceImport, "fleet-member-member-1", &name);
                loses(&mut fleet, Kind::EndpointSlice, "fleet-system", &name);
            }
        }
        assert_eq!(fleet.observed.len(), 0);
    }

    #[test]
    fn what_is_remembered_is_of_the_slices_that_the_hub_gives() {
        let mut fleet = fleet();
        imports(&mut fleet, "distributed", "fleet-system");
        loses(&mut fleet, Kind::EndpointSlice, "fleet-system", "distributed");
        assert_eq!(
            fleet.note_observed(&"distributed".into(), 2),
            Known::Generation,
            "somebody deleted the imported slice"
        );
        imports(&mut fleet, "another", "work");
        loses(&mut fleet, Kind::EndpointSlice, "work", "another");
        assert_eq!(fleet.note_observed(&"another".into(), 2), Known::Nothing, "a user's slice of the same name");
        assert_eq!(fleet.note_observed(&"gone".into(), 2), Known::Nothing);
        assert_eq!(fleet.observed.len(), 2, "its write was answered when the hub gave it no more");
    }

    /// Delivers an imported slice with one endpoint to `fleet`, in the form in which an API server returns the slice.
    fn hears_slice(fleet: &mut Fleet, version: u64, endpoint: &Value) {
        let slice = json!({
            "metadata": {
                "namespace": "fleet-system", "name": "app-1", "uid": "uid-app-1", "resourceVersion": version.to_string(),
                "labels": {
                    "kubernetes.io/service-name": "work-app",
                    "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com",
                },
            },
            "addressType": "IPv4",
            "endpoints": [endpoint],
            "ports": [],
        });
        hears(fleet, Kind::EndpointSlice, &slice);
    }

    /// Returns a fleet half that imports the Service `app-1` as the derived Service `work-app`.
    fn importer() -> Fleet {
        let mut fleet = fleet();
        let meta = |namespace: &str, name: &str| json!({ "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" });
        let mut mcs = json!({ "metadata": meta("work", "app"), "spec": { "serviceImport": { "name": "app" } } });
        mcs["metadata"]["labels"] = json!({
            "networking.fleet.azure.com/service-import": "app",
            "networking.fleet.azure.com/derived-service": "work-app",
        });
        hears(&mut fleet, Kind::MultiClusterService, &mcs);
        let mut import =
            json!({ "metadata": meta("work", "app"), "status": { "clusters": [{ "cluster": "member-2" }] } });
        import["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MultiClusterService", "name": "app",
            "uid": "uid-app", "controller": true,
        }]);
        hears(&mut fleet, Kind::ServiceImport, &import);
        let mut derived = json!({ "metadata": meta("fleet-system", "work-app"), "spec": { "ports": [] } });
        derived["metadata"]["labels"] = json!({
            "networking.fleet.azure.com/multi-cluster-service-name": "app",
            "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
        });
        hears(&mut fleet, Kind::Service, &derived);
        let mut distributed_slice = json!({ "metadata": meta("fleet-member-member-1", "app-1") });
        distributed_slice["metadata"]["finalizers"] = json!(["networking.fleet.azure.com/endpointsliceimport-cleanup"]);
        distributed_slice["spec"] = json!({
            "endpoints": [{ "addresses": ["10.1.0.1"] }],
            "endpointSliceReference": { "clusterId": "member-2", "namespace": "work", "name": "app-1" },
            "ownerServiceReference": { "namespace": "work", "name": "app" },
        });
        hears(&mut fleet, Kind::EndpointSliceImport, &distributed_slice);
        for kind in export::LOCAL.into_iter().chain(import::LOCAL).chain(import::REMOTE) {
            fleet.watch_state(kind, WatchState::Complete, NOON, &mut Vec::new());
        }
        fleet
    }

    #[test]
    fn what_the_answer_to_a_write_of_an_imported_slice_shows_is_a_webhooks_and_is_not_repaired() {
        let mut fleet = importer();
        let key = Key::SliceImport("app-1".into());
        let writes = |fleet: &mut Fleet| {
            let (plan, _, effect) = fleet.plan::<Kind>(&key, NOON);
            fleet.planned(&key, effect);
            plan.writes.len()
        };
        let answered = |fleet: &mut Fleet, kind: Kind, version: u64| {
            let end = WriteEnd::Done { version: Some(version) };
            fleet.ended(&key, Some(kind), end, NOON, &mut Vec::new());
        };
        let hinted = json!({ "addresses": ["10.1.0.1"], "hints": { "forZones": [{ "name": "zone-9" }] } });
        hears_slice(&mut fleet, 2, &json!({ "addresses": ["10.1.0.1"] }));
        assert_eq!(writes(&mut fleet), 0);
        hears_slice(&mut fleet, 3, &hinted);
        assert_eq!(writes(&mut fleet), 1, "somebody has edited it");
        answered(&mut fleet, Kind::EndpointSliceImport, 3);
        assert_eq!(writes(&mut fleet), 1, "the answer about another object");
        answered(&mut fleet, Kind::EndpointSlice, 3);
        assert_eq!(writes(&mut fleet), 0);
        hears_slice(&mut fleet, 4, &json!({ "addresses": ["10.1.0.1"], "nodeName": "node-1" }));
        assert_eq!(writes(&mut fleet), 1);
    }
}
