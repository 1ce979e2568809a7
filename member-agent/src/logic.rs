//! Member agent as an implementation of the runtime's `Logic` ([`Member`]): exports and imports. Uses the view and the
//! plans of the crate `fleetnet_core`. Adds latency metrics, Events and blocking reasons.

use crate::identity::IdentityReport;
use crate::latency::{Clocks, Latencies};
use crate::observed::{Observed, Recorded};
use crate::reports::{Reports, planned_kind, reporting_kind};
use crate::settings::Parts;
use crate::stream::state::Stream;
use crate::stream::{Dialer, Message, Use};
use crate::switches::Switches;
use crate::traces;
use fleetnet_agent::blocking_reasons::BlockingReasons;
use fleetnet_agent::convert::{self, Receipt};
use fleetnet_agent::traces::{Sampling, Traces};
use fleetnet_core::handshake;
use fleetnet_core::member::latency::Import;
use fleetnet_core::member::{Key, Planner, ReadValues, Settings, Switch};
use fleetnet_core::model::{Kind, Object};
use fleetnet_core::plan::{BlockingReason, Event as CoreEvent, Plan as CorePlan, Sample, Write, event_about};
use fleetnet_core::reasons::Reason;
use fleetnet_runtime::{
    Change, Event, Fight, Flow, FlowId, Logic, Plan, ProcessNews, Urgency, WatchNews, WriteEnd, WriteEnded,
    WriteFailure, WriteNews,
};
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};
use tokio::sync::watch;
use tracing::debug;

const COMPONENT: &str = "member-agent";

/// Member agent: the view of exports and imports, the parts of the agent that are on, and their metrics.
pub struct Member {
    view: Planner,
    parts: Parts,
    latencies: Latencies,
    switches: Switches,
    observed: Observed,
    blocking_reasons: BlockingReasons<Key>,
    identity: IdentityReport,
    stream: Stream,
    traces: Traces,
    /// True once the process stops. The plan of the heartbeat then announces the stop.
    stops: bool,
}

/// Effect of a plan besides its writes: log lines, metrics and state changes.
#[derive(Debug)]
pub struct Effect {
    blocking_reasons: Vec<BlockingReason>,
    /// True if the plan writes to no other object than the user's object. Then no server can reject a write to another
    /// object any more, so the condition of the user's object must no longer report an earlier rejection.
    forget_rejection: bool,
    not_imported: Option<NotImported>,
    reads: ReadValues,
    /// Generation of an imported preview that the hub agent waits for.
    acknowledged: Option<i64>,
}

/// Distributed slice that is not imported yet, with the reason, for the log.
#[derive(Debug)]
struct NotImported {
    slice: Text,
    service: ObjectName,
    why: &'static str,
}

impl Member {
    /// Returns an agent with an empty view.
    #[must_use]
    pub fn new(settings: Settings, parts: Parts, reports: Reports) -> Self {
        let Reports { latencies, switches, blocking_reasons } = reports;
        let (view, observed, identity) = (Planner::new(settings), Observed::default(), IdentityReport::new());
        let (stream, traces) = (Stream::default(), Traces::default());
        Self { view, parts, latencies, switches, observed, blocking_reasons, identity, stream, traces, stops: false }
    }

    /// Sets if and where the agent connects to the slice stream. By default, it does not.
    #[must_use]
    pub fn with_stream(mut self, chosen: Use) -> Self {
        self.view.slice_stream.chosen = chosen.rule();
        self.stream = Stream::new(chosen);
        self
    }

    /// Sets if this agent takes part in traces.
    #[must_use]
    pub fn with_traces(mut self, sampling: Option<Sampling>) -> Self {
        if let (Some(_), Some(announcement)) = (&sampling, &mut self.view.settings.announces) {
            announcement.add_traces();
        }
        self.traces = Traces::new(sampling);
        self
    }

    /// Returns a channel with the dialer of the slice stream; `None` while there shall be no stream.
    #[must_use]
    pub fn dialer(&self) -> watch::Receiver<Option<Dialer>> {
        self.stream.dialer()
    }

    /// Returns a watch channel with the reason why this agent is not ready, even if all watches of this cluster are
    /// complete. The value is `None` while there is no such reason.
    #[must_use]
    pub fn blocked(&self) -> watch::Receiver<Option<String>> {
        self.identity.blocked()
    }

    fn runs(&self, key: &Key) -> bool {
        match key {
            Key::Export(_) | Key::SliceExport(_) => self.parts.export,
            Key::Import(_) => self.parts.import || self.parts.multi_cluster_service,
            Key::SliceImport(_) | Key::McsImport(_) => self.parts.import,
            Key::MultiClusterService(_) => self.parts.multi_cluster_service,
            Key::Heartbeat | Key::Membership => true, // only the settings decide whether there is a heartbeat
        }
    }

    /// If an imported slice was deleted, remembers the generation of its source slice whose latency was measured. The
    /// annotation with this generation is deleted with the slice. If the hub removed the EndpointSliceImport, forgets
    /// the generation.
    fn remember_observed(&mut self, source: Kind, change: &Change<Object>) {
        let Change::Removed { name, .. } = change else { return };
        match source {
            Kind::EndpointSliceImport => self.observed.forget(&name.name),
            Kind::EndpointSlice => {
                let imported = self.view.slices.get(name).filter(|slice| slice.imported);
                if let Some(generation) = imported.and_then(|slice| slice.observed_generation) {
                    self.note_observed(&name.name, generation);
                }
            }
            _ => {}
        }
    }

    /// Records the generation of the source slice whose latency was measured when `slice` was imported. Returns what
    /// the record had about the slice before. Keeps no record of a slice that the hub does not distribute.
    fn note_observed(&mut self, slice: &Text, generation: i64) -> Recorded {
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

    /// Returns an Event about each failover and failback since the last call.
    fn report_switches(&mut self) -> Vec<Event<Kind>> {
        let (switches, importer) = (self.view.switches(), self.view.settings.cluster.clone());
        let event = |switch: &Switch| {
            let (reason, message) = self.switches.report(switch, &importer);
            let about = if switch.namespace == self.view.settings.fleet_system_namespace {
                self.about(&Key::Import(switch.service.clone()))
            } else {
                self.about_mcs_import(&switch.service)
            };
            Some(event_about(about?, COMPONENT, reason, message))
        };
        convert::events(switches.iter().filter_map(event).collect())
    }

    /// Returns the user's object that Events about a key refer to, as kind, name and UID. `None` if the object does not
    /// exist, or if the key has none.
    fn about(&self, key: &Key) -> Option<(Kind, ObjectName, Uid)> {
        let export = |name: &ObjectName| {
            let export = self.view.exports.get(name).map(|export| (Kind::ServiceExport, &export.meta));
            let mcs = || self.view.mcs_exports.get(name).map(|export| (Kind::McsServiceExport, &export.meta));
            let (kind, meta) = export.or_else(mcs)?;
            Some((kind, name.clone(), meta.uid.clone()))
        };
        let request = |name: &ObjectName| {
            let request = self.view.multi_cluster_services.get(name)?;
            Some((Kind::MultiClusterService, name.clone(), request.meta.uid.clone()))
        };
        match key {
            Key::Export(service) => export(service),
            Key::SliceExport(slice) => {
                let service = self.view.slices.get(slice)?.service.clone()?;
                export(&ObjectName::new(slice.namespace.clone(), service))
            }
            Key::MultiClusterService(name) => request(name),
            Key::Import(name) => self.view.requests_of_import(name).find_map(request),
            Key::McsImport(name) => self.about_mcs_import(name),
            Key::SliceImport(name) => {
                let service = self.view.distributed_slice_of(name)?.spec.owner.clone();
                if name.namespace == self.view.settings.fleet_system_namespace {
                    return self.view.requests_of_import(&service).find_map(request);
                }
                self.about_mcs_import(&service)
            }
            Key::Heartbeat | Key::Membership => None,
        }
    }

    /// Returns the ServiceImport of the standard API; while it does not exist, the namespace that imports the Service.
    fn about_mcs_import(&self, service: &ObjectName) -> Option<(Kind, ObjectName, Uid)> {
        let import = self.view.mcs_imports.get(service);
        let import = import.map(|import| (Kind::McsServiceImport, service.clone(), import.meta.uid.clone()));
        import.or_else(|| {
            let at = ObjectName::new("", service.namespace.clone());
            let namespace = self.view.namespaces.get(&at)?;
            Some((Kind::Namespace, at, namespace.meta.uid.clone()))
        })
    }

    /// Returns Events about a ServiceImport of another writer, in whose status the agent must not write: its name
    /// blocks the import.
    fn foreign_import_events(&self, service: &ObjectName, blocking_reasons: &[BlockingReason]) -> Vec<CoreEvent> {
        let foreign = self.view.mcs_imports.get(service).filter(|import| !import.is_ours);
        let Some(foreign) = foreign.filter(|_| self.identity.is_leader()) else { return Vec::new() };
        let event = |BlockingReason { reason, message }: &BlockingReason| {
            let about = (Kind::McsServiceImport, service.clone(), foreign.meta.uid.clone());
            event_about(about, COMPONENT, *reason, message.clone())
        };
        blocking_reasons.iter().map(event).collect()
    }

    /// Returns the reason why the distributed slice of this key is not imported yet. `None` if the slice is imported,
    /// or if the reason is not known.
    fn why_not_imported(&self, key: &Key) -> Option<NotImported> {
        let Key::SliceImport(slice) = key else { return None };
        if slice.namespace != self.view.settings.fleet_system_namespace {
            return None; // the ServiceImport of the standard API shows why
        }
        let service = self.view.owner_of_distributed_slice(&slice.name)?;
        let kinds = [Kind::EndpointSliceImport, Kind::EndpointSlice, Kind::MultiClusterService, Kind::Service];
        if !self.view.watches.complete(&kinds) || self.view.slices.get(slice).is_some() {
            return None;
        }
        let why = if self.view.requests_of_import(&service).next().is_none() {
            "not imported: no MultiClusterService imports this Service"
        } else {
            "not imported yet: the derived Service does not exist"
        };
        Some(NotImported { slice: slice.name.clone(), service, why })
    }

    /// Plans a key whose part is on. Returns the plan, with the values that it read.
    fn plan_with_reads(&self, key: &Key, now: Timestamp) -> (CorePlan, ReadValues) {
        match key {
            Key::Import(name) if !self.parts.import => self.view.plan_unclaimed_import(name),
            _ => self.view.plan_and_reads(key, now),
        }
    }

    /// Records that a write is done. The view already contains the object that the server returned.
    fn written(&mut self, receipt: Receipt, at: Timestamp) -> Vec<Event<Kind>> {
        if let Some(span) = receipt.span {
            self.traces.end(*span, at);
        }
        match &receipt.sample {
            Some(Sample::SliceImported { origin, first, exported_since }) => {
                let known = receipt
                    .imported
                    .as_ref()
                    .map_or(Recorded::Nothing, |(slice, generation)| self.note_observed(slice, *generation));
                if known != Recorded::Generation {
                    let first = *first && known == Recorded::Nothing;
                    let since = exported_since.map(|since| match self.stream.corrected(origin, since) {
                        Some(corrected) => (corrected, Clocks::Corrected),
                        None => (since, Clocks::Raw),
                    });
                    self.latencies.slice_imported(origin, first, since, at);
                    if let Some((since, _)) = since {
                        let import = if first { Import::First } else { Import::Later };
                        self.view.slice_imported(origin, import, since, at);
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

    /// Returns the Event about a failed write. If the server rejected a write to another object than the user's object,
    /// the condition of the user's object reports it instead.
    fn failed(&mut self, key: &Key, end: WriteEnd, failure: &WriteFailure<Kind>) -> Vec<Event<Kind>> {
        let about = self.about(key);
        let reporting = reporting_kind(key).filter(|kind| *kind != failure.source);
        let is_beside = reporting.is_some() && about.as_ref().is_some_and(|(kind, ..)| *kind != failure.source);
        // A quota or a policy of the user's namespace denies writes of derived Services.
        let is_shown = end == WriteEnd::Rejected || end == WriteEnd::Denied && matches!(key, Key::McsImport(_));
        let message = convert::failure_message(end, failure).filter(|_| is_beside && is_shown);
        if let Some(message) = message {
            self.view.write_rejected(key, message);
            return Vec::new();
        }
        convert::failure_event(about, end, failure, COMPONENT)
    }
}

impl Logic for Member {
    type Source = Kind;
    type Object = Object;
    type Key = Key;
    type Receipt = Receipt;
    type Effect = Effect;
    type Message = Message;

    fn observe(&mut self, source: Kind, mut change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        let known = match &change {
            Change::Applied(Object::EndpointSlice(slice)) if self.traces.is_on() => {
                self.view.slices.get(&slice.meta.name)
            }
            _ => None,
        };
        self.traces.observe(source, &mut change, known.map(|slice| &slice.content), at);
        self.remember_observed(source, &change);
        self.view.apply(source, change, at, requeue);
        if !self.identity.is_leader() {
            self.view.switches(); // the leader reports them
        }
        self.measure_services();
        if matches!(source, Kind::EndpointSliceImport | Kind::InternalServiceImport) {
            let view = &self.view;
            self.latencies.forget_departed(|cluster| view.is_origin(cluster));
        }
    }

    /// Without a connection of the watch of EndpointSlices, this member stops its heartbeat, because its exported
    /// slices may be out of date.
    fn watch(&mut self, source: Kind, news: WatchNews, at: Timestamp, requeue: &mut Vec<Key>) {
        match (news, source) {
            (WatchNews::State(state), _) => self.view.watch_state(source, state, at, requeue),
            (WatchNews::Connected(true), Kind::EndpointSlice) => self.view.slices_followed(requeue),
            (WatchNews::Connected(false), Kind::EndpointSlice) => self.view.slices_lost(requeue),
            (WatchNews::Connected(is_connected), Kind::EndpointSliceImport) => {
                self.view.hub_followed(is_connected.then_some(at), at, requeue);
            }
            (WatchNews::Listing(true), Kind::EndpointSliceImport) => {
                self.traces.drop_previews();
                self.view.distributed_slices_listed_again(at, requeue);
            }
            (WatchNews::Restored, Kind::InternalServiceImport) => self.view.hub_restored(at),
            (WatchNews::Connected(_) | WatchNews::Listing(_) | WatchNews::Restored, _) => {}
        }
    }

    fn receive(&mut self, message: Message, at: Timestamp, requeue: &mut Vec<Key>) {
        self.stream.receive(message, (&mut self.view, &mut self.traces), at, requeue);
    }

    fn process(&mut self, news: ProcessNews, _at: Timestamp, requeue: &mut Vec<Key>) {
        match news {
            ProcessNews::Leads => self.identity.leads(),
            ProcessNews::Follows => {
                self.identity.follows();
                self.view.follows();
            }
            ProcessNews::ClockSet { microseconds } => {
                self.view.clock_set(microseconds);
                self.stream.clock_set(microseconds);
                self.traces.clock_set(microseconds);
            }
            ProcessNews::Stops => {
                self.stops = true;
                requeue.push(Key::Heartbeat);
            }
        }
    }

    fn plan(&self, key: &Key, now: Timestamp) -> Plan<Kind, Receipt, Effect> {
        if !self.runs(key) {
            return Plan::default();
        }
        if self.stops && *key == Key::Heartbeat {
            let announcement = handshake::announce_stop(&self.view, now).map(convert::request);
            return Plan { writes: announcement.into_iter().collect(), ..Plan::default() };
        }
        let (mut plan, reads) = self.plan_with_reads(key, now);
        let has_only_writes_of = |kind| plan.writes.iter().all(|write: &Write| write.kind() == kind);
        let forget_rejection = reporting_kind(key).is_some_and(has_only_writes_of);
        let not_imported = if plan.writes.is_empty() { self.why_not_imported(key) } else { None };
        let blocking_reasons = std::mem::take(&mut plan.blocking_reasons);
        let events = match key {
            Key::Heartbeat => self.identity.events(&blocking_reasons, self.view.own_cluster_uid()),
            Key::McsImport(service) => self.foreign_import_events(service, &blocking_reasons),
            Key::SliceImport(_) => events_of_slices(self.about(key), &blocking_reasons),
            _ => Vec::new(),
        };
        let acknowledged = plan.acknowledged;
        let effect = Effect { blocking_reasons, forget_rejection, not_imported, reads, acknowledged };
        let renews = *key == Key::Heartbeat;
        let plan = convert::plan(plan, |write| {
            let step = traces::step(&self.view, &self.traces, write, now);
            (convert::verb(write, step.annotation), step.span)
        });
        Plan { events: convert::events(events), effect: Some(effect), renews, ..plan }
    }

    fn planned(&mut self, key: &Key, effect: Effect, at: Timestamp) {
        self.view.planned(key, effect.reads);
        if let (Key::SliceImport(slice), Some(generation)) = (key, effect.acknowledged) {
            self.stream.acknowledge(&slice.name, generation);
        }
        if let Some(NotImported { slice, service, why }) = effect.not_imported {
            debug!(%slice, %service, "{why}");
        }
        if effect.forget_rejection {
            self.view.forget_rejection(key);
        }
        if *key == Key::Heartbeat {
            self.identity.note(&effect.blocking_reasons, self.view.own_cluster_uid());
            self.stream.choose(&mut self.view, at);
        }
        self.blocking_reasons.note(key, planned_kind(key), effect.blocking_reasons);
    }

    /// Returns the flow of a key. Keys of exports and claims have one flow per namespace. Keys of distributed slices
    /// have one flow per exporting member.
    fn flow(&self, key: &Key) -> Flow {
        let id = match key {
            Key::Export(name)
            | Key::SliceExport(name)
            | Key::MultiClusterService(name)
            | Key::Import(name)
            | Key::McsImport(name) => FlowId::of(&name.namespace),
            Key::SliceImport(name) => {
                let distributed = self.view.distributed_slice_of(name);
                distributed.map_or(FlowId::default(), |it| FlowId::of(&it.spec.reference.cluster))
            }
            Key::Heartbeat | Key::Membership => {
                return Flow { urgency: Urgency::Heartbeat, ..FlowId::of("heartbeat").into() };
            }
        };
        id.into()
    }

    fn write(
        &mut self,
        key: &Key,
        news: WriteNews<'_, Kind, Receipt>,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) -> Vec<Event<Kind>> {
        let ended = match news {
            WriteNews::Begun(request) => {
                if let (Key::SliceImport(slice), Kind::EndpointSlice) = (key, request.source) {
                    self.view.slice_write_begun(slice, at, requeue);
                }
                return Vec::new();
            }
            WriteNews::Ended(ended) => ended,
        };
        let WriteEnded { request, end, receipt, failure, is_reported } = ended;
        let mut switches = Vec::new();
        if let (Key::SliceImport(slice), Kind::EndpointSlice) = (key, request.source) {
            self.view.slice_write_ended(slice, at, requeue);
            switches = self.report_switches();
        }
        match (key, end) {
            (Key::Heartbeat, WriteEnd::Done { .. }) => self.view.renewal_written(at, requeue),
            (Key::Heartbeat, WriteEnd::Denied | WriteEnd::Rejected) => self.view.renewal_denied(at, requeue),
            (Key::SliceImport(slice), WriteEnd::Done { version: Some(version) })
                if request.source == Kind::EndpointSlice =>
            {
                self.view.imported_slice_written(slice, version);
            }
            _ => {}
        }
        let mut events = match failure.filter(|_| is_reported) {
            Some(failure) => self.failed(key, end, failure),
            None => receipt.map_or_else(Vec::new, |receipt| self.written(receipt, at)),
        };
        events.append(&mut switches);
        events
    }

    /// Requeues the user's object, so that its condition reports the other writer.
    fn fight(&mut self, key: &Key, fight: &Fight<Kind>, requeue: &mut Vec<Key>) -> Vec<Event<Kind>> {
        let about = self.about(key);
        let named = about.as_ref().map(|(kind, name, _)| (*kind, name.clone()));
        let over = (fight.source, fight.name.clone());
        self.view.disputed(named, over, fight.message(), requeue);
        convert::fight_event(about, fight, COMPONENT)
    }
}

/// Returns Events about the user's object for reasons that all slices of a Service have. The engine posts an equal
/// Event again only after ten minutes.
fn events_of_slices(about: Option<(Kind, ObjectName, Uid)>, blocking_reasons: &[BlockingReason]) -> Vec<CoreEvent> {
    let is_of_all = |it: &&BlockingReason| matches!(it.reason, Reason::TooManyEndpoints | Reason::WeightsInvalid);
    let event = |it: &BlockingReason| Some(event_about(about.clone()?, COMPONENT, it.reason, it.message.clone()));
    blocking_reasons.iter().filter(is_of_all).filter_map(event).collect()
}

#[cfg(test)]
#[path = "logic_tests.rs"]
mod tests;
