//! A MultiClusterService: its ServiceImport, and the Service derived for it once the import has exporters.

use super::{admission, derived_service};
use crate::conditions::{self, VALID, Verdict};
use crate::ids::{ObjectName, Text, Timestamp};
use crate::member::View;
use crate::model::{
    AddressType, ConsumerType, HubSlice, Kind, LoadBalancerStatus, MultiClusterService, Service, ServiceImport,
    ServicePort, ServiceType, TargetPort,
};
use crate::names;
use crate::plan::{Controller, DerivedService, Desired, Event, Patch, Plan, Write};

const REQUIRED: [Kind; 3] = [Kind::MultiClusterService, Kind::ServiceImport, Kind::Service];
const COMPONENT: &str = "multiclusterservice-controller";

/// Plans the MultiClusterService of that name.
pub fn plan_multi_cluster_service(view: &View, name: &ObjectName, now: Timestamp) -> Plan {
    if !view.watches.complete(&REQUIRED) {
        return Plan::default();
    }
    match view.multi_cluster_services.get(name) {
        // Its finalizer is gone, so what belonged to it is; a Service that someone labelled as derived is not ours.
        None => Plan::default(),
        Some(wish) if wish.meta.deleting => unimport(view, wish),
        Some(wish) if wish.import_name.is_empty() => import_nothing(view, wish, now),
        Some(wish) if !marked(wish) => Plan::one(mark(wish, wish.derived_label.clone())),
        Some(wish) => import(view, wish, now),
    }
}

/// Removes what was made for it, then lets it go.
fn unimport(view: &View, wish: &MultiClusterService) -> Plan {
    if !wish.meta.finalizers.ours {
        return Plan::default();
    }
    let mut plan = Plan::default();
    for service in derived_services(view, wish) {
        plan.push(Write::delete(Kind::Service, &service.meta));
    }
    for import in controlled_imports(view, wish) {
        plan.push(Write::delete(Kind::ServiceImport, &import.meta));
    }
    if plan.writes.is_empty()
        && let Some((kind, unreadable)) = unreadable_of(view, wish)
    {
        // Nobody would look after it once this is gone.
        return Plan::held_by_unreadable(Kind::MultiClusterService, &wish.meta.name, kind, &unreadable);
    }
    if plan.writes.is_empty() {
        let name = ObjectName::new(wish.meta.name.namespace.clone(), wish.import_name.clone());
        let event = normal(wish, "UnimportedService", format!("Unimported service {name}"));
        let patch = Patch::MultiClusterService {
            finalizers: wish.meta.finalizers.with_ours(false),
            import_label: wish.import_label.clone(),
            derived_label: wish.derived_label.clone(),
        };
        plan.push(Write::patch(Kind::MultiClusterService, &wish.meta, patch).telling(event));
    }
    plan
}

/// `spec.serviceImport` was left out, or taken out (B17): what was imported goes, and the condition says so.
fn import_nothing(view: &View, wish: &MultiClusterService, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    for import in controlled_imports(view, wish) {
        plan.push(Write::delete(Kind::ServiceImport, &import.meta));
    }
    plan.join(retire(view, wish));
    plan.join(not_found_beside(&plan, wish, LoadBalancerStatus::default(), now));
    plan
}

/// It carries the finalizer and remembers what it imports, so that it can be cleaned up whatever happens next.
fn marked(wish: &MultiClusterService) -> bool {
    wish.meta.finalizers.ours && wish.import_label.as_ref() == Some(&wish.import_name)
}

fn mark(wish: &MultiClusterService, derived_label: Option<Text>) -> Write {
    let patch = Patch::MultiClusterService {
        finalizers: wish.meta.finalizers.with_ours(true),
        import_label: Some(wish.import_name.clone()),
        derived_label,
    };
    Write::patch(Kind::MultiClusterService, &wish.meta, patch)
}

fn import(view: &View, wish: &MultiClusterService, now: Timestamp) -> Plan {
    let name = ObjectName::new(wish.meta.name.namespace.clone(), wish.import_name.clone());
    let mut plan = Plan::default();
    for stale in controlled_imports(view, wish).filter(|import| import.meta.name != name) {
        plan.push(Write::delete(Kind::ServiceImport, &stale.meta)); // it wanted another import before
    }
    if unreadable_of(view, wish).is_some() {
        return plan; // it is there, and what it says now is not known
    }
    let resolved = match view.imports.get(&name) {
        None => {
            let desired = Desired::ServiceImport { controller: Some(controller(wish)), finalizer: true };
            plan.push(Write::create(Kind::ServiceImport, name.clone(), desired));
            None
        }
        Some(import) if import.meta.deleting => None, // its end wakes us (B4)
        Some(import) => match import.controller() {
            None => {
                plan.push(adopt(import, wish));
                None
            }
            Some(owner) if *owner.uid == *wish.meta.uid => {
                Some(import).filter(|import| !import.status.clusters.is_empty())
            }
            Some(_) => {
                // Another MultiClusterService imports it (B10: its ServiceImport is not ours to touch).
                plan.join(retire(view, wish));
                plan.join(not_found_beside(&plan, wish, LoadBalancerStatus::default(), now));
                return plan;
            }
        },
    };
    match resolved {
        Some(import) => plan.join(derive(view, wish, import, now)),
        None => plan.join(without_exporters(view, wish, &name, now)),
    }
    plan
}

/// What belongs to it by its name and is there and cannot be read: its ServiceImport, or its derived Service.
fn unreadable_of(view: &View, wish: &MultiClusterService) -> Option<(Kind, ObjectName)> {
    let import = |name: &Text| (Kind::ServiceImport, ObjectName::new(wish.meta.name.namespace.clone(), name.clone()));
    let service = |label: &Text| (Kind::Service, view.in_system(label.clone()));
    let imports = [Some(&wish.import_name), wish.import_label.as_ref()].into_iter().flatten().map(import);
    imports.chain(wish.derived_label.iter().map(service)).find(|(kind, name)| view.unreadable.has(*kind, name))
}

fn adopt(import: &ServiceImport, wish: &MultiClusterService) -> Write {
    let patch = Patch::ServiceImportOwners {
        others: import.owners.clone(),
        controller: controller(wish),
        finalizers: import.meta.finalizers.with_ours(true),
    };
    Write::patch(Kind::ServiceImport, &import.meta, patch)
}

/// The import has no exporter, or none yet. A derived Service outlives its last exporter for a while, so that a redeploy
/// does not cost its load balancer address.
fn without_exporters(view: &View, wish: &MultiClusterService, import: &ObjectName, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if let Some(service) = standing(view, wish) {
        let since = view.stamps.unresolved_since(import).unwrap_or(now);
        let until = since.plus_micros(view.settings.derived_service_grace_micros);
        if now < until {
            plan.look_again(until);
            plan.join(not_found_beside(&plan, wish, service.load_balancer.clone(), now));
            return plan;
        }
    }
    plan.join(retire(view, wish));
    plan.join(not_found_beside(&plan, wish, LoadBalancerStatus::default(), now));
    plan
}

/// Removes the derived Service, then the label that names it.
fn retire(view: &View, wish: &MultiClusterService) -> Plan {
    let mut plan = Plan::default();
    for service in derived_services(view, wish) {
        plan.push(Write::delete(Kind::Service, &service.meta));
    }
    if plan.writes.is_empty() && wish.derived_label.is_some() {
        plan.push(mark(wish, None));
    }
    plan
}

/// The status of one without import; not in a plan that already writes to the same object.
fn not_found_beside(plan: &Plan, wish: &MultiClusterService, address: LoadBalancerStatus, now: Timestamp) -> Plan {
    if plan.writes.iter().any(|write| write.kind == Kind::MultiClusterService) {
        return Plan::default();
    }
    set_status(wish, &Verdict::unknown_service_import(), address, now).map_or_else(Plan::default, Plan::one)
}

/// The import has exporters: the Service stands under the name that the label says. One that stands under another name
/// keeps it, and its addresses: the label was edited by hand.
fn derive(view: &View, wish: &MultiClusterService, import: &ServiceImport, now: Timestamp) -> Plan {
    if let Some(port) = admission::unfit_port(&import.status.ports) {
        return Plan::blocked(format!(
            "Service {} is not derived as the hub gives it: it has port {:?} {}/{}, which is none. Correct the Service in \
             cluster {}",
            import.meta.name,
            port.name,
            port.port,
            port.protocol,
            import.status.clusters.first().map_or("", |cluster| cluster)
        ));
    }
    let named = || wish.derived_label.as_ref().map(|label| view.in_system(label.clone()));
    let standing = standing(view, wish);
    let name = standing
        .map(|service| service.meta.name.clone())
        .or_else(|| named().filter(|name| usable(view, wish, name)))
        .or_else(|| free_name(view, wish));
    let Some(name) = name else {
        return Plan::blocked(format!(
            "MultiClusterService {} cannot derive a Service: every name for it in namespace {} is taken by a Service of \
             another owner; delete or rename that Service",
            wish.meta.name, view.settings.fleet_system_namespace
        ));
    };
    if wish.derived_label.as_ref() != Some(&name.name) {
        let left = named().filter(|left| !usable(view, wish, left)).map(|left| left_behind(wish, &left));
        return Plan::one(left.into_iter().fold(mark(wish, Some(name.name)), Write::telling));
    }
    let desired = desired(view, wish, import, standing);
    let Some(service) = view.services.get(&name) else {
        let event =
            normal(wish, "FoundValidService", format!("Found valid service {} and importing", wish.import_name));
        return Plan::one(Write::create(Kind::Service, name, Desired::Service(desired)).telling(event));
    };
    if service.meta.deleting {
        return Plan::default(); // its end wakes us
    }
    let mut plan = Plan::default();
    for other in derived_services(view, wish).filter(|other| other.meta.name != name) {
        plan.push(Write::delete(Kind::Service, &other.meta)); // its label was edited by hand
    }
    if service.headless != desired.headless {
        // That cannot be changed: it is made anew.
        return Plan::one(Write::delete(Kind::Service, &service.meta));
    }
    if !as_desired(service, &desired) {
        plan.push(Write::patch(Kind::Service, &service.meta, Patch::DerivedService(desired)));
    }
    if let Some(write) = set_status(wish, &Verdict::found_service_import(), service.load_balancer.clone(), now) {
        let message = format!("Imported {} service and updated {} status", wish.import_name, wish.meta.name.name);
        plan.push(write.telling(normal(wish, "SuccessfulUpdateStatus", message)));
    }
    plan
}

/// The derived Service, also where the label that names it was edited by hand.
fn standing<'a>(view: &'a View, wish: &'a MultiClusterService) -> Option<&'a Service> {
    derived_service(view, wish).or_else(|| derived_services(view, wish).next())
}

/// What we want of the derived Service. One with addresses of both families keeps them, whatever slices come and go.
fn desired(
    view: &View,
    wish: &MultiClusterService,
    import: &ServiceImport,
    standing: Option<&Service>,
) -> DerivedService {
    let given = view.slice_imports_of.get(&import.meta.name).filter_map(|slice| view.slice_imports.live(slice));
    let is_six = |slice: &HubSlice| slice.spec.content.address_type == AddressType::IPv6;
    let headless = import.status.is_headless();
    DerivedService {
        derived_from: wish.meta.name.clone(),
        consumer_type: if headless { ConsumerType::ClusterIp } else { wish.consumer_type },
        ports: import.status.ports.clone(),
        headless,
        session_affinity: admission::fit_affinity(import.status.session_affinity),
        dual_stack: standing.is_some_and(|service| service.dual_stack) || given.into_iter().any(is_six),
        internal_load_balancer: wish.internal_load_balancer,
    }
}

/// Whether a Service is as we want it, in the fields that we own.
fn as_desired(service: &Service, desired: &DerivedService) -> bool {
    let service_type = match desired.consumer_type {
        ConsumerType::LoadBalancer => ServiceType::LoadBalancer,
        ConsumerType::ClusterIp => ServiceType::ClusterIp,
    };
    !service.relabelled
        && service.service_type == service_type
        && with_targets(&service.ports).eq(with_targets(&desired.ports))
        && service.derived_from.as_ref() == Some(&desired.derived_from)
        && service.internal_load_balancer == desired.internal_load_balancer
        && service.session_affinity == desired.session_affinity
        && service.dual_stack == desired.dual_stack
}

/// Ports as the API server completes them: without a target port, pods listen on the port itself.
fn with_targets(ports: &[ServicePort]) -> impl Iterator<Item = ServicePort> {
    ports.iter().map(|port| {
        let target_port = Some(port.target_port.clone().unwrap_or(TargetPort::Number(port.port)));
        ServicePort { target_port, ..port.clone() }
    })
}

/// A derived Service may have that name: it is a label, and free or already ours.
fn usable(view: &View, wish: &MultiClusterService, name: &ObjectName) -> bool {
    let ours = |service: &Service| service.derived_from.as_ref() == Some(&wish.meta.name);
    names::is_dns_1035_label(&name.name) && view.services.get(name).is_none_or(ours)
}

fn free_name(view: &View, wish: &MultiClusterService) -> Option<ObjectName> {
    let ObjectName { namespace, name } = &wish.meta.name;
    let candidates = [names::joined(namespace, name), Some(names::joined_with_uid(namespace, name, &wish.meta.uid))];
    candidates.into_iter().flatten().map(|name| view.in_system(name)).find(|name| usable(view, wish, name))
}

fn derived_services<'a>(view: &'a View, wish: &'a MultiClusterService) -> impl Iterator<Item = &'a Service> + 'a {
    view.derived_of
        .get(&wish.meta.name)
        .filter(|name| name.namespace == view.settings.fleet_system_namespace)
        .filter_map(|name| view.services.live(name))
}

fn controlled_imports<'a>(
    view: &'a View,
    wish: &'a MultiClusterService,
) -> impl Iterator<Item = &'a ServiceImport> + 'a {
    view.imports_of.get(&wish.meta.uid).filter_map(|name| view.imports.live(name))
}

fn controller(wish: &MultiClusterService) -> Controller {
    Controller { name: wish.meta.name.name.clone(), uid: wish.meta.uid.clone() }
}

/// One status write that makes it say so; `None` where it does.
fn set_status(
    wish: &MultiClusterService,
    verdict: &Verdict,
    load_balancer: LoadBalancerStatus,
    now: Timestamp,
) -> Option<Write> {
    let generation = wish.meta.generation;
    let said = conditions::says(conditions::find(&wish.conditions, VALID), verdict, generation);
    if said && wish.load_balancer == load_balancer {
        return None;
    }
    let conditions =
        if said { wish.conditions.clone() } else { conditions::set(&wish.conditions, VALID, verdict, generation, now) };
    let patch = Patch::MultiClusterServiceStatus { conditions, load_balancer };
    Some(Write::patch(Kind::MultiClusterService, &wish.meta, patch))
}

/// Somebody took away the labels of the derived Service before we came, and nothing else tells it from one of somebody else.
fn left_behind(wish: &MultiClusterService, left: &ObjectName) -> Event {
    let message = format!(
        "Service {left} does not carry the labels of MultiClusterService {} and is left alone; another is derived. Delete \
         it if nobody needs it",
        wish.meta.name
    );
    Event { warning: true, ..normal(wish, "DerivedServiceLost", message) }
}

fn normal(wish: &MultiClusterService, reason: &'static str, message: String) -> Event {
    Event {
        kind: Kind::MultiClusterService,
        about: wish.meta.name.clone(),
        uid: wish.meta.uid.clone(),
        warning: false,
        reason,
        message,
        component: COMPONENT,
    }
}
