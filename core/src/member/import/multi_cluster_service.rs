//! Import by a MultiClusterService: plans its ServiceImport. As soon as the ServiceImport has exporters, also plans the
//! derived Service.

use super::load_balancer::{self, Decision};
use super::owned::{controlled_imports, orphaned_import};
use super::{Step, all, claim, derived_service, end_with, selectors, silent, slice};
use crate::admission;
use crate::conditions::{self, ConditionValue, DesiredCondition, VALID};
use crate::member::derived::as_desired;
use crate::member::disputed;
use crate::member::view::{Key, Reader};
use crate::model::{
    ConsumerType, InternalLoadBalancer, Kind, LoadBalancerStatus, MultiClusterService, Service, ServiceImport,
    ServicePort,
};
use crate::names;
use crate::plan::{self, BlockingReason, Controller, DerivedService, Desired, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};
use std::ops::ControlFlow::{Break, Continue};

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
        Some(request) if request.meta.deleting => remove_import(view, request),
        Some(request) if request.import_name.is_empty() => import_nothing(view, request, now),
        Some(request) if !marked(request) => Plan::one(mark(request, request.derived_label.clone())),
        Some(request) => import(view, request, now),
    }
}

/// Removes the ServiceImport and derived Service of a MultiClusterService that is being deleted, then the finalizer of
/// the MultiClusterService.
fn remove_import(view: Reader<'_>, request: &MultiClusterService) -> Plan {
    if !request.meta.finalizers.ours {
        return Plan::default();
    }
    let mut plan = Plan::default();
    for service in derived_services(view, request) {
        plan.push(Write::delete(Kind::Service, &service.meta));
    }
    for import in controlled_imports(view, request).chain(orphaned_import(view, request)) {
        plan.push(Write::delete(Kind::ServiceImport, &import.meta));
    }
    if !plan.writes.is_empty() {
        return plan;
    }
    if let Some((kind, undecodable)) = undecodable_of(view, request) {
        // The finalizer stays: if the MultiClusterService were gone, no agent would remove its undecodable object
        // later.
        return Plan::blocked_by_undecodable(Kind::MultiClusterService, &request.meta.name, kind, &undecodable);
    }
    let message = format!("service {} is not imported any more", request.import());
    let event = event(request, Reason::UnimportedService, message);
    let patch = Patch::MultiClusterService {
        finalizers: request.meta.finalizers.without_ours(),
        import_label: request.import_label.clone(),
        derived_label: request.derived_label.clone(),
    };
    let is_stripped = |at: &ObjectName| view.services().live(at).is_some_and(|it| it.derived_from.is_none());
    let left = labelled(view, request).filter(is_stripped).map(|left| left_behind(request, &left, ""));
    Plan::one(Write::patch(&request.meta, patch).with_events([event]).with_events(left))
}

/// Plans a MultiClusterService without `spec.serviceImport` (B17 in docs/contributors/behaviour.md): removes its
/// ServiceImport and derived Service, and reports the missing field in the condition `Valid`.
fn import_nothing(view: Reader<'_>, request: &MultiClusterService, now: Timestamp) -> Plan {
    let (name, cluster) = (&request.meta.name, &view.settings().cluster);
    let text = format!(
        "MultiClusterService {name} of cluster {cluster} names no Service to import: set spec.serviceImport.name"
    );
    let mut plan = Plan::of(controlled_imports(view, request).map(|it| Write::delete(Kind::ServiceImport, &it.meta)));
    plan.join(end(view, request, Some(&unknown(text)), now));
    plan
}

/// True if the MultiClusterService has our finalizer and the label with the name of its ServiceImport. After a crash,
/// the agent needs both to clean up the objects of the MultiClusterService.
fn marked(request: &MultiClusterService) -> bool {
    request.meta.finalizers.ours && request.import_label.as_ref() == Some(&request.import_name)
}

fn mark(request: &MultiClusterService, derived_label: Option<Text>) -> Write {
    let patch = Patch::MultiClusterService {
        finalizers: request.meta.finalizers.with_ours(),
        import_label: Some(request.import_name.clone()),
        derived_label,
    };
    Write::patch(&request.meta, patch)
}

/// Imports the Service that a MultiClusterService requests: first its ServiceImport, then the derived Service.
fn import(view: Reader<'_>, request: &MultiClusterService, now: Timestamp) -> Plan {
    let name = request.import();
    // The MultiClusterService requested the others before its user changed `spec.serviceImport`.
    let stale = controlled_imports(view, request).filter(|import| import.meta.name != name);
    let mut plan = Plan::of(stale.map(|stale| Write::delete(Kind::ServiceImport, &stale.meta)));
    if undecodable_of(view, request).is_some() {
        return plan; // an object of the MultiClusterService is undecodable, so its state is unknown
    }
    let waiting = || without_exporters(view, request, &name, now);
    plan.join(match view.imports().get(&name).map(|import| (import, import.controller())) {
        None => begin(view, request, &name, now),
        // This key is requeued when the ServiceImport is gone (B4 in docs/contributors/behaviour.md).
        Some((import, _)) if import.meta.deleting => waiting(),
        Some((import, None)) => Plan::one(adopt(import, request)).joined(waiting()),
        Some((_, Some(owner))) if *owner.uid != *request.meta.uid => yield_to(view, request, &owner.name, now),
        Some((import, _)) if import.status.clusters.is_empty() => waiting(),
        Some((import, _)) => derive(view, request, import, now),
    });
    plan
}

/// Creates the ServiceImport of a MultiClusterService.
fn begin(view: Reader<'_>, request: &MultiClusterService, name: &ObjectName, now: Timestamp) -> Plan {
    let desired = Desired::ServiceImport { controller: Some(controller(request)), finalizer: true };
    let create = Plan::one(Write::create(name.clone(), desired));
    if let Some(rejection) = show_rejection(view, request, now) {
        return create.joined(rejection);
    }
    if view.requests_of_import(name).nth(1).is_some() {
        return create; // a later plan sets the condition, when the ServiceImport has a controller
    }
    create.joined(without_exporters(view, request, name, now))
}

/// Ends the import of a Service whose ServiceImport another MultiClusterService controls. The ServiceImport stays
/// unchanged (B10 in docs/contributors/behaviour.md).
fn yield_to(view: Reader<'_>, request: &MultiClusterService, holder: &str, now: Timestamp) -> Plan {
    let (name, cluster, import) = (&request.meta.name, &view.settings().cluster, request.import());
    let message = format!(
        "MultiClusterService {name} of cluster {cluster} waits: {holder} of the same namespace already imports service {import}. \
         Delete one of the two, or let them import different services"
    );
    let valid = unknown(message.clone());
    let blocking_reason = BlockingReason { reason: Reason::UnknownServiceImport, message };
    end(view, request, Some(&valid), now).blocked_by([blocking_reason])
}

/// Returns kind and name of an undecodable object that may be the ServiceImport or the derived Service of this
/// MultiClusterService, because of its name.
fn undecodable_of(view: Reader<'_>, request: &MultiClusterService) -> Option<(Kind, ObjectName)> {
    let import = |it: &Text| (Kind::ServiceImport, ObjectName::new(request.meta.name.namespace.clone(), it.clone()));
    let imports = [Some(&request.import_name), request.import_label.as_ref()].into_iter().flatten().map(import);
    let service = labelled(view, request).map(|name| (Kind::Service, name));
    imports.chain(service).find(|(kind, name)| view.is_undecodable(*kind, name))
}

fn adopt(import: &ServiceImport, request: &MultiClusterService) -> Write {
    let patch = Patch::ServiceImportOwners {
        others: import.owners.clone(),
        controller: controller(request),
        finalizers: import.meta.finalizers.with_ours(),
    };
    Write::patch(&import.meta, patch)
}

/// Plans an import without exporters. After the last exporter is gone, the derived Service stays for a grace period. So
/// the load balancer keeps its address if an exporter comes back.
fn without_exporters(view: Reader<'_>, request: &MultiClusterService, import: &ObjectName, now: Timestamp) -> Plan {
    let name_in_use = claim::name_in_use(view, import);
    let valid = match &name_in_use {
        Some(message) => Some(valid_condition(ConditionValue::name_held_by_another(message.clone()))),
        // After a restart, the claims with these names are perhaps not listed yet.
        None if shows_name_in_use(request) && !view.complete(&[Kind::InternalServiceImport]) => None,
        None => Some(unknown(waiting_message(view, request, import))),
    };
    let in_grace = any_derived_service(view, request).and_then(|service| {
        let since = view.unresolved_since(import).unwrap_or(now);
        let until = since.plus_micros(view.settings().derived_service_grace_micros);
        (now < until).then_some((service, until))
    });
    let plan = match in_grace {
        Some((service, until)) => {
            let status = valid.and_then(|valid| set_status(view, request, &valid, service.load_balancer.clone(), now));
            Plan { again: Some(until), ..Plan::of(status) }
        }
        None => end(view, request, valid.as_ref(), now),
    };
    plan.blocked_by(name_in_use.map(|message| BlockingReason { reason: Reason::NameHeldByAnother, message }))
}

fn shows_name_in_use(request: &MultiClusterService) -> bool {
    conditions::has_type_with_reason(&request.conditions, VALID, Reason::NameHeldByAnother)
}

/// Removes the derived Service of a MultiClusterService. When the derived Service is gone, removes the label with the
/// name of this Service from the MultiClusterService, and sets its condition `Valid`.
fn end(view: Reader<'_>, request: &MultiClusterService, valid: Option<&DesiredCondition>, now: Timestamp) -> Plan {
    let mut plan = Plan::of(derived_services(view, request).map(|it| Write::delete(Kind::Service, &it.meta)));
    if plan.writes.is_empty() && request.derived_label.is_some() {
        return Plan::one(mark(request, None));
    }
    plan.writes.extend(valid.and_then(|valid| set_status(view, request, valid, LoadBalancerStatus::default(), now)));
    plan
}

/// Sets the condition `Valid` of a MultiClusterService whose import is blocked, and reports the blocking reason. The
/// derived Service stays unchanged.
fn set_blocked(view: Reader<'_>, request: &MultiClusterService, value: ConditionValue, now: Timestamp) -> Plan {
    let blocking_reason = BlockingReason { reason: value.reason, message: value.message.clone() };
    Plan::of(set_status(view, request, &valid_condition(value), request.load_balancer.clone(), now))
        .blocked_by([blocking_reason])
}

/// Returns the plan that shows a rejected write in the condition `Valid`; `None` if no write was rejected. The plan is
/// empty while a retry runs: the condition shows the last rejection, and must stay until the retry has a result.
fn show_rejection(view: Reader<'_>, request: &MultiClusterService, now: Timestamp) -> Option<Plan> {
    match view.rejection(&Key::MultiClusterService(request.meta.name.clone())) {
        Some(message) => Some(set_blocked(view, request, ConditionValue::write_rejected(message.to_owned()), now)),
        None => conditions::shows_rejection(&request.conditions).then(Plan::default),
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
fn waiting_message(view: Reader<'_>, request: &MultiClusterService, import: &ObjectName) -> String {
    let valid = conditions::find(&request.conditions, VALID);
    let had_it = valid.is_some_and(|valid| valid.status == ConditionStatus::True);
    let (cluster, when) = (&view.settings().cluster, if had_it { "any more" } else { "yet" });
    format!(
        "service {import} is not imported into cluster {cluster} {when}: no cluster exports it, or another cluster imports it \
         with type LoadBalancer. The Events of ServiceImport {import} in the hub name these clusters"
    )
}

/// Derivation of a Service from a ServiceImport with exporters.
struct Derivation<'a> {
    view: Reader<'a>,
    request: &'a MultiClusterService,
    import: &'a ServiceImport,
    /// Derived Service, if it exists.
    present: Option<&'a Service>,
    now: Timestamp,
}

/// Creates or updates the derived Service.
fn derive(view: Reader<'_>, request: &MultiClusterService, import: &ServiceImport, now: Timestamp) -> Plan {
    let derivation = Derivation { view, request, import, present: any_derived_service(view, request), now };
    all(derivation.steps())
}

impl<'a> Derivation<'a> {
    /// Derives the Service, in these steps. A step that has something to write or to wait for ends the plan.
    fn steps(&self) -> Step<Plan> {
        self.check_ports()?;
        let (consumer_type, refusal) = self.choose_type()?;
        let name = self.choose_name()?;
        self.record_name(&name)?;
        let desired = self.desired(consumer_type);
        let service = self.create(&name, &desired)?;
        self.wait_for_restored_hub(service, &desired)?;
        let plan = self.update(service, desired)?;
        Continue(self.show(plan, service, refusal))
    }

    fn check_ports(&self) -> Step {
        let status = &self.import.status;
        let Some(unfit) = admission::unfit_port(&status.ports) else { return Continue(()) };
        let (service, ServicePort { name, port, protocol, .. }) = (&self.import.meta.name, unfit);
        let exporter = status.clusters.first().map_or("", |cluster| cluster);
        let message = format!(
            "Service {service} is not derived: port {name:?} {port}/{protocol} of the ServiceImport in the hub is \
             invalid. Correct the Service in cluster {exporter}"
        );
        self.blocked(ConditionValue::port_malformed(message))
    }

    fn blocked<T>(&self, value: ConditionValue) -> Step<T> {
        Break(set_blocked(self.view, self.request, value, self.now))
    }

    /// Returns the type of the derived Service, and why it is not the requested type.
    fn choose_type(&self) -> Step<(ConsumerType, Option<ConditionValue>)> {
        match load_balancer::decide(self.view, self.request, self.import, self.present) {
            Decision::AsRequested => Continue((self.request.consumer_type, None)),
            Decision::ClusterIp(refusal) => Continue((ConsumerType::ClusterIp, Some(refusal))),
            Decision::Unchanged(refusal) => self.blocked(refusal),
        }
    }

    /// Returns the name of the derived Service: that of the present one, else that in the label, else a free one. The
    /// label cannot give a new derived Service a name of the user's choice, such as that of a Service that pods look
    /// up.
    fn choose_name(&self) -> Step<ObjectName> {
        let (view, request) = (self.view, self.request);
        let is_usable = |name: &ObjectName| is_possible(view, request, name) && !is_of_another(view, request, name);
        let present = self.present.map(|service| service.meta.name.clone());
        let name = present.or_else(|| labelled(view, request).filter(is_usable)).or_else(|| free_name(view, request));
        match name {
            Some(name) => Continue(name),
            None => self.blocked(ConditionValue::name_held_by_another(names_in_use(view, request))),
        }
    }

    /// Writes the name of the derived Service to the label of the MultiClusterService. If a user edited the label, the
    /// Service keeps its name and addresses, and this repairs the label.
    fn record_name(&self, name: &ObjectName) -> Step {
        let (view, request) = (self.view, self.request);
        if request.derived_label.as_ref() == Some(&name.name) {
            return Continue(());
        }
        let left = labelled(view, request).filter(|left| is_of_another(view, request, left));
        let event = left.map(|left| left_behind(request, &left, ", and derives another Service"));
        Break(Plan::one(mark(request, Some(name.name.clone())).with_events(event)))
    }

    fn create(&self, name: &ObjectName, desired: &DerivedService) -> Step<&'a Service> {
        match self.view.services().get(name) {
            Some(service) if service.meta.deleting => Break(Plan::default()), // this key is requeued when it is gone
            Some(service) => Continue(service),
            None => {
                let create = Plan::one(Write::create(name.clone(), Desired::Service(desired.clone())));
                Break(create.joined(show_rejection(self.view, self.request, self.now).unwrap_or_default()))
            }
        }
    }

    /// A restored hub may have older ports or an older claim.
    fn wait_for_restored_hub(&self, service: &Service, desired: &DerivedService) -> Step {
        let until = self.view.keeps_until(self.now).filter(|_| !is_desired(service, desired));
        end_with(until.map(|until| Plan { again: Some(until), ..Plan::default() }))
    }

    /// Updates the derived Service. Removes a second one, which was created after an edit of the label.
    fn update(&self, service: &Service, desired: DerivedService) -> Step<Plan> {
        let others = derived_services(self.view, self.request).filter(|other| other.meta.name != service.meta.name);
        let mut plan = Plan::of(others.map(|other| Write::delete(Kind::Service, &other.meta)));
        if service.headless != desired.headless {
            // A Service cannot become headless or stop being headless (`clusterIP` is immutable), so it is created
            // again.
            return Break(Plan::one(Write::delete(Kind::Service, &service.meta)));
        }
        if !is_desired(service, &desired) {
            plan.push(Write::patch(&service.meta, Patch::DerivedService(desired)));
        }
        if plan.writes.is_empty() {
            return Continue(plan);
        }
        match show_rejection(self.view, self.request, self.now) {
            Some(rejection) => Break(plan.joined(rejection)),
            None => Continue(plan),
        }
    }

    /// Adds the status of the MultiClusterService.
    fn show(&self, mut plan: Plan, service: &Service, refusal: Option<ConditionValue>) -> Plan {
        let valid = refusal.map(valid_condition).or_else(|| self.imported(&service.meta.name));
        let address = service.load_balancer.clone();
        plan.writes.extend(valid.and_then(|valid| set_status(self.view, self.request, &valid, address, self.now)));
        plan
    }

    /// Returns the condition `Valid` of an import whose derived Service is up to date. Its message names slices that
    /// cannot be imported. `None` if the present condition must stay: it names such slices, and not all slices are
    /// known yet.
    fn imported(&self, name: &ObjectName) -> Option<DesiredCondition> {
        let (view, import) = (self.view, self.import);
        let taken = match slice::names_in_use(view, &import.meta.name) {
            None if shows_name_in_use(self.request) => return None,
            taken => taken.unwrap_or_default(),
        };
        if !taken.is_empty() {
            let message = slice::names_in_use_message(view, &import.meta.name, &taken);
            return Some(valid_condition(ConditionValue::name_held_by_another(message)));
        }
        let (service, exporters) = (&import.meta.name, import.status.clusters.join(", "));
        let (cluster, ObjectName { namespace, name: service_name }) = (&view.settings().cluster, name);
        let text = format!(
            "service {service} of {exporters} is imported into cluster {cluster} as Service {name}: clients call {service_name}.{namespace}.svc"
        );
        Some(valid_condition(ConditionValue::found_service_import()).with_event_message(text))
    }

    /// Returns the desired state of the derived Service. A dual-stack Service stays dual-stack, so that its addresses
    /// do not change when IPv6 slices appear and disappear.
    fn desired(&self, consumer_type: ConsumerType) -> DerivedService {
        let (request, import) = (self.request, self.import);
        let headless = import.status.is_headless();
        DerivedService {
            derived_from: request.meta.name.clone(),
            consumer_type: if headless { ConsumerType::ClusterIp } else { consumer_type },
            ports: import.status.ports.clone(),
            headless,
            session_affinity: admission::fit_affinity(import.status.session_affinity),
            dual_stack: self.present.is_some_and(|service| service.dual_stack)
                || self.view.ipv6_slices_of(&import.meta.name).next().is_some(),
            internal_load_balancer: request.internal_load_balancer == InternalLoadBalancer::Requested,
        }
    }
}

fn is_desired(service: &Service, desired: &DerivedService) -> bool {
    service.headless == desired.headless && as_desired(service, desired)
}

/// Returns the derived Service of a MultiClusterService, even if a user edited the label that has the name of this
/// Service.
fn any_derived_service<'a>(view: Reader<'a>, request: &'a MultiClusterService) -> Option<&'a Service> {
    derived_service(view, request).or_else(|| derived_services(view, request).next())
}

fn names_in_use(view: Reader<'_>, request: &MultiClusterService) -> String {
    let names = possible_names(view, request).map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
    let (request, cluster) = (&request.meta.name, &view.settings().cluster);
    format!(
        "MultiClusterService {request} of cluster {cluster} cannot derive a Service: Services of other owners use each \
         name that it may have: {names}. Delete or rename one of these"
    )
}

/// Returns the name in the label of a MultiClusterService: that of its derived Service.
fn labelled(view: Reader<'_>, request: &MultiClusterService) -> Option<ObjectName> {
    request.derived_label.as_ref().map(|label| view.in_system(label.clone()))
}

/// True if a Service has this name that the agent did not derive for the MultiClusterService.
fn is_of_another(view: Reader<'_>, request: &MultiClusterService, name: &ObjectName) -> bool {
    view.services().get(name).is_some_and(|service| service.derived_from.as_ref() != Some(&request.meta.name))
}

fn free_name(view: Reader<'_>, request: &MultiClusterService) -> Option<ObjectName> {
    possible_names(view, request).find(|name| !is_of_another(view, request, name))
}

fn is_possible(view: Reader<'_>, request: &MultiClusterService, name: &ObjectName) -> bool {
    possible_names(view, request).any(|possible| possible == *name)
}

fn possible_names(view: Reader<'_>, request: &MultiClusterService) -> impl Iterator<Item = ObjectName> {
    let ObjectName { namespace, name } = &request.meta.name;
    let candidates = [names::joined(namespace, name), Some(names::joined_with_uid(namespace, name, &request.meta.uid))];
    candidates.into_iter().flatten().map(move |name| view.in_system(name))
}

fn derived_services<'a>(view: Reader<'a>, request: &'a MultiClusterService) -> impl Iterator<Item = &'a Service> + 'a {
    view.derived_of(&request.meta.name)
        .filter(move |name| name.namespace == view.settings().fleet_system_namespace)
        .filter_map(move |name| view.services().live(name))
}

fn controller(request: &MultiClusterService) -> Controller {
    Controller { name: request.meta.name.name.clone(), uid: request.meta.uid.clone() }
}

/// Returns one write for the whole status of a MultiClusterService; `None` if the status is up to date.
fn set_status(
    view: Reader<'_>,
    request: &MultiClusterService,
    valid: &DesiredCondition,
    load_balancer: LoadBalancerStatus,
    now: Timestamp,
) -> Option<Write> {
    let (kind, meta) = (Kind::MultiClusterService, &request.meta);
    let silent = silent::condition(view, request, COMPONENT, now);
    let disputed = disputed::of_import(view, request, COMPONENT);
    let selectors = selectors::condition(view, request, COMPONENT);
    let wanted: Vec<_> = [valid.clone()].into_iter().chain(disputed).chain(silent).chain(selectors).collect();
    let changed = conditions::change(kind, meta, &request.conditions, &wanted, now);
    if changed.is_none() && request.load_balancer == load_balancer {
        return None;
    }
    let (conditions, events) = changed.unwrap_or_else(|| (request.conditions.clone(), Vec::new()));
    let patch = Patch::MultiClusterServiceStatus { conditions, load_balancer };
    Some(Write::patch(meta, patch).with_events(events))
}

/// Returns the Event about a derived Service that lost its labels while no agent ran. The agent cannot recognise this
/// Service as its own and leaves it unchanged. `instead` is the end of the message: it says if the agent creates
/// another derived Service.
fn left_behind(request: &MultiClusterService, left: &ObjectName, instead: &str) -> Event {
    let message = format!(
        "Service {left} does not have the labels of MultiClusterService {}, so the agent leaves it \
         unchanged{instead}. Delete it if nobody needs it",
        request.meta.name
    );
    event(request, Reason::DerivedServiceLost, message)
}

fn event(request: &MultiClusterService, reason: Reason, message: String) -> Event {
    plan::event(COMPONENT, Kind::MultiClusterService, &request.meta, reason, message)
}
