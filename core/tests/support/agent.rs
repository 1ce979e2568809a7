//! Agent in a simulated fleet. As in the engine, watch events arrive with a delay, and the agent sees its own writes at
//! once. An object has at most one write in flight: sent, but not executed.

use super::cluster::Cluster;
use super::reworded::assert_reworded_plan_is_the_same;
use super::sabotage;
use fleetnet_core::model::{EndpointSlice, Kind, Object};
use fleetnet_core::names::{routed_slice, routing_slice};
use fleetnet_core::plan::{BlockingReason, Plan, Preview, Write};
use fleetnet_core::watches::Watches;
use fleetnet_core::{hub, member};
use fleetnet_types::{Change, MemberNamespace, ObjectName, Removal, Text, Timestamp, Uid, WatchState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;

pub(crate) type KindChange = (Kind, Change<Object>);

pub(crate) fn applied(object: Object) -> KindChange {
    (object.kind(), Change::Applied(object))
}

pub(crate) fn undecodable_change(kind: Kind, name: ObjectName) -> KindChange {
    (kind, Change::Undecodable { name })
}

pub(crate) fn removed(kind: Kind, name: ObjectName, uid: Uid) -> KindChange {
    (kind, Change::Removed { name, uid, how: Removal::Deleted })
}

pub(crate) fn name_of(change: &Change<Object>) -> &ObjectName {
    match change {
        Change::Applied(object) => &object.meta().name,
        Change::Undecodable { name } | Change::Removed { name, .. } => name,
    }
}

/// View of the hub agent or of a member agent: the agent's cache of the objects that it watches.
pub(crate) trait View: Clone + PartialEq + Debug {
    type Key: Clone + Ord + Debug;
    const KINDS: &'static [Kind];
    /// Returns an empty view of the same agent, as after a restart.
    fn forgetful(&self) -> Self;
    fn observe(&mut self, change: KindChange, at: Timestamp, requeue: &mut Vec<Self::Key>);
    fn watched(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Self::Key>);
    fn decide(&self, key: &Self::Key, now: Timestamp) -> Plan;
    /// Plans a key and records what the plan read, as the engine does.
    fn decide_and_record(&mut self, key: &Self::Key, now: Timestamp) -> Plan;
    fn every_key(&self) -> Vec<Self::Key>;
    /// Returns the keys that a test of single plans plans together with this key.
    fn parts(&self, key: &Self::Key) -> Vec<Self::Key> {
        vec![key.clone()]
    }
    /// Returns the key that a test of single plans names instead of this key.
    fn whole(key: Self::Key) -> Self::Key {
        key
    }
    fn watches(&self) -> &Watches;
    fn objects(&self) -> Vec<Object>;
    /// Returns the objects in the view that have conditions.
    fn objects_with_conditions(&self) -> Vec<Object>;
}

impl View for member::Planner {
    type Key = member::Key;
    const KINDS: &'static [Kind] = &[
        Kind::Service,
        Kind::EndpointSlice,
        Kind::ServiceExport,
        Kind::ServiceImport,
        Kind::MultiClusterService,
        Kind::InternalServiceExport,
        Kind::InternalServiceImport,
        Kind::EndpointSliceExport,
        Kind::EndpointSliceImport,
        Kind::MemberAgent,
        Kind::InternalMemberCluster,
        Kind::McsServiceExport,
        Kind::McsServiceImport,
        Kind::MergedServiceImport,
        Kind::Namespace,
    ];
    fn forgetful(&self) -> Self {
        Self::new(self.settings.clone())
    }
    fn observe(&mut self, change: KindChange, at: Timestamp, requeue: &mut Vec<Self::Key>) {
        self.apply(change.0, change.1, at, requeue);
    }
    fn watched(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Self::Key>) {
        self.watch_state(kind, state, at, requeue);
    }
    fn decide(&self, key: &Self::Key, now: Timestamp) -> Plan {
        self.plan(key, now)
    }
    fn decide_and_record(&mut self, key: &Self::Key, now: Timestamp) -> Plan {
        let (plan, reads) = self.plan_and_reads(key, now);
        self.planned(key, reads);
        plan
    }
    fn every_key(&self) -> Vec<Self::Key> {
        use member::Key;
        let system = &self.settings.fleet_system_namespace;
        let exports = self.exports.iter().map(|object| &object.meta.name);
        let exports = exports.chain(self.internal_exports.iter().map(|object| &object.reference.source));
        let exports = exports.chain(self.mcs_exports.iter().map(|object| &object.meta.name));
        let slices = self.slices.iter().map(|object| &object.meta.name);
        let slices = slices.chain(self.slice_exports.iter().map(|object| &object.spec.reference.source));
        let services = self.multi_cluster_services.iter().map(|object| &object.meta.name);
        let imports = self.imports.iter().map(|object| &object.meta.name);
        let imports = imports.chain(self.claims.iter().map(|object| &object.reference.source));
        let imported_slices = self.distributed_slices.iter().flat_map(|object| {
            [system, &object.spec.owner.namespace].map(|at| ObjectName::new(at.clone(), object.meta.name.name.clone()))
        });
        let imported_slices =
            imported_slices.chain(self.slices.in_namespace(system).map(|object| object.meta.name.clone()));
        let is_routing = |slice: &EndpointSlice| slice.imported && routed_slice(&slice.meta.name.name).is_some();
        let of_mcs_api = self.slices.iter().filter(|slice| slice.mcs.is_some() || is_routing(slice));
        let routing = self.distributed_slices.iter().filter(|_| self.settings.routing_slices);
        let routing =
            routing.map(|it| ObjectName::new(it.spec.owner.namespace.clone(), routing_slice(&it.meta.name.name)));
        let imported_slices = imported_slices.chain(of_mcs_api.map(|object| object.meta.name.clone()));
        let imported_slices = imported_slices.chain(routing);
        let mut keys = vec![Key::Heartbeat, Key::Membership];
        keys.extend(exports.cloned().map(Key::Export));
        keys.extend(slices.cloned().map(Key::SliceExport));
        keys.extend(services.cloned().map(Key::MultiClusterService));
        keys.extend(imports.cloned().map(Key::Import));
        keys.extend(self.merged_imports.iter().map(|object| Key::McsImport(object.service.clone())));
        keys.extend(self.mcs_imports.iter().map(|object| Key::McsImport(object.meta.name.clone())));
        keys.extend(imported_slices.map(Key::SliceImport));
        keys
    }
    fn watches(&self) -> &Watches {
        &self.watches
    }
    fn objects(&self) -> Vec<Object> {
        let mut all = Vec::new();
        all.extend(self.services.iter().cloned().map(Object::Service));
        all.extend(self.slices.iter().cloned().map(Object::EndpointSlice));
        all.extend(self.exports.iter().cloned().map(Object::ServiceExport));
        all.extend(self.imports.iter().cloned().map(Object::ServiceImport));
        all.extend(self.multi_cluster_services.iter().cloned().map(Object::MultiClusterService));
        all.extend(self.internal_exports.iter().cloned().map(Object::InternalServiceExport));
        all.extend(self.claims.iter().cloned().map(Object::InternalServiceImport));
        all.extend(self.slice_exports.iter().cloned().map(Object::EndpointSliceExport));
        all.extend(self.distributed_slices.iter().cloned().map(Object::EndpointSliceImport));
        all.extend(self.member_agents.iter().cloned().map(Object::MemberAgent));
        all.extend(self.memberships.iter().cloned().map(Object::InternalMemberCluster));
        all.extend(self.mcs_exports.iter().cloned().map(Object::McsServiceExport));
        all.extend(self.mcs_imports.iter().cloned().map(Object::McsServiceImport));
        all.extend(self.merged_imports.iter().cloned().map(Object::MergedServiceImport));
        all.extend(self.namespaces.iter().cloned().map(Object::Namespace));
        all
    }
    fn objects_with_conditions(&self) -> Vec<Object> {
        let exports = self.exports.iter().cloned().map(Object::ServiceExport);
        let internal_exports = self.internal_exports.iter().cloned().map(Object::InternalServiceExport);
        let services = self.multi_cluster_services.iter().cloned().map(Object::MultiClusterService);
        let mcs_exports = self.mcs_exports.iter().cloned().map(Object::McsServiceExport);
        exports.chain(internal_exports).chain(services).chain(mcs_exports).collect()
    }
}

impl View for hub::Planner {
    type Key = hub::Key;
    const KINDS: &'static [Kind] = &[
        Kind::InternalServiceExport,
        Kind::InternalServiceImport,
        Kind::ServiceImport,
        Kind::EndpointSliceExport,
        Kind::EndpointSliceImport,
        Kind::Namespace,
        Kind::MemberAgent,
        Kind::MergedServiceImport,
    ];
    fn forgetful(&self) -> Self {
        let mut view = Self::new(self.announces.clone(), self.namespace_policy);
        view.object_lag_micros = self.object_lag_micros;
        view
    }
    fn observe(&mut self, change: KindChange, at: Timestamp, requeue: &mut Vec<Self::Key>) {
        self.apply(change.0, change.1, at, requeue);
    }
    fn watched(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Self::Key>) {
        self.watch_state(kind, state, at, requeue);
    }
    fn decide(&self, key: &Self::Key, now: Timestamp) -> Plan {
        self.plan(key, now)
    }
    fn decide_and_record(&mut self, key: &Self::Key, now: Timestamp) -> Plan {
        let (plan, reads) = self.plan_and_reads(key, now);
        self.planned(key, reads);
        if let Some(preview) = plan.preview.clone() {
            self.sent(key, preview, now);
        }
        plan
    }
    fn every_key(&self) -> Vec<Self::Key> {
        use hub::Key;
        let services = self.internal_exports.iter().map(|export| &export.reference.source);
        let services = services.chain(self.claims.iter().map(|claim| &claim.reference.source));
        let services = services.chain(self.hub_imports.iter().map(|import| &import.meta.name));
        let mut keys: Vec<Key> = services.cloned().map(Key::Service).collect();
        let distributed = |slice: &Text, importer: &MemberNamespace| Key::DistributedSlice {
            slice: slice.clone(),
            importer: importer.clone(),
        };
        for export in self.slice_exports.iter() {
            let name = &export.meta.name.name;
            keys.push(Key::Slice(name.clone()));
            let import = self.hub_imports.get(&export.spec.owner).into_iter();
            keys.extend(import.flat_map(|it| it.claims.importers.keys().map(|importer| distributed(name, importer))));
            let merged = self.merged_imports.iter().filter(|import| import.service == export.spec.owner);
            keys.extend(merged.map(|import| distributed(name, &import.meta.name.member_namespace())));
        }
        let distributed_slices = self.distributed_slices.iter().map(|slice| &slice.meta.name);
        keys.extend(distributed_slices.map(|name| distributed(&name.name, &name.member_namespace())));
        keys.extend(self.member_agents.iter().map(|agent| Key::Member(agent.meta.name.name.clone().into())));
        keys.extend(self.merged_imports.iter().map(|import| Key::MergedImport {
            service: import.service,
            importer: import.meta.name.member_namespace(),
        }));
        keys
    }
    fn parts(&self, key: &Self::Key) -> Vec<Self::Key> {
        let hub::Key::Slice(name) = key else { return vec![key.clone()] };
        let distributed_slices = self.every_key().into_iter();
        let distributed_slices =
            distributed_slices.filter(|key| matches!(key, hub::Key::DistributedSlice { slice, .. } if slice == name));
        let distributed_slices: BTreeSet<Self::Key> = distributed_slices.collect();
        distributed_slices.into_iter().chain([key.clone()]).collect()
    }
    fn whole(key: Self::Key) -> Self::Key {
        match key {
            hub::Key::DistributedSlice { slice, .. } => hub::Key::Slice(slice),
            other => other,
        }
    }
    fn watches(&self) -> &Watches {
        &self.watches
    }
    fn objects(&self) -> Vec<Object> {
        let mut all = Vec::new();
        all.extend(self.hub_imports.iter().cloned().map(Object::ServiceImport));
        all.extend(self.internal_exports.iter().cloned().map(Object::InternalServiceExport));
        all.extend(self.claims.iter().cloned().map(Object::InternalServiceImport));
        all.extend(self.slice_exports.iter().cloned().map(Object::EndpointSliceExport));
        all.extend(self.distributed_slices.iter().cloned().map(Object::EndpointSliceImport));
        all.extend(self.namespaces.iter().cloned().map(Object::Namespace));
        all.extend(self.merged_imports.iter().map(Object::MergedServiceImport));
        all.extend(self.member_agents.iter().cloned().map(Object::MemberAgent));
        all
    }
    fn objects_with_conditions(&self) -> Vec<Object> {
        self.internal_exports.iter().cloned().map(Object::InternalServiceExport).collect()
    }
}

/// Asserts that a plan writes no object twice, because its writes may run in any order.
pub(crate) fn assert_targets_are_distinct(plan: &Plan) {
    let mut targets = BTreeSet::new();
    for write in &plan.writes {
        let first = targets.insert((write.kind(), &write.at));
        assert!(first, "two writes to {:?} {} in one plan: {:#?}", write.kind(), write.at, plan.writes);
    }
}

/// Watch event that is not delivered yet.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub(crate) enum WatchEvent {
    Changed(KindChange),
    /// End of a list: the watch has delivered all objects of the list.
    Listed,
}

/// Agent with its watches, and with its writes that are sent but not executed.
#[derive(Clone, Debug)]
pub(crate) struct Agent<V: View> {
    pub(crate) view: V,
    pub(crate) requeue: BTreeSet<V::Key>,
    /// Events that each watch has not delivered yet, in order.
    pub(crate) inbox: BTreeMap<Kind, VecDeque<WatchEvent>>,
    /// Planned writes that the server has not executed yet, each with the key of its plan.
    pub(crate) in_flight: Vec<(Write, V::Key)>,
    waiting: BTreeMap<(Kind, ObjectName), BTreeSet<V::Key>>,
    pub(crate) again: BTreeMap<V::Key, Timestamp>,
    /// UID of each object that the watches delivered. A later list is compared with these UIDs, to find deleted
    /// objects.
    delivered: BTreeMap<(Kind, ObjectName), Uid>,
    /// Blocking reasons of the last plan of each key.
    pub(crate) blocking_reasons: BTreeMap<V::Key, Vec<BlockingReason>>,
    /// Messages of plans that no slice stream has taken yet, each with the key of its plan.
    pub(crate) messages: Vec<(V::Key, Message)>,
}

/// Message of a plan to the other end of a slice stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Preview(Preview),
    Acknowledged(i64),
}

impl<V: View> Agent<V> {
    pub(crate) fn new(view: V) -> Self {
        Self {
            view,
            requeue: BTreeSet::new(),
            inbox: BTreeMap::new(),
            in_flight: Vec::new(),
            waiting: BTreeMap::new(),
            again: BTreeMap::new(),
            delivered: BTreeMap::new(),
            blocking_reasons: BTreeMap::new(),
            messages: Vec::new(),
        }
    }

    /// Restarts the agent: the agent loses its view and lists these objects.
    pub(crate) fn restart(&mut self, objects: &[Object]) {
        *self = Self::new(self.view.forgetful());
        for kind in V::KINDS {
            self.list(*kind, objects);
        }
    }

    /// Lists a kind again. The list replaces all events that the watch has not delivered yet.
    pub(crate) fn list(&mut self, kind: Kind, objects: &[Object]) {
        let queue = self.inbox.entry(kind).or_default();
        queue.clear();
        let listed = || objects.iter().filter(|object| object.kind() == kind);
        let names: BTreeSet<&ObjectName> = listed().map(|object| &object.meta().name).collect();
        for ((_, name), uid) in self.delivered.iter().filter(|((delivered, _), _)| *delivered == kind) {
            if !names.contains(name) {
                queue.push_back(WatchEvent::Changed(removed(kind, name.clone(), uid.clone())));
            }
        }
        queue.extend(listed().cloned().map(|object| WatchEvent::Changed(applied(object))));
        queue.push_back(WatchEvent::Listed);
    }

    /// Drops the undelivered events of a kind that the server no longer provides, and sets the state of the watch.
    pub(crate) fn not_served(&mut self, kind: Kind, state: WatchState, now: Timestamp) {
        self.inbox.remove(&kind);
        let mut requeue = Vec::new();
        self.view.watched(kind, state, now, &mut requeue);
        self.requeue.extend(requeue);
    }

    /// Queues a watch event with this change, if the agent watches the kind.
    pub(crate) fn notify(&mut self, change: KindChange) {
        let kind = change.0;
        if V::KINDS.contains(&kind) {
            self.inbox.entry(kind).or_default().push_back(WatchEvent::Changed(change));
        }
    }

    /// Delivers the next watch event of a kind to the agent.
    pub(crate) fn deliver(&mut self, kind: Kind, now: Timestamp) {
        match self.inbox.get_mut(&kind).and_then(VecDeque::pop_front) {
            Some(WatchEvent::Changed(change)) => self.observe(change, now),
            Some(WatchEvent::Listed) => {
                let mut requeue = Vec::new();
                self.view.watched(kind, WatchState::Complete, now, &mut requeue);
                self.requeue.extend(requeue);
            }
            None => {}
        }
    }

    fn observe(&mut self, change: KindChange, now: Timestamp) {
        let (kind, seen) = &change;
        match seen {
            Change::Applied(object) => {
                let key = (*kind, object.meta().name.clone());
                self.delivered.insert(key, object.meta().uid.clone());
            }
            Change::Undecodable { .. } => {}
            Change::Removed { name, uid, how: _ } => {
                let key = (*kind, name.clone());
                if self.delivered.get(&key) == Some(uid) {
                    self.delivered.remove(&key);
                }
            }
        }
        let mut requeue = Vec::new();
        self.view.observe(change, now, &mut requeue);
        self.requeue.extend(requeue);
    }

    /// Plans a key and sends the writes of the plan. The server executes them later. If another write to the same
    /// object is not executed yet, the key is planned again later.
    pub(crate) fn plan(&mut self, key: &V::Key, now: Timestamp) {
        self.requeue.remove(key);
        let plan = self.view.decide_and_record(key, now);
        assert_reworded_plan_is_the_same(&self.view, key, now);
        let plan = sabotage::break_plan(plan);
        assert_targets_are_distinct(&plan);
        match plan.again {
            Some(at) => self.again.insert(key.clone(), at),
            None => self.again.remove(key),
        };
        let messages = plan.preview.map(Message::Preview).into_iter();
        let messages = messages.chain(plan.acknowledged.map(Message::Acknowledged));
        self.messages.extend(messages.map(|message| (key.clone(), message)));
        self.blocking_reasons.remove(key);
        if !plan.blocking_reasons.is_empty() {
            self.blocking_reasons.insert(key.clone(), plan.blocking_reasons);
        }
        for write in plan.writes {
            let target = (write.kind(), write.at.clone());
            if self.in_flight.iter().any(|(other, _)| (other.kind(), &other.at) == (target.0, &target.1)) {
                self.waiting.entry(target).or_default().insert(key.clone());
            } else {
                self.in_flight.push((write, key.clone()));
            }
        }
    }

    /// Adds the server's answer to a write to the view. So every later plan sees the object as the server stored it.
    pub(crate) fn answered(&mut self, write: &Write, key: &V::Key, cluster: &Cluster, failed: bool, now: Timestamp) {
        let target = (write.kind(), write.at.clone());
        // Watch events of this object that are not delivered yet are older than the answer, so they are dropped.
        let newer = |event: &WatchEvent| match event {
            WatchEvent::Changed((kind, change)) => *kind != target.0 || *name_of(change) != target.1,
            WatchEvent::Listed => true,
        };
        self.inbox.entry(target.0).or_default().retain(newer);
        match cluster.get(target.0, &target.1) {
            Some(object) => self.observe(applied(object.clone()), now),
            None => {
                if let Some(uid) = self.delivered.get(&target).cloned() {
                    self.observe(removed(target.0, target.1.clone(), uid), now);
                }
            }
        }
        self.requeue.extend(self.waiting.remove(&target).unwrap_or_default());
        if failed {
            self.requeue.insert(key.clone());
        }
    }
}
