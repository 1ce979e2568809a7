//! Claim of a member's ServiceImport: the member agent creates an InternalServiceImport in the hub, and copies the
//! status of this claim to the ServiceImport.

use super::selectors;
use crate::member::view::Reader;
use crate::model::{ConsumerType, InternalServiceImport, Kind, MultiClusterService, Reference, ServiceImport};
use crate::plan::{BlockingReason, Desired, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp};

const REQUIRED: [Kind; 3] = [Kind::ServiceImport, Kind::MultiClusterService, Kind::InternalServiceImport];

/// Plans the claim of the ServiceImport with this name.
pub(crate) fn plan_import(view: Reader<'_>, name: &ObjectName, now: Timestamp) -> Plan {
    if view.is_undecodable(Kind::ServiceImport, name) || !view.complete(&REQUIRED) {
        return Plan::default();
    }
    match view.imports().get(name) {
        None => withdraw(view, name),
        Some(import) if import.meta.deleting => {
            let plan = withdraw(view, name);
            if plan.writes.is_empty() && import.meta.finalizers.ours { remove_finalizer(view, import) } else { plan }
        }
        Some(import) if !import.meta.finalizers.ours => {
            Plan::one(Write::add_finalizer(Kind::ServiceImport, &import.meta))
        }
        Some(import) => claim(view, import, now),
    }
}

/// Plans a ServiceImport in an agent whose import part is off. This agent makes no claims. It only removes the
/// finalizer of a ServiceImport that is being deleted and has no claim: there may be no other agent to do so.
pub(crate) fn plan_unclaimed_import(view: Reader<'_>, name: &ObjectName) -> Plan {
    let known = view.complete(&[Kind::ServiceImport, Kind::InternalServiceImport]);
    let import = view.imports().get(name).filter(|import| import.meta.deleting && import.meta.finalizers.ours);
    let is_unclaimed = |_: &&ServiceImport| {
        known && !view.is_undecodable(Kind::ServiceImport, name) && claims_of(view, name).next().is_none()
    };
    import.filter(is_unclaimed).map_or_else(Plan::default, |import| remove_finalizer(view, import))
}

fn withdraw(view: Reader<'_>, import: &ObjectName) -> Plan {
    Plan::of(claims_of(view, import).filter(|claim| !claim.meta.deleting).map(delete))
}

/// Returns the name of an undecodable object in the hub that may be a claim of a ServiceImport.
pub(super) fn undecodable(view: Reader<'_>, import: &ServiceImport) -> Option<ObjectName> {
    view.undecodable_in_hub(Kind::InternalServiceImport, &import.meta.name, Some(&import.meta.uid))
}

/// Removes the finalizer of a ServiceImport that is being deleted and has no claim. While an undecodable object may be
/// the claim, the finalizer stays.
fn remove_finalizer(view: Reader<'_>, import: &ServiceImport) -> Plan {
    match undecodable(view, import) {
        Some(claim) => {
            let (kind, of) = (Kind::ServiceImport, Kind::InternalServiceImport);
            Plan::blocked_by_undecodable(kind, &import.meta.name, of, &claim)
        }
        None => Plan::one(Write::remove_finalizer(Kind::ServiceImport, &import.meta)),
    }
}

/// Keeps a claim of the type that the MultiClusterService requests.
///
/// A change from ClusterIP to LoadBalancer needs a second claim, because the creationTimestamp of an exclusive claim is
/// its priority. Until the second claim is granted, the import continues with the first claim.
fn claim(view: Reader<'_>, import: &ServiceImport, now: Timestamp) -> Plan {
    let consumer_type = consumer_type(view, import);
    let OwnClaims { current, previous, earlier, surplus } = own_claims(view, import);
    let mut plan = Plan::of(surplus.into_iter().map(delete));
    let Some(current) = current else {
        plan.join(begin(view, import, earlier, consumer_type));
        return plan;
    };
    match consumer_type.filter(|wanted| *wanted != current.consumer_type) {
        Some(ConsumerType::LoadBalancer) => plan.join(create(view, import, ConsumerType::LoadBalancer)),
        Some(wanted @ ConsumerType::ClusterIp) => plan.push(Write::patch(&current.meta, Patch::ConsumerType(wanted))),
        None => plan.writes.extend(selectors::write(view, request(view, import), current)),
    }
    plan.join(show_status(view, import, previous.filter(|_| !is_answered(current)).unwrap_or(current), now));
    plan.writes.extend(previous.filter(|_| is_answered(current)).map(delete));
    plan
}

fn delete(claim: &InternalServiceImport) -> Write {
    Write::delete(Kind::InternalServiceImport, &claim.meta)
}

/// Gives a ServiceImport its first claim.
fn begin(
    view: Reader<'_>,
    import: &ServiceImport,
    earlier: Option<&InternalServiceImport>,
    consumer_type: Option<ConsumerType>,
) -> Plan {
    let take_over = |earlier: &InternalServiceImport| {
        Write::patch(&earlier.meta, Patch::InternalServiceImport(reference(view, import)))
    };
    let plan = Plan::of(earlier.map(take_over));
    // While a claim is being deleted, its name is still in use, so a new claim must wait.
    if claims_of(view, &import.meta.name).next().is_some() || is_request_undecodable(view, import) {
        return plan;
    }
    plan.joined(create(view, import, consumer_type.unwrap_or_default()))
}

/// Copies the status of the claim `shown` to the ServiceImport.
fn show_status(view: Reader<'_>, import: &ServiceImport, shown: &InternalServiceImport, now: Timestamp) -> Plan {
    // An undecodable claim may be the one that is granted.
    let is_unknown = !is_answered(shown) && undecodable(view, import).is_some();
    if shown.status == import.status || is_unknown {
        return Plan::default();
    }
    match view.keeps_until(now).filter(|_| !import.status.clusters.is_empty()) {
        // A restored hub has older exporters and ports.
        Some(until) => Plan { again: Some(until), ..Plan::default() },
        None => Plan::one(Write::patch(&import.meta, Patch::ServiceImportStatus(shown.status.clone()))),
    }
}

/// Claims of a ServiceImport that are not being deleted.
struct OwnClaims<'a> {
    current: Option<&'a InternalServiceImport>,
    /// Older claim with the type that was requested before; the claim `current` replaces it. The agent deletes this
    /// claim when `current` is granted, even if the requested type changed since. Only the older of two claims is
    /// deleted, so successive plans cannot delete both.
    previous: Option<&'a InternalServiceImport>,
    /// Shared claim of an earlier ServiceImport with this name, if the ServiceImport has no claim of its own. The agent
    /// gives it to the ServiceImport, so that the import continues. An exclusive claim is deleted instead, because its
    /// creationTimestamp would be a priority that the ServiceImport does not have.
    earlier: Option<&'a InternalServiceImport>,
    /// Claims to delete: other claims of an earlier ServiceImport with this name, and those with a name that the agent
    /// would not choose. If no claim has a name that the agent would choose, one claim stays as `current`.
    surplus: Vec<&'a InternalServiceImport>,
}

fn own_claims<'a>(view: Reader<'a>, import: &ServiceImport) -> OwnClaims<'a> {
    let (name, uid) = (&import.meta.name, &import.meta.uid);
    let live = claims_of(view, name).filter(|claim| !claim.meta.deleting);
    let (own, mut surplus): (Vec<_>, Vec<_>) = live.partition(|claim| claim.reference.uid == *uid);
    let is_named_by_us =
        |claim: &&InternalServiceImport| view.names_in_hub(name, Some(uid)).any(|at| at == claim.meta.name);
    let (mut named, mut others): (Vec<_>, Vec<_>) = own.into_iter().partition(is_named_by_us);
    if named.is_empty() && !others.is_empty() {
        named.push(others.remove(0));
    }
    surplus.extend(others);
    let age = |claim: &&InternalServiceImport| {
        let is_exclusive = claim.consumer_type == ConsumerType::LoadBalancer;
        (claim.meta.created, is_exclusive, claim.meta.name.clone())
    };
    named.sort_by_key(age);
    let current = named.pop();
    let may_be_taken_over = |claim: &&InternalServiceImport| {
        current.is_none() && claim.consumer_type == ConsumerType::ClusterIp && is_named_by_us(claim)
    };
    let earlier = surplus.iter().position(may_be_taken_over).map(|index| surplus.remove(index));
    OwnClaims { current, previous: named.pop(), earlier, surplus }
}

fn is_answered(claim: &InternalServiceImport) -> bool {
    !claim.status.clusters.is_empty()
}

fn create(view: Reader<'_>, import: &ServiceImport, consumer_type: ConsumerType) -> Plan {
    let Some(at) = free_name(view, import) else {
        let message = no_free_name(view, import);
        let blocked = message.map(|message| BlockingReason { reason: Reason::NameHeldByAnother, message });
        return Plan::default().blocked_by(blocked);
    };
    let desired = Desired::InternalServiceImport { reference: reference(view, import), consumer_type };
    Plan::one(Write::create(at, desired))
}

/// True while the import has a shared claim.
pub(super) fn is_shared(view: Reader<'_>, import: &ServiceImport) -> bool {
    kept_claims(view, import).any(|claim| claim.consumer_type == ConsumerType::ClusterIp)
}

/// True if the exclusive claim of the import is granted.
pub(super) fn is_granted_exclusively(view: Reader<'_>, import: &ServiceImport) -> bool {
    let is_exclusive = |claim: &InternalServiceImport| claim.consumer_type == ConsumerType::LoadBalancer;
    kept_claims(view, import).any(|claim| is_exclusive(claim) && is_answered(claim))
}

fn kept_claims<'a>(
    view: Reader<'a>,
    import: &ServiceImport,
) -> impl Iterator<Item = &'a InternalServiceImport> + use<'a> {
    let OwnClaims { current, previous, .. } = own_claims(view, import);
    current.into_iter().chain(previous)
}

/// Returns the type that the controlling MultiClusterService requests; `None` if this MultiClusterService is gone or no
/// longer requests the ServiceImport.
fn consumer_type(view: Reader<'_>, import: &ServiceImport) -> Option<ConsumerType> {
    request(view, import).map(|request| request.consumer_type)
}

/// Returns the controlling MultiClusterService; `None` if it is gone or no longer requests the ServiceImport.
fn request<'a>(view: Reader<'a>, import: &ServiceImport) -> Option<&'a MultiClusterService> {
    let owner = import.controller()?;
    let name = ObjectName::new(import.meta.name.namespace.clone(), owner.name.clone());
    let request = view.multi_cluster_services().get(&name).filter(|request| request.meta.uid == owner.uid)?;
    (request.import_name == import.meta.name.name).then_some(request)
}

/// True if the controlling MultiClusterService is undecodable, so that the requested type is unknown.
fn is_request_undecodable(view: Reader<'_>, import: &ServiceImport) -> bool {
    import.controller().is_some_and(|owner| {
        let name = ObjectName::new(import.meta.name.namespace.clone(), owner.name.clone());
        view.is_undecodable(Kind::MultiClusterService, &name)
    })
}

/// Returns a free name for a new claim. `None` if all names are in use, or if an undecodable object has one of the
/// names, because this object may be the claim.
fn free_name(view: Reader<'_>, import: &ServiceImport) -> Option<ObjectName> {
    let (name, uid) = (&import.meta.name, Some(&import.meta.uid));
    if undecodable(view, import).is_some() {
        return None;
    }
    view.names_in_hub(name, uid).find(|at| view.claims().get(at).is_none())
}

/// Returns the message for a ServiceImport whose claim cannot be created, because other claims use all possible names
/// of this claim (B3 in docs/contributors/behaviour.md). The condition `Valid` of the MultiClusterService shows the
/// message. The agent retries imports with this condition when a name becomes free.
pub(super) fn name_in_use(view: Reader<'_>, import: &ObjectName) -> Option<String> {
    let import = view.imports().live(import).filter(|_| view.complete(&[Kind::InternalServiceImport]))?;
    if claims_of(view, &import.meta.name).next().is_some() { None } else { no_free_name(view, import) }
}

/// Returns the message for a ServiceImport whose next claim has no free name, because other claims have all possible
/// names. `None` if a name is free, or if an undecodable object has one of the names, because it may be the claim.
fn no_free_name(view: Reader<'_>, import: &ServiceImport) -> Option<String> {
    let (name, uid) = (&import.meta.name, Some(&import.meta.uid));
    if view.undecodable_in_hub(Kind::InternalServiceImport, name, uid).is_some() || free_name(view, import).is_some() {
        return None;
    }
    let taken = view.names_in_hub(name, uid).filter_map(|at| view.claims().get(&at));
    let others = taken.filter(|taken| taken.reference.source != *name);
    let taken: Vec<String> =
        others.map(|taken| format!("{} (of service {})", taken.meta.name, taken.reference.source)).collect();
    if taken.is_empty() {
        return None;
    }
    let (cluster, taken) = (&view.settings().cluster, taken.join(", "));
    Some(format!(
        "service {name} cannot be imported into cluster {cluster}: another InternalServiceImport in the hub uses each \
         name that its claim may have: {taken}. Delete one of these, or import another service"
    ))
}

fn reference(view: Reader<'_>, import: &ServiceImport) -> Reference {
    Reference {
        cluster: view.settings().cluster.clone(),
        source: import.meta.name.clone(),
        uid: import.meta.uid.clone(),
        resource_version: Text::from(import.meta.resource_version.to_string()),
        generation: import.meta.generation,
        exported_since: Some(import.meta.created),
    }
}

fn claims_of<'a>(view: Reader<'a>, import: &ObjectName) -> impl Iterator<Item = &'a InternalServiceImport> {
    view.claims_of(import).filter_map(move |name| view.claims().get(name))
}
