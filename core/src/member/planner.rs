//! Rules of the member agent by key, and the changes of its view that do not come from objects.

use super::{export, facts, import, mcs_import, membership};
use crate::handshake;
use crate::member::view::Reader;
use crate::member::view::value::{Computation, Fact, Value};
use crate::member::view::{Effects, Key, Settings, StreamEnd, View};
use crate::model::{HubSliceSpec, Kind, Object};
use crate::plan::{Action, Plan};
use crate::planner::{self, Rules, with_reads};
use crate::reads::Reads;
use crate::watches::Watches;
use fleetnet_types::{Change, ObjectName, Text, Timestamp, WatchState};

pub type Planner = planner::Planner<View>;
pub type ReadValues = planner::ReadValues<Value>;

impl Rules for View {
    type Key = Key;
    type Value = Value;
    type Result = Computation;

    fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp) -> Effects {
        self.apply(kind, change, at)
    }

    fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }

    fn plan(&self, reads: &Reads<Value>, key: &Key, now: Timestamp) -> Plan {
        let view = Reader::new(self, reads);
        let plan = match key {
            Key::Heartbeat => handshake::plan_heartbeat(view, now),
            Key::Membership => membership::plan(view, now),
            Key::Export(service) => export::plan_service(view, service, now),
            Key::SliceExport(slice) => export::plan_slice(view, slice, now),
            Key::MultiClusterService(name) => import::plan_multi_cluster_service(view, name, now),
            Key::McsImport(service) => mcs_import::plan(view, service, now),
            Key::Import(name) => import::plan_import(view, name, now),
            Key::SliceImport(name) => import::plan_slice(view, name, now),
        };
        if *key == Key::Heartbeat || view.acts_in_hub(now) { plan } else { restricted(plan) }
    }

    fn has(&self, reads: &Reads<Value>, key: &Key) -> bool {
        Reader::new(self, reads).has(key)
    }

    fn compute(&mut self, result: &Computation, at: Timestamp) -> (Option<Reads<Value>>, Effects) {
        let reads = Reads::default();
        let view = Reader::new(self, &reads);
        let (exists, changed) = match result {
            Computation::Fact(fact) => (view.has_fact(fact), self.compute_fact(&reads, fact, at)),
            Computation::Selection(of) => {
                let exists = view.distributed_slices_of(&of.service).next().is_some();
                let selection = if exists { import::candidates(view, of, at) } else { None };
                (exists, self.store_selection(of, selection, at).then(|| Value::Selection(of.clone())))
            }
        };
        (exists.then_some(reads), Effects::of(changed))
    }
}

impl View {
    /// Computes if a fact is true now. Returns its value if it changed.
    fn compute_fact(&mut self, reads: &Reads<Value>, fact: &Fact, at: Timestamp) -> Option<Value> {
        let is_changed = match facts::is_true(Reader::new(self, reads), fact, at) {
            Some(true) => self.facts.begin(fact, at),
            Some(false) => self.facts.end(fact),
            None => false,
        };
        is_changed.then(|| Value::Fact(fact.clone()))
    }
}

impl Planner {
    /// Creates a planner with an empty view.
    pub fn new(settings: Settings) -> Self {
        View::new(settings).into()
    }

    /// Changes the view. Requeues the keys that the change concerns.
    fn with_effects(&mut self, at: Timestamp, requeue: &mut Vec<Key>, change: impl FnOnce(&mut View, &mut Effects)) {
        let mut effects = Effects::default();
        change(&mut self.view, &mut effects);
        self.changed(effects, at, requeue);
    }

    /// Stores content of a distributed slice that the slice stream delivered before the object.
    pub fn show_preview(&mut self, slice: &Text, preview: HubSliceSpec, at: Timestamp, requeue: &mut Vec<Key>) {
        self.with_effects(at, requeue, |view, effects| view.show_preview(slice, preview, effects));
    }

    /// Records that a slice stream began. An earlier stream must have ended before.
    pub fn stream_began(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        self.view.slice_stream.open_since = Some(at);
        self.changed(Effects::of([Value::FollowsHub]), at, requeue);
    }

    /// Drops all previews, because the slice stream ended. The imported slices stay as they are until the hub agent has
    /// written the objects, or has not written them in a minute in which it leads.
    pub fn stream_ended(&mut self, end: StreamEnd, at: Timestamp, requeue: &mut Vec<Key>) {
        self.view.slice_stream.open_since = None;
        self.with_effects(at, requeue, |view, effects| {
            view.drop_previews(end, effects);
            effects.values.push(Value::FollowsHub);
        });
    }

    /// Drops all previews, because the watch of distributed slices lists them again. The list may not show that the
    /// source of a preview went back.
    pub fn distributed_slices_listed_again(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        self.with_effects(at, requeue, |view, effects| view.drop_previews(StreamEnd::Other, effects));
    }

    /// Records that the watch of distributed slices lost contact with the hub (`None`), or has it again since this
    /// time.
    pub fn hub_followed(&mut self, since: Option<Timestamp>, at: Timestamp, requeue: &mut Vec<Key>) {
        self.view.hub_followed_since = since;
        self.changed(Effects::of([Value::FollowsHub]), at, requeue);
    }

    /// Stores the new state of a watch.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        let acted_in_hub = self.view.acts_in_hub(at);
        let mut values = self.set_watch_state(kind, state, at);
        if self.view.acts_in_hub(at) != acted_in_hub {
            values.push(Value::ActsInHub);
        }
        requeue.push(Key::Heartbeat); // no object of its own makes it a first time
        self.changed(Effects::of(values), at, requeue);
        self.with_effects(at, requeue, |view, effects| view.own_addresses_listed(kind, effects));
    }

    /// Records that the watch of this cluster's slices lost contact with the API server.
    pub fn slices_lost(&mut self, requeue: &mut Vec<Key>) {
        if std::mem::take(&mut self.view.slices_followed) {
            requeue.push(Key::Heartbeat);
        }
    }

    /// Records that the hub was restored from a backup.
    pub fn hub_restored(&mut self, at: Timestamp) {
        self.view.hub_restored(at);
    }

    /// Records that a write of an imported slice is sent. From now on, what the slice will not serve any more counts as
    /// gone, so no other plan relies on it.
    pub fn slice_write_begun(&mut self, slice: &ObjectName, at: Timestamp, requeue: &mut Vec<Key>) {
        if self.view.settings.cluster_selection.is_some() {
            let plan = self.plan(&Key::SliceImport(slice.clone()), at);
            self.with_effects(at, requeue, |view, effects| view.slice_write_begun(slice, &plan.writes, effects));
        }
    }

    /// Records that the write of an imported slice has ended, and that the view has its result.
    pub fn slice_write_ended(&mut self, slice: &ObjectName, at: Timestamp, requeue: &mut Vec<Key>) {
        self.with_effects(at, requeue, |view, effects| view.slice_write_ended(slice, effects));
    }

    /// Records that the watch of this cluster's slices has contact with the API server again.
    pub fn slices_followed(&mut self, requeue: &mut Vec<Key>) {
        if !std::mem::replace(&mut self.view.slices_followed, true) {
            requeue.push(Key::Heartbeat);
        }
    }

    /// Records that the hub accepted a renewal by this process. The MemberAgent in the response is already in the view.
    pub fn renewal_written(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        self.with_ownership(at, requeue, |view| view.renewal_written(at));
    }

    /// Records that the hub rejects or denies renewals by this process. Exports and imports continue if no other
    /// cluster owns the id.
    pub fn renewal_denied(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        self.with_ownership(at, requeue, View::renewal_denied);
    }

    /// Changes the view. Requeues the keys if this cluster gained or lost the right to write to the hub.
    fn with_ownership(&mut self, at: Timestamp, requeue: &mut Vec<Key>, change: impl FnOnce(&mut View)) {
        let acted_in_hub = self.view.acts_in_hub(at);
        change(&mut self.view);
        if self.view.acts_in_hub(at) != acted_in_hub {
            self.changed(Effects::of([Value::ActsInHub]), at, requeue);
        }
    }

    /// Records that another writer undoes this agent's writes to the object `over`. `message` is the text for the user;
    /// `None` if the other writer stopped. `about` is the ServiceExport or MultiClusterService that the write belongs
    /// to; without it, no condition shows the dispute.
    pub fn disputed(
        &mut self,
        about: Option<(Kind, ObjectName)>,
        over: (Kind, ObjectName),
        message: Option<String>,
        requeue: &mut Vec<Key>,
    ) {
        let about = about.and_then(|(kind, name)| match kind {
            Kind::ServiceExport => Some(Key::Export(name)),
            Kind::MultiClusterService => Some(Key::MultiClusterService(name)),
            _ => None,
        });
        requeue.extend(self.view.disputes.note(about, over, message));
    }

    /// Plans a ServiceImport in a process that makes no claims, because its import part is off.
    pub fn plan_unclaimed_import(&self, name: &ObjectName) -> (Plan, ReadValues) {
        with_reads(|reads| import::plan_unclaimed_import(Reader::new(&self.view, reads), name))
    }
}

/// Removes from a plan the writes that a cluster must not make if it does not own its id: all writes to the hub, and
/// all deletes in the cluster itself.
fn restricted(mut plan: Plan) -> Plan {
    plan.writes.retain(|write| !is_in_hub(write.kind()) && !matches!(write.action, Action::Delete { .. }));
    plan
}

fn is_in_hub(kind: Kind) -> bool {
    match kind {
        Kind::InternalServiceExport
        | Kind::InternalServiceImport
        | Kind::EndpointSliceExport
        | Kind::EndpointSliceImport
        | Kind::MemberAgent
        | Kind::InternalMemberCluster
        | Kind::MemberCluster
        | Kind::MergedServiceImport => true,
        Kind::Service
        | Kind::EndpointSlice
        | Kind::ServiceExport
        | Kind::McsServiceExport
        | Kind::McsServiceImport
        | Kind::ServiceImport
        | Kind::MultiClusterService
        | Kind::Namespace
        | Kind::SystemNamespace
        | Kind::ClusterProperty
        | Kind::Node => false,
    }
}
