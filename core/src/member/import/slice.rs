//! Import of one slice: writes the imported EndpointSlice of a distributed slice (EndpointSliceImport). Both APIs
//! import by these rules.

use super::silent;
use super::target::{
    self, Found, Requested, Target, import_of_other_api, is_for_fleet_api, is_imported_by_other_api, is_ours,
};
use crate::conditions;
use crate::handover;
use crate::limits::{HUB_OUTAGE_MICROS, ORPHAN_GRACE_MICROS, RESTORE_GRACE_MICROS};
use crate::member::view::HubLeads;
use crate::member::view::reader::{Admitted, Reader};
use crate::member::view::shares::Grant;
use crate::model::{EndpointSlice, HubSlice, Kind};
use crate::names;
use crate::plan::{self, Action, BlockingReason, Desired, Event, ImportedSlice, Patch, Plan, Sample, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Timestamp};

/// Kinds that an import for MultiClusterServices requires.
const FOR_FLEET_API: [Kind; 6] = [
    Kind::EndpointSliceImport,
    Kind::EndpointSlice,
    Kind::MultiClusterService,
    Kind::ServiceImport,
    Kind::Service,
    Kind::InternalServiceImport,
];

/// Kinds that an import by the standard API requires. [`target::target`] also requires those that decide about the
/// import.
const FOR_STANDARD_API: [Kind; 3] = [Kind::EndpointSliceImport, Kind::EndpointSlice, Kind::Service];

const COMPONENT: &str = "endpointsliceimport-controller";

/// Plans the import of a distributed slice into the EndpointSlice with this name.
pub(crate) fn plan_slice(view: Reader<'_>, at: &ObjectName, now: Timestamp) -> Plan {
    let is_for_fleet = is_for_fleet_api(view, &at.namespace);
    let required: &'static [Kind] = if is_for_fleet { &FOR_FLEET_API } else { &FOR_STANDARD_API };
    if !view.complete(required) || !view.knows_member_agent() {
        return Plan::default();
    }
    if view.is_undecodable(Kind::EndpointSliceImport, &view.in_hub(at.name.clone()))
        || view.is_undecodable(Kind::EndpointSlice, at)
    {
        return Plan::default();
    }
    let present = view.slices().get(at);
    match target::distributed(view, at) {
        None => {
            present.filter(|present| present.imported).map_or_else(Plan::default, |present| orphan(view, present, now))
        }
        Some(distributed) if distributed.meta.deleting => withdraw(view, at, distributed, present, now),
        Some(distributed) => match target::target(view, at, distributed, now) {
            Found::Waits(again) => Plan { again, ..Plan::default() },
            Found::Target(target) => within_share(view, &Import { at, distributed, target }, present, now),
            Found::Ended => remove(view, distributed, present),
        },
    }
}

/// Imports the part of a distributed slice that the limits of its Service and exporter allow.
fn within_share(view: Reader<'_>, parts: &Import<'_>, present: Option<&EndpointSlice>, now: Timestamp) -> Plan {
    let grant = view.grant(parts.distributed);
    let plan = match grant {
        Grant::Nothing => remove(view, parts.distributed, present),
        Grant::First(_) | Grant::Whole => import(view, parts, present, now),
    };
    if grant == Grant::Whole { plan } else { plan.blocked_by([too_many(view, parts.distributed)]) }
}

/// Returns the blocking reason of a Service with more slices or endpoints of one exporter than are imported. It does
/// not name the slice, so its user gets one Event for all of them.
fn too_many(view: Reader<'_>, distributed: &HubSlice) -> BlockingReason {
    let (service, exporter) = (&distributed.spec.owner, &distributed.spec.reference.cluster);
    let (settings, limits) = (view.settings(), view.settings().limits.imports);
    let message = format!(
        "service {service} of cluster {exporter} has more than {} slices or {} endpoints, so cluster {} does not import all of its \
         endpoints. Reduce them in cluster {exporter}, or raise --max-imported-slices and --max-imported-endpoints of the member agent \
         of cluster {}",
        limits.slices, limits.endpoints, settings.cluster, settings.cluster
    );
    BlockingReason { reason: Reason::TooManyEndpoints, message }
}

/// Import of a distributed slice.
struct Import<'a> {
    /// Name of the imported slice.
    at: &'a ObjectName,
    distributed: &'a HubSlice,
    target: Target<'a>,
}

/// Removes the slice that was imported for a Service which this cluster does not import any more.
fn remove(view: Reader<'_>, distributed: &HubSlice, present: Option<&EndpointSlice>) -> Plan {
    let present = present.filter(|present| is_ours(view, distributed, present));
    let present = present.filter(|present| !present.meta.deleting);
    present.map_or_else(Plan::default, |present| Plan::one(Write::delete(Kind::EndpointSlice, &present.meta)))
}

/// Removes the imported slice. When both APIs have removed theirs, removes the finalizer of the distributed slice.
fn withdraw(
    view: Reader<'_>,
    at: &ObjectName,
    distributed: &HubSlice,
    present: Option<&EndpointSlice>,
    now: Timestamp,
) -> Plan {
    match present.filter(|present| is_ours(view, distributed, present)) {
        Some(present) if present.meta.deleting || is_replaced(view, at, distributed, present, now) => Plan::default(),
        Some(present) => Plan::one(Write::delete(Kind::EndpointSlice, &present.meta)),
        // One of the two keys of a distributed slice removes the finalizer.
        None if !distributed.meta.finalizers.ours || !is_for_fleet_api(view, &at.namespace) => Plan::default(),
        None if is_imported_by_other_api(view, at, distributed) => Plan::default(),
        None => Plan::one(Write::remove_finalizer(Kind::EndpointSliceImport, &distributed.meta)),
    }
}

/// [`replacement_pending`] for a distributed slice that is being deleted. Without a target, nothing replaces it in
/// `fleet-system`, because clients use the endpoints of a derived Service. By the standard API, the target may only be
/// unknown for a moment.
fn is_replaced(
    view: Reader<'_>,
    at: &ObjectName,
    distributed: &HubSlice,
    removed: &EndpointSlice,
    now: Timestamp,
) -> bool {
    match target::target(view, at, distributed, now) {
        Found::Target(target) => replacement_pending(view, &Import { at, distributed, target }, removed, now),
        Found::Waits(_) if is_for_fleet_api(view, &at.namespace) => false,
        Found::Waits(_) => is_perhaps_replaced(view, at, distributed, removed),
        Found::Ended => false,
    }
}

/// True if another slice of the same Service from the same cluster does not have the endpoints yet that it has in the
/// hub.
fn is_perhaps_replaced(view: Reader<'_>, at: &ObjectName, distributed: &HubSlice, removed: &EndpointSlice) -> bool {
    others(view, at, distributed).any(|(at, other)| {
        let present = view.slices().live(&at);
        let present = present.filter(|present| is_ours(view, other, present)).map(|present| &present.content);
        handover::replacement_pending(present, view.admitted(other).content, &removed.content)
    })
}

/// Returns the other distributed slices of the same Service from the same cluster, with the names of their imported
/// slices.
fn others<'a>(
    view: Reader<'a>,
    at: &'a ObjectName,
    distributed: &'a HubSlice,
) -> impl Iterator<Item = (ObjectName, &'a HubSlice)> {
    let all = view.distributed_slices_of(&distributed.spec.owner);
    let live = all.filter_map(move |other| view.distributed_slices().live(other));
    let others = live.filter(|other| other.spec.reference.cluster == distributed.spec.reference.cluster);
    others.map(|other| (ObjectName::new(at.namespace.clone(), other.meta.name.name.clone()), other))
}

/// True if the imported slice `removed` must stay until its replacement is imported: another slice of the same Service
/// from the same cluster.
fn replacement_pending(view: Reader<'_>, import: &Import<'_>, removed: &EndpointSlice, now: Timestamp) -> bool {
    let distributed = import.distributed;
    let bound = |present: &&EndpointSlice| import.target.is_bound(present, distributed);
    others(view, import.at, distributed).any(|(at, other)| {
        let present = view.slices().live(&at);
        if present.is_some_and(|present| !is_ours(view, other, present)) {
            return false; // another writer's slice has the name of the replacement, so the replacement cannot be imported
        }
        let desired = import.target.content(view, other, now);
        handover::replacement_pending(present.filter(bound).map(|present| &present.content), &desired, &removed.content)
    })
}

/// Returns a plan that waits, if the hub distributes an older state than the imported one. After a restore of the hub,
/// the exporter and the hub agent need this time to write the newest state again. After the end of a slice stream, the
/// hub agent needs it to write what the stream delivered. The time runs only while this agent sees what a hub agent
/// writes.
fn outdated(view: Reader<'_>, at: &ObjectName, now: Timestamp) -> Option<Plan> {
    let outdated_since = view.outdated_since(at)?;
    let (since, grace) = match view.hub_leads(at, now) {
        HubLeads::Unknown => return Some(Plan::default()),
        HubLeads::Since(since) => (since, RESTORE_GRACE_MICROS),
        HubLeads::Perhaps(since) => (since, HUB_OUTAGE_MICROS),
    };
    let until = outdated_since.max(since).plus_micros(grace);
    (now < until).then(|| Plan { again: Some(until), ..Plan::default() })
}

/// Imports the valid parts of a distributed slice. If some parts are not imported, the first write without them emits
/// an Event.
fn import(view: Reader<'_>, import: &Import<'_>, present: Option<&EndpointSlice>, now: Timestamp) -> Plan {
    let distributed = import.distributed;
    let content = import.target.content(view, distributed, now);
    let desired = Admitted { content: &content, ..view.admitted(distributed) };
    let mut plan = ensure(view, import, present, desired, now);
    plan.plan_again_at(silent::again(view, distributed, now));
    if desired.not_imported.is_empty() {
        return plan;
    }
    let blocking_reason =
        BlockingReason { reason: desired.not_imported.reason(), message: desired.not_imported.message(distributed) };
    if let Some(event) =
        importer_event(view, import, &blocking_reason).filter(|_| is_news(distributed, present, desired))
    {
        let imports =
            |write: &&mut Write| write.kind() == Kind::EndpointSlice && !matches!(write.action, Action::Delete { .. });
        plan.writes.iter_mut().filter(imports).for_each(|write| write.events.push(event.clone()));
    }
    plan.blocked_by([blocking_reason])
}

/// True if the agent must emit an Event about parts that are not imported, because these parts are new. The generation
/// of the source slice does not show this: the configured address ranges or the distributed slice may have changed
/// without a new generation.
fn is_news(distributed: &HubSlice, present: Option<&EndpointSlice>, desired: Admitted<'_>) -> bool {
    let since = desired.not_imported_since;
    let observed = present.and_then(|present| present.observed_generation);
    let of_the_same = observed == Some(distributed.spec.reference.generation) && observed == since;
    observed < since || of_the_same && present.is_some_and(|present| present.content != *desired.content)
}

/// Returns an Event about an imported slice. The Event is on the object that the importing user sees.
fn importer_event(view: Reader<'_>, import: &Import<'_>, blocking_reason: &BlockingReason) -> Option<Event> {
    let (kind, meta) = import.target.users_object(view, import.distributed)?;
    let BlockingReason { reason, message } = blocking_reason;
    Some(plan::event(COMPONENT, kind, meta, *reason, message.clone()))
}

fn ensure(
    view: Reader<'_>,
    import: &Import<'_>,
    present: Option<&EndpointSlice>,
    admitted: Admitted<'_>,
    now: Timestamp,
) -> Plan {
    let (distributed, content, name) = (import.distributed, admitted.content, &import.at.name);
    if !names::is_dns_1123_subdomain(name) {
        let message = format!(
            "EndpointSliceImport {} is not imported, because no EndpointSlice can have its name. Hub agents write no \
             such name: find the client that wrote it",
            distributed.meta.name
        );
        return Plan::blocked(Reason::NameRefused, message);
    }
    if let Some(present) = present.filter(|present| present.meta.deleting || !is_ours(view, distributed, present)) {
        return in_the_way(view, present);
    }
    if !distributed.meta.finalizers.ours {
        return Plan::one(Write::add_finalizer(Kind::EndpointSliceImport, &distributed.meta));
    }
    let desired = || {
        let (service, standard) = import.target.labels(distributed);
        let observed_generation = distributed.spec.reference.generation;
        ImportedSlice { service, standard, content: content.clone(), observed_generation }
    };
    let Some(present) = present else {
        let write = Write::create(import.at.clone(), Desired::EndpointSlice(desired()));
        return Plan::one(write.measured(sample(distributed, None)));
    };
    if let Some(wait) = outdated(view, import.at, now).filter(|_| present.content != *content) {
        return wait;
    }
    if present.content.address_type != content.address_type {
        // The address type is immutable, so the slice is created again.
        return Plan::one(Write::delete(Kind::EndpointSlice, &present.meta));
    }
    let is_bound = import.target.is_bound(present, distributed);
    let is_edited = present.relabelled || view.has_excess(present);
    if present.imported && !is_edited && is_bound && present.content == *content {
        let generation = distributed.spec.reference.generation;
        // The hub agent relies on it that each import has the content.
        let other = import_of_other_api(view, import.at, distributed);
        let is_everywhere = other.is_none_or(|other| match target::target(view, &other.meta.name, distributed, now) {
            Found::Target(target) => *target.content(view, distributed, now) == other.content,
            Found::Waits(_) | Found::Ended => true, // it stays as it is, or it goes
        });
        let acknowledged = (view.has_preview(name) && is_everywhere).then_some(generation);
        return Plan { acknowledged, ..Plan::default() };
    }
    let is_emptied = is_bound && handover::empties(&present.content, content);
    if is_emptied && replacement_pending(view, import, present, now) {
        return Plan::default(); // this key is requeued when the replacement is imported
    }
    let write = Write::patch(&present.meta, Patch::ImportedSlice(desired()));
    Plan::one(write.measured(sample(distributed, Some(present))))
}

/// Returns the names of distributed slices that cannot be imported, because EndpointSlices of other writers have these
/// names. `None` while not all slices are listed. The condition of the MultiClusterService lists the names, so each
/// Event about them is emitted once ([`super::multi_cluster_service`]).
pub(super) fn names_in_use(view: Reader<'_>, imported: &ObjectName) -> Option<Vec<ObjectName>> {
    if !view.complete(&[Kind::EndpointSliceImport, Kind::EndpointSlice]) {
        return None;
    }
    let mut used_by_others = Vec::new();
    let contested = view.contested_of(imported);
    for distributed in contested.filter_map(|distributed| view.distributed_slices().live(distributed)) {
        let at = view.in_system(distributed.meta.name.name.clone());
        if view.is_undecodable(Kind::EndpointSlice, &at) {
            return None;
        }
        if view.slices().live(&at).is_some_and(|present| !is_ours(view, distributed, present)) {
            used_by_others.push(at);
        }
    }
    Some(used_by_others)
}

/// Returns the message for the importing user about slices that are not imported because other EndpointSlices have
/// their names.
pub(super) fn names_in_use_message(view: Reader<'_>, import: &ObjectName, present: &[ObjectName]) -> String {
    format!(
        "service {} is imported into cluster {} without some of its endpoints: other EndpointSlices already have the \
         names of imported slices: {}. Delete these, or restore their managed-by label",
        import,
        view.settings().cluster,
        conditions::listed(present)
    )
}

/// Plans the import of a slice whose name is in use in this cluster. The plan has no writes. If another writer has the
/// name, the plan has a blocking reason; an EndpointSlice that is being deleted needs none.
fn in_the_way(view: Reader<'_>, present: &EndpointSlice) -> Plan {
    if present.meta.deleting {
        return Plan::default(); // this key is requeued when the EndpointSlice is gone
    }
    let message = format!(
        "EndpointSlice {} of cluster {} is not managed by this agent, so the imported slice of that name cannot be \
         written. Delete it, or restore its managed-by label",
        present.meta.name,
        view.settings().cluster
    );
    Plan::blocked(Reason::NameHeldByAnother, message)
}

/// Returns the latency sample of an import; `None` if the latency of this generation of the source slice was observed
/// before.
///
/// The write of the imported slice records the observed generation on this slice. A Go agent recorded the generation on
/// the distributed slice; this record counts too. If there is no record, for example because a user deleted the
/// imported slice, `first` is true. Then the agent also checks the generations that it has observed since its start.
fn sample(distributed: &HubSlice, present: Option<&EndpointSlice>) -> Option<Sample> {
    let observed = present.and_then(|present| present.observed_generation).max(distributed.observed_generation);
    let reference = &distributed.spec.reference;
    if observed == Some(reference.generation) {
        return None;
    }
    let origin = reference.cluster.clone();
    Some(Sample::SliceImported { origin, first: observed.is_none(), exported_since: reference.exported_since })
}

/// Plans an imported slice whose distributed slice disappeared without a deletion, as after a restore of the hub from a
/// backup.
///
/// The hub agent distributes the slice again when it knows the exporters and the claim. So the imported slice stays
/// until the hub agent has granted the claim, and for a grace period afterwards. If nobody imports the slice, the slice
/// is removed at once.
fn orphan(view: Reader<'_>, present: &EndpointSlice, now: Timestamp) -> Plan {
    if present.meta.deleting {
        return Plan::default();
    }
    let at = &present.meta.name;
    let requested_since = match target::requested(view, present, now) {
        Requested::Not => return Plan::one(Write::delete(Kind::EndpointSlice, &present.meta)),
        Requested::Unknown(again) => return Plan { again, ..Plan::default() },
        Requested::Since(since) => since,
    };
    let orphaned_since = view.orphaned_since(at).unwrap_or(now);
    let until = requested_since.max(orphaned_since).plus_micros(ORPHAN_GRACE_MICROS);
    if now < until {
        return Plan { again: Some(until), ..Plan::default() };
    }
    Plan::one(Write::delete(Kind::EndpointSlice, &present.meta))
}
