//! Rules of the hub agent by key, and the changes of its view that do not come from objects.

use super::{conflict, distribute, merged_import};
use crate::handshake;
use crate::hub::view::reader::Reader;
use crate::hub::view::value::{Computation, Value};
use crate::hub::view::{Effects, Key, NamespacePolicy, View};
use crate::model::{Announcement, Kind, Object, SliceStreamOffer};
use crate::plan::{Action, Check, Plan, Preview};
use crate::planner::{self, Rules};
use crate::reads::Reads;
use crate::watches::Watches;
use fleetnet_types::{Change, MemberNamespace, ObjectName, Timestamp, WatchState};

pub type Planner = planner::Planner<View>;
pub type ReadValues = planner::ReadValues<Value>;

impl Rules for View {
    type Key = Key;
    type Value = Value;
    type Result = Computation;

    fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp) -> Effects {
        let mut effects = self.apply(kind, change, at);
        let slice = |key: &Key| if let Key::Slice(name) = key { Some(Computation::Rank(name.clone())) } else { None };
        effects.results.extend(effects.keys.iter().filter_map(slice));
        effects
    }

    fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }

    fn plan(&self, reads: &Reads<Value>, key: &Key, now: Timestamp) -> Plan {
        let view = Reader::new(self, reads);
        let plan = match key {
            Key::Service(service) => {
                let mut plan = conflict::plan_service(view, service, now);
                plan.join(merged_import::set_verdicts(view, service, &plan, now));
                plan
            }
            Key::Slice(name) => distribute::plan_slice(view, name, now),
            Key::DistributedSlice { slice, importer } => distribute::plan_distributed_slice(view, slice, importer, now),
            Key::MergedImport { service, importer } => merged_import::plan_import(view, service, importer, now),
            Key::Member(cluster) => handshake::plan_member(view, cluster, now),
        };
        // A create fails while its namespace does not exist. So the plan depends on the namespace too.
        let creates = plan.writes.iter().filter(|write| matches!(write.action, Action::Create(_)));
        let namespaces = creates.map(|write| ObjectName::new("", write.at.namespace.clone()));
        namespaces.for_each(|name| reads.note(Value::Object(Kind::Namespace, name)));
        plan
    }

    fn has(&self, reads: &Reads<Value>, key: &Key) -> bool {
        Reader::new(self, reads).has(key)
    }

    fn compute(&mut self, result: &Computation, _: Timestamp) -> (Option<Reads<Value>>, Effects) {
        let reads = Reads::default();
        let view = Reader::new(self, &reads);
        let (exists, effects) = match result {
            Computation::Rank(name) => {
                let place = distribute::place_of(view, name);
                let exists = self.slice_exports_named.get(name).next().is_some();
                (exists, Effects::of(self.holders.place(name, place).into_iter().map(Value::Holder)))
            }
            Computation::Merge(service) => {
                let merge = merged_import::merge_of(view, service);
                (self.exports_by_mcs_api(service), self.store_merge(service, merge))
            }
        };
        (exists.then_some(reads), effects)
    }
}

impl Default for Planner {
    fn default() -> Self {
        View::default().into()
    }
}

impl Planner {
    /// Creates a planner with an empty view.
    pub fn new(announces: Announcement, namespace_policy: NamespacePolicy) -> Self {
        let mut planner = Self::default();
        (planner.view.announces, planner.view.namespace_policy) = (announces, namespace_policy);
        planner
    }

    /// Offers the slice stream to the members from now on.
    pub fn offer(&mut self, offer: SliceStreamOffer, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.offer(offer);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records that the importer with this member namespace holds a slice stream.
    pub fn stream_began(&mut self, importer: &MemberNamespace, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.previews.stream_began(importer);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records that the slice stream of an importer ended, whose last message came at this time. Its objects are
    /// written at once.
    pub fn stream_ended(&mut self, importer: &MemberNamespace, last_message: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.previews.stream_ended(importer);
        if !values.is_empty() {
            self.view.last_renewals.stream_ended(importer, last_message);
        }
        self.changed(Effects::of(values), last_message, requeue);
    }

    /// Records that an importer has imported the preview of a distributed slice, with this generation of the source
    /// slice.
    pub fn acknowledged(&mut self, slice: &ObjectName, generation: i64, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.previews.acknowledged(slice, generation, at);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records that the preview of a plan was put into the stream of its importer.
    pub fn sent(&mut self, key: &Key, preview: Preview, now: Timestamp) {
        if let Key::DistributedSlice { slice, importer } = key {
            let at = ObjectName::new(importer, slice.clone());
            self.view.previews.sent(&at, preview, now);
        }
    }

    /// Records that the watch of MemberAgents lost contact with the API server.
    pub fn members_lost(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.last_renewals.contact_lost(at);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records that the watch of MemberAgents has contact with the API server again.
    pub fn members_followed(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.last_renewals.contact_began(at);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records what a plan has seen of an overdue member.
    pub fn checked(&mut self, key: &Key, check: Check, now: Timestamp) {
        if let Key::Member(cluster) = key {
            self.view.last_renewals.checked(cluster, check, now);
        }
    }

    /// Stores the new state of a watch.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.set_watch_state(kind, state, at);
        self.changed(Effects::of(values), at, requeue);
    }

    /// Records that another writer undoes the hub agent's writes to the object `over`. `message` is the text for the
    /// user; `None` if the other writer stopped. `about` is the Service whose exports show the dispute in a condition;
    /// without it, no condition shows the dispute.
    pub fn disputed(
        &mut self,
        about: Option<ObjectName>,
        over: (Kind, ObjectName),
        message: Option<String>,
        requeue: &mut Vec<Key>,
    ) {
        requeue.extend(self.view.disputes.note(about.map(Key::Service), over, message));
    }
}

#[cfg(test)]
mod tests;
