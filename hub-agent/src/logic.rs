//! Implementation of the trait `Logic` of [`fleetnet_runtime`] for the hub agent. The implementation passes changes of
//! objects to the view of `fleetnet_core` and returns the plans of this view.

use crate::heartbeats::Heartbeats;
use crate::silence_metrics::SilenceMetrics;
use crate::slice_bodies::SliceBodies;
use crate::states::{State, States};
use crate::stream::Message;
use crate::stream::state::Streams;
use crate::traces;
use fleetnet_agent::blocking_reasons::BlockingReasons;
use fleetnet_agent::convert::{self, Receipt};
use fleetnet_agent::traces::{Sampling, Span, Traces};
use fleetnet_core::features::Features;
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::hub::rights::NOT_ENFORCED;
use fleetnet_core::hub::{Key, Planner, ReadValues, SilenceLimits};
use fleetnet_core::model::{Announcement, Kind, Object};
use fleetnet_core::names;
use fleetnet_core::plan::{self, BlockingReason, Check, Preview};
use fleetnet_core::reasons::Reason;
use fleetnet_runtime::{
    Change, Event, Fight, Flow, FlowId, Logic, Plan, ProcessNews, WatchNews, WriteEnded, WriteNews,
};
use fleetnet_types::{MemberNamespace, ObjectName, Timestamp, Uid};
use prometheus::Registry;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;

use tracing::warn;

const COMPONENT: &str = "hub-agent";

/// State of the hub agent: the view and the metrics.
pub struct Hub {
    view: Planner,
    blocking_reasons: BlockingReasons<Key>,
    heartbeats: Heartbeats,
    silent: SilenceMetrics,
    states: States,
    bodies: SliceBodies,
    streams: Streams,
    traces: Traces,
    /// Keys of distributed slices and MergedServiceImports that their importers requeued, until their next plan without
    /// writes. Their work counts for the importers.
    by_importers: BTreeSet<Key>,
}

/// Effect of a plan on the hub agent.
#[derive(Debug)]
pub struct Effect {
    reads: ReadValues,
    blocking_reasons: Vec<BlockingReason>,
    preview: Option<Preview>,
    check: Option<Check>,
    has_writes: bool,
}

impl Hub {
    /// Returns a hub agent with an empty view.
    ///
    /// # Errors
    /// If the registry already contains one of the hub agent's metrics.
    pub fn new(namespace_policy: NamespacePolicy, registry: &Registry) -> Result<Self, prometheus::Error> {
        if namespace_policy == NamespacePolicy::Off {
            warn!(reason = Reason::RightsNotEnforced.as_str(), "{NOT_ENFORCED}");
        }
        let view = Planner::new(Announcement::new(env!("CARGO_PKG_VERSION"), Features::ALL), namespace_policy);
        let (heartbeats, states) = (Heartbeats::new(registry)?, States::new(registry)?);
        Ok(Self {
            view,
            blocking_reasons: BlockingReasons::new(registry)?,
            heartbeats,
            silent: SilenceMetrics::new(registry)?,
            states,
            bodies: SliceBodies::default(),
            streams: Streams::default(),
            traces: Traces::default(),
            by_importers: BTreeSet::new(),
        })
    }

    /// Sets the value of `--object-lag`: the time for which objects lag behind slice streams.
    #[must_use]
    pub fn with_object_lag(mut self, lag: Duration) -> Self {
        self.view.object_lag_micros = i64::try_from(lag.as_micros()).unwrap_or(i64::MAX);
        self
    }

    /// Sets the values of `--silence-soft` and `--silence-hard`; `None` if no member is judged.
    #[must_use]
    pub fn with_silence(mut self, limits: Option<SilenceLimits>) -> Self {
        self.view.silence_limits = limits;
        self
    }

    /// Sets the value of `--force-delete-wait-time`, if the agent follows MemberClusters.
    #[must_use]
    pub fn with_force_delete(mut self, wait: Option<Duration>) -> Self {
        self.view.force_delete_micros = wait.map(|wait| i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
        self
    }

    /// Sets the value of `--member-memory`: the memory that the objects of one member may take, in MiB. 0 is no limit.
    #[must_use]
    pub fn with_member_memory(mut self, mib: u32) -> Self {
        self.view.budgets.limit = usize::try_from(mib).ok().filter(|mib| *mib > 0).map(|mib| mib << 20);
        self
    }

    /// Sets the value of `--member-fan-out`: the number of objects that the exports of one member may cause. 0 is no
    /// limit.
    #[must_use]
    pub fn with_member_fan_out(mut self, objects: u32) -> Self {
        self.view.budgets.fan_out_limit = usize::try_from(objects).ok().filter(|objects| *objects > 0);
        self
    }

    /// Sets if this agent takes part in traces.
    #[must_use]
    pub fn with_traces(mut self, sampling: Option<Sampling>) -> Self {
        if sampling.is_some() {
            self.view.announces.add_traces();
        }
        self.traces = Traces::new(sampling);
        self
    }

    /// Completes the watches that the agent needs.
    #[cfg(test)]
    pub(crate) fn complete(&mut self) {
        for kind in [
            Kind::InternalServiceExport,
            Kind::InternalServiceImport,
            Kind::ServiceImport,
            Kind::EndpointSliceExport,
            Kind::EndpointSliceImport,
            Kind::Namespace,
            Kind::MemberAgent,
            Kind::MergedServiceImport,
        ] {
            let complete = WatchNews::State(fleetnet_runtime::WatchState::Complete);
            self.watch(kind, complete, Timestamp::EPOCH, &mut Vec::new());
        }
    }

    /// True if objects of the member with this member namespace exceed its memory.
    #[cfg(test)]
    pub(crate) fn refuses(&self, namespace: &str) -> bool {
        self.view.budgets.refused(&namespace.into()) > 0
    }

    /// Returns a channel that is true while this replica leads.
    #[must_use]
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.streams.leads()
    }

    /// Returns kind, name and UID of the object that Events of this key refer to. `None` if the view does not have the
    /// object, and for keys of members.
    fn about(&self, key: &Key) -> Option<(Kind, ObjectName, Uid)> {
        match key {
            Key::Service(service) | Key::MergedImport { service, .. } => {
                let (kind, meta) = self.view.import_or_export_of(service)?;
                Some((kind, meta.name.clone(), meta.uid.clone()))
            }
            Key::Slice(name) | Key::DistributedSlice { slice: name, .. } => {
                let export = self.view.slice_export_named(name)?;
                Some((Kind::EndpointSliceExport, export.meta.name.clone(), export.meta.uid.clone()))
            }
            Key::Member(_) => None,
        }
    }

    /// Returns the Events about what blocks a member: limits that it exceeds, and what the operator of the hub declares
    /// for it.
    fn member_events(&self, key: &Key, blocking_reasons: &[BlockingReason]) -> Vec<plan::Event> {
        let Key::Member(cluster) = key else { return Vec::new() };
        let Some(agent) = self.view.member_agents.get(&names::member_agent(cluster)) else { return Vec::new() };
        let about = (Kind::MemberAgent, agent.meta.name.clone(), agent.meta.uid.clone());
        let event = |BlockingReason { reason, message }: &BlockingReason| {
            plan::event_about(about.clone(), COMPONENT, *reason, message.clone())
        };
        blocking_reasons.iter().map(event).collect()
    }

    /// Records if the importers of these keys requeued them, by the kind and the namespace of the object that changed.
    fn note_cause(&mut self, source: Kind, namespace: &MemberNamespace, keys: &[Key]) {
        let is_of_importers = matches!(
            source,
            Kind::MemberAgent
                | Kind::EndpointSliceImport
                | Kind::InternalServiceImport
                | Kind::ServiceImport
                | Kind::MergedServiceImport
        );
        for key in keys {
            let Some(importer) = importer_of(key) else { continue };
            // A ServiceImport is for all importers. The other objects are in the member namespace of their importer.
            if is_of_importers && (source == Kind::ServiceImport || namespace == importer) {
                self.by_importers.insert(key.clone());
            } else {
                self.by_importers.remove(key);
            }
        }
    }

    /// Returns the span of a preview, if its change is sampled.
    fn trace_preview(&self, key: &Key, preview: &Preview) -> Option<Span> {
        let (Key::DistributedSlice { slice, importer }, Preview::Show(spec)) = (key, preview) else { return None };
        traces::preview(&self.view, &self.traces, spec, (slice, importer))
    }

    /// Names the member whose source slice went back, so that the stream of an importer ends.
    fn warn_of_older_source(&self, key: &Key) {
        let Key::DistributedSlice { slice, importer } = key else { return };
        let export = self.view.slice_export_named(slice).map(|export| export.meta.name.to_string());
        warn!(
            export,
            importer = %importer,
            "an exported slice went back to an older generation of its source slice, so the slice stream of its importer ends; \
             its exporting member has no previews for ten minutes. If its cluster was not restored from a backup, another writer \
             may have changed the export"
        );
    }
}

/// Returns the member namespace of the importer that a key names.
fn importer_of(key: &Key) -> Option<&MemberNamespace> {
    match key {
        Key::DistributedSlice { importer, .. } | Key::MergedImport { importer, .. } => Some(importer),
        Key::Service(_) | Key::Slice(_) | Key::Member(_) => None,
    }
}

/// Returns the kind of the object that a key plans, for metrics.
fn planned_kind(key: &Key) -> Kind {
    match key {
        Key::Service(_) => Kind::ServiceImport,
        Key::Slice(_) => Kind::EndpointSliceExport,
        Key::DistributedSlice { .. } => Kind::EndpointSliceImport,
        Key::MergedImport { .. } => Kind::MergedServiceImport,
        Key::Member(_) => Kind::MemberAgent,
    }
}

impl Logic for Hub {
    type Source = Kind;
    type Object = Object;
    type Key = Key;
    type Receipt = Receipt;
    type Effect = Effect;
    type Message = Message;

    fn observe(&mut self, source: Kind, mut change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        self.traces.observe(source, &mut change, None, at);
        match &change {
            Change::Applied(Object::MemberAgent(agent)) => {
                self.heartbeats.seen(agent, at);
                self.silent.seen(agent);
            }
            Change::Removed { name, .. } if source == Kind::MemberAgent => {
                self.heartbeats.gone(name);
                self.silent.gone(name);
            }
            Change::Applied(_) | Change::Removed { .. } | Change::Undecodable { .. } => {}
        }
        let first = requeue.len();
        let name = match &change {
            Change::Applied(object) => object.meta().name.clone(),
            Change::Removed { name, .. } | Change::Undecodable { name } => name.clone(),
        };
        if !matches!(source, Kind::InternalServiceExport | Kind::InternalServiceImport) {
            self.view.apply(source, change, at, requeue);
            return self.note_cause(source, &name.member_namespace(), &requeue[first..]);
        }
        let before = State::of(&self.view, source, &name);
        self.view.apply(source, change, at, requeue);
        self.states.changed(before, State::of(&self.view, source, &name));
        self.note_cause(source, &name.member_namespace(), &requeue[first..]);
    }

    fn wanted_again(&mut self) -> Option<(Kind, ObjectName)> {
        self.view.budgets.wanted_again()
    }

    fn watch(&mut self, source: Kind, news: WatchNews, at: Timestamp, requeue: &mut Vec<Key>) {
        match news {
            WatchNews::State(state) => self.view.watch_state(source, state, at, requeue),
            WatchNews::Connected(is_connected) if source == Kind::MemberAgent => {
                self.heartbeats.connected(is_connected, at);
                if is_connected {
                    self.view.members_followed(at, requeue);
                } else {
                    self.view.members_lost(at, requeue);
                }
            }
            WatchNews::Listing(is_listing) if source == Kind::MemberAgent => self.heartbeats.listing(is_listing, at),
            WatchNews::Connected(_) | WatchNews::Listing(_) | WatchNews::Restored => {}
        }
    }

    fn receive(&mut self, message: Message, at: Timestamp, requeue: &mut Vec<Key>) {
        match message {
            Message::FromStream(message) => self.streams.receive(message, &mut self.view, at, requeue),
            Message::Offer(offer) => self.view.offer(offer, at, requeue),
        }
    }

    fn process(&mut self, news: ProcessNews, at: Timestamp, requeue: &mut Vec<Key>) {
        match news {
            ProcessNews::Leads => {
                self.heartbeats.lead(at);
                self.silent.lead();
                self.streams.accept();
            }
            ProcessNews::Follows => {
                self.heartbeats.follow();
                self.silent.follow();
                self.streams.stop(&mut self.view, at, requeue);
            }
            ProcessNews::ClockSet { microseconds } => {
                self.view.clock_set(microseconds);
                self.heartbeats.clock_set(microseconds);
                self.traces.clock_set(microseconds);
            }
            ProcessNews::Stops => self.streams.stop(&mut self.view, at, requeue),
        }
    }

    fn plan(&self, key: &Key, now: Timestamp) -> Plan<Kind, Receipt, Effect> {
        let (mut plan, reads) = self.view.plan_and_reads(key, now);
        let (blocking_reasons, preview) = (std::mem::take(&mut plan.blocking_reasons), plan.preview.take());
        let check = plan.check;
        let events = convert::events(self.member_events(key, &blocking_reasons));
        Plan {
            events,
            effect: Some(Effect { reads, blocking_reasons, preview, check, has_writes: !plan.writes.is_empty() }),
            ..convert::plan(plan, |write| {
                let step = traces::step(&self.view, &self.traces, write, now);
                (self.bodies.verb(write, step.annotation), step.span)
            })
        }
    }

    fn planned(&mut self, key: &Key, effect: Effect, at: Timestamp) {
        let Effect { reads, blocking_reasons, preview, check, has_writes } = effect;
        if !has_writes {
            self.by_importers.remove(key);
        }
        if let Some(check) = check {
            self.view.checked(key, check, at);
        }
        if let Some(preview) = preview {
            if preview == Preview::EndStream {
                self.warn_of_older_source(key);
            }
            let span = self.trace_preview(key, &preview);
            let is_sent = self.streams.send(key, preview.clone(), span.as_ref().map(|span| span.change));
            if let Some(span) = span.filter(|_| is_sent) {
                self.traces.end(span, at);
            }
            self.view.sent(key, preview, at);
        }
        self.view.planned(key, reads);
        self.blocking_reasons.note(key, planned_kind(key), blocking_reasons);
    }

    /// Returns the flow (unit of fair queueing) of a key. All slices of an exporting member share one flow, all
    /// Services of a namespace share one flow, and all MemberAgents share one flow. Work for one importer that this
    /// importer causes has the flow of the importer, so it does not delay changes of the exporters.
    fn flow(&self, key: &Key) -> Flow {
        if let Some(importer) = importer_of(key).filter(|_| self.by_importers.contains(key)) {
            return FlowId::of(importer).into();
        }
        let id = match key {
            Key::Service(service) | Key::MergedImport { service, .. } => FlowId::of(&service.namespace),
            Key::Slice(name) | Key::DistributedSlice { slice: name, .. } => self
                .view
                .slice_export_named(name)
                .map_or(FlowId::default(), |export| FlowId::of(&export.meta.name.namespace)),
            Key::Member(_) => FlowId::of("members"),
        };
        id.into()
    }

    fn write(
        &mut self,
        key: &Key,
        news: WriteNews<'_, Kind, Receipt>,
        at: Timestamp,
        _requeue: &mut Vec<Key>,
    ) -> Vec<Event<Kind>> {
        let WriteNews::Ended(WriteEnded { end, receipt, failure, is_reported, .. }) = news else { return Vec::new() };
        if let Key::Member(cluster) = key
            && failure.is_none()
        {
            self.view.answered(cluster, at);
        }
        match failure.filter(|_| is_reported) {
            Some(failure) => convert::failure_event(self.about(key), end, failure, COMPONENT),
            None => receipt.map_or_else(Vec::new, |receipt| {
                if let Some(span) = receipt.span {
                    self.traces.end(*span, at);
                }
                convert::events(receipt.events)
            }),
        }
    }

    fn fight(&mut self, key: &Key, fight: &Fight<Kind>, requeue: &mut Vec<Key>) -> Vec<Event<Kind>> {
        let service = match key {
            Key::Service(service) | Key::MergedImport { service, .. } => Some(service.clone()),
            Key::Slice(name) | Key::DistributedSlice { slice: name, .. } => {
                self.view.slice_export_named(name).map(|export| export.spec.owner.clone())
            }
            Key::Member(_) => None,
        };
        let over = (fight.source, fight.name.clone());
        self.view.disputed(service, over, fight.message(), requeue);
        convert::fight_event(self.about(key), fight, COMPONENT)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Announcement, BlockingReason, Effect, Features, FlowId, Hub, Kind, Logic, MemberNamespace, NamespacePolicy,
        ObjectName, ProcessNews, Reason, Registry, Timestamp, names,
    };
    use fleetnet_core::hub::Key;
    use fleetnet_core::model::{
        AddressType, ClusterSelection, Finalizers, HubSlice, HubSliceSpec, ImportType, InternalServiceExport,
        McsExport, McsProperties, MemberAgent, MemberStatus, MergedImport, MergedServiceImport, Meta, Object,
        Reference, SessionAffinity, SliceContent,
    };
    use fleetnet_runtime::{Change, Fight};
    use fleetnet_types::{Removal, Timestamp as CoreTimestamp};

    /// Returns the exported slice of the Service `work/app`.
    fn slice_export() -> HubSlice {
        let meta = Meta {
            name: ObjectName::new("fleet-member-a", "a-work-app-1"),
            uid: "uid-export".into(),
            resource_version: 1,
            generation: 1,
            created: CoreTimestamp(0),
            deleting: false,
            finalizers: Finalizers::default(),
        };
        let reference = Reference {
            cluster: "a".into(),
            source: ObjectName::new("work", "app-1"),
            uid: "uid-slice".into(),
            resource_version: "1".into(),
            generation: 1,
            exported_since: None,
        };
        let content = SliceContent {
            address_type: AddressType::IPv4,
            endpoints: Vec::new(),
            draining: Vec::new(),
            ports: Vec::new(),
        };
        let spec = HubSliceSpec { reference, owner: ObjectName::new("work", "app"), content: content.into() };
        HubSlice { meta, spec, observed_generation: None, misnamed: false, deleted: None, traced: None }
    }

    /// Returns the export of the Service `work/app` by the standard API.
    fn service_export() -> InternalServiceExport {
        let HubSlice { meta, spec, .. } = slice_export();
        InternalServiceExport {
            meta: Meta { name: ObjectName::new("fleet-member-a", "work-app"), ..meta },
            reference: Reference { source: spec.owner, ..spec.reference },
            ports: Vec::new(),
            headless: false,
            session_affinity: SessionAffinity::None,
            mcs: Some(McsExport::default().into()),
            weight: None,
            conditions: Vec::new(),
            stamp: None,
            precedence: Vec::new(),
        }
    }

    /// Returns the key of the MergedServiceImport of the Service `work/app` for `member-b`.
    fn merged_import() -> Key {
        Key::MergedImport { service: ObjectName::new("work", "app"), importer: "fleet-member-b".into() }
    }

    /// Returns the MergedServiceImport of the Service `work/app` for `member-b`, without an exporting cluster.
    fn merged_service_import() -> MergedServiceImport {
        let service = ObjectName::new("work", "app");
        let name = ObjectName::new("fleet-member-b", names::merged_import_name(&service));
        let import = MergedImport {
            import_type: ImportType::ClusterSetIp,
            ports: Vec::new(),
            session_affinity: SessionAffinity::None,
            properties: McsProperties::default(),
            clusters: Vec::new(),
        };
        MergedServiceImport {
            meta: Meta { name, ..slice_export().meta },
            service,
            import: import.into(),
            selection: ClusterSelection::default(),
        }
    }

    /// Returns the MemberAgent of `member-b`, with all features.
    fn member_agent() -> MemberAgent {
        MemberAgent {
            meta: Meta { name: names::member_agent(&"b".into()), ..slice_export().meta },
            member: Announcement::new("1.2.3", Features::ALL),
            cluster_uid: None,
            leader: None,
            renewed: None,
            stopped: None,
            properties: std::collections::BTreeMap::new(),
            status: MemberStatus::default(),
        }
    }

    /// Returns a fight over a distributed slice, in which another writer undoes this agent's writes. `by` is the name
    /// of this writer, or `None` if the fight is over.
    fn fight(by: Option<&str>) -> Fight<Kind> {
        Fight {
            source: Kind::EndpointSliceImport,
            cluster: "hub".to_owned(),
            kind: "EndpointSliceImport",
            name: ObjectName::new("fleet-member-b", "a-work-app-1"),
            by: by.map(str::to_owned),
        }
    }

    #[test]
    fn who_does_not_lead_any_more_has_no_streams() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        let leads = hub.leads();
        hub.process(ProcessNews::Leads, Timestamp::EPOCH, &mut Vec::new());
        assert!(*leads.borrow());
        hub.process(ProcessNews::Follows, Timestamp::EPOCH, &mut Vec::new());
        assert!(!*leads.borrow());
    }

    #[test]
    fn a_fight_over_a_slice_disputes_its_service_and_is_reported_to_the_exporter() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        let now = Timestamp::EPOCH;
        let (slice, service) = (slice_export(), Key::Service(ObjectName::new("work", "app")));
        let key = Key::Slice(slice.meta.name.name.clone());
        let mut requeue = Vec::new();
        hub.observe(Kind::EndpointSliceExport, Change::Applied(Object::EndpointSliceExport(slice)), now, &mut requeue);

        requeue.clear();
        let events = hub.fight(&key, &fight(Some("field manager x")), &mut requeue);
        assert_eq!(requeue, std::slice::from_ref(&service));
        let reported: Vec<_> = events.iter().map(|event| (event.source, event.name.to_string())).collect();
        assert_eq!(reported, [(Kind::EndpointSliceExport, "fleet-member-a/a-work-app-1".to_owned())]);

        requeue.clear();
        assert_eq!(hub.fight(&key, &fight(None), &mut requeue), [], "no Event tells that a fight is over");
        assert_eq!(requeue, [service], "its condition changes back");
    }

    /// Also rule A16.
    #[test]
    fn a_plan_made_twice_is_the_same_and_counts_nothing() {
        let registry = Registry::new();
        let mut hub = Hub::new(NamespacePolicy::Off, &registry).expect("its metric is new");
        let now = Timestamp::EPOCH;
        let slice = slice_export();
        let key = Key::Slice(slice.meta.name.name.clone());
        let applied = Change::Applied(Object::EndpointSliceExport(slice));
        hub.observe(Kind::EndpointSliceExport, applied, now, &mut Vec::new());
        hub.complete();
        let plan = hub.plan(&key, now);
        assert_eq!(format!("{:?}", hub.plan(&key, now)), format!("{plan:?}"));
        let counted = || {
            let families = registry.gather();
            families
                .iter()
                .find(|family| family.name() == "fleetnet_hindrances")
                .map(|family| family.get_metric().len())
        };
        assert_eq!(counted(), None);
        let blocked = BlockingReason { reason: Reason::NameHeldByAnother, message: "another has the name".to_owned() };
        let Some(effect) = plan.effect else { panic!("a plan has the values that it read") };
        hub.planned(&key, Effect { blocking_reasons: vec![blocked], ..effect }, now);
        assert_eq!(counted(), Some(1), "the effect of a plan is counted once it is applied");
    }

    /// Rule Q15: A change of an importer (its MemberAgent, claim, distributed slices or MergedServiceImports) requeues
    /// its distributed slices or MergedServiceImports
    /// Then: The work has the flow of the importer, and does not delay the changes of exporters. A change of another
    /// member does not count for the importer
    #[test]
    fn work_that_an_importer_causes_has_the_flow_of_the_importer() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        let (now, export) = (Timestamp::EPOCH, slice_export());
        let (name, importer) = (export.meta.name.name.clone(), MemberNamespace::from("fleet-member-b"));
        let key = Key::DistributedSlice { slice: name.clone(), importer: importer.clone() };
        let see = |hub: &mut Hub, kind, object| {
            let mut requeue = Vec::new();
            hub.observe(kind, Change::Applied(object), now, &mut requeue);
            hub.plan(&key, now);
            requeue
        };
        see(&mut hub, Kind::EndpointSliceExport, Object::EndpointSliceExport(export.clone()));
        let (of_exporter, of_importer) = (FlowId::of("fleet-member-a"), FlowId::of("fleet-member-b"));
        assert_eq!(hub.flow(&key).id, of_exporter);
        let mut distributed = export.clone();
        distributed.meta.name.namespace = importer.into();
        let requeued = see(&mut hub, Kind::EndpointSliceImport, Object::EndpointSliceImport(distributed.clone()));
        assert!(requeued.contains(&key), "{requeued:?}");
        assert_eq!(hub.flow(&key).id, of_importer, "an edit of its distributed slice");
        assert_eq!(hub.flow(&Key::Slice(name)).id, of_exporter, "the export itself is the exporter's");
        hub.complete();
        let effect = hub.plan(&key, now).effect.expect("a plan has an effect");
        hub.planned(&key, Effect { has_writes: true, ..effect }, now);
        assert_eq!(hub.flow(&key).id, of_importer, "its writes wait in the same flow");
        let mut changed = export;
        changed.spec.reference.generation = 2;
        changed.meta.resource_version = 2;
        let requeued = see(&mut hub, Kind::EndpointSliceExport, Object::EndpointSliceExport(changed));
        assert!(requeued.contains(&key), "{requeued:?}");
        assert_eq!(hub.flow(&key).id, of_exporter, "a change of the exporter");
        distributed.meta.resource_version = 3;
        distributed.spec.reference.generation = 7;
        see(&mut hub, Kind::EndpointSliceImport, Object::EndpointSliceImport(distributed));
        assert_eq!(hub.flow(&key).id, of_importer);
        let effect = hub.plan(&key, now).effect.expect("a plan has an effect");
        hub.planned(&key, Effect { has_writes: false, ..effect }, now);
        assert_eq!(hub.flow(&key).id, of_exporter, "nothing is left of it");
    }

    /// Also rule Q15.
    #[test]
    fn work_on_a_merged_import_that_its_importer_causes_has_the_flow_of_the_importer() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        hub.complete();
        let (now, key) = (Timestamp::EPOCH, merged_import());
        let (of_service, of_importer) = (FlowId::of("work"), FlowId::of("fleet-member-b"));
        let see = |hub: &mut Hub, kind, change| {
            let mut requeue = Vec::new();
            hub.observe(kind, change, now, &mut requeue);
            assert!(requeue.contains(&key), "{requeue:?}");
        };
        let plan = |hub: &mut Hub, has_writes| {
            let effect = hub.plan(&key, now).effect.expect("a plan has an effect");
            hub.planned(&key, Effect { has_writes, ..effect }, now);
        };
        let mut export = service_export();
        let applied = Change::Applied(Object::InternalServiceExport(export.clone()));
        hub.observe(Kind::InternalServiceExport, applied, now, &mut Vec::new());
        see(&mut hub, Kind::MemberAgent, Change::Applied(Object::MemberAgent(member_agent())));
        assert_eq!(hub.flow(&key).id, of_importer, "its importer announces other features");
        plan(&mut hub, true);
        assert_eq!(hub.flow(&key).id, of_importer, "its writes wait in the same flow");
        plan(&mut hub, false);
        assert_eq!(hub.flow(&key).id, of_service, "nothing is left of it");
        let edited = merged_service_import();
        let removed =
            Change::Removed { name: edited.meta.name.clone(), uid: edited.meta.uid.clone(), how: Removal::Deleted };
        see(&mut hub, Kind::MergedServiceImport, Change::Applied(Object::MergedServiceImport(edited)));
        assert_eq!(hub.flow(&key).id, of_importer, "its importer edits it");
        plan(&mut hub, false);
        see(&mut hub, Kind::MergedServiceImport, removed);
        assert_eq!(hub.flow(&key).id, of_importer, "its importer deletes it");
        plan(&mut hub, true);
        export.meta.resource_version = 2;
        export.session_affinity = SessionAffinity::ClientIp { timeout_seconds: 60 };
        see(&mut hub, Kind::InternalServiceExport, Change::Applied(Object::InternalServiceExport(export)));
        assert_eq!(hub.flow(&key).id, of_service, "a change of the exporter");
    }

    /// Also rule Q15.
    #[test]
    fn work_that_another_member_causes_has_not_the_flow_of_the_importer() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        let key = merged_import();
        let table = [
            (Kind::MemberAgent, "fleet-member-b", "fleet-member-b"),
            (Kind::MemberAgent, "fleet-member-a", "work"),
            (Kind::InternalServiceImport, "fleet-member-b", "fleet-member-b"),
            (Kind::InternalServiceImport, "fleet-member-c", "work"),
            (Kind::InternalServiceExport, "fleet-member-b", "work"),
        ];
        for (kind, namespace, flow) in table {
            hub.note_cause(kind, &namespace.into(), std::slice::from_ref(&key));
            assert_eq!(hub.flow(&key).id, FlowId::of(flow), "{kind:?} in {namespace}");
        }
    }

    #[test]
    fn a_fight_over_a_slice_whose_export_is_gone_disputes_no_service() {
        let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new()).expect("its metric is new");
        let mut requeue = Vec::new();
        let key = Key::Slice(slice_export().meta.name.name);
        assert_eq!(hub.fight(&key, &fight(Some("field manager x")), &mut requeue), []);
        assert_eq!(requeue, []);
    }
}
