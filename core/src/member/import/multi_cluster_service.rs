//! Import by a MultiClusterService: plans its ServiceImport. As soon as the ServiceImport has exporters, also plans the
//! derived Service.

use super::load_balancer::{self, Decision};
use super::owned::{controlled_imports, orphaned_import};
use super::{claim, derived_service, silent, slice};
use crate::admission;
use crate::conditions::{self, ConditionValue, DesiredCondition, VALID};
use crate::member::derived::as_desired;
use crate::member::disputed;
use crate::member::view::Key;
use crate::member::view::Reader;
use crate::model::{
    ConsumerType, InternalLoadBalancer, Kind, LoadBalancerStatus, MultiClusterService, Service, ServiceImport,
};
use crate::names;
use crate::plan::{self, BlockingReason, Controller, DerivedService, Desired, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};

const REQUIRED: [Kind; 3] = [Kind::MultiClusterService, Kind::ServiceImport, Kind::Service];
const COMPONENT: &str = "multiclusterservice-controller";

pub(crate) fn plan_multi_cluster_service(view: Reader<'_>, name: &ObjectName, now: Timestamp) -> Plan {
    if !view.complete(&REQUIRED) {
        return Plan::default();
    }
    match view.multi_cluster_services().get(name) {
        // The MultiClusterService is gone. Its ServiceImport and derived Service were removed before its finalizer, so
        // nothing is left to do. A Service that lost its labels is not a derived Service any more and stays.
        None => Plan::default(),
        Some(mcs) if mcs.meta.deleting => remove_import(view, mcs),
        Some(mcs) if mcs.import_name.is_empty() => import_nothing(view, mcs, now),
        Some(mcs) if !marked(mcs) => Plan::one(mark(mcs, mcs.derived_label.clone())),
        Some(mcs) => import(view, mcs, now),
    }
}

/// Removes the ServiceImport and derived Service of a MultiClusterService that is being deleted, then the finalizer of
/// the MultiClusterService.
fn remove_import(view: Reader<'_>, mcs: &MultiClusterService) -> Plan {
    if !mcs.meta.finalizers.ours {
        return Plan::default();
    }
    let mut plan = Plan::default();
    for service in derived_services(view, mcs) {
        plan.push(Write::delete(Kind::Service, &service.meta));
    }
    for import in controlled_imports(view, mcs).chain(orphaned_import(view, mcs)) {
        plan.push(Write::delete(Kind::ServiceImport, &import.meta));
    }
    if plan.writes.is_empty()
        && let Some((kind, undecodable)) = undecodable_of(view, mcs)
    {
        // The finalizer stays: if the MultiClusterService were gone, no agent would remove its undecodable object
        // later.
        return Plan::blocked_by_undecodable(Kind::MultiClusterService, &mcs.meta.name, kind, &undecodable);
    }
    if plan.writes.is_empty() {
        let event = event(mcs, Reason::UnimportedService, format!("service {} is not imported any more", mcs.import()));
        let patch = Patch::MultiClusterService {
            finalizers: mcs.meta.finalizers.without_ours(),
            import_label: mcs.import_label.clone(),
            derived_label: mcs.derived_label.clone(),
        };
        let stripped = mcs.derived_label.as_ref().map(|label| view.in_system(label.clone()));
        let is_stripped = |at: &ObjectName| view.services().live(at).is_some_and(|it| it.derived_from.is_none());
        let left = stripped.filter(is_stripped).map(|left| left_behind(mcs, &left, ""));
        plan.push(Write::patch(&mcs.meta, patch).with_events([event]).with_events(left));
    }
    plan
}

/// Plans a MultiClusterService without `spec.serviceImport` (B17 in docs/contributors/behaviour.md): removes its
/// ServiceImport and derived Service, and reports the missing field in the condition `Valid`.
fn import_nothing(view: Reader<'_>, mcs: &MultiClusterService, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    for import in controlled_imports(view, mcs) {
        plan.push(Write::delete(Kind::ServiceImport, &import.meta));
    }
    plan.join(retire(view, mcs));
    let text = format!(
        "MultiClusterService {} of cluster {} names no Service to import: set spec.serviceImport.name",
        mcs.meta.name,
        view.settings().cluster
    );
    plan.join(set_status_beside(view, &plan, mcs, &unknown(text), LoadBalancerStatus::default(), now));
    plan
}

/// True if the MultiClusterService has our finalizer and the label with the name of its ServiceImport. After a crash,
/// the agent needs both to clean up the objects of the MultiClusterService.
fn marked(mcs: &MultiClusterService) -> bool {
    mcs.meta.finalizers.ours && mcs.import_label.as_ref() == Some(&mcs.import_name)
}

fn mark(mcs: &MultiClusterService, derived_label: Option<Text>) -> Write {
    let patch = Patch::MultiClusterService {
        finalizers: mcs.meta.finalizers.with_ours(),
        import_label: Some(mcs.import_name.clone()),
        derived_label,
    };
    Write::patch(&mcs.meta, patch)
}

fn import(view: Reader<'_>, mcs: &MultiClusterService, now: Timestamp) -> Plan {
    let name = mcs.import();
    let mut plan = Plan::default();
    for stale in controlled_imports(view, mcs).filter(|import| import.meta.name != name) {
        // The MultiClusterService requested this ServiceImport before its user changed `spec.serviceImport`.
        plan.push(Write::delete(Kind::ServiceImport, &stale.meta));
    }
    if undecodable_of(view, mcs).is_some() {
        return plan; // an object of the MultiClusterService is undecodable, so its state is unknown
    }
    let resolved = match view.imports().get(&name) {
        None => {
            let desired = Desired::ServiceImport { controller: Some(controller(mcs)), finalizer: true };
            plan.push(Write::create(name.clone(), desired));
            if let Some(rejection) = show_rejection(view, mcs, now) {
                plan.join(rejection);
                return plan;
            }
            if view.mcs_of_import(&name).nth(1).is_some() {
                return plan; // a later plan sets the condition, when the ServiceImport has a controller
            }
            None
        }
        // This key is requeued when the ServiceImport is gone (B4 in docs/contributors/behaviour.md).
        Some(import) if import.meta.deleting => None,
        Some(import) => match import.controller() {
            None => {
                plan.push(adopt(import, mcs));
                None
            }
            Some(owner) if *owner.uid == *mcs.meta.uid => {
                Some(import).filter(|import| !import.status.clusters.is_empty())
            }
            // Another MultiClusterService controls the ServiceImport, so the ServiceImport stays unchanged (B10 in
            // docs/contributors/behaviour.md).
            Some(owner) => {
                let blocking_reason = imported_by_another(view, mcs, &owner.name);
                plan.join(retire(view, mcs));
                let unknown = unknown(blocking_reason.message.clone());
                plan.join(set_status_beside(view, &plan, mcs, &unknown, LoadBalancerStatus::default(), now));
                return plan.blocked_by([blocking_reason]);
            }
        },
    };
    match resolved {
        Some(import) => plan.join(derive(view, mcs, import, now)),
        None => plan.join(without_exporters(view, mcs, &name, now)),
    }
    plan
}

/// Returns kind and name of an undecodable object that may be the ServiceImport or the derived Service of this
/// MultiClusterService, because of its name.
fn undecodable_of(view: Reader<'_>, mcs: &MultiClusterService) -> Option<(Kind, ObjectName)> {
    let import = |name: &Text| (Kind::ServiceImport, ObjectName::new(mcs.meta.name.namespace.clone(), name.clone()));
    let service = |label: &Text| (Kind::Service, view.in_system(label.clone()));
    let imports = [Some(&mcs.import_name), mcs.import_label.as_ref()].into_iter().flatten().map(import);
    imports.chain(mcs.derived_label.iter().map(service)).find(|(kind, name)| view.is_undecodable(*kind, name))
}

fn adopt(import: &ServiceImport, mcs: &MultiClusterService) -> Write {
    let patch = Patch::ServiceImportOwners {
        others: import.owners.clone(),
        controller: controller(mcs),
        finalizers: import.meta.finalizers.with_ours(),
    };
    Write::patch(&import.meta, patch)
}

/// Plans an import without exporters. After the last exporter is gone, the derived Service stays for a grace period. So
/// the load balancer keeps its address if an exporter comes back.
fn without_exporters(view: Reader<'_>, mcs: &MultiClusterService, import: &ObjectName, now: Timestamp) -> Plan {
    let name_in_use = claim::name_in_use(view, import);
    let valid = match &name_in_use {
        Some(message) => Some(valid_condition(ConditionValue::name_held_by_another(message.clone()))),
        // After a restart, the claims with these names are perhaps not listed yet.
        None if shows_name_in_use(mcs) && !view.complete(&[Kind::InternalServiceImport]) => None,
        None => Some(unknown(waiting_message(view, mcs, import))),
    };
    let status = |plan: &Plan, address| match &valid {
        Some(valid) => set_status_beside(view, plan, mcs, valid, address, now),
        None => Plan::default(),
    };
    let blocking_reason = name_in_use.map(|message| BlockingReason { reason: Reason::NameHeldByAnother, message });
    let mut plan = Plan::default().blocked_by(blocking_reason);
    if let Some(service) = any_derived_service(view, mcs) {
        let since = view.unresolved_since(import).unwrap_or(now);
        let until = since.plus_micros(view.settings().derived_service_grace_micros);
        if now < until {
            plan.plan_again_at(until);
            plan.join(status(&plan, service.load_balancer.clone()));
            return plan;
        }
    }
    plan.join(retire(view, mcs));
    plan.join(status(&plan, LoadBalancerStatus::default()));
    plan
}

fn shows_name_in_use(mcs: &MultiClusterService) -> bool {
    conditions::has_type_with_reason(&mcs.conditions, VALID, Reason::NameHeldByAnother)
}

/// Removes the derived Service of a MultiClusterService. When the derived Service is gone, removes the label with the
/// name of this Service from the MultiClusterService.
fn retire(view: Reader<'_>, mcs: &MultiClusterService) -> Plan {
    let mut plan = Plan::default();
    for service in derived_services(view, mcs) {
        plan.push(Write::delete(Kind::Service, &service.meta));
    }
    if plan.writes.is_empty() && mcs.derived_label.is_some() {
        plan.push(mark(mcs, None));
    }
    plan
}

/// Returns a plan with the status write of the MultiClusterService, to add to `plan`. The returned plan is empty if
/// `plan` already writes the MultiClusterService.
fn set_status_beside(
    view: Reader<'_>,
    plan: &Plan,
    mcs: &MultiClusterService,
    valid: &DesiredCondition,
    address: LoadBalancerStatus,
    now: Timestamp,
) -> Plan {
    if plan.writes.iter().any(|write| write.kind() == Kind::MultiClusterService) {
        return Plan::default();
    }
    set_status(view, mcs, valid, address, now).map_or_else(Plan::default, Plan::one)
}

/// Sets the condition `Valid` of a MultiClusterService whose import is blocked, and reports the blocking reason. The
/// derived Service stays unchanged.
fn set_blocked(view: Reader<'_>, mcs: &MultiClusterService, value: ConditionValue, now: Timestamp) -> Plan {
    let blocking_reason = BlockingReason { reason: value.reason, message: value.message.clone() };
    let status = set_status(view, mcs, &valid_condition(value), mcs.load_balancer.clone(), now);
    status.map_or_else(Plan::default, Plan::one).blocked_by([blocking_reason])
}

/// Returns the plan that shows a rejected write in the condition `Valid`; `None` if no write was rejected. The plan is
/// empty while a retry runs: the condition shows the last rejection, and must stay until the retry has a result.
fn show_rejection(view: Reader<'_>, mcs: &MultiClusterService, now: Timestamp) -> Option<Plan> {
    match view.rejection(&Key::MultiClusterService(mcs.meta.name.clone())) {
        Some(message) => Some(set_blocked(view, mcs, ConditionValue::write_rejected(message.to_owned()), now)),
        None => conditions::shows_rejection(&mcs.conditions).then(Plan::default),
    }
}

fn valid_condition(value: ConditionValue) -> DesiredCondition {
    DesiredCondition::new(VALID, value, COMPONENT)
}

/// Returns the condition `Valid` Unknown, for an import without a usable ServiceImport. The message of the condition is
/// that of the Go agents. The Event has the message `text`, which names the cause.
fn unknown(text: String) -> DesiredCondition {
    valid_condition(ConditionValue::unknown_service_import()).with_event_message(text)
}

/// Returns the Event's message for a ServiceImport without exporters, with the possible causes.
fn waiting_message(view: Reader<'_>, mcs: &MultiClusterService, import: &ObjectName) -> String {
    let valid = conditions::find(&mcs.conditions, VALID);
    let had_it = valid.is_some_and(|valid| valid.status == ConditionStatus::True);
    format!(
        "service {import} is not imported into cluster {} {}: no cluster exports it, or another cluster imports it \
         with type LoadBalancer. The Events of ServiceImport {import} in the hub name these clusters",
        view.settings().cluster,
        if had_it { "any more" } else { "yet" }
    )
}

fn imported_by_another(view: Reader<'_>, mcs: &MultiClusterService, holder: &str) -> BlockingReason {
    let message = format!(
        "MultiClusterService {} of cluster {} waits: {holder} of the same namespace already imports service {}. \
         Delete one of the two, or let them import different services",
        mcs.meta.name,
        view.settings().cluster,
        mcs.import()
    );
    BlockingReason { reason: Reason::UnknownServiceImport, message }
}

/// Creates or updates the derived Service, whose name is in a label of the MultiClusterService. If the existing derived
/// Service has another name, a user edited the label. Then the Service keeps its name and addresses, and the agent
/// repairs the label. The label cannot give a new derived Service a name of the user's choice, such as that of a
/// Service that pods look up.
fn derive(view: Reader<'_>, mcs: &MultiClusterService, import: &ServiceImport, now: Timestamp) -> Plan {
    if let Some(port) = admission::unfit_port(&import.status.ports) {
        let message = format!(
            "Service {} is not derived: port {:?} {}/{} of the ServiceImport in the hub is invalid. Correct the \
             Service in cluster {}",
            import.meta.name,
            port.name,
            port.port,
            port.protocol,
            import.status.clusters.first().map_or("", |cluster| cluster)
        );
        return set_blocked(view, mcs, ConditionValue::port_malformed(message), now);
    }
    let named = || mcs.derived_label.as_ref().map(|label| view.in_system(label.clone()));
    let present = any_derived_service(view, mcs);
    let (consumer_type, refusal) = match load_balancer::decide(view, mcs, import, present) {
        Decision::AsRequested => (mcs.consumer_type, None),
        Decision::ClusterIp(refusal) => (ConsumerType::ClusterIp, Some(refusal)),
        Decision::Unchanged(refusal) => return set_blocked(view, mcs, refusal, now),
    };
    let name = present
        .map(|service| service.meta.name.clone())
        .or_else(|| named().filter(|name| is_possible(view, mcs, name) && !is_of_another(view, mcs, name)))
        .or_else(|| free_name(view, mcs));
    let Some(name) = name else {
        return set_blocked(view, mcs, ConditionValue::name_held_by_another(names_in_use(view, mcs)), now);
    };
    if mcs.derived_label.as_ref() != Some(&name.name) {
        let instead = ", and derives another Service";
        let left = named().filter(|left| is_of_another(view, mcs, left)).map(|left| left_behind(mcs, &left, instead));
        return Plan::one(mark(mcs, Some(name.name)).with_events(left));
    }
    let desired = desired(view, mcs, import, present, consumer_type);
    let Some(service) = view.services().get(&name) else {
        let mut plan = Plan::one(Write::create(name, Desired::Service(desired)));
        plan.join(show_rejection(view, mcs, now).unwrap_or_default());
        return plan;
    };
    if service.meta.deleting {
        return Plan::default(); // this key is requeued when the Service is gone
    }
    let is_desired = service.headless == desired.headless && as_desired(service, &desired);
    if let Some(until) = view.keeps_until(now).filter(|_| !is_desired) {
        return Plan { again: Some(until), ..Plan::default() }; // a restored hub may have older ports or an older claim
    }
    let mut plan = Plan::default();
    for other in derived_services(view, mcs).filter(|other| other.meta.name != name) {
        plan.push(Write::delete(Kind::Service, &other.meta)); // a second derived Service, created after an edit of the label
    }
    if service.headless != desired.headless {
        // A Service cannot become headless or stop being headless (`clusterIP` is immutable), so it is created again.
        return Plan::one(Write::delete(Kind::Service, &service.meta));
    }
    if !is_desired {
        plan.push(Write::patch(&service.meta, Patch::DerivedService(desired)));
    }
    if !plan.writes.is_empty()
        && let Some(rejection) = show_rejection(view, mcs, now)
    {
        plan.join(rejection);
        return plan;
    }
    let valid = refusal.map(valid_condition).or_else(|| imported(view, mcs, import, &name));
    if let Some(valid) = valid {
        plan.writes.extend(set_status(view, mcs, &valid, service.load_balancer.clone(), now));
    }
    plan
}

/// Returns the condition `Valid` of an import whose derived Service is up to date. Its message names slices that cannot
/// be imported. `None` if the present condition must stay: it names such slices, and not all slices are known yet.
fn imported(
    view: Reader<'_>,
    mcs: &MultiClusterService,
    import: &ServiceImport,
    name: &ObjectName,
) -> Option<DesiredCondition> {
    let taken = match slice::names_in_use(view, &import.meta.name) {
        None if shows_name_in_use(mcs) => return None,
        taken => taken.unwrap_or_default(),
    };
    if !taken.is_empty() {
        return Some(valid_condition(ConditionValue::name_held_by_another(slice::names_in_use_message(
            view,
            &import.meta.name,
            &taken,
        ))));
    }
    let text = format!(
        "service {} of {} is imported into cluster {} as Service {name}: clients call {}.{}.svc",
        import.meta.name,
        import.status.clusters.join(", "),
        view.settings().cluster,
        name.name,
        name.namespace
    );
    Some(valid_condition(ConditionValue::found_service_import()).with_event_message(text))
}

/// Returns the derived Service of a MultiClusterService, even if a user edited the label that has the name of this
/// Service.
fn any_derived_service<'a>(view: Reader<'a>, mcs: &'a MultiClusterService) -> Option<&'a Service> {
    derived_service(view, mcs).or_else(|| derived_services(view, mcs).next())
}

fn names_in_use(view: Reader<'_>, mcs: &MultiClusterService) -> String {
    let names: Vec<String> = possible_names(view, mcs).map(|name| name.to_string()).collect();
    format!(
        "MultiClusterService {} of cluster {} cannot derive a Service: Services of other owners use each name that it \
         may have: {}. Delete or rename one of these",
        mcs.meta.name,
        view.settings().cluster,
        names.join(", ")
    )
}

/// Returns the desired state of the derived Service. A dual-stack Service stays dual-stack, so that its addresses do
/// not change when IPv6 slices appear and disappear.
fn desired(
    view: Reader<'_>,
    mcs: &MultiClusterService,
    import: &ServiceImport,
    present: Option<&Service>,
    consumer_type: ConsumerType,
) -> DerivedService {
    let headless = import.status.is_headless();
    DerivedService {
        derived_from: mcs.meta.name.clone(),
        consumer_type: if headless { ConsumerType::ClusterIp } else { consumer_type },
        ports: import.status.ports.clone(),
        headless,
        session_affinity: admission::fit_affinity(import.status.session_affinity),
        dual_stack: present.is_some_and(|service| service.dual_stack)
            || view.ipv6_slices_of(&import.meta.name).next().is_some(),
        internal_load_balancer: mcs.internal_load_balancer == InternalLoadBalancer::Requested,
    }
}

/// True if a Service has this name that the agent did not derive for the MultiClusterService.
fn is_of_another(view: Reader<'_>, mcs: &MultiClusterService, name: &ObjectName) -> bool {
    view.services().get(name).is_some_and(|service| service.derived_from.as_ref() != Some(&mcs.meta.name))
}

fn free_name(view: Reader<'_>, mcs: &MultiClusterService) -> Option<ObjectName> {
    possible_names(view, mcs).find(|name| !is_of_another(view, mcs, name))
}

fn is_possible(view: Reader<'_>, mcs: &MultiClusterService, name: &ObjectName) -> bool {
    possible_names(view, mcs).any(|possible| possible == *name)
}

fn possible_names(view: Reader<'_>, mcs: &MultiClusterService) -> impl Iterator<Item = ObjectName> {
    let ObjectName { namespace, name } = &mcs.meta.name;
    let candidates = [names::joined(namespace, name), Some(names::joined_with_uid(namespace, name, &mcs.meta.uid))];
    candidates.into_iter().flatten().map(move |name| view.in_system(name))
}

fn derived_services<'a>(view: Reader<'a>, mcs: &'a MultiClusterService) -> impl Iterator<Item = &'a Service> + 'a {
    view.derived_of(&mcs.meta.name)
        .filter(move |name| name.namespace == view.settings().fleet_system_namespace)
        .filter_map(move |name| view.services().live(name))
}

fn controller(mcs: &MultiClusterService) -> Controller {
    Controller { name: mcs.meta.name.name.clone(), uid: mcs.meta.uid.clone() }
}

/// Returns one write for the whole status of a MultiClusterService; `None` if the status is up to date.
fn set_status(
    view: Reader<'_>,
    mcs: &MultiClusterService,
    valid: &DesiredCondition,
    load_balancer: LoadBalancerStatus,
    now: Timestamp,
) -> Option<Write> {
    let (kind, meta) = (Kind::MultiClusterService, &mcs.meta);
    let silent = silent::condition(view, mcs, COMPONENT, now);
    let disputed = disputed::of_import(view, mcs, COMPONENT);
    let wanted: Vec<DesiredCondition> = [valid.clone()].into_iter().chain(disputed).chain(silent).collect();
    let changed = conditions::change(kind, meta, &mcs.conditions, &wanted, now);
    if changed.is_none() && mcs.load_balancer == load_balancer {
        return None;
    }
    let (conditions, events) = changed.unwrap_or_else(|| (mcs.conditions.clone(), Vec::new()));
    let patch = Patch::MultiClusterServiceStatus { conditions, load_balancer };
    Some(Write::patch(meta, patch).with_events(events))
}

/// Returns the Event about a derived Service that lost its labels while no agent ran. The agent cannot recognise this
/// Service as its own and leaves it unchanged. `instead` is the end of the message: it says if the agent creates
/// another derived Service.
fn left_behind(mcs: &MultiClusterService, left: &ObjectName, instead: &str) -> Event {
    let message = format!(
        "Service {left} does not have the labels of MultiClusterService {}, so the agent leaves it \
         unchanged{instead}. Delete it if nobody needs it",
        mcs.meta.name
    );
    event(mcs, Reason::DerivedServiceLost, message)
}

fn event(mcs: &MultiClusterService, reason: Reason, message: String) -> Event {
    plan::event(COMPONENT, Kind::MultiClusterService, &mcs.meta, reason, message)
}
