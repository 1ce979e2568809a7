//! A member's ServiceImport and its claim in the hub: the wish goes up, the hub's answer comes down.

use crate::ids::{ObjectName, Text};
use crate::member::View;
use crate::model::{ConsumerType, InternalServiceImport, Kind, Reference, ServiceImport};
use crate::plan::{Desired, Hindrance, Patch, Plan, Write};
use crate::reasons::Reason;

const REQUIRED: [Kind; 3] = [Kind::ServiceImport, Kind::MultiClusterService, Kind::InternalServiceImport];

/// Plans the claim of the ServiceImport of that name.
pub fn plan_import(view: &View, name: &ObjectName) -> Plan {
    if view.unreadable.has(Kind::ServiceImport, name) || !view.watches.complete(&REQUIRED) {
        return Plan::default();
    }
    match view.imports.get(name) {
        None => withdraw(view, name),
        Some(import) if import.meta.deleting => {
            let plan = withdraw(view, name);
            if plan.writes.is_empty() && import.meta.finalizers.ours { let_go(view, import) } else { plan }
        }
        Some(import) if !import.meta.finalizers.ours => {
            Plan::one(Write::finalizer(Kind::ServiceImport, &import.meta, true))
        }
        Some(import) => claim(view, import),
    }
}

fn withdraw(view: &View, import: &ObjectName) -> Plan {
    let mut plan = Plan::default();
    for claim in claims_of(view, import).filter(|claim| !claim.meta.deleting) {
        plan.push(Write::delete(Kind::InternalServiceImport, &claim.meta));
    }
    plan
}

/// The claim is gone, so the import may go; not where what cannot be read may be the claim.
fn let_go(view: &View, import: &ServiceImport) -> Plan {
    let (name, uid) = (&import.meta.name, Some(&import.meta.uid));
    match view.unreadable_in_hub(Kind::InternalServiceImport, name, uid) {
        Some(claim) => Plan::held_by_unreadable(Kind::ServiceImport, name, Kind::InternalServiceImport, &claim),
        None => Plan::one(Write::finalizer(Kind::ServiceImport, &import.meta, false)),
    }
}

fn claim(view: &View, import: &ServiceImport) -> Plan {
    let consumer_type = consumer_type(view, import);
    let mut plan = Plan::default();
    let mut present = false;
    let mut answered = false;
    for held in claims_of(view, &import.meta.name) {
        present = true; // one that is still going holds the name (B4)
        if held.meta.deleting {
            continue;
        }
        // Of another import that bore the name, or a second one that somebody made by hand: two answers would fight.
        if held.reference.uid != import.meta.uid || std::mem::replace(&mut answered, true) {
            plan.push(Write::delete(Kind::InternalServiceImport, &held.meta));
            continue;
        }
        match consumer_type.filter(|wanted| *wanted != held.consumer_type) {
            // One among many may not turn into the one: as a new claim it comes after whoever holds the Service by now.
            Some(ConsumerType::LoadBalancer) => {
                plan.push(Write::delete(Kind::InternalServiceImport, &held.meta));
                continue;
            }
            Some(wanted @ ConsumerType::ClusterIp) => {
                plan.push(Write::patch(Kind::InternalServiceImport, &held.meta, Patch::ConsumerType(wanted)));
            }
            None => {}
        }
        if held.status != import.status {
            let patch = Patch::ImportStatus(held.status.clone());
            plan.push(Write::patch(Kind::ServiceImport, &import.meta, patch));
        }
    }
    if !present && !is_wish_unknown(view, import) {
        let Some(at) = free_name(view, import) else {
            let held = name_held(view, &import.meta.name);
            return plan.hindered_by(held.map(|message| Hindrance { reason: Reason::NameHeldByAnother, message }));
        };
        let consumer_type = consumer_type.unwrap_or_default();
        let desired = Desired::InternalServiceImport { reference: reference(view, import), consumer_type };
        plan.push(Write::create(Kind::InternalServiceImport, at, desired));
    }
    plan
}

/// How the MultiClusterService in control wants to consume the import; `None` where it wants none, or wants another by now.
fn consumer_type(view: &View, import: &ServiceImport) -> Option<ConsumerType> {
    let owner = import.controller()?;
    let name = ObjectName::new(import.meta.name.namespace.clone(), owner.name.clone());
    let wish = view.multi_cluster_services.get(&name).filter(|wish| wish.meta.uid == owner.uid)?;
    (wish.import_name == import.meta.name.name).then_some(wish.consumer_type)
}

/// Whether the MultiClusterService in control is there and cannot be read: how it would consume the import, it alone tells.
fn is_wish_unknown(view: &View, import: &ServiceImport) -> bool {
    import.controller().is_some_and(|owner| {
        let name = ObjectName::new(import.meta.name.namespace.clone(), owner.name.clone());
        view.unreadable.has(Kind::MultiClusterService, &name)
    })
}

/// The name of a new claim; `None` where one of its names is borne by what cannot be read, since that may be the claim.
fn free_name(view: &View, import: &ServiceImport) -> Option<ObjectName> {
    let (name, uid) = (&import.meta.name, Some(&import.meta.uid));
    if view.unreadable_in_hub(Kind::InternalServiceImport, name, uid).is_some() {
        return None;
    }
    view.names_in_hub(name, uid).find(|at| view.internal_imports.get(at).is_none())
}

/// What to say where an import has no claim in the hub and each name that one could have is borne by another's (B3): it
/// cannot be claimed. The condition of its MultiClusterService that says so tells whom to wake when a name is free ([`View`]).
pub(super) fn name_held(view: &View, import: &ObjectName) -> Option<String> {
    let import = view.imports.live(import).filter(|_| view.watches.complete(&[Kind::InternalServiceImport]))?;
    let (name, uid) = (&import.meta.name, Some(&import.meta.uid));
    let known = claims_of(view, name).next().is_none()
        && view.unreadable_in_hub(Kind::InternalServiceImport, name, uid).is_none();
    if !known || free_name(view, import).is_some() {
        return None;
    }
    let held = view.names_in_hub(name, uid).filter_map(|at| view.internal_imports.get(&at));
    let held: Vec<String> =
        held.map(|held| format!("{} (of service {})", held.meta.name, held.reference.source)).collect();
    Some(format!(
        "service {name} cannot be imported into cluster {}: each name that its claim could have in the hub is borne by \
         another's InternalServiceImport: {}. Delete one of these, or import another service",
        view.settings.cluster,
        held.join(", ")
    ))
}

fn reference(view: &View, import: &ServiceImport) -> Reference {
    Reference {
        cluster: view.settings.cluster.clone(),
        source: import.meta.name.clone(),
        uid: import.meta.uid.clone(),
        resource_version: Text::from(import.meta.resource_version.to_string()),
        generation: import.meta.generation,
        exported_since: Some(import.meta.created),
    }
}

fn claims_of<'a>(view: &'a View, import: &ObjectName) -> impl Iterator<Item = &'a InternalServiceImport> {
    view.internal_imports_of.get(import).filter_map(|name| view.internal_imports.get(name))
}
