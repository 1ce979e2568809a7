//! View of the hub agent: cache of the exports and claims of all members, with indexes, and everything else that its
//! plans depend on. The view knows no rule. It tells which values a change of an object changes.
//!
//! ```text
//!  member namespaces: InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent
//!  user namespaces:   ServiceImport          cluster: Namespace
//! ```
//!
//! | file | content |
//! |---|---|
//! | `take` | changes of objects |
//! | [`value`] | the values that a plan can read |
//! | [`reader`] | the reads of a plan |
//! | `existence` | the objects without which a key does not exist |
//! | [`holders`] | of the exports of a source slice, the one that is distributed |
//! | [`previews`] | slice streams, and the previews that were sent over them |
//! | [`budget`] | the memory that the objects of each member may take |
//! | `endpoint_counts` | how many ready endpoints each member exports of a Service |
//! | [`merge`] | the merges by the standard API |
//! | `merged_import` | the MergedServiceImports of all importers |
//! | [`last_renewal`] | when this process saw the last renewal of each member |

pub mod budget;
mod endpoint_counts;
mod existence;
pub(crate) mod holders;
pub(crate) mod last_renewal;
pub(crate) mod merge;
mod merged_import;
pub(crate) mod previews;
pub(crate) mod reader;
mod take;
pub(crate) mod value;

use crate::disputes::Disputes;
use crate::feature_set::Announced;
use crate::features::SLICE_STREAM;
use crate::hub::merge::Merge;
use crate::index::{Index, Table};
use crate::model::{
    Announcement, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent, MemberCluster, Meta,
    Namespace, ServiceImport, Silence, SliceStreamOffer,
};
use crate::names;
use crate::undecodable::Undecodable;
use crate::watches::Watches;
use budget::Budgets;
use endpoint_counts::EndpointCounts;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp};
use holders::Holders;
use last_renewal::{LastRenewals, RenewalState, SilenceLimits};
use merged_import::MergedImports;
use previews::Previews;
use std::collections::{BTreeMap, BTreeSet};
use value::{Computation, Value};

/// Value of the flag `--namespace-policy`: effect of the annotations on the hub's namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespacePolicy {
    /// Annotations on a namespace may list its exporters and importers. Other members are denied.
    #[default]
    Enforce,
    /// The annotations work as with [`NamespacePolicy::Enforce`]. Every member is denied in a namespace that does not
    /// exist in the hub.
    Strict,
    /// Only members that an annotation of an existing namespace lists may export or import. Without the annotation,
    /// nobody may.
    Listed,
    /// Every member may export and import in every namespace.
    Off,
}

impl NamespacePolicy {
    /// True if every member is denied in a namespace that does not exist in the hub.
    pub(crate) fn needs_namespace(self) -> bool {
        matches!(self, Self::Strict | Self::Listed)
    }
}

/// Key of the hub agent. A key names what one plan is for, such as an exported Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Exported Service: its ServiceImport, the conditions of its exports, and its claims.
    Service(ObjectName),
    /// Exported slices with this name.
    Slice(Text),
    /// The slice with this name that is distributed to one importer.
    DistributedSlice {
        slice: Text,
        /// Member namespace of the importer.
        importer: MemberNamespace,
    },
    /// MergedServiceImport of a Service for one importer.
    MergedImport {
        service: ObjectName,
        /// Member namespace of the importer.
        importer: MemberNamespace,
    },
    /// Status in the MemberAgent of a member, which the hub agent writes.
    Member(ClusterId),
}

impl Key {
    pub(crate) fn distributed_slice(slice: &Text, importer: &MemberNamespace) -> Self {
        Self::DistributedSlice { slice: slice.clone(), importer: importer.clone() }
    }

    pub(crate) fn merged_import(service: &ObjectName, importer: &MemberNamespace) -> Self {
        Self::MergedImport { service: service.clone(), importer: importer.clone() }
    }
}

/// In-memory copy of all objects in the hub that the rules of the hub agent read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Features and version that the hub agent announces to the members. While the version is empty, the hub agent
    /// announces nothing.
    pub announces: Announcement,
    /// Offer of the slice stream to the members; `None` while the hub agent has no slice stream.
    slice_stream: Option<SliceStreamOffer>,
    /// Members whose MemberAgent has got the present offer from this process.
    offered: BTreeSet<ClusterId>,
    /// Value of the flag `--namespace-policy`: effect of the annotations on the hub's namespaces.
    pub namespace_policy: NamespacePolicy,
    /// State of each kind's watch. While the table of a kind is incomplete, a rule must not treat a missing object as
    /// deleted.
    pub watches: Watches,
    /// Objects that exist but do not decode. The tables keep the last decoded state of these objects, if there is one.
    undecodable: Undecodable,
    /// Memory that the objects of each member take.
    pub budgets: Budgets,
    pub internal_exports: Table<InternalServiceExport>,
    /// Claims (InternalServiceImports) of all members.
    pub claims: Table<InternalServiceImport>,
    /// ServiceImports: the outcome of conflict resolution for each Service, in the Service's namespace.
    pub hub_imports: Table<ServiceImport>,
    /// Exported slices of all members.
    pub slice_exports: Table<HubSlice>,
    /// Distributed slices, one for each importing member.
    pub distributed_slices: Table<HubSlice>,
    /// Namespaces of the hub. Annotations on a namespace may list exporters and importers.
    pub namespaces: Table<Namespace>,
    pub member_agents: Table<MemberAgent>,
    /// MergedServiceImports, one for each Service and importer.
    pub merged_imports: MergedImports,
    /// Members as the manager of the fleet sees them.
    pub member_clusters: Table<MemberCluster>,

    /// From each Service to its InternalServiceExports.
    internal_exports_of: Index<ObjectName>,
    claims_of: Index<ObjectName>,
    slice_exports_of: Index<ObjectName>,
    /// From each Service to its InternalServiceExports by the standard API.
    mcs_exports_of: Index<ObjectName>,
    /// Merge of the exports of each Service that the standard API exports.
    merges: BTreeMap<ObjectName, Merge>,
    /// From the name of a slice to its exports: one export, unless two members use the same name.
    pub(super) slice_exports_named: Index<Text>,
    /// From the name of a slice to its distributed slices.
    distributed_slices_named: Index<Text>,
    /// From the name of a slice to the number of its distributed slices that are not being deleted.
    distributed_slice_counts: BTreeMap<Text, isize>,
    /// From each member namespace to the announcement of this member.
    announced: BTreeMap<MemberNamespace, Announced>,
    /// Last time at which each member gained a feature, by its member namespace.
    gains: BTreeMap<MemberNamespace, Timestamp>,
    /// From a source slice to its holder: the one of its exports that is distributed.
    pub(super) holders: Holders,
    /// From each Service to the writes of the hub agent that other writers undo.
    pub(crate) disputes: Disputes<Key>,
    /// Slice streams, and the previews that were sent over them.
    pub(in crate::hub) previews: Previews,
    endpoint_counts: EndpointCounts,
    /// Last renewal of each member, as far as this process has seen it.
    pub(in crate::hub) last_renewals: LastRenewals,
    /// Silent members whose endpoints importers do not treat as usual.
    silent: BTreeMap<ClusterId, Silence>,
    /// Values of the flags `--silence-soft` and `--silence-hard`; `None` if no member is judged.
    pub silence_limits: Option<SilenceLimits>,
    /// Value of the flag `--object-lag`, in microseconds: maximum time for which the object of a distributed slice lags
    /// behind the slice stream.
    pub object_lag_micros: i64,
    /// Value of the flag `--force-delete-wait-time`, in microseconds; `None` if the hub agent does not follow
    /// MemberClusters.
    pub force_delete_micros: Option<i64>,
}

pub type Effects = crate::planner::Effects<Key, Value, Computation>;

/// Importers of a Service that its ServiceImport records, by their member namespaces.
fn importers(import: Option<&ServiceImport>) -> impl Iterator<Item = &MemberNamespace> {
    import.into_iter().flat_map(|import| import.claims.importers.keys())
}

/// True if the ServiceImport records this importer, by its member namespace.
fn records(import: Option<&ServiceImport>, importer: &MemberNamespace) -> bool {
    import.is_some_and(|import| import.claims.importers.contains_key(importer))
}

/// True if the ServiceImport lists the cluster of an exported slice as an exporter.
fn accepts(import: Option<&ServiceImport>, slice: &ObjectName) -> bool {
    import.is_some_and(|import| is_among(&import.status.clusters, slice))
}

/// True if the list contains the cluster of an exported slice.
pub(in crate::hub) fn is_among(clusters: &[ClusterId], slice: &ObjectName) -> bool {
    names::cluster_of(&slice.namespace).is_some_and(|cluster| clusters.contains(&cluster))
}

impl View {
    /// Moves all stored times by `micros`, after the wall clock was set forward (positive) or back (negative) by this
    /// duration.
    pub fn clock_set(&mut self, micros: i64) {
        self.watches.clock_set(micros);
        self.announced.values_mut().for_each(|announced| announced.clock_set(micros));
        self.gains.values_mut().for_each(|at| *at = at.plus_micros(micros));
        self.previews.clock_set(micros);
        self.last_renewals.clock_set(micros);
    }

    /// Stores what the hub agent offers to the members, and announces that it does. Returns the value that changed.
    pub(in crate::hub) fn offer(&mut self, offer: SliceStreamOffer) -> Option<Value> {
        let before = self.slice_stream.replace(offer);
        if before.is_none() {
            self.announces.features.push(SLICE_STREAM.into());
        }
        let is_changed = before != self.slice_stream;
        if is_changed {
            self.offered.clear();
        }
        is_changed.then_some(Value::Announces)
    }

    /// Records that the status of a member's MemberAgent was written.
    pub fn answered(&mut self, cluster: &ClusterId, now: Timestamp) {
        self.last_renewals.judgement_written(cluster, now);
        if self.slice_stream.is_some() && self.member_agents.get(&names::member_agent(cluster)).is_some() {
            self.offered.insert(cluster.clone());
        }
    }

    /// Returns what is known about the last renewal of a member; `None` if it never renewed.
    fn renewal_state(&self, cluster: &ClusterId) -> Option<RenewalState> {
        let agent = self.member_agents.get(&names::member_agent(cluster))?;
        self.last_renewals.of(cluster, agent, &self.previews)
    }

    /// Returns the MemberAgent of each member that renewed, with the time since which it has not renewed. `None` while
    /// the watch has no contact.
    fn last_renewals(&self) -> impl Iterator<Item = (&MemberAgent, Option<Timestamp>)> {
        let agent = |cluster| self.member_agents.get(&names::member_agent(cluster));
        self.last_renewals.all().filter_map(move |(cluster, since)| Some((agent(cluster)?, since)))
    }

    /// Returns the object that Events about a Service refer to: its ServiceImport, or the first of its exports if there
    /// is no ServiceImport.
    pub fn import_or_export_of(&self, service: &ObjectName) -> Option<(Kind, &Meta)> {
        let import = self.hub_imports.get(service).map(|import| (Kind::ServiceImport, &import.meta));
        let mut exports = self.internal_exports_of.get(service).filter_map(|export| self.internal_exports.get(export));
        import.or_else(|| exports.next().map(|export| (Kind::InternalServiceExport, &export.meta)))
    }

    /// Returns one of the exported slices with this name.
    pub fn slice_export_named(&self, name: &Text) -> Option<&HubSlice> {
        self.slice_exports_named.get(name).find_map(|export| self.slice_exports.get(export))
    }
}

#[cfg(test)]
mod tests {
    use crate::features::Features;
    use crate::hub::Planner;
    use crate::model::{Announcement, Kind, MemberAgent, Object, SliceStreamOffer};
    use crate::support::build::{
        IntoObject, internal_export, member_agent, named, seconds, service, service_import, slice, slice_export,
    };
    use fleetnet_types::{Change, Removal, Timestamp};

    const NONE: Features = Features::NONE;

    fn hears(view: &mut Planner, cluster: &str, features: Features, at: Timestamp) -> Object {
        let agent = member_agent(cluster, features, features).object();
        view.applied(agent.clone(), at, &mut Vec::new());
        agent
    }

    fn loses(view: &mut Planner, agent: &Object, at: Timestamp) {
        let (name, uid) = (agent.meta().name.clone(), agent.meta().uid.clone());
        view.apply(Kind::MemberAgent, Change::Removed { name, uid, how: Removal::Deleted }, at, &mut Vec::new());
    }

    /// Rule T36: A member leaves, or a slice is deleted
    /// Then: The agents remove from their memory all records about this member or slice
    #[test]
    fn nothing_is_remembered_of_members_that_left_a_minute_ago() {
        let mut view = Planner::default();
        for cluster in 0..100 {
            let features = if cluster < 50 { Features::ALL } else { Features::NONE };
            hears(&mut view, &format!("member-{cluster}"), Features::NONE, seconds(0));
            let agent = hears(&mut view, &format!("member-{cluster}"), features, seconds(1));
            loses(&mut view, &agent, seconds(2));
        }
        assert_eq!(view.announced.len(), 100, "what they announced holds for a minute");
        assert_eq!(view.gains.len(), 50);
        hears(&mut view, "member-100", Features::ALL, seconds(61));
        assert_eq!(view.announced.len(), 101);
        hears(&mut view, "member-101", Features::ALL, seconds(62));
        let left: Vec<&str> = view.announced.keys().map(|namespace| &**namespace).collect();
        assert_eq!(left, ["fleet-member-member-100", "fleet-member-member-101"]);
        assert_eq!(view.gains.len(), 0);
        let silent = MemberAgent { member: Announcement::default(), ..member_agent("member-9", NONE, NONE) };
        view.applied(silent.object(), seconds(62), &mut Vec::new());
        assert_eq!(view.announced.len(), 2, "member-9 announces nothing");
    }

    #[test]
    fn a_renewal_does_not_delay_the_next_gain_of_a_feature() {
        let mut view = Planner::default();
        for (features, second) in [(NONE, 1), (NONE, 10), (Features::ALL, 20)] {
            let agent = member_agent("member-1", features, NONE);
            let renewed = MemberAgent { renewed: Some(seconds(second)), ..agent };
            view.applied(renewed.object(), seconds(second), &mut Vec::new());
        }
        assert_eq!(view.announced.values().next().and_then(|it| it.features()), Some(Features::ALL));
    }

    #[test]
    fn events_about_a_service_are_those_of_its_import_or_else_of_an_export() {
        let mut view = Planner::default();
        let about =
            |view: &Planner| view.import_or_export_of(&named("work/app")).map(|(kind, meta)| (kind, meta.name.clone()));
        assert_eq!(about(&view), None);
        let export = internal_export("member-1", &service("work/app"));
        for object in [internal_export("member-1", &service("work/other")).object(), export.clone().object()] {
            view.applied(object, seconds(1), &mut Vec::new());
        }
        assert_eq!(about(&view), Some((Kind::InternalServiceExport, export.meta.name)));
        view.applied(service_import("work/app").object(), seconds(1), &mut Vec::new());
        assert_eq!(about(&view), Some((Kind::ServiceImport, named("work/app"))));
    }

    #[test]
    fn events_about_a_slice_are_those_of_its_export() {
        let mut view = Planner::default();
        let export = slice_export("member-1", &slice("work/app-1"));
        assert_eq!(view.slice_export_named(&export.meta.name.name), None);
        view.applied(Object::EndpointSliceExport(export.clone()), seconds(1), &mut Vec::new());
        assert_eq!(view.slice_export_named(&export.meta.name.name), Some(&export));
    }

    /// Also rule T36.
    #[test]
    fn no_offer_is_remembered_for_a_member_that_left_before_the_answer_of_its_status_came() {
        let mut view = Planner::default();
        let offer = SliceStreamOffer { address: "hub:1".into(), ca_bundle: "PEM".into() };
        let agent = hears(&mut view, "member-1", Features::ALL, seconds(1));
        view.answered(&"member-1".into(), seconds(1));
        assert!(view.offered.is_empty(), "nothing was offered");
        view.offer(offer, seconds(3), &mut Vec::new());
        view.answered(&"member-1".into(), seconds(1));
        assert!(view.offered.contains("member-1"));
        loses(&mut view, &agent, seconds(2));
        view.answered(&"member-1".into(), seconds(3));
        assert!(!view.offered.contains("member-1"));
    }

    #[test]
    fn what_a_member_announced_holds_for_a_minute_also_if_the_clock_is_set() {
        let mut view = Planner::default();
        let agent = hears(&mut view, "member-1", Features::ALL, seconds(1));
        loses(&mut view, &agent, seconds(2));
        view.clock_set(3_600_000_000);
        let announced = view.announced.values().next().expect("it holds");
        assert!(!announced.is_over(seconds(3_661)) && announced.is_over(seconds(3_662)));
    }
}
