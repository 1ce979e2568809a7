//! Distribution: which importing member gets which slice.
//!
//! Each importer with a granted claim of the slice's Service gets an EndpointSliceImport in its member namespace. The
//! EndpointSliceImport has the name of the exported slice, and its content is reduced to the importer's features
//! (`feature_set.rs`).
//!
//! A new EndpointSliceImport also requires that the exporting member has the right to export the Service (`rights.rs`), and
//! that conflict resolution accepted its export (`conflict.rs`).

mod holder;
mod leaving;

use crate::feature_set::FeatureSet;
use crate::handover;
use crate::hub::claims;
use crate::hub::rights::{self, Right};
use crate::hub::{View, live};
use crate::model::{HubSlice, HubSliceSpec, Kind, Reference, ServiceImport, SliceContent};
use crate::names;
use crate::plan::{Desired, Patch, Plan, Write};
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use holder::{exports, holder};
pub(crate) use holder::{holder_of_name, is_among};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const REQUIRED: [Kind; 4] =
    [Kind::EndpointSliceExport, Kind::EndpointSliceImport, Kind::ServiceImport, Kind::InternalServiceImport];

/// Plans the distributed slices with this name, also after their export is gone.
pub fn plan_slice(view: &View, name: &Text, now: Timestamp) -> Plan {
    if !view.watches.complete(&REQUIRED) || !view.knows_features() {
        return Plan::default();
    }
    let holder = holder(view, name);
    let plan = match holder {
        // fault D4.2: withdraw_all(view, name), ~> { let _ = withdraw_all(view, name); Plan::default() }
        None => withdraw_all(view, name),
        Some(export) if export.meta.deleting => withdraw(view, export, now),
        Some(export) => distribute(view, export, now),
    };
    let mut plan = holder::add_undistributed(view, name, holder, plan);
    // fault D13.1: plan.join(leaving::release(view, name) ~> let _ = leaving::release(view, name
    plan.join(leaving::release(view, name));
    plan
}

fn withdraw_all(view: &View, name: &Text) -> Plan {
    let mut plan = Plan::default();
    for slice in distributed_slices(view, name).filter(|slice| !slice.meta.deleting) {
        plan.push(Write::delete(Kind::EndpointSliceImport, &slice.meta));
    }
    plan
}

/// Removes the distributed slices of an export that is being deleted, then the export's finalizer.
fn withdraw(view: &View, export: &HubSlice, now: Timestamp) -> Plan {
    let name = &export.meta.name.name;
    // fault D4.1: !is_distributed(view, name) && ~>
    if !is_distributed(view, name) && export.meta.finalizers.ours {
        return Plan::one(Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta));
    }
    let mut plan = Plan::default();
    for slice in distributed_slices(view, name)
        .filter(|slice| !slice.meta.deleting && !replacement_pending(view, export, slice, now))
    {
        plan.push(Write::delete(Kind::EndpointSliceImport, &slice.meta));
    }
    plan
}

/// True if the distributed slice `removed` must stay until the importer has its replacement: another slice of the same
/// Service and exporter. False if the importer has no granted claim.
fn replacement_pending(view: &View, export: &HubSlice, removed: &HubSlice, now: Timestamp) -> bool {
    let importer = &removed.meta.name.namespace;
    let import = view.hub_imports.get(&export.spec.owner);
    let claims = |import: &ServiceImport| import.claims.importers.contains_key(importer);
    let may_claim = || view.undecodable.has(Kind::ServiceImport, &export.spec.owner);
    // fault D10.3: if !import ~> if false && !import
    if !import.map_or_else(may_claim, claims) {
        return false;
    }
    // New slices are distributed only for accepted exporters. If the exporter is not accepted, only a slice that the importer
    // already has can be the replacement.
    let gets_new_slices = import.is_none_or(|import| {
        let exporters = &import.status.clusters;
        exporters.is_empty() || is_among(exporters, export)
    });
    let of_member = |other: &&ObjectName| other.namespace == export.meta.name.namespace;
    let others = view.slice_exports_of.get(&export.spec.owner).filter(of_member);
    others.filter_map(|other| view.slice_exports.live(other)).any(|other| {
        let at = ObjectName { namespace: importer.clone(), name: other.meta.name.name.clone() };
        let slice = view.distributed_slices.live(&at).map(|slice| &slice.spec.content);
        let desired = view.features_of(importer, now).slice(&other.spec.content);
        // fault T32.3: (gets_new_slices || slice.is_some()) && ~>
        (gets_new_slices || slice.is_some())
            && desired.is_some_and(|desired| handover::replacement_pending(slice, &desired, &removed.spec.content))
            && holder(view, &at.name).is_some_and(|holder| holder.meta.name == other.meta.name)
    })
}

fn distribute(view: &View, export: &HubSlice, now: Timestamp) -> Plan {
    let name = &export.meta.name.name;
    let owner = &export.spec.owner;
    // fault D6.1: without_import(view, export ~> withdraw_all(view, name
    // fault D11.1: return without_import(view, export ~> let _ = without_import(view, export); return Plan::default(
    let Some(import) = view.hub_imports.get(owner) else { return without_import(view, export) };
    let Some(cluster) = names::cluster_of(&export.meta.name.namespace) else {
        return Plan::default(); // the namespace is no member namespace, so the slice is not distributed
    };
    // New distributed slices are created only if the exporter has the right to export and its export is accepted. Otherwise
    // only existing distributed slices are updated, for example while the export is in conflict, or after the ServiceImport
    // was created again.
    let is_granted =
        // fault T32.1: && import.status.clusters.contains(&cluster) ~>
        rights::of_exporter(view, owner, &cluster) == Right::Granted && import.status.clusters.contains(&cluster);
    let claiming = claims::claiming(view, owner, &import.claims);
    let mut plan = Plan::default();
    let mut receivers: BTreeMap<&Text, DesiredSlice<'_>> = BTreeMap::new();
    // Importers that keep their distributed slice although they seem not to support it: the hub agent only assumes this.
    let mut keepers: BTreeSet<&Text> = BTreeSet::new();
    // fault T34.1: &claiming ~> import.claims.importers.keys()
    for importer in &claiming {
        let features = view.features_of(importer, now);
        // fault U6.1: features.slice(&export.spec.content ~> Some(Cow::Borrowed(&export.spec.content)
        let content = features.slice(&export.spec.content);
        let slice = view.distributed_slices.live(&ObjectName { namespace: (*importer).clone(), name: name.clone() });
        // fault U7.4: plan.plan_again_at(features.again(slice.filter(|slice| Some(&slice.spec.content) != content.as_deref()))) ~> let _ = slice
        plan.plan_again_at(features.again(slice.filter(|slice| Some(&slice.spec.content) != content.as_deref())));
        if let Some(content) = content {
            receivers.insert(importer, DesiredSlice { cluster: &cluster, export: &export.spec, features, content });
        } else if features.keeps(&export.spec.content) {
            keepers.insert(importer);
        }
    }
    // fault D1.1: !receivers.is_empty() ~> false
    // fault D2.1: !receivers.is_empty() && ~>
    // fault W2.1: !receivers.is_empty() && (is_granted || is_distributed(view, name)) && ~>
    if !receivers.is_empty() && (is_granted || is_distributed(view, name)) && !export.meta.finalizers.ours {
        return Plan::one(Write::add_finalizer(Kind::EndpointSliceExport, &export.meta));
    }
    // fault D1.2: &receivers ~> receivers.iter().take(1)
    for (namespace, desired) in &receivers {
        let at = ObjectName { namespace: (*namespace).clone(), name: name.clone() };
        // fault T15.3: is_granted || view ~> true || view
        if is_granted || view.distributed_slices.get(&at).is_some() {
            // fault D7.1: plan.join(write_to_importer(view, export, desired, at, now)); ~> if plan.writes.is_empty() { plan.join(write_to_importer(view, export, desired, at, now)); }
            plan.join(write_to_importer(view, export, desired, at, now));
        }
    }
    // A ServiceImport that was created again records no claims yet. An importer keeps its distributed slices if its claim will
    // be granted again.
    let granted = claims::grants(view, owner, now).importers;
    for slice in distributed_slices(view, name).filter(|slice| !slice.meta.deleting) {
        let namespace = &slice.meta.name.namespace;
        let may_be_undecodable =
            // fault T18.3: && claims::right(view, owner, namespace) != Right::Denied ~>
            || claims::may_be(view, owner, namespace) && claims::right(view, owner, namespace) != Right::Denied;
        let regains = granted.contains_key(namespace) || may_be_undecodable();
        // An importer in the record keeps its distributed slices even without a claim, until the record is updated.
        let recorded = import.claims.importers.contains_key(namespace);
        // fault U13.1: || keepers.contains(namespace) ~>
        let has_it = receivers.contains_key(namespace) || keepers.contains(namespace);
        // fault T34.4: (recorded || regains) ~> !recorded && regains
        let stays = has_it || !claiming.contains(namespace) && (recorded || regains);
        // fault D3.1: stays { plan ~> stays && claiming.contains(namespace) { plan
        if !stays {
            plan.push(Write::delete(Kind::EndpointSliceImport, &slice.meta));
        }
    }
    // fault D3.2: plan.writes.is_empty() ~> false
    // fault W9.1: receivers.is_empty() && export.meta.finalizers.ours && !is_distributed(view, name) ~> false
    if plan.writes.is_empty() && receivers.is_empty() && export.meta.finalizers.ours && !is_distributed(view, name) {
        plan.push(Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta));
    }
    plan
}

/// Plans the distributed slices of a Service without a ServiceImport. Only the ServiceImport records which claims are
/// granted. So all importers with a claim keep their distributed slices until the record exists again.
///
/// Distributed slices of another Service stay too: another writer changed the Service in the export, and the exporting member
/// repairs the export.
fn without_import(view: &View, export: &HubSlice) -> Plan {
    let (name, owner) = (&export.meta.name.name, &export.spec.owner);
    let claims = live(&view.claims, view.claims_of.get(owner));
    let claiming: BTreeSet<&Text> = claims.map(|claim| &claim.meta.name.namespace).collect();
    let claims = |namespace: &Text| claiming.contains(namespace) || claims::may_be(view, owner, namespace);
    let mut plan = Plan::default();
    // fault D11.2: && slice.spec.owner == *owner ~>
    let slices = distributed_slices(view, name).filter(|slice| !slice.meta.deleting && slice.spec.owner == *owner);
    for slice in slices.filter(|slice| !claims(&slice.meta.name.namespace)) {
        plan.push(Write::delete(Kind::EndpointSliceImport, &slice.meta));
    }
    plan
}

/// Desired content of a distributed slice for one importer.
struct DesiredSlice<'a> {
    /// Exporting cluster, taken from the export's namespace, because a member can forge the reference in the export.
    cluster: &'a ClusterId,
    export: &'a HubSliceSpec,
    features: FeatureSet,
    /// Content of the slice, reduced to the importer's features.
    content: Cow<'a, SliceContent>,
}

impl DesiredSlice<'_> {
    fn spec(&self) -> HubSliceSpec {
        HubSliceSpec {
            // fault T1.1: Reference { cluster: self.cluster.clone(), ..self.export.reference.clone() } ~> self.export.reference.clone()
            reference: Reference { cluster: self.cluster.clone(), ..self.export.reference.clone() },
            owner: self.export.owner.clone(),
            content: self.content.clone().into_owned(),
        }
    }

    /// True if a distributed slice already has the desired content. Its `exportedSince` may also be the desired time cut to
    /// whole seconds, as a Go hub agent writes the time.
    fn matches(&self, slice: &HubSliceSpec) -> bool {
        let mut reference = Reference { cluster: self.cluster.clone(), ..self.export.reference.clone() };
        let cut = reference.exported_since.map(Timestamp::whole_seconds);
        // fault L9.1: slice ~> false && slice
        // fault D12.2: == cut ~> .map(Timestamp::whole_seconds) == cut { reference.exported_since = slice.reference.exported_since; } if false
        if slice.reference.exported_since == cut {
            reference.exported_since = cut;
        }
        self.features.is_carried(&slice.content, &self.export.content)
            && slice.owner == self.export.owner
            && slice.reference == reference
    }
}

fn write_to_importer(
    view: &View,
    export: &HubSlice,
    desired: &DesiredSlice<'_>,
    at: ObjectName,
    now: Timestamp,
) -> Plan {
    match view.distributed_slices.get(&at) {
        None if view.undecodable.has(Kind::EndpointSliceImport, &at) => Plan::default(), // the slice exists, but is undecodable
        None => {
            let desired = Desired::EndpointSliceImport(desired.spec());
            // fault N1.5, T28.2: Plan::one(Write::create(at, desired)) ~> { let _ = (at, desired); Plan::default() }
            Plan::one(Write::create(at, desired))
        }
        // fault D9.1: Some(slice) if slice.meta.deleting => Plan::default(), ~>
        Some(slice) if slice.meta.deleting => Plan::default(), // this key is requeued when the slice is gone
        Some(slice) if is_of_undecodable(view, slice) => Plan::default(),
        // fault D12.1: !slice.misnamed && ~>
        Some(slice) if !slice.misnamed && desired.matches(&slice.spec) => Plan::default(),
        Some(slice)
            if handover::empties(&slice.spec.content, &desired.content)
                && replacement_pending(view, export, slice, now) =>
        {
            Plan::default() // this key is requeued when the replacement is created
        }
        Some(slice) => {
            let patch = Patch::EndpointSliceImport(desired.spec());
            // fault W4.1: Plan::one(Write::patch(&slice.meta, patch)) ~> { let _ = patch; Plan::one(Write::delete(Kind::EndpointSliceImport, &slice.meta)) }
            Plan::one(Write::patch(&slice.meta, patch))
        }
    }
}

fn is_distributed(view: &View, name: &Text) -> bool {
    distributed_slices(view, name).any(|slice| !slice.meta.deleting)
}

/// Returns the distributed slices with this name, without those that were made from an undecodable export.
fn distributed_slices<'a>(view: &'a View, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    all_distributed_slices(view, name).filter(|slice| !is_of_undecodable(view, slice))
}

/// Returns all distributed slices with this name, including those that were made from an undecodable export.
fn all_distributed_slices<'a>(view: &'a View, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.distributed_slices_named.get(name).filter_map(|slice| view.distributed_slices.get(slice))
}

/// True if a distributed slice was made from an undecodable export with the same name. If there is also a decodable export with
/// this name, the slice must be from the undecodable export's cluster. Otherwise a member could block the slices of another
/// cluster with an undecodable object.
fn is_of_undecodable(view: &View, slice: &HubSlice) -> bool {
    let (name, cluster) = (&slice.meta.name.name, &slice.spec.reference.cluster);
    let alone = || exports(view, name).next().is_none();
    view.undecodable
        .named(Kind::EndpointSliceExport, name)
        .any(|export| names::cluster_of(&export.namespace).as_ref() == Some(cluster) || alone())
}
