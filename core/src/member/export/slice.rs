//! Export of one slice: writes the EndpointSliceExport of a source slice, reduced to the hub's features.

use super::eligibility::{exportable, is_undecided};
use super::mcs;
use super::source::{Hub, Source, best, exports_of, supported_slice, unsupported_slice};
use super::withdrawal::{replacement_pending, withdraw_all};
use crate::handover;
use crate::limits::{ADDRESSES_MAX, PORTS_MAX};
use crate::member::view::Reader;
use crate::model::{AddressType, EndpointSlice, HubSlice, HubSliceSpec, Kind, Meta, Reference};
use crate::names::{self, SuffixLength};
use crate::plan::{BlockingReason, Desired, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::sync::Arc;

/// Kinds that must be completely listed before a plan exports or withdraws a slice. EndpointSliceImports are required
/// because they show which slices of this cluster are imported slices. InternalServiceExports are required because they
/// show if the outcome in the ServiceExport is of an earlier Service.
const REQUIRED: [Kind; 6] = [
    Kind::Service,
    Kind::ServiceExport,
    Kind::EndpointSlice,
    Kind::InternalServiceExport,
    Kind::EndpointSliceExport,
    Kind::EndpointSliceImport,
];

/// Plans the export of the slice with this name. If the slice is gone, plans the removal of its export (B1 in
/// docs/contributors/behaviour.md).
pub(crate) fn plan_slice(view: Reader<'_>, slice: &ObjectName, now: Timestamp) -> Plan {
    if is_unknown(view, slice, now) || !view.complete(&REQUIRED) {
        return Plan { again: mcs::again(view, now), ..Plan::default() };
    }
    let Some(hub) = view.hub_features(now) else { return Plan::default() };
    let hub = Hub { features: hub, now };
    let mut plan = match wanted(view, slice, hub) {
        None => withdraw_all(view, slice, hub).blocked_by(unsupported(view, slice, hub)),
        Some((source, _)) if source.content.ports.len() > PORTS_MAX => {
            Plan::default().blocked_by([too_many_ports(view, &source)])
        }
        Some((source, export)) => ensure(view, &source, export, hub).blocked_by(too_many_addresses(view, source.slice)),
    };
    let for_hub = view.slices().live(slice).map(|slice| hub.features.slice(&slice.content));
    let is_other =
        |export: &&HubSlice| for_hub.as_ref().is_some_and(|for_hub| for_hub.as_deref() != Some(&*export.spec.content));
    plan.plan_again_at(hub.features.again(exports_of(view, slice).find(is_other)));
    plan
}

/// True if it is unknown whether this slice must be exported, because an object is undecodable or the hub's features
/// are unknown.
fn is_unknown(view: Reader<'_>, slice: &ObjectName, now: Timestamp) -> bool {
    let service = view.slices().live(slice).and_then(EndpointSlice::service_name);
    view.is_undecodable(Kind::EndpointSlice, slice)
        || service.is_some_and(|service| view.is_export_unknown(&service) || is_undecided(view, &service, now))
}

/// Returns the source slice with this name and the metadata of its ServiceExport; `None` if the slice must not be
/// exported.
fn wanted<'a>(view: Reader<'a>, slice: &ObjectName, hub: Hub) -> Option<(Source<'a>, &'a Meta)> {
    let source = supported_slice(view, slice, hub)?;
    let export = exportable(view, &source.slice.service_name()?, hub.now)?;
    Some((source, export))
}

/// Returns the blocking reason of a slice that the hub does not support.
fn unsupported(view: Reader<'_>, slice: &ObjectName, hub: Hub) -> Option<BlockingReason> {
    let slice = unsupported_slice(view, slice, hub)?;
    let upgrade = "Upgrade it, or apply the CRD of MemberAgent in the hub";
    let why = match &slice.content.address_type {
        AddressType::Other(other) => format!("no cluster can import slices of address type {other}"),
        AddressType::IPv4 | AddressType::IPv6 => {
            format!("the hub agent does not announce support for IPv6 slices. {upgrade}")
        }
    };
    let what = if hub.features.keeps(&slice.content) && best(view, slice).is_some() {
        "stays in the hub unchanged"
    } else {
        "is not exported"
    };
    let message = format!("EndpointSlice {} of cluster {} {what}: {why}", slice.meta.name, view.settings().cluster);
    Some(BlockingReason { reason: Reason::NotUnderstood, message })
}

/// Returns the blocking reason of a slice with more ports than the hub accepts. The existing export stays unchanged.
fn too_many_ports(view: Reader<'_>, source: &Source<'_>) -> BlockingReason {
    let (name, cluster, number) = (&source.slice.meta.name, &view.settings().cluster, source.content.ports.len());
    let message = format!(
        "EndpointSlice {name} of cluster {cluster} has {number} ports, and at most {PORTS_MAX} can be exported. The exported slice \
         stays as it was. Remove ports"
    );
    BlockingReason { reason: Reason::TooManyPorts, message }
}

/// Returns the blocking reason of a slice whose namespace has as many exported slices as it may have.
fn too_many_slices(view: Reader<'_>, slice: &EndpointSlice) -> BlockingReason {
    let (name, cluster) = (&slice.meta.name, &view.settings().cluster);
    let number = view.settings().limits.exports_from_namespace(Kind::EndpointSliceExport);
    let message = format!(
        "EndpointSlice {name} of cluster {cluster} is not exported: its namespace has {number} exported slices already, and may have no more. Delete \
         ServiceExports of other Services, or raise --max-exports-per-namespace of the member agent"
    );
    BlockingReason { reason: Reason::TooManyExports, message }
}

/// Returns the blocking reason of a slice with endpoints that have more addresses than the agents keep. The first
/// addresses are exported.
fn too_many_addresses(view: Reader<'_>, slice: &EndpointSlice) -> Option<BlockingReason> {
    let number = slice.further_addresses;
    if number == 0 {
        return None;
    }
    let (name, cluster) = (&slice.meta.name, &view.settings().cluster);
    let message = format!(
        "EndpointSlice {name} of cluster {cluster} is exported without {number} of its addresses: of each endpoint, the first {ADDRESSES_MAX} \
         addresses are exported. Write the other addresses as endpoints of their own"
    );
    Some(BlockingReason { reason: Reason::TooManyAddresses, message })
}

/// True if one more slice of a Service may be exported. At the limit of its namespace, it may replace another slice of
/// the Service: this one waits until the new one is exported.
fn may_export_more(view: Reader<'_>, source: &Source<'_>, service: &ObjectName, hub: Hub) -> bool {
    if view.may_export_more(Kind::EndpointSliceExport, &source.slice.meta.name.namespace) {
        return true;
    }
    let sources = view.slices_of(service).filter_map(|slice| supported_slice(view, slice, hub));
    let wanted = sources.filter(|source| !source.content.endpoints.is_empty()).count();
    view.exported_slices(service) >= wanted
}

/// Creates or updates the export of a source slice. When this export is up to date, removes other exports of the same
/// source slice.
fn ensure(view: Reader<'_>, source: &Source<'_>, export: &Meta, hub: Hub) -> Plan {
    let Some(kept) = best(view, source.slice).or_else(|| misnamed(view, source.slice, export)) else {
        return create(view, source, export, hub);
    };
    let is_emptied = kept.spec.owner == export.name && handover::empties(&kept.spec.content, &source.content);
    if is_emptied && replacement_pending(view, kept, hub) {
        return Plan::default(); // this key is requeued when the replacement is exported
    }
    let is_carried = hub.features.is_carried(&kept.spec.content, &source.slice.content);
    if !is_carried || !is_of(view, kept, source, export) {
        let patch = Patch::EndpointSliceExport(spec(view, source, export, Some(kept)));
        return Plan::one(Write::patch(&kept.meta, patch));
    }
    let superseded = |other: &&HubSlice| !other.meta.deleting && other.meta.name != kept.meta.name;
    let superseded = exports_of(view, &source.slice.meta.name).filter(superseded);
    Plan::of(superseded.map(|other| Write::delete(Kind::EndpointSliceExport, &other.meta)))
}

fn create(view: Reader<'_>, source: &Source<'_>, export: &Meta, hub: Hub) -> Plan {
    if !may_export_more(view, source, &export.name, hub) {
        return Plan::default().blocked_by([too_many_slices(view, source.slice)]);
    }
    match free_name(view, source.slice, export) {
        Some(at) => Plan::one(Write::create(at, Desired::EndpointSliceExport(spec(view, source, export, None)))),
        None => Plan::default().blocked_by(name_in_use(view, source.slice, export)),
    }
}

/// True if the export in the hub names its source slice and Service.
fn is_of(view: Reader<'_>, kept: &HubSlice, source: &Source<'_>, export: &Meta) -> bool {
    let reference = &kept.spec.reference;
    !kept.misnamed
        && reference.cluster == view.settings().cluster
        && reference.source == source.slice.meta.name
        && kept.spec.owner == export.name
}

/// Returns an export that has the UID of this slice and one of its possible names, but the name of another slice in its
/// reference. Another writer edited this reference. The caller has found no export that refers to this slice.
fn misnamed<'a>(view: Reader<'a>, slice: &EndpointSlice, export: &Meta) -> Option<&'a HubSlice> {
    let mut present = possible_names(view, slice, export).into_iter().filter_map(|at| view.slice_exports().live(&at));
    present.find(|present| present.spec.reference.uid == slice.meta.uid)
}

/// Returns the possible names of a slice's export, in order of preference: first the name with 5 hex digits at its end,
/// then the name with 10 hex digits.
fn possible_names(view: Reader<'_>, slice: &EndpointSlice, export: &Meta) -> [ObjectName; 2] {
    let ObjectName { namespace, name } = &slice.meta.name;
    [SuffixLength::Short, SuffixLength::Long].map(|length| {
        let (cluster, uid) = (&view.settings().cluster, &slice.meta.uid);
        view.in_hub(names::slice_export_name(cluster, namespace, name, uid, &export.uid, length))
    })
}

/// Returns the blocking reason of a slice whose export has no free name, because exports of other slices have all
/// possible names. `None` if the agent only has to wait: one of the names belongs to an old export of the same slice,
/// which is being deleted.
fn name_in_use(view: Reader<'_>, slice: &EndpointSlice, export: &Meta) -> Option<BlockingReason> {
    let of_another = |at: &ObjectName| {
        view.slice_exports().get(at).is_some_and(|present| present.spec.reference.uid != slice.meta.uid)
    };
    let names = possible_names(view, slice, export);
    if !names.iter().all(of_another) {
        return None;
    }
    let (name, cluster, [short, long]) = (&slice.meta.name, &view.settings().cluster, names);
    let message = format!(
        "EndpointSlice {name} of cluster {cluster} is not exported: EndpointSliceExports of other slices use both names \
         that it may have in the hub, {short} and {long}. Delete one of these"
    );
    Some(BlockingReason { reason: Reason::NameHeldByAnother, message })
}

/// Returns a free name for a slice's export. `None` if all names are in use, or if a name belongs to an export of the
/// same slice that is being deleted. Also `None` if an undecodable object, which may be the slice's export, has one of
/// the names.
fn free_name(view: Reader<'_>, slice: &EndpointSlice, export: &Meta) -> Option<ObjectName> {
    let candidates = possible_names(view, slice, export);
    if candidates.iter().any(|at| view.is_undecodable(Kind::EndpointSliceExport, at)) {
        return None;
    }
    for at in candidates {
        match view.slice_exports().get(&at) {
            None => return Some(at),
            Some(present) if present.spec.reference.uid == slice.meta.uid => return None,
            Some(_) => {}
        }
    }
    None
}

fn spec(view: Reader<'_>, source: &Source<'_>, export: &Meta, present: Option<&HubSlice>) -> HubSliceSpec {
    let slice = source.slice;
    // The measured latency starts when the agent sees the change. If the slice becomes exportable later, the latency
    // starts then.
    let exportable_since = view.exportable_since(&export.name);
    let first_seen = view.oldest_change(&slice.meta.name).map(|seen| Some(seen).max(exportable_since));
    // Start time in the existing export. It applies if the source slice has no newer change.
    let kept = present.and_then(|it| it.spec.reference.exported_since);
    HubSliceSpec {
        reference: Reference {
            cluster: view.settings().cluster.clone(),
            source: slice.meta.name.clone(),
            uid: slice.meta.uid.clone(),
            resource_version: Text::from(slice.meta.resource_version.to_string()),
            generation: slice.meta.generation,
            exported_since: first_seen.unwrap_or(kept.or(exportable_since)),
        },
        owner: export.name.clone(),
        content: Arc::new(source.content.clone().into_owned()),
    }
}
