//! Target of a distributed slice: where it is imported, with which labels and with which part of its content.
//!
//! ```text
//!  EndpointSliceImport ─┬─► fleet-system, bound to the derived Service of a MultiClusterService
//!                       └─► namespace of the imported Service, by the standard API
//! ```

use super::{binding, silent};
use crate::limits::ORPHAN_GRACE_MICROS;
use crate::member::mcs_import::{self, Importing};
use crate::member::view::{McsApi, Reader};
use crate::model::{
    EndpointSlice, HubSlice, HubSliceSpec, ImportType, InternalServiceImport, Kind, McsLabels, MergedCluster,
    MergedServiceImport, Meta, Service, SliceContent,
};
use crate::names;
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::borrow::Cow;

/// Target of the imported slice with a name.
pub(super) enum TargetState<'a> {
    Target(Target<'a>),
    /// Something is missing or unknown. The imported slice stays as it is.
    Waits(Option<Timestamp>),
    /// This cluster does not import the Service any more.
    Ended,
}

pub(super) enum Target<'a> {
    /// Derived Service of a MultiClusterService.
    Derived(&'a Service),
    Mcs(Mcs<'a>),
}

/// Target of the standard API.
pub(super) struct Mcs<'a> {
    /// Exporting cluster, with the ports that it serves.
    exporter: &'a MergedCluster,
    /// Name of the derived Service. A headless Service has none, or no more than for a grace period.
    derived: Option<Text>,
}

/// Relation of a distributed slice to the claims of this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// A claim lists the exporting cluster, or only the fleet's API requests the slice.
    Listed,
    /// This cluster gets the slice only by the standard API.
    Unlisted,
    Unknown,
}

/// Kinds that decide if a claim lists a cluster.
const DECIDE_LISTING: [Kind; 2] = [Kind::MergedServiceImport, Kind::InternalServiceImport];

/// Request of this cluster for the slices of a Service.
pub(super) enum Requested {
    Since(Timestamp),
    /// Not known yet.
    Unknown(Option<Timestamp>),
    /// Nobody imports the Service.
    Not,
}

/// True if slices are imported into this namespace for MultiClusterServices.
pub(super) fn is_for_fleet_api(view: Reader<'_>, namespace: &Text) -> bool {
    *namespace == view.settings().fleet_system_namespace
}

/// Returns the distributed slice that is imported into the EndpointSlice with this name.
pub(crate) fn distributed<'a>(view: Reader<'a>, at: &ObjectName) -> Option<&'a HubSlice> {
    let distributed = view.distributed_slices().get(&view.in_hub(at.name.clone()))?;
    let is_of = is_for_fleet_api(view, &at.namespace) || distributed.spec.owner.namespace == at.namespace;
    is_of.then_some(distributed)
}

/// Returns the name of the slice that the other API would import from a distributed slice.
fn name_for_other_api(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice) -> Option<ObjectName> {
    let name = distributed.meta.name.name.clone();
    match is_for_fleet_api(view, &at.namespace) {
        true if view.settings().mcs_api == McsApi::Off => None,
        true => Some(ObjectName::new(distributed.spec.owner.namespace.clone(), name)),
        false => Some(view.in_system(name)),
    }
}

/// True if the other API has perhaps imported a slice from a distributed slice.
pub(super) fn is_imported_by_other_api(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice) -> bool {
    let is_undecodable = |at: &ObjectName| view.is_undecodable(Kind::EndpointSlice, at);
    import_of_other_api(view, at, distributed).is_some()
        || name_for_other_api(view, at, distributed).as_ref().is_some_and(is_undecodable)
}

/// Returns the slice that the other API has imported from a distributed slice.
pub(super) fn import_of_other_api<'a>(
    view: Reader<'a>,
    at: &ObjectName,
    distributed: &HubSlice,
) -> Option<&'a EndpointSlice> {
    let other = name_for_other_api(view, at, distributed)?;
    view.slices().get(&other).filter(|present| is_ours(view, distributed, present))
}

/// True if the agents imported `present`, an EndpointSlice with the name of the distributed slice.
///
/// Normally its managed-by label shows this. Another writer may have edited the label while no agent ran. So it is also
/// enough that `present` has the annotation of an import, or that it has the labels of an import and the distributed
/// slice has our finalizer.
pub(super) fn is_ours(view: Reader<'_>, distributed: &HubSlice, present: &EndpointSlice) -> bool {
    let is_marked = present.imported || present.observed_generation.is_some();
    is_marked || distributed.meta.finalizers.ours && has_labels(view, distributed, present)
}

fn has_labels(view: Reader<'_>, distributed: &HubSlice, present: &EndpointSlice) -> bool {
    let owner = &distributed.spec.owner;
    if is_for_fleet_api(view, &present.meta.name.namespace) {
        let bound_to = || binding(view, owner).map(|service| &service.meta.name.name);
        return present.service.is_some() && present.service.as_ref() == bound_to();
    }
    present
        .mcs
        .as_ref()
        .is_some_and(|labels| labels.service == owner.name && labels.cluster == distributed.spec.reference.cluster)
}

/// Returns the target of a distributed slice in the namespace of `at`.
pub(super) fn target<'a>(view: Reader<'a>, at: &ObjectName, distributed: &HubSlice, now: Timestamp) -> TargetState<'a> {
    let service = &distributed.spec.owner;
    if is_for_fleet_api(view, &at.namespace) {
        let may_begin = match listing(view, distributed) {
            Listing::Listed => true,
            Listing::Unlisted => return unlisted(view, at, now),
            Listing::Unknown => view.slices().get(at).is_some_and(|present| is_ours(view, distributed, present)),
        };
        // Without a derived Service, the slice waits. A change of the MultiClusterService or of the derived Service
        // requeues the key (B12 in docs/contributors/behaviour.md).
        let derived = binding(view, service).filter(|_| may_begin);
        return derived.map_or(TargetState::Waits(None), |derived| TargetState::Target(Target::Derived(derived)));
    }
    match mcs_import::importing(view, service, now) {
        Importing::Unknown(again) => TargetState::Waits(again),
        Importing::Not => TargetState::Ended,
        Importing::Yes(merged) => mcs(view, at, merged, distributed),
    }
}

/// Returns the target of the standard API.
fn mcs<'a>(
    view: Reader<'a>,
    at: &ObjectName,
    merged: &'a MergedServiceImport,
    distributed: &HubSlice,
) -> TargetState<'a> {
    // Perhaps the cluster exports only by the other API. Or the hub agent wrote the slice before the
    // MergedServiceImport.
    let Some(exporter) = exporter(merged, distributed) else { return TargetState::Ended };
    let derived = mcs_import::derived_service(view, &merged.service).map(|derived| derived.meta.name.name.clone());
    if merged.import.import_type == ImportType::Headless {
        // After the import becomes headless, clients still use the address of the derived Service.
        return TargetState::Target(Target::Mcs(Mcs { exporter, derived }));
    }
    let name = names::mcs_derived(&merged.service).name;
    let is_bound = || view.slices().get(at).is_some_and(|present| present.service.as_ref() == Some(&name));
    // While another writer has the name of the derived Service, no slice is bound to it. A slice that is bound to it
    // follows its source.
    if derived.is_none() && !is_bound() {
        return TargetState::Waits(None);
    }
    TargetState::Target(Target::Mcs(Mcs { exporter, derived: Some(name) }))
}

/// Returns the exporting cluster of a distributed slice, as part of the merged import.
fn exporter<'a>(merged: &'a MergedServiceImport, distributed: &HubSlice) -> Option<&'a MergedCluster> {
    merged.import.clusters.iter().find(|it| it.cluster == distributed.spec.reference.cluster)
}

/// Says if a claim of this cluster lists the exporting cluster of a distributed slice.
pub(crate) fn listing(view: Reader<'_>, distributed: &HubSlice) -> Listing {
    if view.settings().mcs_api == McsApi::Off {
        return Listing::Listed; // the hub agent distributes no other slices
    }
    let (service, cluster) = (&distributed.spec.owner, &distributed.spec.reference.cluster);
    if granted_claims(view, service).any(|claim| claim.status.clusters.contains(cluster)) {
        return Listing::Listed;
    }
    if !view.complete(&DECIDE_LISTING) || view.has_undecodable() {
        return Listing::Unknown;
    }
    let merged = mcs_import::merged(view, service).filter(|merged| merged.meta.finalizers.ours);
    if merged.is_none_or(|merged| exporter(merged, distributed).is_none()) {
        return Listing::Listed; // only the fleet's API requests it
    }
    // A claim without an answer says nothing about its exporters. Clients lose them with the derived Service.
    let is_granted = granted_claims(view, service).next().is_some();
    if !is_granted && binding(view, service).is_some() { Listing::Unknown } else { Listing::Unlisted }
}

/// Returns the claims of this cluster for a Service that the hub agent has granted.
pub(crate) fn granted_claims<'a>(
    view: Reader<'a>,
    service: &ObjectName,
) -> impl Iterator<Item = &'a InternalServiceImport> {
    let claims = view.claims_of(service).filter_map(move |claim| view.claims().live(claim));
    claims.filter(|claim| !claim.status.clusters.is_empty())
}

/// Returns the target for the fleet's API of a slice whose cluster no claim lists. A claim may lose its clusters for a
/// moment, for example when the ServiceImport in the hub is created again. So an imported slice stays for a while.
fn unlisted(view: Reader<'_>, at: &ObjectName, now: Timestamp) -> TargetState<'static> {
    let until = view.unlisted_since(at).map(|since| since.plus_micros(ORPHAN_GRACE_MICROS));
    if until.is_some_and(|until| now >= until) { TargetState::Ended } else { TargetState::Waits(until) }
}

/// Returns since when this cluster requests the slices of the Service of an imported slice.
pub(super) fn requested(view: Reader<'_>, present: &EndpointSlice, now: Timestamp) -> Requested {
    if is_for_fleet_api(view, &present.meta.name.namespace) {
        by_claim(view, present)
    } else {
        by_mcs_api(view, present, now)
    }
}

fn by_claim(view: Reader<'_>, present: &EndpointSlice) -> Requested {
    let service_at = present.service.as_ref().map(|name| view.in_system(name.clone()));
    let service = service_at.as_ref().and_then(|name| view.services().live(name));
    let derived_from = service.and_then(|service| service.derived_from.as_ref());
    if service_at.is_some_and(|name| view.is_undecodable(Kind::Service, &name))
        || derived_from.is_some_and(|name| view.is_undecodable(Kind::MultiClusterService, name))
    {
        return Requested::Unknown(None); // it is unknown if a MultiClusterService imports the slice
    }
    let request = service.and_then(|service| view.multi_cluster_services().live(service.derived_from.as_ref()?));
    let Some(request) = request else { return Requested::Not };
    let import = ObjectName::new(request.meta.name.namespace.clone(), request.import_name.clone());
    // A change of the status of the claim requeues this key.
    view.fulfilled_since(&import).map_or(Requested::Unknown(None), Requested::Since)
}

fn by_mcs_api(view: Reader<'_>, present: &EndpointSlice, now: Timestamp) -> Requested {
    let Some(labels) = &present.mcs else { return Requested::Not };
    let service = ObjectName::new(present.meta.name.namespace.clone(), labels.service.clone());
    match mcs_import::importing(view, &service, now) {
        Importing::Not => Requested::Not,
        Importing::Unknown(again) => Requested::Unknown(again),
        Importing::Yes(_) => view.requested_since(&service).map_or(Requested::Unknown(None), Requested::Since),
    }
}

impl Target<'_> {
    /// Returns the content to import from a distributed slice of the same exporter, after its validation.
    pub(super) fn content<'a>(
        &self,
        view: Reader<'a>,
        distributed: &'a HubSlice,
        now: Timestamp,
    ) -> Cow<'a, SliceContent> {
        let admitted = Cow::Borrowed(view.admitted(distributed).content);
        match self {
            Self::Derived(service) => silent::content(view, distributed, admitted, &service.meta.name, now),
            Self::Mcs(mcs) => {
                let own = mcs_import::served(admitted, mcs.exporter);
                silent::content(view, distributed, own, &distributed.spec.owner, now)
            }
        }
    }

    /// Returns the value of the label `kubernetes.io/service-name`, and the labels of the standard API.
    pub(super) fn labels(&self, distributed: &HubSlice) -> (Option<Text>, Option<McsLabels>) {
        match self {
            Self::Derived(service) => (Some(service.meta.name.name.clone()), None),
            Self::Mcs(Mcs { derived, .. }) => {
                let HubSliceSpec { owner, reference, .. } = &distributed.spec;
                let (service, cluster) = (owner.name.clone(), reference.cluster.clone());
                (derived.clone(), Some(McsLabels { service, cluster, headless: derived.is_none() }))
            }
        }
    }

    /// True if an imported slice has the labels of this target.
    pub(super) fn is_bound(&self, present: &EndpointSlice, distributed: &HubSlice) -> bool {
        match self {
            Self::Derived(service) => present.service.as_ref() == Some(&service.meta.name.name),
            Self::Mcs(_) => {
                let (service, mcs) = self.labels(distributed);
                service == present.service && mcs.as_ref() == present.mcs.as_deref()
            }
        }
    }

    /// Returns the user's object for Events about imported slices.
    pub(super) fn users_object<'a>(&self, view: Reader<'a>, distributed: &HubSlice) -> Option<(Kind, &'a Meta)> {
        match self {
            Self::Derived(service) => {
                let request = view.multi_cluster_services().get(service.derived_from.as_ref()?)?;
                Some((Kind::MultiClusterService, &request.meta))
            }
            Self::Mcs(_) => {
                let import = view.mcs_imports().live(&distributed.spec.owner)?;
                Some((Kind::McsServiceImport, &import.meta))
            }
        }
    }
}
