//! View of the hub agent: cache of the exports and claims of all members, and the keys to plan again after a change.
//!
//! ```text
//!  member namespaces: InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent
//!  user namespaces:   ServiceImport          cluster: Namespace
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`store`] | the objects and their indexes |
//! | [`value`] | the values that a plan can read |
//! | [`reader`] | the reads of a plan |
//! | `holders` | of the exports of a source slice, the one that is distributed |

mod holders;
pub(crate) mod reader;
pub(crate) mod store;
pub(crate) mod value;

use crate::handshake;
use crate::hub::rights::NamespacePolicy;
use crate::hub::{conflict, distribute};
use crate::model::{Announcement, HubSlice, Kind, Meta, Object};
use crate::plan::{Action, Plan};
use crate::reads::{Reads, Recorded};
use fleetnet_types::{Change, ClusterId, ObjectName, Text, Timestamp, WatchState};
use holders::Holders;
pub(crate) use holders::Rank;
use reader::Reader;
use std::ops::Deref;
use store::{Effects, Store};
use value::Value;

/// Key of the hub agent. A key names what one plan is for, such as an exported Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Exported Service: its ServiceImport, the conditions of its exports, and its claims.
    Service(ObjectName),
    /// Exported slices with this name.
    Slice(Text),
    /// The slice with this name that is distributed to one importer.
    Copy {
        slice: Text,
        /// Member namespace of the importer.
        importer: Text,
    },
    /// Status in the MemberAgent of a member, which the hub agent writes.
    Member(ClusterId),
}

impl Key {
    pub(crate) fn copy(slice: &Text, importer: &Text) -> Self {
        Self::Copy { slice: slice.clone(), importer: importer.clone() }
    }
}

/// Result that is computed from the store, and computed again after a value that it read changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Computed {
    /// Plan of a key.
    Plan(Key),
    /// Rank of the export with this name among the exports of its source slice.
    Rank(Text),
}

/// Cache of all objects in the hub that the rules of the hub agent read.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Features and version that the hub agent announces to the members. While the version is empty, the hub agent announces
    /// nothing.
    pub announces: Announcement,
    /// Value of the flag `--namespace-policy`: effect of the annotations on the hub's namespaces.
    pub namespace_policy: NamespacePolicy,
    store: Store,
    /// From a source slice to its holder: the one of its exports that is distributed.
    holders: Holders,
    recorded: Recorded<Value, Computed>,
}

/// Values that a plan read, for [`View::planned`].
#[derive(Debug)]
pub struct ReadValues(Vec<Value>);

/// Two views are equal if they have the same objects. Which values the last plans read does not count.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        (&self.announces, self.namespace_policy) == (&other.announces, other.namespace_policy)
            && self.store == other.store
            && self.holders == other.holders
    }
}

impl Deref for View {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl View {
    /// Creates an empty view.
    pub fn new(announces: Announcement, namespace_policy: NamespacePolicy) -> Self {
        Self { announces, namespace_policy, ..Self::default() }
    }

    /// Stores a change of an object, which the agent saw at the time `at`. Appends to `requeue` the keys of the object, and those
    /// whose last plan read a value that changed.
    pub fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        let Effects { values, keys } = self.store.apply(kind, change, at);
        let mut concerned = Vec::new();
        if kind == Kind::EndpointSliceExport {
            for key in &keys {
                if let Key::Slice(name) = key {
                    self.rank(name, &mut concerned); // no rank has read the new export
                }
            }
        }
        concerned.extend(keys);
        self.changed(values, &mut concerned);
        concerned.sort_unstable();
        concerned.dedup();
        requeue.extend(concerned);
    }

    /// Stores the newest state of an object, which the agent saw at the time `at`.
    pub fn applied(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<Key>) {
        self.apply(object.kind(), Change::Applied(object), at, requeue);
    }

    /// Stores the new state of a watch.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        let values = self.recorded.watch_state(&mut self.store.watches, kind, state, at);
        self.changed(values, requeue);
    }

    /// Records that another writer undoes the hub agent's writes to the object `over`. `message` is the text for the user;
    /// `None` if the other writer stopped. `about` is the Service whose exports show the dispute in a condition; without it, no
    /// condition shows the dispute.
    pub fn disputed(
        &mut self,
        about: Option<ObjectName>,
        over: (Kind, ObjectName),
        message: Option<String>,
        requeue: &mut Vec<Key>,
    ) {
        requeue.extend(self.store.disputes.note(about.map(Key::Service), over, message));
    }

    /// Moves all stored times by `micros`, after the wall clock was set forward (positive) or back (negative) by this duration.
    pub fn clock_set(&mut self, micros: i64) {
        self.store.clock_set(micros);
    }

    pub fn plan(&self, key: &Key, now: Timestamp) -> Plan {
        self.plan_and_reads(key, now).0
    }

    /// Plans a key. Also returns the values that the plan read, for [`View::planned`].
    pub fn plan_and_reads(&self, key: &Key, now: Timestamp) -> (Plan, ReadValues) {
        let reads = Reads::default();
        let view = Reader::new(self, &reads);
        let plan = match key {
            Key::Service(service) => conflict::plan_service(view, service, now),
            Key::Slice(name) => distribute::plan_slice(view, name, now),
            Key::Copy { slice, importer } => distribute::plan_copy(view, slice, importer, now),
            Key::Member(cluster) => handshake::plan_member(view, cluster),
        };
        let mut values = reads.into_values();
        // A create fails while its namespace does not exist. So the plan depends on the namespace too.
        let creates = plan.writes.iter().filter(|write| matches!(write.action, Action::Create(_)));
        let namespaces = creates.map(|write| ObjectName::new("", write.at.namespace.clone()));
        // fault H18.1: values.extend(namespaces.map(|name| Value::Object(Kind::Namespace, name))); ~> drop(namespaces);
        values.extend(namespaces.map(|name| Value::Object(Kind::Namespace, name)));
        (plan, ReadValues(values))
    }

    /// Stores which values the last plan of a key read. After one of them changes, the key is requeued.
    pub fn planned(&mut self, key: &Key, ReadValues(values): ReadValues) {
        // Without an object of the key the plan is empty, and any such object requeues the key.
        let computed = Computed::Plan(key.clone());
        if self.store.has(key) { self.recorded.record(&computed, values) } else { self.recorded.forget(&computed) }
    }

    /// Returns the object that Events about a Service refer to: its ServiceImport, or the first of its exports if there is no
    /// ServiceImport.
    pub fn import_or_export_of(&self, service: &ObjectName) -> Option<(Kind, &Meta)> {
        let import = self.hub_imports.get(service).map(|import| (Kind::ServiceImport, &import.meta));
        let mut exports = self.internal_exports_of.get(service).filter_map(|export| self.internal_exports.get(export));
        import.or_else(|| exports.next().map(|export| (Kind::InternalServiceExport, &export.meta)))
    }

    /// Returns one of the exported slices with this name.
    pub fn slice_export_named(&self, name: &Text) -> Option<&HubSlice> {
        self.slice_exports_named.get(name).find_map(|export| self.slice_exports.get(export))
    }

    /// Requeues the keys whose last plan read one of these values.
    fn changed(&mut self, values: Vec<Value>, requeue: &mut Vec<Key>) {
        let mut ranks: Vec<Text> = Vec::new();
        for value in &values {
            for computed in self.recorded.of(value) {
                match computed {
                    Computed::Plan(key) => requeue.push(key.clone()),
                    Computed::Rank(name) => ranks.push(name.clone()),
                }
            }
        }
        for name in ranks {
            self.rank(&name, requeue);
        }
    }

    /// Computes the rank of the export with this name. Requeues the keys that read the holder of a source slice, if it is another
    /// one now.
    fn rank(&mut self, name: &Text, requeue: &mut Vec<Key>) {
        let reads = Reads::default();
        let place = distribute::place_of(Reader::new(self, &reads), name);
        let computed = Computed::Rank(name.clone());
        if self.store.slice_exports_named.get(name).next().is_some() {
            self.recorded.record(&computed, reads.into_values());
        } else {
            self.recorded.forget(&computed);
        }
        let sources = self.holders.place(name, place);
        self.changed(sources.into_iter().map(Value::Holder).collect(), requeue);
    }
}

#[cfg(test)]
mod tests {
    use crate::features::Features;
    use crate::hub::View;
    use crate::model::{Kind, Object};
    use crate::support::build::{IntoObject, member_agent, seconds};
    use fleetnet_types::{Change, Removal, Timestamp};

    fn hears(view: &mut View, cluster: &str, at: Timestamp) -> Object {
        let agent = member_agent(cluster, Features::ALL, Features::ALL).object();
        view.applied(agent.clone(), at, &mut Vec::new());
        agent
    }

    fn loses(view: &mut View, agent: &Object, at: Timestamp) {
        let (name, uid) = (agent.meta().name.clone(), agent.meta().uid.clone());
        view.apply(Kind::MemberAgent, Change::Removed { name, uid, how: Removal::Deleted }, at, &mut Vec::new());
    }

    #[test]
    fn nothing_is_remembered_of_members_that_left_a_minute_ago() {
        let mut view = View::default();
        for cluster in 0..100 {
            let agent = hears(&mut view, &format!("member-{cluster}"), seconds(1));
            loses(&mut view, &agent, seconds(2));
        }
        assert_eq!(view.announced.len(), 100, "what they announced holds for a minute");
        hears(&mut view, "member-100", seconds(61));
        assert_eq!(view.announced.len(), 101);
        hears(&mut view, "member-101", seconds(62));
        let left: Vec<&str> = view.announced.keys().map(|namespace| &**namespace).collect();
        assert_eq!(left, ["fleet-member-member-100", "fleet-member-member-101"]);
    }
}
