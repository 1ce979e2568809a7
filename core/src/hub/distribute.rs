//! Distribution: which importing member gets which slice.
//!
//! Each importer with a granted claim of the slice's Service, or with its merged import, gets an EndpointSliceImport in
//! its member namespace (`supply.rs`). The EndpointSliceImport has the name of the exported slice, and its content is
//! reduced to the importer's features (`feature_set.rs`).
//!
//! A new EndpointSliceImport also requires that the exporting member is not denied the right to export the Service
//! (`holder.rs`), and that conflict resolution accepted its export (`conflict.rs`).

mod holder;
mod preview;
mod ranges;
mod silent;
mod supply;

use crate::feature_set::FeatureSet;
use crate::handover;
use crate::hub::leaving;
use crate::hub::view::reader::Reader;
use crate::limits::REPLACEMENT_WAIT_MICROS;
use crate::model::{HubSlice, HubSliceSpec, Kind, Reference, SliceContent};
use crate::names;
use crate::plan::{Desired, Plan, Write};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp};
pub(crate) use holder::place_of;
use holder::{distributed_slices, exports, holder};
use std::borrow::Cow;
use std::sync::Arc;
use supply::{Supply, supply};

const REQUIRED: [Kind; 4] =
    [Kind::EndpointSliceExport, Kind::EndpointSliceImport, Kind::ServiceImport, Kind::InternalServiceImport];

/// Plans the exports with this name: their finalizers, and the Events of those that are not distributed.
pub fn plan_slice(view: Reader<'_>, name: &Text, now: Timestamp) -> Plan {
    if !is_ready(view) {
        return Plan::default();
    }
    let holder = holder(view, name);
    let plan = match holder {
        None => Plan::default(),
        Some(export) if export.meta.deleting => unmark_withdrawn(view, export),
        Some(export) => mark(view, export, now),
    };
    holder::add_undistributed(view, name, holder, plan)
}

/// Plans the slice with this name that is distributed to the member namespace `importer`, also after its export is
/// gone.
pub fn plan_distributed_slice(view: Reader<'_>, name: &Text, importer: &MemberNamespace, now: Timestamp) -> Plan {
    if !is_ready(view) {
        return Plan::default();
    }
    let at = ObjectName::new(importer, name.clone());
    let distributed = view.distributed_slices().get(&at);
    let holder = holder(view, name);
    let mut plan = match (holder, distributed) {
        (None, Some(distributed)) => withdraw(view, distributed),
        (None, None) => Plan::default(),
        (Some(export), Some(distributed)) if export.meta.deleting => {
            wait_for_replacement(view, export, distributed, now).unwrap_or_else(|| withdraw(view, distributed))
        }
        (Some(export), None) if export.meta.deleting => Plan::default(),
        (Some(export), distributed) => distribute(view, export, &at, distributed, now),
    };
    if let Some(distributed) = distributed {
        holder::announce_loss(view, distributed, holder, &mut plan);
        plan.join(leaving::release(view, Kind::EndpointSliceImport, &distributed.meta, now));
    }
    plan
}

/// True once plans may rely on the absence of an object, and on the features of the members.
fn is_ready(view: Reader<'_>) -> bool {
    view.complete(&REQUIRED) && view.knows_features()
}

/// Deletes a distributed slice, unless it was made from an undecodable export.
fn withdraw(view: Reader<'_>, distributed: &HubSlice) -> Plan {
    if distributed.meta.deleting || is_of_undecodable(view, distributed) {
        return Plan::default();
    }
    Plan::one(Write::delete(Kind::EndpointSliceImport, &distributed.meta))
}

/// Removes the finalizer of an export that is being deleted, once no distributed slice is left.
fn unmark_withdrawn(view: Reader<'_>, export: &HubSlice) -> Plan {
    if is_distributed(view, &export.meta.name.name) || !export.meta.finalizers.ours {
        return Plan::default();
    }
    Plan::one(Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta))
}

/// Returns the plan of a distributed slice `removed` that must stay until the importer has its replacement: another
/// slice of the same Service and exporter. `None` if `removed` need not stay, or if the importer does not import the
/// Service.
fn wait_for_replacement(view: Reader<'_>, export: &HubSlice, removed: &HubSlice, now: Timestamp) -> Option<Plan> {
    let importer = &removed.meta.name.member_namespace();
    let supply = supply::of_replacement(view, export, removed, now);
    if supply == Supply::Nothing {
        return None;
    }
    // New slices are distributed only for accepted exporters. If the exporter is not accepted, only a slice that the
    // importer already has can be the replacement.
    let gets_new_slices = supply == Supply::Slice;
    let features = view.features_of(importer, now);
    if silent::is_withdrawn(view, export, features) {
        return None; // endpoints of a silent member move to no other slice
    }
    let removed_content = preview::sent_content(view, removed);
    let of_member = |other: &&ObjectName| other.namespace == export.meta.name.namespace;
    let others = view.slice_exports_of(&export.spec.owner).filter(of_member);
    let mut again = None;
    let is_pending = others.filter_map(|other| view.slice_exports().live(other)).any(|other| {
        let at = ObjectName::new(importer, other.meta.name.name.clone());
        let distributed = view.distributed_slices().live(&at);
        let slice = distributed.map(|slice| preview::acknowledged_content(view, slice));
        let within = ranges::within(view, other, distributed);
        let desired = features.slice(&within.spec.content);
        (gets_new_slices || slice.is_some())
            && desired.is_some_and(|desired| handover::replacement_pending(slice, &desired, removed_content))
            && holder(view, &at.name).is_some_and(|holder| holder.meta.name == other.meta.name)
            && {
                again = end_of_wait(view, export, &at);
                again.is_none_or(|end| now < end)
            }
    });
    // The key is also requeued when the replacement is created.
    is_pending.then(|| Plan { again, ..Plan::default() })
}

/// Returns the time at which the removal of a deleted export's slice stops to wait for the replacement at `at`. `None`
/// if the hub agent can write the replacement. An importer can prevent the write: it keeps a deleted slice, or makes it
/// undecodable.
fn end_of_wait(view: Reader<'_>, export: &HubSlice, at: &ObjectName) -> Option<Timestamp> {
    let is_deleted = || view.distributed_slices().get(at).is_some_and(|slice| slice.meta.deleting);
    let is_prevented = view.is_undecodable(Kind::EndpointSliceImport, at) || is_deleted();
    export.deleted.filter(|_| is_prevented).map(|deleted| deleted.plus_micros(REPLACEMENT_WAIT_MICROS))
}

/// Adds the finalizer to an export before it is distributed, and removes the finalizer when nobody imports the slice
/// any more.
fn mark(view: Reader<'_>, export: &HubSlice, now: Timestamp) -> Plan {
    let (name, owner) = (&export.meta.name.name, &export.spec.owner);
    let mut again = None;
    let receives = |importer: &&MemberNamespace| {
        let features = view.features_of(importer, now);
        again = again.into_iter().chain(features.again(None::<()>)).min();
        supply(view, export, importer, None, now) >= Supply::Changes && features.slice(&export.spec.content).is_some()
    };
    let recorded = view.recorded(owner).into_iter().flat_map(|claims| claims.importers.keys());
    let receiver = recorded.chain(view.mcs_importers(owner)).find(receives);
    let is_distributed = || is_distributed(view, name);
    let mut plan = match (receiver, export.meta.finalizers.ours) {
        (Some(_), false) if holder::is_accepted(view, export) || is_distributed() => {
            Plan::one(Write::add_finalizer(Kind::EndpointSliceExport, &export.meta))
        }
        (None, true) if may_unmark(view, export) && !is_distributed() => {
            Plan::one(Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta))
        }
        _ => Plan::default(),
    };
    plan.plan_again_at(again);
    plan
}

/// True if an export without receivers needs no finalizer. While the ServiceImport is missing, it is not known which
/// claims are granted.
fn may_unmark(view: Reader<'_>, export: &HubSlice) -> bool {
    let owner = &export.spec.owner;
    view.recorded(owner).is_some() || view.mcs_export_in(owner, &export.meta.name.member_namespace()).is_some()
}

fn distribute(
    view: Reader<'_>,
    export: &HubSlice,
    at: &ObjectName,
    distributed: Option<&HubSlice>,
    now: Timestamp,
) -> Plan {
    let importer = &at.member_namespace();
    let Some(cluster) = names::cluster_of(&export.meta.name.namespace) else {
        return Plan::default(); // the namespace is no member namespace, so the slice is not distributed
    };
    let supply = supply(view, export, importer, distributed, now);
    let mut plan = Plan::default();
    if supply >= Supply::Changes {
        let features = view.features_of(importer, now);
        let within = ranges::within(view, export, distributed);
        if within.allows_nothing_new() {
            return plan;
        }
        let (spec, again) = silent::slice_for(view, export, &within.spec, (importer, features), now);
        plan.plan_again_at(again);
        let content = features.slice(&spec.content);
        let live = distributed.filter(|slice| !slice.meta.deleting);
        plan.plan_again_at(features.again(live.filter(|slice| Some(&*slice.spec.content) != content.as_deref())));
        if let Some(content) = content {
            if export.meta.finalizers.ours && (distributed.is_some() || supply == Supply::Slice) {
                let desired = DesiredSlice { cluster: &cluster, export: &spec, features, content };
                plan.join(write_to_importer(view, export, &desired, at.clone(), now));
                within.report(export, &mut plan);
            }
            return plan;
        }
        if features.keeps(&export.spec.content) {
            return plan; // the hub agent only assumes that the importer does not support the slice
        }
    }
    let withdrawn = distributed.filter(|_| supply != Supply::Unchanged);
    plan.joined(withdrawn.map(|slice| withdraw(view, slice)).unwrap_or_default())
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
            reference: Reference { cluster: self.cluster.clone(), ..self.export.reference.clone() },
            owner: self.export.owner.clone(),
            content: match &self.content {
                Cow::Borrowed(_) => Arc::clone(&self.export.content),
                Cow::Owned(reduced) => Arc::new(reduced.clone()),
            },
        }
    }

    /// True if a distributed slice already has the desired content. Its `exportedSince` may also be the desired time
    /// cut to whole seconds, as a Go hub agent writes the time.
    fn matches(&self, slice: &HubSliceSpec) -> bool {
        let mut reference = Reference { cluster: self.cluster.clone(), ..self.export.reference.clone() };
        let cut = reference.exported_since.map(Timestamp::whole_seconds);
        if slice.reference.exported_since == cut {
            reference.exported_since = cut;
        }
        self.features.is_carried(&slice.content, &self.export.content)
            && slice.owner == self.export.owner
            && slice.reference == reference
    }
}

fn write_to_importer(
    view: Reader<'_>,
    export: &HubSlice,
    desired: &DesiredSlice<'_>,
    at: ObjectName,
    now: Timestamp,
) -> Plan {
    match view.distributed_slices().get(&at) {
        None if view.is_undecodable(Kind::EndpointSliceImport, &at) => Plan::default(), // the slice exists, but is undecodable
        None if !may_fan_out(view, export, &at.member_namespace(), desired.features) => Plan::default(), // the key of the exporter reports it
        None => {
            let desired = Desired::EndpointSliceImport(desired.spec());
            Plan::one(Write::create(at, desired))
        }
        Some(slice) if slice.meta.deleting => Plan::default(), // this key is requeued when the slice is gone
        Some(slice) if is_of_undecodable(view, slice) => Plan::default(),
        Some(slice) if !slice.misnamed && desired.matches(&slice.spec) => preview::settled(view, slice),
        Some(slice) => {
            let empties = preview::empties(view, slice, &desired.content);
            let wait = if empties { wait_for_replacement(view, export, slice, now) } else { None };
            wait.unwrap_or_else(|| preview::change(view, slice, desired.spec(), now))
        }
    }
}

/// True if an export may be distributed to one more importer. At the limit of its member, it may replace another slice
/// of the Service: this one waits until the importer has the new one.
fn may_fan_out(view: Reader<'_>, export: &HubSlice, importer: &MemberNamespace, features: FeatureSet) -> bool {
    let exporter = export.meta.name.member_namespace();
    if view.may_fan_out(&exporter) {
        return true;
    }
    let of_exporter = view.slice_exports_of(&export.spec.owner).filter(|name| name.namespace == *exporter.as_text());
    let (mut wanted, mut present) = (0_usize, 0_usize);
    for export in of_exporter.filter_map(|name| view.slice_exports().get(name)) {
        let at = ObjectName::new(importer, export.meta.name.name.clone());
        present += usize::from(view.distributed_slices().live(&at).is_some());
        let content = features.slice(&export.spec.content).filter(|_| !export.meta.deleting);
        wanted += usize::from(content.is_some_and(|content| !content.endpoints.is_empty()));
    }
    present >= wanted
}

/// True if slices with this name are distributed. Distributed slices that were made from an undecodable export do not
/// count.
fn is_distributed(view: Reader<'_>, name: &Text) -> bool {
    // Nearly always, no export with this name is undecodable. Then one value shows it, also with very many importers.
    if view.undecodable_named(Kind::EndpointSliceExport, name).next().is_none() {
        return view.has_distributed_slices(name);
    }
    distributed_slices(view, name).any(|slice| !slice.meta.deleting && !is_of_undecodable(view, slice))
}

/// True if a distributed slice was made from an undecodable export with the same name. If there is also a decodable
/// export with this name, the slice must be from the undecodable export's cluster. Otherwise a member could block the
/// slices of another cluster with an undecodable object.
fn is_of_undecodable(view: Reader<'_>, slice: &HubSlice) -> bool {
    let (name, cluster) = (&slice.meta.name.name, &slice.spec.reference.cluster);
    let alone = || exports(view, name).next().is_none();
    view.undecodable_named(Kind::EndpointSliceExport, name)
        .any(|export| names::cluster_of(&export.namespace).as_ref() == Some(cluster) || alone())
}
