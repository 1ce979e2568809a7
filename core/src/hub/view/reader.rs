//! The hub agent's view as a rule reads it. Each read is recorded, so the plan is made again once a value that it read
//! changes. Rules have no other way to the view.

use super::View;
use super::budget::Budgets;
use super::previews::{Lagging, Sent};
use super::value::{Bucket, Source, Value};
use crate::annotations::CLUSTER_PROPERTIES;
use crate::disputes::Disputes;
use crate::feature_set::FeatureSet;
use crate::hub::merge::Merge;
use crate::hub::view::last_renewal::{RenewalState, SilenceLimits};
use crate::hub::view::{Key, NamespacePolicy};
use crate::model::{
    AddressType, Announcement, Claims, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent,
    MemberCluster, MemberCounts, MergedServiceImport, Namespace, Properties, ServiceImport, Silence, SilentMember,
    SliceStreamOffer, Stored,
};
use crate::names;
use crate::reads::{Objects, Reads};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp, WatchState};

/// View of the hub agent for one plan.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    view: &'a View,
    reads: &'a Reads<Value>,
}

/// Effect of the deletion of a MemberCluster on the finalizers in its member namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForceDelete {
    /// There are no MemberClusters, or the hub agent does not follow them.
    Off,
    /// The MemberClusters are not listed.
    Unknown,
    /// The member agent has this time, in microseconds, to remove its finalizers.
    After(i64),
}

/// Reason why the properties of a member are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PropertiesUnknown {
    /// The MemberAgents or the namespaces are not listed yet.
    NotListed,
    /// An object is broken. The message for users names it, and the remedy.
    Broken(String),
}

impl PropertiesUnknown {
    fn undecodable(agent: &ObjectName) -> Self {
        Self::Broken(format!(
            "MemberAgent {agent} of the hub is undecodable, so the properties of its cluster are unknown. Apply deploy/crds \
             in the hub, and update the member agent"
        ))
    }

    fn malformed(member: &MemberNamespace, why: &str) -> Self {
        Self::Broken(format!(
            "the annotation {CLUSTER_PROPERTIES} of namespace {member} in the hub is malformed, so the properties of its \
             cluster are unknown: {why}. Correct the annotation, or remove it"
        ))
    }
}

/// Declares a method for each table.
macro_rules! tables {
    ($($table:ident: $object:ident, $kind:ident;)*) => {$(
        pub(crate) fn $table(self) -> Objects<'a, $object, Value> {
            Objects::new(&self.view.$table, Kind::$kind, self.reads)
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(in crate::hub) fn new(view: &'a View, reads: &'a Reads<Value>) -> Self {
        Self { view, reads }
    }

    tables! {
        internal_exports: InternalServiceExport, InternalServiceExport;
        claims: InternalServiceImport, InternalServiceImport;
        hub_imports: ServiceImport, ServiceImport;
        slice_exports: HubSlice, EndpointSliceExport;
        distributed_slices: HubSlice, EndpointSliceImport;
        namespaces: Namespace, Namespace;
        member_agents: MemberAgent, MemberAgent;
        member_clusters: MemberCluster, MemberCluster;
    }

    pub(crate) fn merged_import(self, name: &ObjectName) -> Option<MergedServiceImport> {
        self.reads.note(Value::Object(Kind::MergedServiceImport, name.clone()));
        self.view.merged_imports.get(name)
    }

    /// Returns the merge of the exports of a Service; `None` if the standard API does not export it.
    pub(crate) fn merge_of(self, service: &ObjectName) -> Option<&'a Merge> {
        self.reads.note(Value::Merge(service.clone()));
        self.view.merges.get(service)
    }

    /// Returns the exporters that the ServiceImport of a Service lists; `None` without a ServiceImport.
    pub(crate) fn exporters(self, service: &ObjectName) -> Option<&'a [ClusterId]> {
        self.reads.note(Value::Exporters(service.clone()));
        self.view.hub_imports.get(service).map(|import| &*import.status.clusters)
    }

    /// Returns the importers that the ServiceImport of a Service records; `None` without a ServiceImport.
    pub(crate) fn recorded(self, service: &ObjectName) -> Option<&'a Claims> {
        self.reads.note(Value::Importers(service.clone()));
        self.view.hub_imports.get(service).map(|import| &import.claims)
    }

    /// True if the ServiceImport of a Service records this importer, by its member namespace.
    pub(crate) fn is_recorded(self, service: &ObjectName, importer: &MemberNamespace) -> bool {
        self.reads.note(Value::Importer(service.clone(), importer.clone()));
        self.view.hub_imports.get(service).is_some_and(|import| import.claims.importers.contains_key(importer))
    }

    /// True if a slice with this name is distributed to any importer, and not being deleted.
    pub(crate) fn has_distributed_slices(self, name: &Text) -> bool {
        self.reads.note(Value::HasDistributedSlices(name.clone()));
        self.view.distributed_slice_counts.contains_key(name)
    }

    /// True if a member may cause one more object in other member namespaces, by its member namespace. If it may not,
    /// the plan is made again when a tenth of them is gone.
    pub(crate) fn may_fan_out(self, namespace: &MemberNamespace) -> bool {
        self.reads.note(Value::FanOut(namespace.clone()));
        self.view.budgets.may_fan_out(namespace)
    }

    /// Returns the namespace whose annotations may list exporters, importers and source ranges. Other changes of the
    /// namespace do not requeue.
    pub(crate) fn lists_of(self, namespace: &Text) -> Option<&'a Namespace> {
        self.reads.note(Value::Lists(namespace.clone()));
        self.view.namespaces.get(&ObjectName::new("", namespace.clone()))
    }

    /// Returns the properties of the member with this member namespace: those that its MemberAgent announces; those of
    /// the annotation on the namespace win; its id wins over both.
    pub(crate) fn properties_of(self, member: &MemberNamespace) -> Result<Properties, PropertiesUnknown> {
        self.reads.note(Value::Properties(member.clone()));
        let cluster = names::cluster_of(member).unwrap_or_default();
        let agent = names::member_agent(&cluster);
        if [Kind::MemberAgent, Kind::Namespace].iter().any(|kind| self.watch_of(*kind) == WatchState::Incomplete) {
            return Err(PropertiesUnknown::NotListed);
        } else if self.is_undecodable(Kind::MemberAgent, &agent) {
            return Err(PropertiesUnknown::undecodable(&agent));
        }
        let announced = self.view.member_agents.get(&agent).map(|agent| agent.properties.clone());
        let mut properties = announced.unwrap_or_default();
        if let Some(namespace) = self.view.namespaces.get(&ObjectName::new("", member.as_text().clone())) {
            let set = namespace.properties.as_ref().map_err(|why| PropertiesUnknown::malformed(member, why))?;
            properties.extend(set.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        properties.insert(names::CLUSTER_ID_PROPERTY.into(), cluster.into());
        Ok(properties)
    }

    pub(crate) fn internal_exports_of(self, service: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::Bucket(Bucket::InternalExports, service.clone()));
        self.view.internal_exports_of.get(service)
    }

    /// Returns the names of the InternalServiceExports of a Service in one member namespace.
    pub(crate) fn internal_exports_in(
        self,
        service: &ObjectName,
        namespace: &MemberNamespace,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::Bucket(Bucket::InternalExports, service.clone()));
        self.view.internal_exports_of.get_in(service, namespace.as_text())
    }

    /// Returns the exports of a Service by the standard API that are not being deleted. A change of one merges them
    /// again, without a record.
    pub(crate) fn mcs_exports(self, service: &ObjectName) -> impl Iterator<Item = &'a InternalServiceExport> {
        self.view.mcs_exports_of.get(service).filter_map(|name| self.view.internal_exports.live(name))
    }

    /// Returns the export of a Service by the standard API from one member namespace.
    pub(crate) fn mcs_export_in(
        self,
        service: &ObjectName,
        namespace: &MemberNamespace,
    ) -> Option<&'a InternalServiceExport> {
        self.reads.note(Value::Exporters(service.clone()));
        let name = self.view.mcs_exports_of.get_in(service, namespace.as_text()).next()?;
        self.internal_exports().get(name)
    }

    /// True if the exported slice is from a cluster in the merge of its Service.
    pub(crate) fn is_merged(self, slice: &HubSlice) -> bool {
        let service = &slice.spec.owner;
        self.reads.note(Value::Exporters(service.clone()));
        let merge = self.view.merges.get(service);
        merge.is_some_and(|merge| merge.has_member(&slice.meta.name.member_namespace()))
    }

    /// True if a member imports a Service by the standard API, by its member namespace.
    pub(crate) fn imports_by_mcs_api(self, service: &ObjectName, importer: &MemberNamespace) -> bool {
        self.reads.note(Value::Importer(service.clone(), importer.clone()));
        self.view.merged_imports.is_used(service, importer)
    }

    /// Returns the members that import a Service by the standard API, by their member namespaces.
    pub(crate) fn mcs_importers(self, service: &ObjectName) -> impl Iterator<Item = &'a MemberNamespace> + use<'a> {
        self.reads.note(Value::Importers(service.clone()));
        self.view.merged_imports.importers(service)
    }

    /// Returns the names of the MergedServiceImports of a Service in one member namespace.
    pub(crate) fn merged_imports_in(
        self,
        service: &ObjectName,
        importer: &MemberNamespace,
    ) -> impl Iterator<Item = ObjectName> + use<> {
        self.reads.note(Value::Importer(service.clone(), importer.clone()));
        self.view.merged_imports.names_of(service, importer)
    }

    pub(crate) fn claims_of(self, service: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::Bucket(Bucket::Claims, service.clone()));
        self.view.claims_of.get(service)
    }

    /// Returns the claims of a Service in one member namespace.
    pub(crate) fn claims_in(
        self,
        service: &ObjectName,
        namespace: &MemberNamespace,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::ClaimsIn(service.clone(), namespace.clone()));
        self.view.claims_of.get_in(service, namespace.as_text())
    }

    pub(crate) fn slice_exports_of(self, service: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::Bucket(Bucket::SliceExports, service.clone()));
        self.view.slice_exports_of.get(service)
    }

    /// True if a member namespace has exported slices of a Service that are not being deleted.
    pub(crate) fn has_slice_exports_of(self, service: &ObjectName, namespace: &MemberNamespace) -> bool {
        self.reads.note(Value::Bucket(Bucket::SliceExports, service.clone()));
        let mut slices = self.view.slice_exports_of.get_in(service, namespace.as_text());
        slices.any(|name| self.slice_exports().live(name).is_some())
    }

    pub(crate) fn slice_exports_named(self, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::SliceExportsNamed(name.clone()));
        self.view.slice_exports_named.get(name)
    }

    pub(crate) fn distributed_slices_named(self, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::DistributedSlicesNamed(name.clone()));
        self.view.distributed_slices_named.get(name)
    }

    /// Returns the name of the export that is the holder of a source slice.
    pub(crate) fn holder(self, source: &Source) -> Option<&'a ObjectName> {
        self.reads.note(Value::Holder(source.clone()));
        self.view.holders.of(source)
    }

    /// True if all these kinds are completely listed, so that a plan may rely on the absence of an object.
    pub(crate) fn complete(self, kinds: &'static [Kind]) -> bool {
        self.reads.note(Value::Complete(kinds));
        self.view.watches.complete(kinds)
    }

    /// Returns the state of the watch of a kind.
    pub(crate) fn watch_of(self, kind: Kind) -> WatchState {
        self.reads.note(Value::Watch(kind));
        self.view.watches.state(kind)
    }

    /// Returns what the hub agent announces and offers to the members.
    pub(crate) fn announces(self) -> (&'a Announcement, Option<&'a SliceStreamOffer>) {
        self.reads.note(Value::Announces);
        (&self.view.announces, self.view.slice_stream.as_ref())
    }

    /// True if this process has written its present offer to a member. Only plans of its own key and
    /// [`Reader::announces`] change it.
    pub(crate) fn has_offered(self, cluster: &ClusterId) -> bool {
        self.view.offered.contains(cluster)
    }

    /// True if the announcement of a member is kept, by its member namespace.
    pub(crate) fn has_announcement(self, namespace: &MemberNamespace) -> bool {
        self.reads.note(Value::Announced(namespace.clone()));
        self.view.announced.contains_key(namespace)
    }

    /// Returns the feature set of a member, by its member namespace.
    pub(crate) fn features_of(self, namespace: &MemberNamespace, now: Timestamp) -> FeatureSet {
        self.reads.note(Value::Announced(namespace.clone()));
        self.reads.note(Value::Watch(Kind::MemberAgent));
        let (announced, watches) = (&self.view.announced, &self.view.watches);
        let announced = announced.get(namespace).copied().unwrap_or_default();
        FeatureSet::at(now, announced, watches.state(Kind::MemberAgent), watches.since(Kind::MemberAgent))
    }

    /// Returns the member namespaces that export ready endpoints of a Service with this address type, with their
    /// numbers.
    pub(crate) fn endpoint_counts(
        self,
        service: &ObjectName,
        address_type: &AddressType,
    ) -> impl Iterator<Item = (&'a MemberNamespace, usize)> + use<'a> {
        self.reads.note(Value::EndpointCounts(service.clone()));
        self.view.endpoint_counts.of(service, address_type)
    }

    /// Returns the silent members, sorted by cluster.
    pub(crate) fn silent_members(self) -> impl Iterator<Item = SilentMember> + 'a {
        self.reads.note(Value::SilentMembers);
        let treated = |(cluster, silence): (&ClusterId, &Silence)| {
            Some(SilentMember { cluster: cluster.clone(), treatment: silence.phase.treatment()? })
        };
        self.view.silent.iter().filter_map(treated)
    }

    /// Returns the silence of an exporting member; `None` if importers treat its endpoints as usual.
    pub(crate) fn silence_of(self, cluster: &ClusterId) -> Option<&'a Silence> {
        self.reads.note(Value::Silence(cluster.clone()));
        self.view.silent.get(cluster)
    }

    /// Returns what is known about the last renewal of a member; `None` if it never renewed. A renewal changes its
    /// MemberAgent.
    pub(crate) fn renewal_state(self, cluster: &ClusterId) -> Option<RenewalState> {
        self.reads.note(Value::MembersFollowed);
        self.reads.note(Value::Stream(names::member_namespace(cluster)));
        self.view.renewal_state(cluster)
    }

    /// True once the hub agent has listed the MemberAgents, or knows that the kind is absent.
    pub(crate) fn knows_features(self) -> bool {
        self.reads.note(Value::Watch(Kind::MemberAgent));
        let watches = &self.view.watches;
        watches.state(Kind::MemberAgent) != WatchState::Incomplete
    }

    /// Returns the value of `--force-delete-wait-time`; `None` if there are no MemberClusters to follow. Not yet known
    /// while they are not listed.
    pub(crate) fn force_delete(self) -> ForceDelete {
        let Some(micros) = self.view.force_delete_micros else { return ForceDelete::Off };
        self.reads.note(Value::Watch(Kind::MemberCluster));
        match self.view.watches.state(Kind::MemberCluster) {
            WatchState::Absent => ForceDelete::Off,
            // After the kind is gone, the last known MemberClusters count. Otherwise nothing would ever be released.
            WatchState::Complete | WatchState::Unknown => ForceDelete::After(micros),
            WatchState::Incomplete => ForceDelete::Unknown,
        }
    }

    pub(crate) fn is_undecodable(self, kind: Kind, name: &ObjectName) -> bool {
        self.reads.note(Value::Undecodable(kind, name.clone()));
        self.view.undecodable.has(kind, name)
    }

    /// Returns the undecodable objects of a kind with this name, in all namespaces.
    pub(crate) fn undecodable_named(self, kind: Kind, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::UndecodableNamed(kind, name.clone()));
        self.view.undecodable.named(kind, name)
    }

    /// True if a namespace has an undecodable object of a kind.
    pub(crate) fn has_undecodable(self, kind: Kind, namespace: &MemberNamespace) -> bool {
        self.reads.note(Value::UndecodableIn(kind, namespace.clone()));
        self.view.undecodable.any_in(kind, namespace.as_text())
    }

    // === Values that requeue nothing, or that requeue their key without a record ===

    /// True if an importer holds a slice stream.
    pub(crate) fn has_stream(self, importer: &MemberNamespace) -> bool {
        self.reads.note(Value::Stream(importer.clone()));
        self.view.previews.has_stream(importer)
    }

    /// Returns the lag of a distributed slice's object; `None` if there is none.
    pub(crate) fn lagging(self, at: &ObjectName) -> Option<&'a Lagging> {
        self.reads.note(Value::Lagging(at.clone()));
        self.view.previews.of(at)
    }

    /// Returns the last preview of a distributed slice. Only plans of its own key change it.
    pub(crate) fn last_preview(self, at: &ObjectName) -> Option<&'a Sent> {
        self.view.previews.of(at)?.sent.as_ref()
    }

    /// True while there are no new previews from an exporting member. A pause requeues nothing.
    pub(crate) fn is_paused(self, exporter: &ClusterId, now: Timestamp) -> bool {
        self.view.previews.is_paused(exporter, now)
    }

    /// Returns the value of `--object-lag`. It never changes.
    pub(crate) fn object_lag_micros(self) -> i64 {
        self.view.object_lag_micros
    }

    /// Returns the limits of silence. They never change.
    pub(crate) fn silence_limits(self) -> Option<SilenceLimits> {
        self.view.silence_limits
    }

    /// Returns the MemberAgent of each member that renewed, with the time since which its silence counts. A member that
    /// is overdue is checked again and again.
    pub(crate) fn last_renewals(self) -> impl Iterator<Item = (&'a MemberAgent, Option<Timestamp>)> {
        self.view.last_renewals()
    }

    /// True if a member has exported slices now. Each renewal by any member asks again.
    pub(crate) fn has_slice_exports(self, cluster: &ClusterId) -> bool {
        self.view.slice_exports.in_namespace(names::member_namespace(cluster).as_text()).next().is_some()
    }

    /// Returns the value of `--namespace-policy`. It never changes.
    pub(crate) fn namespace_policy(self) -> NamespacePolicy {
        self.view.namespace_policy
    }

    /// Returns the disputes. A dispute names the key that it requeues.
    pub(crate) fn disputes(self) -> &'a Disputes<Key> {
        &self.view.disputes
    }

    /// Returns the budgets of the members. A change of what a member exceeds requeues the key of the member.
    pub(crate) fn budgets(self) -> &'a Budgets {
        &self.view.budgets
    }

    /// Returns the numbers of objects in a member namespace now. A change of a number requeues nothing.
    pub(crate) fn counts_now(self, namespace: &MemberNamespace) -> MemberCounts {
        let store = self.view;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let slices = || store.slice_exports.in_namespace(namespace.as_text());
        let claims = store.claims.in_namespace(namespace.as_text());
        MemberCounts {
            exported_services: number(store.internal_exports.in_namespace(namespace.as_text()).count()),
            exported_slices: number(slices().count()),
            exported_endpoints: number(slices().map(|slice| slice.spec.content.endpoints.len()).sum()),
            imported_services: number(claims.filter(|claim| !claim.status.clusters.is_empty()).count()),
            imported_slices: number(store.distributed_slices.in_namespace(namespace.as_text()).count()),
        }
    }
}

/// Returns the objects with these names, without those that are being deleted.
pub(crate) fn live<'a, T: Stored + 'a>(
    objects: Objects<'a, T, Value>,
    names: impl Iterator<Item = &'a ObjectName> + 'a,
) -> impl Iterator<Item = &'a T> + 'a {
    names.filter_map(move |name| objects.live(name))
}

#[cfg(test)]
mod tests {
    use super::{PropertiesUnknown, Reader};
    use crate::features::Features;
    use crate::hub::Planner;
    use crate::model::{Kind, MemberAgent, Namespace, Object, Properties};
    use crate::reads::Reads;
    use crate::support::build::{IntoObject, member_agent, namespace, seconds};
    use fleetnet_types::{Change, WatchState};

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn announcing(pairs: &[(&str, &str)]) -> Object {
        let agent = member_agent("west", Features::NONE, Features::NONE);
        MemberAgent { properties: properties(pairs), ..agent }.object()
    }

    fn pinning(pinned: Result<Properties, &str>) -> Object {
        Namespace { properties: pinned.map_err(Into::into), ..namespace("fleet-member-west") }.object()
    }

    fn found(view: &Planner) -> Result<Properties, PropertiesUnknown> {
        Reader::new(view, &Reads::default()).properties_of(&"fleet-member-west".into())
    }

    /// Rule CS1: A selector asks for the properties of a member
    /// Then: The hub agent uses those in `spec.properties` of its MemberAgent. For each name, the annotation
    /// `networking.fleet.azure.com/cluster-properties` of its namespace in the hub wins. `cluster.clusterset.k8s.io` is
    /// always the id of the member. While the annotation is malformed or the MemberAgent is undecodable, the properties
    /// are unknown
    #[test]
    fn the_annotation_of_the_hub_wins_over_the_member_and_the_id_over_both() {
        let id = ("cluster.clusterset.k8s.io", "west");
        let table = [
            (vec![], vec![], vec![id]),
            (vec![("a", "1"), ("b", "1")], vec![], vec![("a", "1"), ("b", "1"), id]),
            (vec![("a", "1"), ("b", "1")], vec![("b", "2"), ("c", "2")], vec![("a", "1"), ("b", "2"), ("c", "2"), id]),
            (vec![(id.0, "east")], vec![], vec![id]),
            (vec![], vec![(id.0, "east")], vec![id]),
        ];
        for (announced, pinned, expected) in table {
            let mut view = Planner::default();
            assert_eq!(found(&view), Err(PropertiesUnknown::NotListed));
            for kind in [Kind::MemberAgent, Kind::Namespace] {
                view.watch_state(kind, WatchState::Complete, seconds(1), &mut Vec::new());
            }
            for object in [announcing(&announced), pinning(Ok(properties(&pinned)))] {
                view.applied(object, seconds(1), &mut Vec::new());
            }
            assert_eq!(found(&view), Ok(properties(&expected)), "{announced:?} {pinned:?}");
        }
    }

    /// Also rule CS1.
    #[test]
    fn the_properties_of_a_broken_object_are_unknown() {
        let mut view = Planner::default();
        for kind in [Kind::MemberAgent, Kind::Namespace] {
            view.watch_state(kind, WatchState::Complete, seconds(1), &mut Vec::new());
        }
        view.applied(pinning(Err("no JSON")), seconds(1), &mut Vec::new());
        let Err(PropertiesUnknown::Broken(why)) = found(&view) else { panic!("malformed") };
        assert_eq!(
            why,
            "the annotation networking.fleet.azure.com/cluster-properties of namespace fleet-member-west in the hub is \
             malformed, so the properties of its cluster are unknown: no JSON. Correct the annotation, or remove it"
        );
        view.applied(pinning(Ok(Properties::new())), seconds(1), &mut Vec::new());
        let name = announcing(&[]).meta().name.clone();
        view.apply(Kind::MemberAgent, Change::Undecodable { name }, seconds(1), &mut Vec::new());
        let Err(PropertiesUnknown::Broken(why)) = found(&view) else { panic!("undecodable") };
        assert!(why.starts_with("MemberAgent fleet-member-west/west of the hub is undecodable"), "{why}");
    }

    /// Also rule CS1.
    #[test]
    fn a_change_of_properties_changes_what_was_read() {
        let mut view = Planner::default();
        let mut changed = |object: Object| {
            let effects = view.view.apply(object.kind(), Change::Applied(object), seconds(1));
            effects.values.contains(&super::Value::Properties("fleet-member-west".into()))
        };
        assert!(!changed(announcing(&[])) && !changed(pinning(Ok(Properties::new()))), "none came");
        assert!(changed(announcing(&[("a", "1")])) && !changed(announcing(&[("a", "1")])));
        assert!(changed(pinning(Err("no JSON"))) && changed(pinning(Ok(Properties::new()))));
        assert!(changed(announcing(&[])), "and gone");
    }
}
