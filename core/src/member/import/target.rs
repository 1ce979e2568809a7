//! Target of a distributed slice: where it is imported, with which labels and with which part of its content.
//!
//! ```text
//!  EndpointSliceImport ─┬─► fleet-system, bound to the derived Service of a MultiClusterService
//!                       ├─► namespace of the imported Service, by the standard API
//!                       └─► the routing slice there, if routing slices are on
//! ```
//!
//! One slice of the standard API is bound to the derived Service, for kube-proxy: the routing slice if they are on.
//! After a restart with another value, the slice that was bound stays so until the other one is bound with its content.

use super::{binding, selected, silent};
use crate::handover;
use crate::limits::ORPHAN_GRACE_MICROS;
use crate::member::mcs_import::{self, Importing};
use crate::member::view::selections::Selected;
use crate::member::view::serving::Clients;
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
    part: Part,
    /// Exporting cluster, with the ports that it serves.
    exporter: &'a MergedCluster,
    /// Name of the derived Service that the slice is bound to. A headless Service has none, or no more than for a grace
    /// period.
    derived: Option<Text>,
}

/// Slice that the standard API imports from a distributed slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The slice with the labels of the standard API, which gateways and DNS servers read.
    Standard,
    /// The routing slice, which only kube-proxy reads.
    Routing,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::Standard, Self::Routing];

    /// Returns the part with this name of an imported slice.
    pub(super) fn of(at: &ObjectName, distributed: &HubSlice) -> Self {
        if at.name == distributed.meta.name.name { Self::Standard } else { Self::Routing }
    }

    /// Returns the part in a namespace that is for these clients.
    pub(super) fn read_by(view: Reader<'_>, clients: Clients, namespace: &Text) -> Self {
        let may_be_routing = clients == Clients::KubeProxy && !is_for_fleet_api(view, namespace);
        if may_be_routing && view.settings().routing_slices { Self::Routing } else { Self::Standard }
    }

    /// Returns the name of this part in a namespace.
    pub(super) fn name(self, namespace: &Text, distributed: &HubSlice) -> ObjectName {
        let name = &distributed.meta.name.name;
        let name = if self == Self::Standard { name.clone() } else { names::routing_slice(name) };
        ObjectName::new(namespace.clone(), name)
    }
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

/// Returns the names of the other slices that can be imported from a distributed slice, by both APIs.
pub(super) fn others(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice) -> Vec<ObjectName> {
    let mut all = vec![view.in_system(distributed.meta.name.name.clone())];
    if view.settings().mcs_api != McsApi::Off {
        all.extend(Part::ALL.map(|part| part.name(&distributed.spec.owner.namespace, distributed)));
    }
    all.retain(|other| other != at);
    all
}

/// True if a slice with another name than `at` is perhaps imported from a distributed slice.
pub(super) fn is_imported_elsewhere(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice) -> bool {
    let is_imported = |other: &ObjectName| imported(view, other, distributed).is_some();
    others(view, at, distributed).iter().any(|it| is_imported(it) || view.is_undecodable(Kind::EndpointSlice, it))
}

/// Returns the slice with this name that is imported from a distributed slice.
pub(super) fn imported<'a>(view: Reader<'a>, at: &ObjectName, distributed: &HubSlice) -> Option<&'a EndpointSlice> {
    view.slices().get(at).filter(|present| is_ours(view, distributed, present))
}

/// True if another writer's slice has this name, so that the slice of a distributed slice cannot be imported.
pub(super) fn is_held_by_another(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice) -> bool {
    view.slices().live(at).is_some_and(|present| !is_ours(view, distributed, present))
}

/// Returns the slices that are imported from a distributed slice into a namespace.
pub(super) fn imported_into<'a>(view: Reader<'a>, namespace: &Text, distributed: &HubSlice) -> Vec<&'a EndpointSlice> {
    let parts = if is_for_fleet_api(view, namespace) { &Part::ALL[..1] } else { &Part::ALL };
    let imported = parts.iter().filter_map(|part| imported(view, &part.name(namespace, distributed), distributed));
    imported.filter(|present| !present.meta.deleting).collect()
}

/// True if the agents imported `present`, an EndpointSlice with a name for a distributed slice.
///
/// Normally its managed-by label shows this. Another writer may have edited the label while no agent ran. So it is also
/// enough that `present` has the annotation of an import, or that it has the labels of an import and the distributed
/// slice has our finalizer.
///
/// Without routing slices, nobody writes the routing slice. So the name is not enough, and [`Reader::slices`] decides.
pub(super) fn is_ours(view: Reader<'_>, distributed: &HubSlice, present: &EndpointSlice) -> bool {
    if Part::of(&present.meta.name, distributed) == Part::Routing && !view.settings().routing_slices {
        return present.imported;
    }
    let is_marked = present.imported || present.observed_generation.is_some();
    is_marked || distributed.meta.finalizers.ours && has_labels(view, distributed, present)
}

fn has_labels(view: Reader<'_>, distributed: &HubSlice, present: &EndpointSlice) -> bool {
    let owner = &distributed.spec.owner;
    if Part::of(&present.meta.name, distributed) == Part::Routing {
        return present.service == Some(names::mcs_derived(owner).name);
    }
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
        Importing::Yes(merged) => mcs(view, at, merged, distributed, now),
    }
}

/// Returns the target of the standard API.
fn mcs<'a>(
    view: Reader<'a>,
    at: &ObjectName,
    merged: &'a MergedServiceImport,
    distributed: &HubSlice,
    now: Timestamp,
) -> TargetState<'a> {
    // Perhaps the cluster exports only by the other API. Or the hub agent wrote the slice before the
    // MergedServiceImport.
    let Some(exporter) = exporter(merged, distributed) else { return TargetState::Ended };
    let (part, bound) = (Part::of(at, distributed), Part::read_by(view, Clients::KubeProxy, &at.namespace));
    let has_derived = mcs_import::derived_service(view, &merged.service).is_some();
    let is_headless = merged.import.import_type == ImportType::Headless;
    let name = names::mcs_derived(&merged.service).name;
    let present = imported(view, at, distributed);
    let bound_now = view.slices().get(at).filter(|present| present.service.as_ref() == Some(&name));
    let target = |part, derived| Target::Mcs(Mcs { part, exporter, derived });
    // While another writer has the name of the derived Service, no slice is bound to it. A slice that is imported
    // already follows its source.
    if part == bound && !is_headless && !has_derived && bound_now.is_none() {
        let follows = part == Part::Standard && present.is_some_and(|present| present.service.is_none());
        return if follows { TargetState::Target(target(part, None)) } else { TargetState::Waits(None) };
    }
    // After the import becomes headless, clients still use the address of the derived Service.
    let wanted = || Some(name.clone()).filter(|_| !is_headless || has_derived);
    let is_replaced = |by_now| replaces(view, by_now, &target(bound, wanted()), distributed, now);
    let derived = wanted().filter(|_| part == bound || bound_now.is_some_and(|it| !is_replaced(it)));
    if part == Part::Routing && derived.is_none() {
        return TargetState::Ended;
    }
    TargetState::Target(target(part, derived))
}

/// True if the part for kube-proxy is imported as its target says, so that `bound` can lose its binding. A slice with
/// endpoints keeps it until it is empty too: those may move to another slice.
fn replaces(
    view: Reader<'_>,
    bound: &EndpointSlice,
    target: &Target<'_>,
    distributed: &HubSlice,
    now: Timestamp,
) -> bool {
    let namespace = &distributed.spec.owner.namespace;
    let at = Part::read_by(view, Clients::KubeProxy, namespace).name(namespace, distributed);
    // Without an endpoint because other clusters are chosen, it replaces `bound` once these serve.
    let is_deselected = || {
        let (whole, of) = (target.whole(view, distributed), target.selected(view, distributed));
        !whole.endpoints.is_empty() && !selected::is_awaited(view, &of, bound, now)
    };
    imported(view, &at, distributed).filter(|present| !present.meta.deleting).is_some_and(|present| {
        target.is_bound(present, distributed)
            && present.content == *target.content(view, distributed, now)
            && (!handover::empties(&bound.content, &present.content) || is_deselected())
    })
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
    let at = |name: &Text| ObjectName::new(present.meta.name.namespace.clone(), name.clone());
    // A routing slice names only the derived Service. The standard slice names the imported one.
    let derived_at = present.service.as_ref().filter(|_| present.mcs.is_none()).map(at);
    if derived_at.as_ref().is_some_and(|derived_at| view.is_undecodable(Kind::Service, derived_at)) {
        return Requested::Unknown(None);
    }
    let derived = derived_at.and_then(|derived_at| view.services().get(&derived_at));
    let derived_from = || derived.and_then(|derived| derived.imports.as_ref());
    let standard_at = || names::routed_slice(&present.meta.name.name).map(|name| at(&name.into()));
    let by_standard = || view.slices().get(&standard_at()?).and_then(|standard| Clients::Gateways.service(standard));
    let service = Clients::Gateways.service(present).or_else(derived_from).or_else(by_standard);
    let Some(service) = service.map(at) else {
        return Requested::Not;
    };
    match mcs_import::importing(view, &service, now) {
        Importing::Not => Requested::Not,
        Importing::Unknown(again) => Requested::Unknown(again),
        Importing::Yes(_) => view.requested_since(&service).map_or(Requested::Unknown(None), Requested::Since),
    }
}

impl Mcs<'_> {
    /// Returns the clients that lose the endpoints if no slice serves them any more, and their Service.
    fn clients(&self, view: Reader<'_>, distributed: &HubSlice) -> (Clients, ObjectName) {
        let owner = &distributed.spec.owner;
        match self.derived.as_ref().filter(|_| view.settings().routing_slices) {
            Some(derived) => (Clients::KubeProxy, ObjectName::new(owner.namespace.clone(), derived.clone())),
            None => (Clients::Gateways, owner.clone()),
        }
    }
}

impl Target<'_> {
    /// Returns the content to import from a distributed slice of the same exporter.
    pub(super) fn content<'a>(
        &self,
        view: Reader<'a>,
        distributed: &'a HubSlice,
        now: Timestamp,
    ) -> Cow<'a, SliceContent> {
        let (clients, service) = match self {
            Self::Derived(service) => (Clients::KubeProxy, service.meta.name.clone()),
            Self::Mcs(mcs) => mcs.clients(view, distributed),
        };
        let content = silent::content(view, distributed, self.whole(view, distributed), (clients, &service), now);
        if clients == Clients::Gateways {
            return content;
        }
        selected::content(view, &self.selected(view, distributed), distributed, content, &service, now)
    }

    /// Returns the valid content of a distributed slice of the same exporter, with the ports that clients use.
    pub(super) fn whole<'a>(&self, view: Reader<'a>, distributed: &'a HubSlice) -> Cow<'a, SliceContent> {
        let admitted = Cow::Borrowed(view.admitted(distributed).content);
        match self {
            Self::Derived(_) => admitted,
            Self::Mcs(mcs) => mcs_import::served(admitted, mcs.exporter),
        }
    }

    /// Returns the imported Service of this target, for the selection of its clusters.
    pub(super) fn selected(&self, view: Reader<'_>, distributed: &HubSlice) -> Selected {
        let service = distributed.spec.owner.clone();
        let namespace = match self {
            Self::Derived(_) => view.settings().fleet_system_namespace.clone(),
            Self::Mcs(_) => service.namespace.clone(),
        };
        Selected { namespace, service }
    }

    /// Returns the name of the Service for which these clients use a slice of this target.
    pub(super) fn service(&self, clients: Clients, distributed: &HubSlice) -> Option<Text> {
        let (service, mcs) = self.labels(distributed);
        if clients == Clients::KubeProxy { service } else { mcs.map(|labels| labels.service) }
    }

    /// Returns the value of the label `kubernetes.io/service-name`, and the labels of the standard API.
    pub(super) fn labels(&self, distributed: &HubSlice) -> (Option<Text>, Option<McsLabels>) {
        match self {
            Self::Derived(service) => (Some(service.meta.name.name.clone()), None),
            Self::Mcs(Mcs { part, derived, .. }) => {
                let HubSliceSpec { owner, reference, .. } = &distributed.spec;
                let (service, cluster) = (owner.name.clone(), reference.cluster.clone());
                let labels = McsLabels { service, cluster, headless: derived.is_none() };
                (derived.clone(), (*part == Part::Standard).then_some(labels))
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
