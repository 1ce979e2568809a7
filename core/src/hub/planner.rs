//! Planner of the hub agent: plans keys, and tells which keys to plan again after a change.

use super::{conflict, distribute, merged};
use crate::handshake;
use crate::hub::view::NamespacePolicy;
use crate::hub::view::reader::Reader;
use crate::hub::view::value::Value;
use crate::hub::view::{Effects, Key, View};
use crate::model::{Announcement, Kind, Object, SliceStreamOffer};
use crate::plan::{Action, Look, Plan, Preview};
use crate::reads::{Reads, Recorded};
use fleetnet_types::{Change, ObjectName, Text, Timestamp, WatchState};
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

/// Result that is computed from the view, and computed again after a value that it read changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Computed {
    /// Plan of a key.
    Plan(Key),
    /// Merged import of a Service.
    Merged(ObjectName),
    /// Rank of the export with this name among the exports of its source slice.
    Rank(Text),
}

/// View of the hub agent, with the values that each plan read.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    view: View,
    recorded: Recorded<Value, Computed>,
}

/// Values that a plan read, for [`Planner::planned`].
#[derive(Debug)]
pub struct ReadValues(Reads<Value>);

/// Two planners are equal if they have the same view. Which values the last plans read does not count.
impl PartialEq for Planner {
    fn eq(&self, other: &Self) -> bool {
        self.view == other.view
    }
}

impl Deref for Planner {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// Only for records that requeue nothing.
impl DerefMut for Planner {
    fn deref_mut(&mut self) -> &mut View {
        &mut self.view
    }
}

impl Planner {
    /// Creates a planner with an empty view.
    pub fn new(announces: Announcement, namespace_policy: NamespacePolicy) -> Self {
        let mut planner = Self::default();
        (planner.view.announces, planner.view.namespace_policy) = (announces, namespace_policy);
        planner
    }

    /// Stores a change of an object, which the agent saw at the time `at`. Appends to `requeue` the keys of the object,
    /// and those whose last plan read a value that changed.
    pub fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        let Effects { values, keys, merges } = self.view.apply(kind, change, at);
        let mut concerned = Vec::new();
        for key in &keys {
            if let Key::Slice(name) = key {
                self.rank(name, &mut concerned); // no rank has read the new export
            }
        }
        self.merge_all(merges, &mut concerned);
        concerned.extend(keys);
        self.changed(values, &mut concerned);
        concerned.sort_unstable();
        concerned.dedup();
        requeue.extend(concerned);
    }

    /// Offers the slice stream to the members from now on.
    pub fn offer(&mut self, offer: SliceStreamOffer, requeue: &mut Vec<Key>) {
        let values = self.view.offer(offer);
        self.changed(values.into_iter().collect(), requeue);
    }

    /// Records that the importer with this member namespace holds a slice stream.
    pub fn stream_began(&mut self, importer: &Text, requeue: &mut Vec<Key>) {
        let values = self.view.stream_began(importer);
        self.changed(values.into_iter().collect(), requeue);
    }

    /// Records that the slice stream of an importer ended, whose last message came at the time `heard`. Its objects are
    /// written at once.
    pub fn stream_ended(&mut self, importer: &Text, heard: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.stream_ended(importer, heard);
        self.changed(values, requeue);
    }

    /// Records that an importer has imported the preview of a distributed slice, with this generation of the source
    /// slice.
    pub fn acknowledged(&mut self, at: &ObjectName, generation: i64, now: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.acknowledged(at, generation, now);
        self.changed(values.into_iter().collect(), requeue);
    }

    /// Records that the preview of a plan was put into the stream of its importer.
    pub fn sent(&mut self, key: &Key, preview: Preview, now: Timestamp) {
        if let Key::Copy { slice, importer } = key {
            let at = ObjectName { namespace: importer.clone(), name: slice.clone() };
            self.view.sent(&at, preview, now);
        }
    }

    /// Records that the watch of MemberAgents lost contact with the API server.
    pub fn members_lost(&mut self, now: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.members_lost(now);
        self.changed(values.into_iter().collect(), requeue);
    }

    /// Records that the watch of MemberAgents has contact with the API server again.
    pub fn members_followed(&mut self, now: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.view.members_followed(now);
        self.changed(values.into_iter().collect(), requeue);
    }

    /// Records what a plan has seen of an overdue member.
    pub fn looked(&mut self, key: &Key, look: Look, now: Timestamp) {
        if let Key::Member(cluster) = key {
            self.view.looked(cluster, look, now);
        }
    }

    /// Stores the newest state of an object, which the agent saw at the time `at`.
    pub fn applied(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<Key>) {
        self.apply(object.kind(), Change::Applied(object), at, requeue);
    }

    /// Stores the new state of a watch.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.recorded.watch_state(&mut self.view.watches, kind, state, at);
        self.changed(values, requeue);
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

    /// Returns the number of recorded reads.
    #[cfg(test)]
    pub(crate) fn number_of_reads(&self) -> usize {
        self.recorded.number_of_reads()
    }

    /// Takes the recorded reads, for tests of their size.
    #[cfg(test)]
    pub(crate) fn take_reads(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.recorded)
    }

    pub fn plan(&self, key: &Key, now: Timestamp) -> Plan {
        self.plan_and_reads(key, now).0
    }

    /// Plans a key. Also returns the values that the plan read, for [`Planner::planned`].
    pub fn plan_and_reads(&self, key: &Key, now: Timestamp) -> (Plan, ReadValues) {
        let reads = Reads::default();
        let view = Reader::new(&self.view, &reads);
        let plan = match key {
            Key::Service(service) => {
                let mut plan = conflict::plan_service(view, service, now);
                plan.join(merged::set_verdicts(view, service, &plan, now));
                plan
            }
            Key::Slice(name) => distribute::plan_slice(view, name, now),
            Key::Copy { slice, importer } => distribute::plan_copy(view, slice, importer, now),
            Key::MergedImport { service, importer } => merged::plan_import(view, service, importer, now),
            Key::Member(cluster) => handshake::plan_member(view, cluster, now),
        };
        // A create fails while its namespace does not exist. So the plan depends on the namespace too.
        let creates = plan.writes.iter().filter(|write| matches!(write.action, Action::Create(_)));
        let namespaces = creates.map(|write| ObjectName::new("", write.at.namespace.clone()));
        namespaces.for_each(|name| reads.note(Value::Object(Kind::Namespace, name)));
        (plan, ReadValues(reads))
    }

    /// Stores which values the last plan of a key read. After one of them changes, the key is requeued.
    pub fn planned(&mut self, key: &Key, ReadValues(reads): ReadValues) {
        // Without an object of the key the plan is empty, and any such object requeues the key.
        let exists = Reader::new(&self.view, &reads).has(key);
        self.recorded.keep(&Computed::Plan(key.clone()), exists.then_some(reads));
    }

    /// Requeues the keys whose last plan read one of these values.
    fn changed(&mut self, values: Vec<Value>, requeue: &mut Vec<Key>) {
        let mut ranks: Vec<Text> = Vec::new();
        let mut merges: Vec<ObjectName> = Vec::new();
        for value in &values {
            for computed in self.recorded.of(value) {
                match computed {
                    Computed::Plan(key) => requeue.push(key.clone()),
                    Computed::Rank(name) => ranks.push(name.clone()),
                    Computed::Merged(service) => merges.push(service.clone()),
                }
            }
        }
        for name in ranks {
            self.rank(&name, requeue);
        }
        self.merge_all(merges, requeue);
    }

    fn merge_all(&mut self, services: Vec<ObjectName>, requeue: &mut Vec<Key>) {
        for service in BTreeSet::from_iter(services) {
            self.merge(&service, requeue);
        }
    }

    /// Merges the exports of a Service for the standard API. Requeues the keys that read the merged import, if it is
    /// another one now.
    fn merge(&mut self, service: &ObjectName, requeue: &mut Vec<Key>) {
        let reads = Reads::default();
        let merged = merged::merged(Reader::new(&self.view, &reads), service);
        let exists = self.view.exports_by_standard_api(service);
        self.recorded.keep(&Computed::Merged(service.clone()), exists.then_some(reads));
        let Effects { values, keys, merges: _ } = self.view.store_merged(service, merged);
        requeue.extend(keys);
        self.changed(values, requeue);
    }

    /// Computes the rank of the export with this name. Requeues the keys that read the holder of a source slice, if it
    /// is another one now.
    fn rank(&mut self, name: &Text, requeue: &mut Vec<Key>) {
        let reads = Reads::default();
        let place = distribute::place_of(Reader::new(&self.view, &reads), name);
        let exists = self.view.slice_exports_named.get(name).next().is_some();
        self.recorded.keep(&Computed::Rank(name.clone()), exists.then_some(reads));
        let sources = self.view.holders.place(name, place);
        self.changed(sources.into_iter().map(Value::Holder).collect(), requeue);
    }
}

#[cfg(test)]
mod tests;
