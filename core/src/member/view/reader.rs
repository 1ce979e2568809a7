//! The member agent's view as a rule reads it. Each read is recorded, so the plan is made again once a value that it
//! read changes. Rules have no other way to the view.

use super::HubLeads;
use super::leave::Leave;
use super::selections::{Selected, Selection};
use super::serving::Served;
use super::shares::Grant;
use super::value::{Bucket, Fact, Value};
use super::{Key, Membership, OnLeave, Settings, View};
use crate::admission::{NOTHING, NotImported};
use crate::disputes::Disputes;
use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::limits::FOUND_LEAVE_MICROS;
use crate::member::identity::Ownership;
use crate::model::{
    Announcement, EndpointSlice, HubSlice, InternalMemberCluster, InternalServiceExport, InternalServiceImport, Kind,
    McsServiceExport, McsServiceImport, MemberAgent, MergedImport, MergedServiceImport, Meta, MultiClusterService,
    Namespace, Renewal, Service, ServiceExport, ServiceImport, SliceContent, Treatment,
};
use crate::names;
use crate::plan::BlockingReason;
use crate::reads::{Objects, Reads};
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp, Uid, WatchState};
use std::sync::Arc;

/// View of the member agent for one plan.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    view: &'a View,
    reads: &'a Reads<Value>,
}

/// Parts of a distributed slice that are imported, and those that are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted<'a> {
    pub(crate) content: &'a SliceContent,
    pub(crate) not_imported: &'a NotImported,
    /// First generation of the source slice that had the parts which are not imported now. Without a meaning if all
    /// parts are imported.
    pub(crate) not_imported_since: Option<i64>,
}

/// Answer to the question if this member leaves the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Yes,
    No,
    /// Not known yet, perhaps until this time. Exports and imports stay as they are.
    Unknown(Option<Timestamp>),
}

/// Declares a method for each table.
macro_rules! tables {
    ($($table:ident: $object:ident, $kind:ident;)*) => {$(
        pub(crate) fn $table(self) -> Objects<'a, $object, Value> {
            Objects::new(&self.view.$table, Kind::$kind, self.reads)
        }
    )*};
}

/// Declares a method for each kind of bucket.
macro_rules! indexes {
    ($($index:ident: $bucket:ident;)*) => {$(
        pub(crate) fn $index(self, of: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
            self.reads.note(Value::Bucket(Bucket::$bucket, of.clone()));
            self.view.bucket(Bucket::$bucket, of)
        }
    )*};
}

/// Declares a method for each fact, which returns since when it is true.
macro_rules! facts {
    ($($since:ident: $fact:ident;)*) => {$(
        pub(crate) fn $since(self, of: &ObjectName) -> Option<Timestamp> {
            self.since(Fact::$fact(of.clone()))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(crate) fn new(view: &'a View, reads: &'a Reads<Value>) -> Self {
        Self { view, reads }
    }

    tables! {
        services: Service, Service;
        slices: EndpointSlice, EndpointSlice;
        exports: ServiceExport, ServiceExport;
        mcs_exports: McsServiceExport, McsServiceExport;
        mcs_imports: McsServiceImport, McsServiceImport;
        merged_imports: MergedServiceImport, MergedServiceImport;
        namespaces: Namespace, Namespace;
        imports: ServiceImport, ServiceImport;
        multi_cluster_services: MultiClusterService, MultiClusterService;
        internal_exports: InternalServiceExport, InternalServiceExport;
        claims: InternalServiceImport, InternalServiceImport;
        slice_exports: HubSlice, EndpointSliceExport;
        distributed_slices: HubSlice, EndpointSliceImport;
        member_agents: MemberAgent, MemberAgent;
        memberships: InternalMemberCluster, InternalMemberCluster;
    }

    indexes! {
        slices_of: Slices;
        internal_exports_of: InternalExports;
        slice_exports_of: SliceExports;
        requests_of_import: MultiClusterServices;
        derived_of: DerivedServices;
        claims_of: Claims;
        distributed_slices_of: DistributedSlices;
        ipv6_slices_of: Ipv6Slices;
        contested_of: Contested;
    }

    /// Returns the metadata of all ServiceExports of this cluster.
    pub(crate) fn all_exports(self) -> impl Iterator<Item = &'a Meta> {
        self.reads.note(Value::All(Kind::ServiceExport));
        self.view.exports.iter().map(|export| &export.meta)
    }

    /// Returns the metadata of all MultiClusterServices of this cluster.
    pub(crate) fn all_multi_cluster_services(self) -> impl Iterator<Item = &'a Meta> {
        self.reads.note(Value::All(Kind::MultiClusterService));
        self.view.multi_cluster_services.iter().map(|request| &request.meta)
    }

    /// Returns the MultiClusterServices of a namespace. A rule may read only if and since when they request a load
    /// balancer.
    pub(crate) fn requests_in(self, namespace: &'a Text) -> impl Iterator<Item = &'a MultiClusterService> {
        self.reads.note(Value::Requests(namespace.clone()));
        self.view.multi_cluster_services.in_namespace(namespace)
    }

    /// Returns the ServiceImports that the MultiClusterService with this UID controls.
    pub(crate) fn imports_of(self, request: &Uid) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.reads.note(Value::ImportsOf(request.clone()));
        self.view.imports_of.get(request)
    }

    /// Returns the validated content of a distributed slice.
    pub(crate) fn admitted(self, distributed: &'a HubSlice) -> Admitted<'a> {
        let whole =
            || Admitted { content: &distributed.spec.content, not_imported: &NOTHING, not_imported_since: None };
        self.view.admissions.get(&distributed.meta.name.name).map_or_else(whole, |admission| Admitted {
            content: &admission.content,
            not_imported: &admission.not_imported,
            not_imported_since: Some(admission.since),
        })
    }

    /// True if further Services (InternalServiceExports) or slices (EndpointSliceExports) of a namespace may be
    /// exported.
    pub(crate) fn may_export_more(self, kind: Kind, namespace: &Text) -> bool {
        self.reads.note(Value::MayExportMore(kind, namespace.clone()));
        self.view.may_export_more(kind, namespace)
    }

    /// Returns the number of exported slices of a Service, without those that are being deleted. A change of the number
    /// requeues nothing.
    pub(crate) fn exported_slices(self, service: &ObjectName) -> usize {
        let exports = self.view.slice_exports.iter();
        exports.filter(|export| export.spec.owner == *service && !export.meta.deleting).count()
    }

    /// Returns the part of a distributed slice that is imported. A change of it requeues the slice.
    pub(crate) fn grant(self, distributed: &HubSlice) -> Grant {
        self.reads.note(Value::Object(Kind::EndpointSliceImport, distributed.meta.name.clone()));
        self.view.shares.grant(distributed)
    }

    /// True if all these kinds are completely listed, so that a plan may rely on the absence of an object.
    pub(crate) fn complete(self, kinds: &'static [Kind]) -> bool {
        self.reads.note(Value::Complete(kinds));
        self.view.watches.complete(kinds)
    }

    pub(crate) fn is_undecodable(self, kind: Kind, name: &ObjectName) -> bool {
        self.reads.note(Value::Object(kind, name.clone()));
        self.view.undecodable.has(kind, name)
    }

    /// True if any object is undecodable. Normally none is.
    pub(crate) fn has_undecodable(self) -> bool {
        self.reads.note(Value::HasUndecodable);
        !self.view.undecodable.is_empty()
    }

    /// True if an object of this kind is undecodable.
    pub(crate) fn has_undecodable_of(self, kind: Kind) -> bool {
        self.reads.note(Value::All(kind));
        self.view.undecodable.any_of(kind)
    }

    /// True if the Service or its ServiceExport is undecodable, so that it is unknown whether the Service is exported.
    pub(crate) fn is_export_unknown(self, service: &ObjectName) -> bool {
        self.is_undecodable(Kind::Service, service) || self.is_undecodable(Kind::ServiceExport, service)
    }

    /// Returns the names that the hub's object for this ServiceExport or ServiceImport may have, in order of
    /// preference. The second name contains digits of the UID, so without `uid` there is only the first name.
    pub(crate) fn names_in_hub(
        self,
        object: &ObjectName,
        uid: Option<&Uid>,
    ) -> impl Iterator<Item = ObjectName> + use<'a> {
        let ObjectName { namespace, name } = object;
        let candidates = [names::joined(namespace, name), uid.map(|uid| names::joined_with_uid(namespace, name, uid))];
        candidates.into_iter().flatten().map(move |name| self.in_hub(name))
    }

    /// Returns an undecodable object in the hub that may belong to this ServiceExport or ServiceImport, because it has
    /// one of the names from `names_in_hub`.
    pub(crate) fn undecodable_in_hub(self, kind: Kind, object: &ObjectName, uid: Option<&Uid>) -> Option<ObjectName> {
        self.names_in_hub(object, uid).find(|at| self.is_undecodable(kind, at))
    }

    /// True if a slice of this cluster is an imported slice, even if its labels were edited.
    ///
    /// The managed-by label identifies an imported slice, and so does our finalizer on the distributed slice with the
    /// same name. A distributed slice gets this finalizer before it is imported. While another EndpointSlice, which was
    /// not imported, has this name, the distributed slice gets no finalizer. A slice with a label of the standard API
    /// is also imported, perhaps by another implementation of this API.
    pub(crate) fn is_imported(self, slice: &EndpointSlice) -> bool {
        let name = &slice.meta.name;
        let distributed = || {
            let at = self.in_hub(name.name.clone());
            let is_marked = self.distributed_slices().get(&at).is_some_and(|it| it.meta.finalizers.ours);
            is_marked || self.is_undecodable(Kind::EndpointSliceImport, &at)
        };
        let in_system = name.namespace == self.settings().fleet_system_namespace;
        slice.imported || slice.mcs.is_some() || in_system && distributed()
    }

    /// Returns the hub's feature set; `None` until the MemberAgents are listed or the kind is known to be absent.
    pub(crate) fn hub_features(self, now: Timestamp) -> Option<FeatureSet> {
        self.reads.note(Value::HubAnnounced);
        self.knows_member_agent().then(|| self.view.hub_feature_set(now))
    }

    /// Returns the treatment of an exporting member's endpoints; `None` unless it is silent. A list of silent members
    /// counts while the hub agent announces that it maintains it.
    pub(crate) fn treatment_of(self, exporter: &ClusterId, now: Timestamp) -> Option<Treatment> {
        self.reads.note(Value::Treatment(exporter.clone()));
        let treatment = self.view.silent_members.get(exporter).copied()?;
        self.hub_features(now).is_some_and(|features| features.has(Feature::SilentMembers)).then_some(treatment)
    }

    /// Returns the exporting members that serve a derived Service.
    pub(crate) fn exporters_that_serve(self, served: Served) -> impl Iterator<Item = &'a ClusterId> + use<'a> {
        let exporters = self.view.exporters_that_serve(&served);
        self.reads.note(Value::Serving(served));
        exporters
    }

    /// Returns the selection of an imported Service; `None` if the Service has neither selectors nor weights.
    pub(crate) fn selection(self, of: &Selected) -> Option<&'a Selection> {
        self.view.settings.cluster_selection.as_ref()?;
        self.reads.note(Value::Selection(of.clone()));
        self.view.selections.get(of)
    }

    /// True once the hub agent's part of the MemberAgent is known: its announcement, its offer and the silent members.
    /// Also true if the hub does not have the kind.
    pub(crate) fn knows_member_agent(self) -> bool {
        self.reads.note(Value::Watch(Kind::MemberAgent));
        let state = self.view.watches.state(Kind::MemberAgent);
        state != WatchState::Incomplete
    }

    /// True if this cluster owns its id, so that this process may write to the hub.
    pub(crate) fn acts_in_hub(self, now: Timestamp) -> bool {
        self.reads.note(Value::ActsInHub);
        self.view.acts_in_hub(now)
    }

    /// Returns the ownership of this cluster's id.
    pub(crate) fn ownership(self, now: Timestamp) -> Ownership {
        self.note_ownership();
        self.view.ownership(now)
    }

    /// Returns the blocking reasons about the cluster id, whose ownership the plan has read.
    pub(crate) fn identity_blocking_reasons(self, ownership: &Ownership, now: Timestamp) -> Vec<BlockingReason> {
        self.view.identity_blocking_reasons(ownership, now)
    }

    fn note_ownership(self) {
        self.reads.note(Value::ActsInHub);
        self.reads.note(Value::Object(Kind::MemberAgent, self.own_member_agent()));
        self.reads.note(Value::Watch(Kind::MemberAgent));
        self.reads.note(Value::Watch(Kind::SystemNamespace));
    }

    /// True while the watch of this cluster's EndpointSlices works. A change of the contact requeues the heartbeat.
    pub(crate) fn follows_slices(self) -> bool {
        self.reads.note(Value::Complete(&[Kind::EndpointSlice]));
        self.view.follows_slices()
    }

    /// Says if this member leaves the fleet, so that its users' objects request nothing any more.
    pub(crate) fn leaving(self, now: Timestamp) -> Leaving {
        let Membership { agents, on_leave } = &self.settings().membership;
        if agents.is_empty() || *on_leave == OnLeave::Keep {
            return Leaving::No;
        }
        self.reads.note(Value::Leave);
        let is_listed = self.watch_of(Kind::InternalMemberCluster) != WatchState::Incomplete;
        match self.view.leave {
            // Perhaps the process before this one has left.
            Leave::No if !is_listed => Leaving::Unknown(None),
            Leave::No => Leaving::No,
            Leave::Began => Leaving::Yes,
            Leave::Found(at) => {
                let until = at.plus_micros(FOUND_LEAVE_MICROS);
                if now < until { Leaving::Unknown(Some(until)) } else { Leaving::Yes }
            }
        }
    }

    /// True if the agents still have exports or imports of the standard API. The plan is made again when one of them is
    /// gone.
    pub(crate) fn has_made_for_mcs_api(self) -> bool {
        let made = self.view.made_for_mcs_api();
        let is_made = made.is_some();
        if let Some((kind, name)) = made {
            self.reads.note(Value::Object(kind, name));
        }
        is_made
    }

    /// Returns the state of the watch of a kind.
    pub(crate) fn watch_of(self, kind: Kind) -> WatchState {
        self.reads.note(Value::Watch(kind));
        self.view.watches.state(kind)
    }

    // === Times at which the agent saw changes ===

    facts! {
        exportable_since: Exportable;
        unneeded_since: Unneeded;
        requested_since: Requested;
        unresolved_since: Unresolved;
        fulfilled_since: Fulfilled;
        orphaned_since: Orphaned;
        unlisted_since: Unlisted;
        outdated_since: Outdated;
    }

    /// Returns what this process knows about a hub agent that could write this distributed slice.
    pub(crate) fn hub_leads(self, imported: &ObjectName, now: Timestamp) -> HubLeads {
        self.reads.note(Value::FollowsHub);
        self.note_ownership();
        self.view.hub_leads(imported, now)
    }

    /// Returns the end of the time after a restore of the hub in which an import keeps its Services as they are. `None`
    /// at other times.
    pub(crate) fn keeps_until(self, now: Timestamp) -> Option<Timestamp> {
        // No plan must be made again when this time begins: it only lets plans wait.
        self.view.keeps_until(now)
    }

    /// Returns the merged import of a Service before the last restore of the hub, for the time in which imports keep
    /// it.
    pub(crate) fn merged_before_restore(self, service: &ObjectName) -> Option<&'a Arc<MergedImport>> {
        self.view.restore.as_ref()?.merged.get(service)
    }

    fn since(self, fact: Fact) -> Option<Timestamp> {
        let since = self.view.facts.since(&fact);
        self.reads.note(Value::Fact(fact));
        since
    }

    // === Values that requeue nothing, or that requeue their key without a record ===

    /// Returns the settings. They never change.
    pub(crate) fn settings(self) -> &'a Settings {
        &self.view.settings
    }

    /// Returns the time of a slice's oldest change that is not in the hub; `None` if the hub has all changes.
    pub(crate) fn oldest_change(self, slice: &ObjectName) -> Option<Timestamp> {
        self.view.records.oldest_change(slice)
    }

    /// Returns the time of the last change of a Service's exported content.
    pub(crate) fn service_changed_at(self, service: &ObjectName) -> Option<Timestamp> {
        self.view.records.service_changed_at(service)
    }

    /// Returns the message about the last rejected write of a key; `None` if no rejection is recorded. The writer
    /// requeues the key.
    pub(crate) fn rejection(self, key: &Key) -> Option<&'a str> {
        self.view.rejections.get(key).map(String::as_str)
    }

    /// Returns the disputes. A dispute names the key that it requeues.
    pub(crate) fn disputes(self) -> &'a Disputes<Key> {
        &self.view.disputes
    }

    /// True if a distributed slice has the content of a preview. Each change of this changes the slice too.
    pub(crate) fn has_preview(self, slice: &Text) -> bool {
        self.view.has_preview(slice)
    }

    pub(crate) fn has_excess(self, slice: &EndpointSlice) -> bool {
        self.view.has_excess(slice)
    }

    /// Returns the time of the last renewal by this process.
    pub(crate) fn last_renewal(self) -> Option<Timestamp> {
        self.view.last_renewal()
    }

    /// True if the MemberAgent lacks properties that this process has not written yet.
    pub(crate) fn has_new_properties(self) -> bool {
        self.view.has_new_properties()
    }

    /// Returns the `spec` of the MemberAgent that this process writes with its next heartbeat.
    pub(crate) fn renewal(self, announcement: &Announcement, now: Timestamp) -> Renewal {
        self.view.renewal(announcement, now)
    }

    // === Names ===

    /// Returns the distributed slice that is imported into the EndpointSlice with this name.
    pub(crate) fn distributed_slice_of(self, imported: &ObjectName) -> Option<&'a HubSlice> {
        let names = self.view.names_in_hub_of(imported);
        names.for_each(|name| self.reads.note(Value::Object(Kind::EndpointSliceImport, name)));
        self.view.distributed_slice_of(imported)
    }

    /// True if a distributed slice exists with a name that the one of this imported slice can have.
    pub(crate) fn has_distributed_slice(self, imported: &ObjectName) -> bool {
        self.view.names_in_hub_of(imported).any(|name| self.distributed_slices().get(&name).is_some())
    }

    /// True if the distributed slice of this imported slice is perhaps undecodable.
    pub(crate) fn is_source_undecodable(self, imported: &ObjectName) -> bool {
        self.view.names_in_hub_of(imported).any(|name| self.is_undecodable(Kind::EndpointSliceImport, &name))
    }

    /// Returns an object's full name in this member's namespace of the hub.
    pub(crate) fn in_hub(self, name: impl Into<Text>) -> ObjectName {
        self.view.in_hub(name)
    }

    /// Returns an object's full name in the namespace of derived Services and imported slices.
    pub(crate) fn in_system(self, name: Text) -> ObjectName {
        self.view.in_system(name)
    }

    pub(crate) fn own_membership(self) -> ObjectName {
        self.view.own_membership()
    }

    pub(crate) fn own_member_agent(self) -> ObjectName {
        self.view.own_member_agent()
    }
}
