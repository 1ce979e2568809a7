//! Tests of the member agent's imports of Services and slices.

use crate::support::agent::{applied, removed};
use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildRequest, BuildService, BuildSlice, IntoObject, address, claim,
    condition, content, derived_service, distributed_slice, finalizers_of, found, imported_slice, in_hub_of, in_system,
    named, not_found, port, reference, request, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{
    NOW, SEEN, blocking_reasons, events, events_of, member_view, observe_and_plan, observe_change, observe_removal,
    planned, undecodable, with_objects, writes,
};
use crate::support::world::{GRACE_MICROS, settings};
use fleetnet_core::limits::{ORPHAN_GRACE_MICROS, RESTORE_GRACE_MICROS};
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{
    AddressType, Condition, ConsumerType, EndpointSlice, HubSlice, ImportStatus, ImportType, InternalLoadBalancer,
    InternalServiceImport, Kind, LoadBalancerStatus, MultiClusterService, Object, Service, ServicePort, ServiceType,
    SessionAffinity,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Controller, DerivedService, Desired, ImportedSlice, Patch, Plan, Sample, Write};
use fleetnet_types::{Text, Timestamp, WatchState};
use std::sync::Arc;

fn app() -> Key {
    Key::MultiClusterService(named("work/app"))
}

fn import() -> Key {
    Key::Import(named("work/app"))
}

fn labels(request: &MultiClusterService, ours: bool, import: &str, derived: Option<&str>) -> Write {
    let patch = Patch::MultiClusterService {
        finalizers: finalizers_of(&request.meta, ours),
        import_label: Some(import.into()),
        derived_label: derived.map(Text::from),
    };
    Write::patch(&request.meta, patch)
}

fn status(request: &MultiClusterService, condition: Condition, load_balancer: LoadBalancerStatus) -> Write {
    let conditions = vec![condition];
    let patch = Patch::MultiClusterServiceStatus { conditions, load_balancer };
    Write::patch(&request.meta, patch)
}

fn now(condition: Condition) -> Condition {
    Condition { last_transition: seconds(20), ..condition }
}

fn none() -> LoadBalancerStatus {
    LoadBalancerStatus::default()
}

fn derived(request: &MultiClusterService) -> DerivedService {
    DerivedService {
        derived_from: request.meta.name.clone(),
        consumer_type: request.consumer_type,
        ports: vec![port("http", 80)],
        headless: false,
        session_affinity: SessionAffinity::None,
        dual_stack: false,
        internal_load_balancer: false,
    }
}

// === MultiClusterService ===

/// Rule M1: A MultiClusterService is created
/// Then: The member agent adds the finalizer to the MultiClusterService, and writes the target to one of its labels.
/// The agent creates the ServiceImport, with the MultiClusterService as its controlling owner. The agent sets
/// `Valid=Unknown`
#[test]
fn a_multi_cluster_service_gets_a_finalizer_then_an_import_and_a_condition_that_it_waits() {
    let fresh = request("work/app").with_finalizer("theirs");
    let view = member_view([fresh.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&fresh, true, "app", None)]);
    let released = MultiClusterService { import_label: Some("app".into()), ..fresh.clone() };
    let view = member_view([released.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&released, true, "app", None)], "somebody removed our finalizer");

    let marked = fresh.taken_on();
    let view = member_view([marked.clone().object()]);
    let controller = Controller { name: "app".into(), uid: "uid-request-work/app".into() };
    let desired = Desired::ServiceImport { controller: Some(controller), finalizer: true };
    let create = Write::create(named("work/app"), desired);
    assert_eq!(writes(&view, &app()), [create.clone(), status(&marked, now(not_found()), none())]);
    let rival = request("work/other").importing("app").taken_on();
    let view = member_view([marked.object(), rival.object()]);
    assert_eq!(writes(&view, &app()), [create], "it is not known yet which of the two imports");
}

/// Rule M2: The target of a MultiClusterService is a ServiceImport without a controlling owner (owner reference with
/// `controller: true`)
/// Then: The member agent makes the MultiClusterService the controlling owner of the ServiceImport. The other owner
/// references stay
#[test]
fn an_import_without_controller_is_adopted() {
    let request = request("work/app").taken_on().with_conditions(&[not_found()]);
    let import = service_import("work/app");
    let view = member_view([request.object(), import.clone().object()]);
    let patch = Patch::ServiceImportOwners {
        others: Vec::new(),
        controller: Controller { name: "app".into(), uid: "uid-request-work/app".into() },
        finalizers: import.meta.finalizers.with_ours(),
    };
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, patch)]);
}

/// Rule M3: The ServiceImport of a MultiClusterService lists exporting members
/// Then: The member agent writes the name of the derived Service to a label of the MultiClusterService, and creates the
/// derived Service in `fleet-system`. The agent sets `Valid=True`, and copies the load balancer's address to the
/// MultiClusterService
#[test]
fn a_resolved_import_gets_a_name_then_a_derived_service_then_a_status() {
    let waiting = request("work/app").taken_on().with_conditions(&[not_found()]);
    let import = service_import("work/app").controlled_by(&waiting).showing(resolved(&["member-2"]));
    let view = member_view([waiting.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&waiting, true, "app", Some("work-app"))]);

    let named = waiting.deriving("work-app");
    let view = member_view([named.clone().object(), import.clone().object()]);
    let create = Write::create(in_system("work-app"), Desired::Service(derived(&named)));
    assert_eq!(writes(&view, &app()), [create]);

    let service = derived_service("work-app", "work/app").with_address("192.0.2.1");
    let view = member_view([named.clone().object(), import.clone().object(), service.clone().object()]);
    assert_eq!(writes(&view, &app()), [status(&named, now(found()), address("192.0.2.1"))]);
    assert_eq!(events(&view, &app()), ["FoundServiceImport"]);

    let mut done = named.with_conditions(&[found()]);
    done.load_balancer = address("192.0.2.1");
    let view = member_view([done.object(), import.object(), service.object()]);
    assert_eq!(planned(&view, &app()), Plan::default());
}

/// Returns a MultiClusterService, and the objects of its import: the same MultiClusterService, its ServiceImport and
/// this derived Service.
fn standing(service: Service) -> (MultiClusterService, Vec<Object>) {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let objects = vec![request.clone().object(), import.object(), service.object()];
    (request, objects)
}

/// Rule M28: Somebody adds a selector or external addresses to the derived Service, or sets one of its traffic policies
/// to Local
/// Then: The member agent restores the derived Service in one write (M15). With a selector, clients would reach Pods of
/// this cluster. With `Local`, no client would reach an endpoint, because imported endpoints have no node. Fields that
/// a cloud controller reads, such as `loadBalancerClass` and `loadBalancerSourceRanges`, belong to the administrator of
/// the cluster and stay
///
/// Also rule M15.
#[test]
fn a_derived_service_is_mended_in_what_we_own() {
    let service = derived_service("work-app", "work/app");
    let (request, objects) = standing(service.clone());
    assert_eq!(writes(&member_view(objects), &app()), []);
    let mend = |service: &Service| Write::patch(&service.meta, Patch::DerivedService(derived(&request)));
    for wrong in [
        service.clone().ports(&[port("http", 81)]),
        service.clone().of_type(ServiceType::ClusterIp),
        Service { internal_load_balancer: true, ..service.clone() },
        Service { has_selector_or_external_ips: true, ..service.clone() },
        Service { internal_traffic_policy: Some("Local".into()), ..service.clone() },
        Service { is_external_policy_local: true, ..service.clone() },
    ] {
        let (_, objects) = standing(wrong.clone());
        assert_eq!(writes(&member_view(objects), &app()), [mend(&wrong)]);
    }
    // Somebody removed our labels before the agent started, so nothing shows that the Service is ours. The agent
    // creates a derived Service with another name.
    let foreign = Service { derived_from: None, ..service };
    let (_, objects) = standing(foreign);
    let view = member_view(objects);
    let planned = writes(&view, &app());
    assert!(
        matches!(&planned[..], [write] if write.kind() == Kind::MultiClusterService),
        "only the label that names it: {planned:#?}"
    );
    assert_eq!(events(&view, &app()), ["DerivedServiceLost"]);
}

/// Also rule M15.
#[test]
fn a_derived_service_that_is_being_deleted_is_left_alone() {
    let going = derived_service("work-app", "work/app").ports(&[port("http", 81)]).deleting();
    let (_, objects) = standing(going);
    assert_eq!(planned(&member_view(objects), &app()), Plan::default(), "it is created again when it is gone");
}

/// Also rule M9.
#[test]
fn the_derived_service_of_an_import_that_another_multi_cluster_service_controls_is_deleted() {
    let service = derived_service("work-app", "work/app");
    let (loser, mut objects) = standing(service.clone());
    let winner = request("work/other").importing("app").taken_on();
    objects[1] = service_import("work/app").controlled_by(&winner).showing(resolved(&["member-2"])).object();
    objects.push(winner.object());
    let delete = Write::delete(Kind::Service, &service.meta);
    assert_eq!(writes(&member_view(objects), &app()), [delete, status(&loser, now(not_found()), none())]);
}

/// Also rule M15.
#[test]
fn a_label_with_the_name_of_no_service_is_corrected_without_an_event() {
    let request = request("work/app").taken_on().deriving("Not.A.Name");
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let view = member_view([request.object(), import.object()]);
    let planned = writes(&view, &app());
    let [Write { action: Action::Patch { patch: Patch::MultiClusterService { derived_label, .. }, .. }, .. }] =
        &planned[..]
    else {
        panic!("{planned:#?}");
    };
    assert_eq!(derived_label.as_deref(), Some("work-app"));
    assert_eq!(events(&view, &app()), [""; 0]);
}

/// Rule M21: A port of the ServiceImport has no target port, or the target port 0 or ""
/// Then: The API server sets a default target port in the derived Service. The member agent accepts the default of the
/// API server, and makes no write
#[test]
fn a_port_without_target_is_the_one_that_the_server_completes() {
    let bare = ServicePort { target_port: None, ..port("http", 80) };
    let completed =
        ServicePort { target_port: Some(fleetnet_core::model::TargetPort::Number(80.into())), ..bare.clone() };
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let shown = ImportStatus { ports: vec![bare], ..resolved(&["member-2"]) };
    let import = service_import("work/app").controlled_by(&request).showing(shown);
    let service = derived_service("work-app", "work/app").ports(&[completed]);
    assert_eq!(writes(&member_view([request.object(), import.object(), service.object()]), &app()), []);
}

/// Rule M4: The type of a MultiClusterService is ClusterIP
/// Then: The member agent creates a derived Service of type ClusterIP
#[test]
fn a_clusterip_importer_derives_a_clusterip_service() {
    let request = request("work/app")
        .consumed_as(ConsumerType::ClusterIp)
        .taken_on()
        .deriving("work-app")
        .with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let view = member_view([request.clone().object(), import.object()]);
    let create = Write::create(in_system("work-app"), Desired::Service(derived(&request)));
    assert_eq!(writes(&view, &app()), [create]);
}

/// Also rule M10.
#[test]
fn a_derived_service_outlives_its_last_exporter_for_a_while() {
    let service = derived_service("work-app", "work/app").with_address("192.0.2.1");
    let (mut request, objects) = standing(service.clone());
    request.load_balancer = address("192.0.2.1");
    let mut view = member_view(objects);
    observe_change(&mut view, request.clone().object());
    let lost = service_import("work/app").controlled_by(&request);
    observe_change(&mut view, lost.object()); // the deletion is seen at second 20
    let until = seconds(20).plus_micros(GRACE_MICROS);
    let mut waiting = Plan::one(status(&request, now(not_found()), address("192.0.2.1")));
    waiting.plan_again_at(until);
    assert_eq!(events(&view, &app()), ["UnknownServiceImport"], "that the import ends is told");
    let mut silent = planned(&view, &app());
    silent.writes.iter_mut().for_each(|write| write.events.clear());
    assert_eq!(silent, waiting);
    let reported = MultiClusterService { conditions: vec![not_found()], ..request };
    observe_change(&mut view, reported.clone().object());
    assert_eq!(planned(&view, &app()), Plan { again: Some(until), ..Plan::default() });

    let ended = view.plan(&app(), until).writes;
    let delete = Write::delete(Kind::Service, &service.meta);
    assert_eq!(ended, [delete, status(&reported, not_found(), none())]);
    observe_removal(&mut view, &service.object());
    let last = MultiClusterService { load_balancer: none(), ..reported };
    observe_change(&mut view, last.clone().object());
    assert_eq!(view.plan(&app(), until).writes, [labels(&last, true, "app", None)]);
}

/// Also rule M10.
#[test]
fn an_exporter_that_comes_back_in_time_finds_the_derived_service_as_it_was() {
    let (request, objects) = standing(derived_service("work-app", "work/app"));
    let mut view = member_view(objects);
    observe_change(&mut view, service_import("work/app").controlled_by(&request).object());
    observe_change(
        &mut view,
        service_import("work/app").controlled_by(&request).showing(resolved(&["member-3"])).object(),
    );
    let late = view.plan(&app(), seconds(20).plus_micros(2 * GRACE_MICROS));
    assert_eq!(late, Plan::default());
}

/// Rule M11: The agent restarts within the 30 s of `--derived-service-grace`, or has not created the ServiceImport of a
/// new target yet
/// Then: The member agent waits for the full 30 s from its restart, or from the creation of the ServiceImport. Then the
/// member agent deletes the derived Service
#[test]
fn the_grace_of_a_derived_service_begins_when_its_service_import_exists() {
    let (request, objects) = standing(derived_service("work-app", "work/app"));
    let (imports, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|it| it.kind() == Kind::ServiceImport);
    assert_eq!(imports.len(), 1);
    let mut view = member_view(others);
    let late = seconds(20).plus_micros(2 * GRACE_MICROS);
    let is_removed = |view: &Planner, at| {
        let is_delete = |write: &Write| matches!(write.action, Action::Delete { kind: Kind::Service, .. });
        view.plan(&app(), at).writes.iter().any(is_delete)
    };
    assert!(!is_removed(&view, late), "nobody has asked for exporters yet");
    observe_and_plan(&mut view, applied(service_import("work/app").controlled_by(&request).object()), late);
    assert!(!is_removed(&view, late.plus_micros(GRACE_MICROS - 1)));
    assert!(is_removed(&view, late.plus_micros(GRACE_MICROS)));
    // It also begins when a ServiceImport with exporters is being deleted.
    let (request, objects) = standing(derived_service("work-app", "work/app"));
    let going = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"])).deleting();
    let mut view = member_view(objects);
    observe_and_plan(&mut view, applied(going.object()), late);
    assert!(!is_removed(&view, late.plus_micros(GRACE_MICROS - 1)));
    assert!(is_removed(&view, late.plus_micros(GRACE_MICROS)));
}

/// Rule M12: A MultiClusterService is deleted, with any propagation policy
/// Then: The member agent deletes the derived Service and the ServiceImport, even if `--cascade=orphan` has removed the
/// owner references of both. Then the member agent removes the finalizer of the MultiClusterService
#[test]
fn a_deleted_multi_cluster_service_takes_what_was_made_for_it_then_goes() {
    let service = derived_service("work-app", "work/app");
    let (request, mut objects) = standing(service.clone());
    let dying = request.clone().deleting();
    objects[0] = dying.clone().object();
    let import = service_import("work/app").controlled_by(&request);
    let view = member_view(objects);
    let deletes = [Write::delete(Kind::Service, &service.meta), Write::delete(Kind::ServiceImport, &import.meta)];
    assert_eq!(writes(&view, &app()), deletes);
    let view = member_view([dying.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&dying, false, "app", Some("work-app"))]);
    assert_eq!(events(&view, &app()), ["UnimportedService"]);

    // What others made stays: also a Service with our label in another namespace, and one that a user wrote to the
    // label of the MultiClusterService.
    let forged = Service { derived_from: Some(named("work/app")), ..self::service("work/forged") };
    let of_another = derived_service("work-other", "work/other");
    let edited = dying.clone().deriving("work-other");
    let view = member_view([edited.clone().object(), forged.object(), of_another.object()]);
    assert_eq!(writes(&view, &app()), [labels(&edited, false, "app", Some("work-other"))]);
    assert_eq!(events(&view, &app()), ["UnimportedService"]);
    let mut released = dying;
    released.meta.finalizers.ours = false;
    assert_eq!(planned(&member_view([released.object()]), &app()), Plan::default(), "another controller keeps it");
}

/// Also rule M12.
#[test]
fn a_deleted_multi_cluster_service_takes_the_import_that_was_orphaned_by_its_deletion() {
    let dying = standing(derived_service("work-app", "work/app")).0.deleting();
    let orphaned = service_import("work/app").marked();
    let mut objects = vec![dying.clone().object(), orphaned.clone().object()];
    let delete = Write::delete(Kind::ServiceImport, &orphaned.meta);
    assert_eq!(writes(&member_view(objects.clone()), &app()), [delete]);
    // A ServiceImport that another MultiClusterService controls, or may take over, stays.
    let other = request("work/other").importing("app").taken_on();
    let taken = orphaned.controlled_by(&other);
    let goes = [labels(&dying, false, "app", Some("work-app"))];
    assert_eq!(writes(&member_view([dying.object(), taken.object()]), &app()), goes);
    objects.push(other.object());
    assert_eq!(writes(&member_view(objects), &app()), goes);
}

/// Rule M7: The target of a MultiClusterService changes
/// Then: The member agent first writes the new target to the label of the MultiClusterService. Then the member agent
/// deletes the old ServiceImport. The derived Service keeps its address, and gets the ports and slices of the new
/// target
#[test]
fn a_multi_cluster_service_that_changes_its_target_leaves_the_old_import_first() {
    let service = derived_service("work-app", "work/app");
    let (request, mut objects) = standing(service);
    let turned = request.clone().importing("web");
    objects[0] = turned.clone().object();
    let view = member_view(objects.clone());
    assert_eq!(writes(&view, &app()), [labels(&turned, true, "web", Some("work-app"))], "it is noted first");
    let noted = turned.taken_on();
    objects[0] = noted.object();
    let view = member_view(objects);
    let stale = service_import("work/app").controlled_by(&request);
    let planned = writes(&view, &app());
    assert_eq!(planned[0], Write::delete(Kind::ServiceImport, &stale.meta));
    assert_eq!((planned[1].kind(), &planned[1].at), (Kind::ServiceImport, &named("work/web")));
}

/// Also rule M6.
#[test]
fn a_multi_cluster_service_for_nothing_imports_nothing() {
    let fresh = request("work/app").importing("");
    let view = member_view([fresh.clone().object()]);
    assert_eq!(writes(&view, &app()), [status(&fresh, now(not_found()), none())]);
    let updated = fresh.with_conditions(&[not_found()]);
    assert_eq!(writes(&member_view([updated.object()]), &app()), []);
}

/// Rule N3: A Service of another owner already has the name of a derived Service
/// Then: The member agent does not change the Service of the other owner. The member agent creates the derived Service
/// under a name with 5 hex digits (rule N1). If another Service also has the name with 5 hex digits, rule R7 applies
///
/// Also rule R7.
#[test]
fn a_name_that_a_foreign_service_uses_is_left_alone() {
    let waiting = request("work/app").taken_on().with_conditions(&[not_found()]).uid("0a1b2c3d-aaaa");
    let import = service_import("work/app").controlled_by(&waiting).showing(resolved(&["member-2"]));
    let theirs = service("fleet-system/work-app");
    let view = member_view([waiting.clone().object(), import.clone().object(), theirs.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&waiting, true, "app", Some("work-app-0a1b2"))]);
    let also_theirs = service("fleet-system/work-app-0a1b2").uid("another");
    let view = member_view([waiting.clone().object(), import.object(), theirs.object(), also_theirs.object()]);
    let message = "MultiClusterService work/app of cluster member-1 cannot derive a Service: Services of other owners \
                   use each name that it may have: fleet-system/work-app, fleet-system/work-app-0a1b2. Delete or \
                   rename one of these";
    let in_use = condition("Valid", "False", "NameHeldByAnother", message, 1);
    assert_eq!(writes(&view, &app()), [status(&waiting, now(in_use), none())]);
    let plan = planned(&view, &app());
    assert_eq!((events_of(&plan), blocking_reasons(&plan)), (vec![("NameHeldByAnother", message)], events_of(&plan)));
}

/// Returns the view of an agent with a limit of load balancers. Other members export what the MultiClusterServices
/// request.
fn limited(limit: usize, requests: &[&MultiClusterService], services: &[Service]) -> Planner {
    let mut settings = settings(0);
    settings.load_balancers_per_namespace = Some(limit);
    let imports = requests.iter().map(|request| {
        let path = format!("{}/{}", request.meta.name.namespace, request.import_name);
        service_import(&path).controlled_by(request).showing(resolved(&["member-2"])).object()
    });
    let objects = requests.iter().map(|request| (*request).clone().object()).chain(imports);
    with_objects(Planner::new(settings), objects.chain(services.iter().cloned().map(IntoObject::object)))
}

fn too_many(request: &MultiClusterService) -> Condition {
    let message = format!(
        "MultiClusterService {} of cluster member-1 gets no load balancer: its namespace may have at most 1 \
         (--load-balancers-per-namespace of the member agent), and others come first. Set spec.type to ClusterIP, or delete \
         another MultiClusterService of type LoadBalancer of the namespace",
        request.meta.name
    );
    condition("Valid", "False", "TooManyLoadBalancers", &message, 1)
}

/// Rule M26: The member agent runs with `--load-balancers-per-namespace`, and more MultiClusterServices of a namespace
/// have type LoadBalancer
/// Then: Load balancers that exist stay. The oldest MultiClusterServices get the others, by creationTimestamp and name,
/// also while nobody exports their Services. The rest get no load balancer, and `Valid=False` with reason
/// `TooManyLoadBalancers`. If such an import has a derived Service of type ClusterIP, it stays, with this type
#[test]
fn a_namespace_gets_no_more_load_balancers_than_its_limit_and_the_oldest_come_first() {
    let created = |name: &str, created: i64| {
        let request = request(&format!("work/{name}")).importing(name).taken_on().created(seconds(created));
        request.with_conditions(&[not_found()])
    };
    let key = |request: &MultiClusterService| Key::MultiClusterService(request.meta.name.clone());
    let (old, new) = (created("zz", 1), created("app", 2));
    let refused = |request: &MultiClusterService| [status(request, now(too_many(request)), none())];
    let named = |request: &MultiClusterService, name: &str| [labels(request, true, &request.import_name, Some(name))];

    let view = limited(1, &[&old, &new], &[]);
    assert_eq!(writes(&view, &key(&old)), named(&old, "work-zz"), "the oldest comes first");
    assert_eq!(writes(&view, &key(&new)), refused(&new));
    assert_eq!(blocking_reasons(&planned(&view, &key(&new)))[0].0, "TooManyLoadBalancers");
    let view = limited(2, &[&old, &new], &[]);
    assert_eq!(writes(&view, &key(&new)), named(&new, "work-app"));
    let view = limited(0, &[&old], &[]);
    assert_eq!(writes(&view, &key(&old)).len(), 1);
    assert_eq!(events(&view, &key(&old)), ["TooManyLoadBalancers"]);

    // A load balancer that exists stays, also that of a younger MultiClusterService.
    let holder = created("app", 2).deriving("work-app");
    let service = derived_service("work-app", "work/app");
    let view = limited(1, &[&old, &holder], std::slice::from_ref(&service));
    assert_eq!(writes(&view, &key(&old)), refused(&old));
    assert_eq!(writes(&view, &key(&holder)), [status(&holder, now(found()), none())]);

    // Other namespaces, ClusterIP imports, those that are being deleted without a load balancer, and those that import
    // nothing do not count.
    let other = request("other/app").taken_on().created(seconds(1));
    let shared = created("shared", 1).consumed_as(ConsumerType::ClusterIp);
    let view = limited(1, &[&holder, &shared], std::slice::from_ref(&service));
    assert_eq!(writes(&view, &key(&shared)), named(&shared, "work-shared"), "it needs no load balancer");
    let going = created("going", 1).deleting();
    let nameless = created("nameless", 1).importing("");
    let view = limited(1, &[&other, &shared, &going, &nameless, &new], &[]);
    assert_eq!(writes(&view, &key(&new)), named(&new, "work-app"));
}

/// Also rule M26.
#[test]
fn an_import_over_the_limit_of_load_balancers_stays_a_cluster_ip_import() {
    let holder = request("work/old").importing("old").taken_on().created(seconds(1)).deriving("work-old");
    let changed = request("work/app").taken_on().created(seconds(2)).deriving("work-app").with_conditions(&[found()]);
    let services = [
        derived_service("work-old", "work/old"),
        derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp).ports(&[port("http", 81)]),
    ];
    let view = limited(1, &[&holder, &changed], &services);
    let desired = DerivedService { consumer_type: ConsumerType::ClusterIp, ..derived(&changed) };
    let mended = Write::patch(&services[1].meta, Patch::DerivedService(desired));
    assert_eq!(writes(&view, &app()), [mended, status(&changed, now(too_many(&changed)), none())]);
}

/// Also rule M26.
#[test]
fn the_next_import_gets_its_load_balancer_when_one_ends_or_its_type_changes() {
    let holder = request("work/old").importing("old").taken_on().created(seconds(1)).deriving("work-old");
    let waiting = request("work/app").taken_on().created(seconds(2)).with_conditions(&[not_found()]);
    let service = derived_service("work-old", "work/old");
    let mut view = limited(1, &[&holder, &waiting], std::slice::from_ref(&service));
    let shared = holder.clone().consumed_as(ConsumerType::ClusterIp).generation(2).version(2);
    assert!(observe_change(&mut view, shared.object()).contains(&app()), "the type changes");
    let requeue = observe_change(&mut view, service.clone().of_type(ServiceType::ClusterIp).version(2).object());
    assert!(requeue.contains(&app()), "its load balancer ends: {requeue:?}");
    assert_eq!(writes(&view, &app()), [labels(&waiting, true, "app", Some("work-app"))]);

    let mut view = limited(1, &[&holder, &waiting], std::slice::from_ref(&service));
    observe_removal(&mut view, &service.object());
    assert_eq!(
        writes(&view, &app()),
        [status(&waiting, now(too_many(&waiting)), none())],
        "the older one makes it anew"
    );
    assert!(observe_removal(&mut view, &holder.object()).contains(&app()));
    assert_eq!(writes(&view, &app()), [labels(&waiting, true, "app", Some("work-app"))]);
}

/// Also rule M27.
#[test]
fn a_malformed_request_for_an_internal_load_balancer_makes_no_public_one() {
    let message = |name: &str| {
        format!(
            "the load balancer of MultiClusterService {name} of cluster member-1 is neither created nor changed: an annotation \
             for an internal load balancer has a value other than true and false. Correct \
             networking.fleet.azure.com/azure-load-balancer-internal or \
             service.beta.kubernetes.io/azure-load-balancer-internal of the MultiClusterService"
        )
    };
    let invalid = condition("Valid", "False", "InternalLoadBalancerInvalid", &message("work/app"), 1);
    let malformed = MultiClusterService {
        internal_load_balancer: InternalLoadBalancer::Malformed,
        ..request("work/app").taken_on().with_conditions(&[not_found()])
    };
    let import = service_import("work/app").controlled_by(&malformed).showing(resolved(&["member-2"]));
    let view = member_view([malformed.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &app()), [status(&malformed, now(invalid.clone()), none())]);
    assert_eq!(events(&view, &app()), ["InternalLoadBalancerInvalid"]);

    // A public load balancer that exists is not changed, and an import of type ClusterIP needs none.
    let present = malformed.clone().deriving("work-app");
    let service = derived_service("work-app", "work/app").ports(&[port("http", 81)]);
    let view = member_view([present.clone().object(), import.clone().object(), service.object()]);
    assert_eq!(writes(&view, &app()), [status(&present, now(invalid), none())]);
    let shared = malformed.clone().consumed_as(ConsumerType::ClusterIp);
    let view = member_view([shared.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &app()), [labels(&shared, true, "app", Some("work-app"))]);
    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-2"]) };
    let view = member_view([malformed.clone().object(), import.showing(headless).object()]);
    assert_eq!(writes(&view, &app()), [labels(&malformed, true, "app", Some("work-app"))], "nor a headless one");
}

/// Rule M25: A user writes a name into the label of a MultiClusterService before it has a derived Service, or while its
/// derived Service is being deleted
/// Then: The member agent gives the new derived Service only a name of the rules N1 and N2, and repairs the label. So a
/// user cannot choose a name in `fleet-system` that pods look up, such as `kubernetes`
#[test]
fn a_label_gives_a_new_derived_service_no_other_name_than_the_names_of_its_import() {
    let uid = "0a1b2c3d-aaaa";
    let labelled =
        |label: &str| request("work/app").taken_on().deriving(label).uid(uid).with_conditions(&[not_found()]);
    let import =
        |request: &MultiClusterService| service_import("work/app").controlled_by(request).showing(resolved(&["m"]));
    let shown = |request: &MultiClusterService, services: Vec<Object>| {
        let objects = [request.clone().object(), import(request).object()].into_iter().chain(services);
        writes(&member_view(objects), &app())
    };
    let going = || derived_service("work-app", "work/app").deleting().object();
    for label in ["kubernetes", "prometheus", "work-app2", "work", "work-app-99999", "No-Label", ""] {
        let request = labelled(label);
        for services in [Vec::new(), vec![going()], vec![derived_service("work-other", "work/other").object()]] {
            let mended = [labels(&request, true, "app", Some("work-app"))];
            assert_eq!(
                shown(&request, services),
                mended,
                "{label:?}: the agent repairs the label before it derives a Service"
            );
        }
    }
    for label in ["work-app", "work-app-0a1b2"] {
        let request = labelled(label);
        let create = Write::create(in_system(label), Desired::Service(derived(&request)));
        assert_eq!(shown(&request, Vec::new()), [create], "a name that the agent itself can have chosen");
    }
    // A Service that is already derived keeps its name, and so its addresses.
    let request = labelled("earlier");
    let planned = shown(&request, vec![derived_service("earlier", "work/app").object()]);
    assert!(planned.iter().all(|write| write.kind() != Kind::Service && &*write.at.name != "work-app"), "{planned:?}");
}

// === ServiceImport and its claim ===

/// Rule I1: A ServiceImport is created in a member
/// Then: The member agent creates the claim (InternalServiceImport) `<namespace>-<name>` in the hub. If the type of the
/// claim is ClusterIP, an annotation on the claim shows this type
#[test]
fn an_import_is_claimed_in_the_hub_as_its_multi_cluster_service_wants_to_consume_it() {
    for consumer_type in [ConsumerType::LoadBalancer, ConsumerType::ClusterIp] {
        let request = request("work/app").consumed_as(consumer_type).taken_on();
        let unmarked = service_import("work/app");
        let view = member_view([request.clone().object(), unmarked.clone().object()]);
        assert_eq!(writes(&view, &import()), [Write::add_finalizer(Kind::ServiceImport, &unmarked.meta)]);
        let marked = service_import("work/app").controlled_by(&request).version(7);
        let view = member_view([request.object(), marked.clone().object()]);
        let reference = reference("member-1", &marked.meta, Some(seconds(1)));
        let desired = Desired::InternalServiceImport { reference, consumer_type };
        let at = in_hub_of("member-1", "work-app");
        assert_eq!(writes(&view, &import()), [Write::create(at, desired)]);
    }
}

/// Rule I2: The hub agent grants a claim (InternalServiceImport)
/// Then: The member agent copies the status of the claim to the status of the ServiceImport
#[test]
fn the_status_shows_the_hubs_answer_and_the_claim_follows_the_multi_cluster_service() {
    let request = request("work/app").consumed_as(ConsumerType::ClusterIp).taken_on();
    let stored = service_import("work/app").controlled_by(&request);
    let answered = claim("member-1", &stored).with_status(resolved(&["member-2"]));
    let view = member_view([request.clone().object(), stored.clone().object(), answered.clone().object()]);
    let status_and_reason = Write::patch(&answered.meta, Patch::ConsumerType(ConsumerType::ClusterIp));
    let shows = Write::patch(&stored.meta, Patch::ServiceImportStatus(resolved(&["member-2"])));
    assert_eq!(writes(&view, &import()), [status_and_reason, shows]);

    // The MultiClusterService now requests another Service. So its type and the status of the claim no longer matter
    // for the ServiceImport that it requested before.
    let turned = request.importing("web");
    let answered = answered.with_status(ImportStatus::default());
    let view = member_view([turned.object(), stored.object(), answered.object()]);
    assert_eq!(writes(&view, &import()), []);
}

/// Rule I3: The type of a ServiceImport changes to ClusterIP
/// Then: The member agent changes the type of the claim (InternalServiceImport) to ClusterIP
#[test]
fn a_claim_that_is_to_be_shared_is_turned() {
    let exclusive = request("work/app").taken_on();
    let shared = exclusive.clone().consumed_as(ConsumerType::ClusterIp);
    let stored = service_import("work/app").controlled_by(&exclusive);
    let one = claim("member-1", &stored);
    let view = |request: &MultiClusterService| {
        member_view([request.clone().object(), stored.clone().object(), one.clone().object()])
    };
    assert_eq!(writes(&view(&exclusive), &import()), []);
    let turn = Patch::ConsumerType(ConsumerType::ClusterIp);
    assert_eq!(writes(&view(&shared), &import()), [Write::patch(&one.meta, turn)]);
}

/// Rule M24: A MultiClusterService is deleted in a member where no process manages claims (the member agent runs with
/// `--controllers=multiclusterservice` alone)
/// Then: The member agent removes the finalizer of the ServiceImport when the ServiceImport has no claim
/// (InternalServiceImport) in the hub
#[test]
fn an_import_that_nobody_claims_goes_where_no_claims_are_made() {
    let name = named("work/app");
    let import = service_import("work/app").marked();
    let dying = import.clone().deleting();
    let plan = |view: &fleetnet_core::member::Planner| view.plan_unclaimed_import(&name).0.writes;
    let remove_finalizer = Write::remove_finalizer(Kind::ServiceImport, &dying.meta);
    assert_eq!(plan(&member_view([dying.clone().object()])), [remove_finalizer]);
    assert_eq!(plan(&member_view([import.clone().object()])), [], "it is wanted");
    assert_eq!(
        plan(&member_view([service_import("work/app").deleting().with_finalizer("x").object()])),
        [],
        "it is let go"
    );
    for claim in [claim("member-1", &import), claim("member-1", &import).deleting()] {
        assert_eq!(plan(&member_view([dying.clone().object(), claim.object()])), [], "its claim goes first");
    }
    let mut view = member_view([dying.clone().object()]);
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-1", "work-app"));
    assert_eq!(plan(&view), [], "that may be its claim");
    let mut view = member_view([dying.clone().object()]);
    view.watch_state(Kind::InternalServiceImport, WatchState::Incomplete, seconds(20), &mut Vec::new());
    assert_eq!(plan(&view), [], "claims are not known");
    let mut view = member_view([dying.object()]);
    undecodable(&mut view, Kind::ServiceImport, &name);
    assert_eq!(plan(&view), [], "its present state is not known");
}

#[test]
fn the_newest_claim_with_an_answer_counts_and_only_the_type_of_the_controller() {
    let request = request("work/app").taken_on();
    let stored = service_import("work/app").controlled_by(&request);
    let shared = claim("member-1", &stored).east_west().with_status(resolved(&["member-2"]));
    let mut exclusive = claim("member-1", &stored).uid("uid-of-exclusive").created(seconds(9));
    exclusive.meta.name = in_hub_of("member-1", &names::joined_with_uid("work", "app", &stored.meta.uid));
    let shows = |status: ImportStatus| {
        let exclusive = exclusive.clone().with_status(status);
        let objects = [request.clone().object(), stored.clone().object(), shared.clone().object(), exclusive.object()];
        let shown = writes(&member_view(objects), &import()).into_iter().find_map(|write| match write.action {
            Action::Patch { patch: Patch::ServiceImportStatus(status), .. } => Some(status),
            _ => None,
        });
        shown.expect("a status").clusters
    };
    assert_eq!(shows(ImportStatus::default()), ["member-2".into()], "the exclusive claim waits");
    assert_eq!(shows(resolved(&["member-4"])), ["member-4".into()]);
    // A MultiClusterService that was created again does not control the import.
    let again = request.consumed_as(ConsumerType::ClusterIp).uid("uid-of-another");
    let view = member_view([again.object(), stored.clone().object(), claim("member-1", &stored).object()]);
    assert_eq!(writes(&view, &import()), []);
}

/// Rule I4: A ServiceImport is deleted in a member
/// Then: The member agent deletes the claims (InternalServiceImports) of the ServiceImport. Then the member agent
/// removes the finalizer of the ServiceImport. The member agent also deletes claims without a ServiceImport, exclusive
/// claims of an earlier ServiceImport, and claims with a name that this agent does not use. A shared claim of an
/// earlier ServiceImport gets the reference of the new one, so the import continues
#[test]
fn a_claim_goes_with_its_import_then_the_mark() {
    let stored = service_import("work/app").marked();
    let standing = claim("member-1", &stored);
    let dying = stored.clone().deleting();
    let delete = Write::delete(Kind::InternalServiceImport, &standing.meta);
    let view = member_view([dying.clone().object(), standing.clone().object()]);
    assert_eq!(writes(&view, &import()), std::slice::from_ref(&delete));
    let view = member_view([dying.clone().object(), standing.clone().deleting().object()]);
    assert_eq!(writes(&view, &import()), [Write::remove_finalizer(Kind::ServiceImport, &dying.meta)]);
    assert_eq!(
        writes(&member_view([standing.clone().object()]), &import()),
        std::slice::from_ref(&delete),
        "a dangling claim"
    );
    let recreated = stored.uid("uid-anew");
    let view = member_view([recreated.object(), standing.object()]);
    assert_eq!(writes(&view, &import()), [delete], "an import made anew claims anew");
}

/// Also rule I4.
#[test]
fn a_shared_claim_of_an_earlier_import_is_taken_over() {
    let request = request("work/app").consumed_as(ConsumerType::ClusterIp).taken_on();
    let before = service_import("work/app").controlled_by(&request);
    let now = before.clone().uid("uid-anew").version(7);
    let shared = claim("member-1", &before).east_west();
    let with = |claims: &[&InternalServiceImport]| {
        let claims = claims.iter().map(|claim| (*claim).clone().object());
        writes(&member_view([request.clone().object(), now.clone().object()].into_iter().chain(claims)), &import())
    };
    let take_over = |claim: &InternalServiceImport| {
        Write::patch(&claim.meta, Patch::InternalServiceImport(reference("member-1", &now.meta, Some(seconds(1)))))
    };
    assert_eq!(with(&[&shared]), [take_over(&shared)]);
    let mut foreign = shared.clone().uid("uid-foreign");
    foreign.meta.name = in_hub_of("member-1", "work-app-by-hand");
    let delete = |claim: &InternalServiceImport| Write::delete(Kind::InternalServiceImport, &claim.meta);
    assert_eq!(with(&[&shared, &foreign]), [delete(&foreign), take_over(&shared)]);
    assert_eq!(with(&[&foreign]), [delete(&foreign)], "this agent would not choose the name");
    let own = InternalServiceImport { reference: reference("member-1", &now.meta, Some(seconds(1))), ..foreign };
    assert_eq!(with(&[&shared, &own]), [delete(&shared)], "the import has a claim");
}

// === Imports of distributed slices ===

/// Returns the distributed slice of a slice of `work/app` in member-2. Also returns the MultiClusterService,
/// ServiceImport and derived Service with which member-1 imports `work/app`.
fn distributed() -> (HubSlice, Vec<Object>) {
    let distributed =
        distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1").generation(4))).marked();
    let (_, objects) = standing(derived_service("work-app", "work/app"));
    (distributed, objects)
}

fn key(distributed: &HubSlice) -> Key {
    Key::SliceImport(in_system(&distributed.meta.name.name))
}

fn view_of(distributed: Option<&HubSlice>, imported: Option<&EndpointSlice>, objects: &[Object]) -> Planner {
    let distributed = distributed.cloned().map(Object::EndpointSliceImport);
    let imported = imported.cloned().map(IntoObject::object);
    member_view(objects.iter().cloned().chain(distributed).chain(imported))
}

fn wanted(endpoints: &[&str], generation: i64) -> ImportedSlice {
    ImportedSlice {
        service: Some("work-app".into()),
        mcs: None,
        content: content(endpoints),
        observed_generation: generation,
    }
}

fn sample(first: bool) -> Option<Sample> {
    Some(Sample::SliceImported { origin: "member-2".into(), first, exported_since: Some(seconds(5)) })
}

/// Rule L5: The member agent imports a slice
/// Then: The member agent records at most one latency sample for each generation of the source slice, in the write that
/// imports the slice. If a Go agent has recorded the sample for this generation, the member agent records no sample
///
/// Rule P1: The hub agent distributes a slice to a member
/// Then: The member agent adds the finalizer to the distributed slice (EndpointSliceImport). Then the member agent
/// creates the EndpointSlice in `fleet-system`, bound to the derived Service
#[test]
fn a_distributed_slice_is_marked_then_written_and_measured_once() {
    let (distributed, objects) = distributed();
    let mut unmarked = distributed.clone();
    unmarked.meta.finalizers.ours = false;
    let view = view_of(Some(&unmarked), None, &objects);
    assert_eq!(writes(&view, &key(&distributed)), [Write::add_finalizer(Kind::EndpointSliceImport, &unmarked.meta)]);

    let mut view = view_of(Some(&distributed), None, &objects);
    let at = in_system(&distributed.meta.name.name);
    let create = Write::create(at, Desired::EndpointSlice(wanted(&["10.0.0.1"], 4)));
    assert_eq!(writes(&view, &key(&distributed)), [create.clone().measured(sample(true))]);
    for state in [WatchState::Incomplete, WatchState::Absent] {
        view.watch_state(Kind::MergedServiceImport, state, NOW, &mut Vec::new());
        let created = writes(&view, &key(&distributed));
        assert_eq!(created, [create.clone().measured(sample(true))], "it needs no kind of the standard API");
    }

    let imported =
        EndpointSlice { observed_generation: Some(4), ..imported_slice(&distributed.meta.name.name, "work-app") };
    assert_eq!(writes(&view_of(Some(&distributed), Some(&imported), &objects), &key(&distributed)), []);

    let changed = distributed.clone().with_addresses(&["10.0.0.9"], 5);
    let patch = Write::patch(&imported.meta, Patch::ImportedSlice(wanted(&["10.0.0.9"], 5)));
    let view = view_of(Some(&changed), Some(&imported), &objects);
    assert_eq!(writes(&view, &key(&distributed)), [patch.measured(sample(false))]);

    // A repair of an edited imported slice does not change the generation, so it adds no latency sample.
    let bent = imported.endpoints(&["10.6.6.6"]);
    let patch = Write::patch(&bent.meta, Patch::ImportedSlice(wanted(&["10.0.0.1"], 4)));
    assert_eq!(writes(&view_of(Some(&distributed), Some(&bent), &objects), &key(&distributed)), [patch]);
}

/// Also rule L5.
#[test]
fn what_a_go_agent_observed_is_not_observed_again() {
    let (mut distributed, objects) = distributed();
    distributed.observed_generation = Some(4);
    let planned = writes(&view_of(Some(&distributed), None, &objects), &key(&distributed));
    assert_eq!(planned[0].sample, None);
    distributed.observed_generation = Some(3);
    let planned = writes(&view_of(Some(&distributed), None, &objects), &key(&distributed));
    assert_eq!(planned[0].sample, sample(false));
}

/// Rule P3: The hub agent withdraws a distributed slice (EndpointSliceImport)
/// Then: The member agent deletes the imported slice. When the imported slice is removed, the member agent removes the
/// finalizer of the distributed slice. The member agent does not delete slices of other owners
#[test]
fn a_withdrawn_slice_is_deleted_then_unmarked() {
    let (distributed, objects) = distributed();
    let dying = distributed.clone().deleting();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let view = view_of(Some(&dying), Some(&imported), &objects);
    assert_eq!(writes(&view, &key(&distributed)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
    let view = view_of(Some(&dying), Some(&imported.clone().deleting()), &objects);
    assert_eq!(writes(&view, &key(&distributed)), [], "it may still be routed to");
    let unmark = Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta);
    assert_eq!(writes(&view_of(Some(&dying), None, &objects), &key(&distributed)), std::slice::from_ref(&unmark));
    let theirs = EndpointSlice { imported: false, service: None, observed_generation: None, ..imported.clone() };
    assert_eq!(
        writes(&view_of(Some(&dying), Some(&theirs), &objects), &key(&distributed)),
        std::slice::from_ref(&unmark),
        "not ours to delete"
    );
    let released = writes(&view_of(Some(&dying), Some(&theirs), &[]), &key(&distributed));
    assert_eq!(released, std::slice::from_ref(&unmark), "also if nothing is imported");
    let relabelled = EndpointSlice { imported: false, ..imported.clone() };
    let bare = EndpointSlice { observed_generation: None, service: None, ..imported };
    for edited in [relabelled, bare] {
        let planned = writes(&view_of(Some(&dying), Some(&edited), &objects), &key(&distributed));
        assert_eq!(planned, [Write::delete(Kind::EndpointSlice, &edited.meta)], "one mark is enough: {edited:?}");
    }
    let mut unmarked = dying;
    unmarked.meta.finalizers.ours = false;
    assert_eq!(writes(&view_of(Some(&unmarked), None, &objects), &key(&distributed)), []);
}

/// Rule P5: An EndpointSlice of another owner already has the name of an imported slice
/// Then: The member agent does not change the slice of the other owner, and imports all other slices. The agent sets
/// `Valid=False` (reason `NameHeldByAnother`) on the MultiClusterService once, and not again after a restart. The
/// message and the log contain the name of the other owner's slice
#[test]
fn a_slice_of_another_owner_under_its_name_blocks_the_import_and_is_reported() {
    let (distributed, objects) = distributed();
    let theirs = EndpointSlice {
        imported: false,
        observed_generation: None,
        ..imported_slice(&distributed.meta.name.name, "another")
    };
    let plan = planned(&view_of(Some(&distributed), Some(&theirs), &objects), &key(&distributed));
    assert_eq!(plan.writes, []);
    let why = "EndpointSlice fleet-system/member-2-work-app-1-e095f of cluster member-1 is not managed by this agent, \
               so the imported slice of that name cannot be written. Delete it, or restore its managed-by label";
    assert_eq!(blocking_reasons(&plan), [("NameHeldByAnother", why)]);
    let mut unmarked = distributed;
    unmarked.meta.finalizers.ours = false;
    let plan = planned(&view_of(Some(&unmarked), Some(&theirs), &objects), &key(&unmarked));
    assert_eq!((plan.writes.len(), blocking_reasons(&plan)), (0, vec![("NameHeldByAnother", why)]), "nor is it marked");
    let bound = EndpointSlice { service: Some("work-app".into()), ..theirs };
    let plan = planned(&view_of(Some(&unmarked), Some(&bound), &objects), &key(&unmarked));
    assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), (0, 1), "no import has begun, so it is not ours");
}

/// Also rule P5.
#[test]
fn a_slice_of_another_owner_with_the_name_of_an_import_is_reported_once() {
    let (distributed, objects) = distributed();
    let theirs = EndpointSlice {
        imported: false,
        observed_generation: None,
        ..imported_slice(&distributed.meta.name.name, "another")
    };
    let request = Key::MultiClusterService(named("work/app"));
    let mut view = view_of(Some(&distributed), None, &objects);
    assert_eq!(writes(&view, &request), []);
    let ours = EndpointSlice { service: Some("work-app".into()), ..theirs.clone() };
    for (present, why) in [(&theirs.clone().deleting(), "its name will be free"), (&ours, "it lost its other labels")] {
        assert_eq!(writes(&view_of(Some(&distributed), Some(present), &objects), &request), [], "{why}");
    }
    assert!(observe_change(&mut view, theirs.clone().object()).contains(&request));
    let plan = planned(&view, &request);
    let why = "service work/app is imported into cluster member-1 without some of its endpoints: other EndpointSlices \
               already have the names of imported slices: fleet-system/member-2-work-app-1-e095f. Delete these, or \
               restore their managed-by label";
    assert_eq!(events_of(&plan), [("NameHeldByAnother", why)]);
    let [Write { action: Action::Patch { patch: Patch::MultiClusterServiceStatus { conditions, .. }, .. }, .. }] =
        &plan.writes[..]
    else {
        panic!("{plan:?}")
    };
    assert_eq!((conditions[0].status.as_str(), &*conditions[0].reason), ("False", "NameHeldByAnother"));

    // A restarted agent finds the condition in the MultiClusterService and writes nothing, even before it has listed
    // all slices.
    let reported = events_of_request(&objects, conditions);
    let mut view = view_of(Some(&distributed), Some(&theirs), &reported);
    assert_eq!(writes(&view, &request), []);
    for kind in [Kind::EndpointSlice, Kind::EndpointSliceImport] {
        for (distributed, present) in [(Some(&distributed), Some(&theirs)), (Some(&distributed), None), (None, None)] {
            let mut half = view_of(distributed, present, &reported);
            half.watch_state(kind, WatchState::Incomplete, SEEN, &mut Vec::new());
            assert_eq!(writes(&half, &request), [], "{kind:?}");
        }
        let mut half = view_of(None, None, &events_of_request(&objects, &[not_found()]));
        half.watch_state(kind, WatchState::Incomplete, SEEN, &mut Vec::new());
        assert_eq!(events(&half, &request), ["FoundServiceImport"], "no name was reported");
    }
    let mut unknown = view_of(Some(&distributed), None, &reported);
    undecodable(&mut unknown, Kind::EndpointSlice, &theirs.meta.name);
    assert_eq!(writes(&unknown, &request), [], "it has the name still");
    assert!(observe_removal(&mut view, &theirs.clone().object()).contains(&request), "the name is free");
    assert_eq!(events(&view, &request), ["FoundServiceImport"]);
    let mut view = view_of(Some(&distributed), None, &reported);
    undecodable(&mut view, Kind::EndpointSlice, &theirs.meta.name);
    assert_eq!(writes(&view, &request), [], "it is not known whose the slice is");

    let mut view = view_of(Some(&distributed), Some(&theirs), &reported);
    assert!(
        observe_removal(&mut view, &Object::EndpointSliceImport(distributed)).contains(&request),
        "nobody needs it"
    );
    assert_eq!(events(&view, &request), ["FoundServiceImport"]);
}

/// Returns the objects, with these conditions in the MultiClusterService.
fn events_of_request(objects: &[Object], conditions: &[Condition]) -> Vec<Object> {
    let reported = |object: &Object| match object {
        Object::MultiClusterService(request) => {
            Object::MultiClusterService(MultiClusterService { conditions: conditions.to_vec(), ..request.clone() })
        }
        other => other.clone(),
    };
    objects.iter().map(reported).collect()
}

/// Also rule P5.
#[test]
fn an_imported_slice_is_known_while_it_is_the_same_object_even_if_its_labels_and_its_annotation_are_removed() {
    let (distributed, objects) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let bare = EndpointSlice { imported: false, service: None, observed_generation: None, ..imported.clone() };
    for (uid, expected) in [(&*imported.meta.uid, (1, 0)), ("uid-of-another", (0, 1))] {
        let mut view = view_of(Some(&distributed), Some(&imported), &objects);
        observe_change(&mut view, bare.clone().uid(uid).version(2).object());
        let plan = planned(&view, &key(&distributed));
        assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), expected, "{uid}");
    }
}

/// Rule P6: The address type of a distributed slice (EndpointSliceImport) changes
/// Then: The member agent deletes the imported slice and creates it again with the new address type
#[test]
fn a_slice_of_another_address_type_is_recreated() {
    let (mut distributed, objects) = distributed();
    Arc::make_mut(&mut distributed.spec.content).address_type = AddressType::IPv6;
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let view = view_of(Some(&distributed), Some(&imported), &objects);
    assert_eq!(writes(&view, &key(&distributed)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
}

/// Rule P7: A user deletes an imported slice
/// Then: The member agent creates the imported slice again
#[test]
fn an_imported_slice_that_somebody_deleted_is_recreated() {
    let (distributed, objects) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let mut view = view_of(Some(&distributed), Some(&imported), &objects);
    assert_eq!(observe_removal(&mut view, &imported.object()), [key(&distributed)]);
    let planned = writes(&view, &key(&distributed));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
    let changed = distributed.with_addresses(&["10.0.0.9"], 5);
    let going = imported_slice(&changed.meta.name.name, "work-app").deleting();
    let plan = self::planned(&view_of(Some(&changed), Some(&going), &objects), &key(&changed));
    assert_eq!(plan, Plan::default(), "it is not gone yet");
}

/// Also rules A9, P9.
#[test]
fn an_imported_slice_that_nobody_needs_stays_while_a_kind_is_not_listed() {
    let (distributed, _) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let kinds = [
        Kind::EndpointSliceImport,
        Kind::EndpointSlice,
        Kind::MultiClusterService,
        Kind::ServiceImport,
        Kind::Service,
        Kind::InternalServiceImport,
        Kind::MemberAgent,
    ];
    for kind in kinds {
        let mut view = view_of(None, Some(&imported), &[]);
        assert_eq!(writes(&view, &key(&distributed)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
        view.watch_state(kind, WatchState::Incomplete, NOW, &mut Vec::new());
        assert_eq!(writes(&view, &key(&distributed)), [], "{kind:?}");
    }
}

/// Rule P9: A distributed slice (EndpointSliceImport) is missing but was never withdrawn (the hub was restored from a
/// backup)
/// Then: The member agent does not delete the imported slice until the agent knows the claim (InternalServiceImport)
/// and the exporting members again, and for 60 s more. If the derived Service does not exist, the member agent deletes
/// the imported slice at once
#[test]
fn a_slice_that_the_hub_forgot_is_kept_until_the_hub_is_itself_again() {
    let (distributed, mut objects) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let mut view = view_of(None, Some(&imported), &objects);
    assert_eq!(
        planned(&view, &key(&distributed)),
        Plan::default(),
        "no claim is known: nobody can say that it should go"
    );

    let import = service_import("work/app");
    let fulfilled = claim("member-1", &import).with_status(resolved(&["member-2"]));
    let requeue = observe_change(&mut view, fulfilled.object());
    assert!(requeue.contains(&key(&distributed)), "the fulfilled claim wakes it: {requeue:?}");
    let until = seconds(20).plus_micros(ORPHAN_GRACE_MICROS);
    assert_eq!(planned(&view, &key(&distributed)), Plan { again: Some(until), ..Plan::default() });
    let delete = Write::delete(Kind::EndpointSlice, &imported.meta);
    assert_eq!(view.plan(&key(&distributed), until).writes, std::slice::from_ref(&delete));

    // The grace period starts when the distributed slices are listed, if the imported slice is known before that.
    let mut late = view_of(None, None, &objects);
    observe_change(&mut late, claim("member-1", &import).with_status(resolved(&["member-2"])).object());
    late.watch_state(Kind::EndpointSliceImport, WatchState::Incomplete, seconds(25), &mut Vec::new());
    observe_change(&mut late, imported.clone().object());
    late.watch_state(Kind::EndpointSliceImport, WatchState::Complete, seconds(30), &mut Vec::new());
    let plan = late.plan(&key(&distributed), seconds(31));
    assert_eq!((plan.writes, plan.again), (Vec::new(), Some(seconds(30).plus_micros(ORPHAN_GRACE_MICROS))));

    // If the hub agent distributes the slice again before the end of the grace period, the imported slice stays.
    observe_change(&mut view, Object::EndpointSliceImport(distributed.clone()));
    assert_eq!(view.plan(&key(&distributed), until), Plan::default());

    // Without its derived Service (the last object), the imported slice is removed at once, without a grace period.
    objects.pop();
    assert_eq!(writes(&view_of(None, Some(&imported), &objects), &key(&distributed)), [delete]);
    let going = view_of(None, Some(&imported.deleting()), &objects);
    assert_eq!(planned(&going, &key(&distributed)), Plan::default(), "it is deleted already");
}

/// Also rule P13.
#[test]
fn an_import_goes_back_to_an_older_state_of_its_source_only_after_a_minute() {
    let (distributed, objects) = distributed();
    let (older, newest) = (["10.1.0.1"], ["10.1.0.2"]);
    let imported = EndpointSlice {
        observed_generation: Some(7),
        ..imported_slice(&distributed.meta.name.name, "work-app").endpoints(&newest)
    };
    let mut view = view_of(Some(&distributed.clone().with_addresses(&newest, 7)), Some(&imported), &objects);
    assert_eq!(planned(&view, &key(&distributed)), Plan::default());

    // A restored hub has an older state, perhaps in an object of its own, and changes it to another older state.
    let back = distributed.clone().version(2).with_addresses(&older, 5).uid("uid-of-restored");
    observe_change(&mut view, Object::EndpointSliceImport(back.clone()));
    let until = seconds(20).plus_micros(RESTORE_GRACE_MICROS);
    let wait = Plan { again: Some(until), ..Plan::default() };
    assert_eq!(planned(&view, &key(&distributed)), wait);
    let restarted = view_of(Some(&back), Some(&imported), &objects);
    assert!(planned(&restarted, &key(&distributed)).again.is_some(), "also after a restart of the importer");
    observe_and_plan(
        &mut view,
        applied(Object::EndpointSliceImport(back.clone().version(4).with_addresses(&older, 6))),
        seconds(50),
    );
    assert_eq!(view.plan(&key(&distributed), seconds(79)), wait);
    let write = Write::patch(&imported.meta, Patch::ImportedSlice(wanted(&older, 6)));
    assert_eq!(view.plan(&key(&distributed), until).writes, [write.measured(sample(false))]);

    // The newest state returns, and then a newer one.
    observe_change(&mut view, Object::EndpointSliceImport(back.clone().version(5).with_addresses(&newest, 7)));
    assert_eq!(planned(&view, &key(&distributed)), Plan::default());
    observe_change(&mut view, Object::EndpointSliceImport(back.version(6).with_addresses(&older, 8)));
    let write = Write::patch(&imported.meta, Patch::ImportedSlice(wanted(&older, 8)));
    assert_eq!(writes(&view, &key(&distributed)), [write.measured(sample(false))]);
}

/// Rule P13: A distributed slice (EndpointSliceImport) has a lower generation of its source slice than the imported
/// slice shows in `last-observed-generation` (the hub was restored from a backup, or a slice stream ended)
/// Then: The member agent keeps the imported slice as it is for 60 s in which its watch of distributed slices has
/// contact with the hub. Meanwhile the exporter and the hub agent write the newest state again. If the member uses a
/// slice stream, the imported slice may have what a stream delivered. Then the member agent keeps it for 1 h, unless a
/// hub agent certainly leads, which can write the object. These show it: a stream stays open for the 60 s; a hub agent
/// ended the last stream (ABORTED); this process has seen that the object went back, in a write after the last import.
/// If the hub agent changes or withdraws its offer, the 60 s begin with this change
#[test]
fn an_older_distributed_slice_that_vanishes_leaves_the_imported_slice_its_minute() {
    let (distributed, objects) = distributed();
    let imported = EndpointSlice {
        observed_generation: Some(7),
        ..imported_slice(&distributed.meta.name.name, "work-app").endpoints(&["10.1.0.2"])
    };
    let older = Object::EndpointSliceImport(distributed.clone().with_addresses(&["10.1.0.2"], 5));
    let mut view = view_of(Some(&distributed), Some(&imported), &objects);
    let fulfilled = claim("member-1", &service_import("work/app")).with_status(resolved(&["member-2"]));
    observe_change(&mut view, fulfilled.object());
    observe_change(&mut view, older.clone());
    assert_eq!(planned(&view, &key(&distributed)), Plan::default(), "it has the same endpoints");
    let gone = seconds(20).plus_micros(2 * ORPHAN_GRACE_MICROS);
    let meta = older.meta();
    observe_and_plan(&mut view, removed(older.kind(), meta.name.clone(), meta.uid.clone()), gone);
    let until = gone.plus_micros(ORPHAN_GRACE_MICROS);
    assert_eq!(view.plan(&key(&distributed), gone), Plan { again: Some(until), ..Plan::default() });
    assert_eq!(view.plan(&key(&distributed), until).writes, [Write::delete(Kind::EndpointSlice, &imported.meta)]);
}

/// Rule P14: The hub was restored from a backup, and a claim (InternalServiceImport) has other exporters, ports or
/// another type than before
/// Then: For 60 s, the member agent keeps the status of a ServiceImport that has exporters, and the derived Service. It
/// creates missing objects and continues to make claims. A member agent that starts in this time does not wait
#[test]
fn an_import_keeps_its_services_for_a_minute_after_a_restore_of_the_hub() {
    let bound = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let status = resolved(&["member-2"]);
    let import = service_import("work/app").controlled_by(&bound).marked().showing(status.clone());
    let older = ImportStatus { ports: vec![port("http", 81)], ..status };
    let claim = InternalServiceImport { status: older.clone(), ..claim("member-1", &import) };
    let service = derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp);
    let objects = [bound.object(), import.clone().object(), claim.object(), service.object()];
    let (restored, until) = (seconds(20), seconds(20).plus_micros(RESTORE_GRACE_MICROS));
    let wait = Plan { again: Some(until), ..Plan::default() };

    let mut view = member_view(objects);
    let show = Write::patch(&import.meta, Patch::ServiceImportStatus(older));
    let import_key = Key::Import(named("work/app"));
    assert_eq!(view.plan(&import_key, restored).writes, std::slice::from_ref(&show));
    let patches = view.plan(&app(), restored).writes;
    assert!(matches!(&patches[..], [Write { action: Action::Patch { patch: Patch::DerivedService(_), .. }, .. }]));

    view.hub_restored(restored);
    for (key, writes) in [(import_key, vec![show]), (app(), patches)] {
        assert_eq!(view.plan(&key, restored), wait);
        assert_eq!(view.plan(&key, seconds(79)), wait);
        assert_eq!(view.plan(&key, until).writes, writes);
    }

    // A Service cannot become headless, so its derived Service would be created again.
    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-2"]) };
    observe_change(&mut view, import.clone().showing(headless).object());
    assert_eq!(view.plan(&app(), restored), wait);
    // The condition of an import that is as it was is written.
    let (request, mut objects) = standing(derived_service("work-app", "work/app"));
    objects[0] = request.with_conditions(&[not_found()]).object();
    let mut same = member_view(objects);
    same.hub_restored(restored);
    assert_eq!(events(&same, &app()), ["FoundServiceImport"]);

    // An import without exporters has nothing to keep.
    let fresh = import.showing(ImportStatus::default());
    observe_change(&mut view, fresh.object());
    assert_eq!(view.plan(&Key::Import(named("work/app")), seconds(79)).writes.len(), 1);
}

/// Also rule M9.
#[test]
fn of_two_multi_cluster_services_of_an_import_the_one_that_controls_it_gets_the_slices() {
    let (slice, _) = distributed();
    let app = request("work/app").taken_on().deriving("work-app");
    let other = request("work/other").importing("app").taken_on().deriving("work-other");
    for (controller, derived) in [(&app, "work-app"), (&other, "work-other")] {
        let objects = [
            app.clone().object(),
            other.clone().object(),
            service_import("work/app").controlled_by(controller).showing(resolved(&["member-2"])).object(),
            derived_service("work-app", "work/app").object(),
            derived_service("work-other", "work/other").object(),
        ];
        let created = writes(&view_of(Some(&slice), None, &objects), &key(&slice));
        let [Write { action: Action::Create(Desired::EndpointSlice(imported)), .. }] = &created[..] else {
            panic!("one create, not {created:#?}")
        };
        assert_eq!(imported.service.as_deref(), Some(derived));
    }
}

/// Rule P2: A distributed slice (EndpointSliceImport) exists, but its derived Service does not exist yet
/// Then: The member agent does not poll. A change of the MultiClusterService or of the derived Service requeues the
/// distributed slice: the member agent plans it again (bug B12)
#[test]
fn a_slice_waits_without_polling_while_there_is_nothing_to_bind_it_to() {
    let (distributed, objects) = distributed();
    for missing in 0..objects.len() {
        let mut some = objects.clone();
        let gone = some.remove(missing);
        let view = view_of(Some(&distributed), None, &some);
        // The slice is imported even without the ServiceImport. The ServiceImport only decides which of several
        // MultiClusterServices imports, and it may be missing for a moment.
        let expected = usize::from(gone.kind() == Kind::ServiceImport);
        let plan = planned(&view, &key(&distributed));
        assert_eq!((plan.writes.len(), plan.again), (expected, None), "without {:?}", gone.kind());
    }
}

/// Also rule M18.
#[test]
fn a_label_that_was_edited_to_name_somebody_else_s_service_binds_nothing_to_it() {
    let (distributed, _) = distributed();
    let request = request("work/app").taken_on().deriving("theirs").with_conditions(&[found()]);
    let lost = service_import("work/app").controlled_by(&request);
    for (case, theirs) in [
        ("nobody's", service("fleet-system/theirs").with_address("192.0.2.9")),
        ("another MultiClusterService's", derived_service("theirs", "work/other").with_address("192.0.2.9")),
    ] {
        let objects = [request.clone().object(), lost.clone().object(), theirs.object()];
        let view = view_of(Some(&distributed), None, &objects);
        assert_eq!(writes(&view, &key(&distributed)), [], "{case}: no slice is bound to it");
        let drop_label = Plan::one(labels(&request, true, "app", None));
        assert_eq!(planned(&view, &app()), drop_label, "{case}: neither kept for a while nor shown as the address");
    }
}

#[test]
fn times_are_seen_not_read() {
    // A plan uses the times at which the view saw changes. So two plans from one view at different times are equal.
    let (distributed, objects) = distributed();
    let view = view_of(Some(&distributed), None, &objects);
    assert_eq!(view.plan(&key(&distributed), SEEN), view.plan(&key(&distributed), NOW));
    assert_eq!(view.plan(&app(), Timestamp(0)), view.plan(&app(), NOW));
}

/// Rule P8: A user edits the labels of an imported slice, also while no agent runs
/// Then: The member agent restores the labels of the imported slice. An EndpointSlice in `fleet-system` with the
/// annotation `last-observed-generation` is an imported slice. Its labels do not count
#[test]
fn a_slice_whose_manager_was_edited_is_labelled_again() {
    let (distributed, objects) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let edited = EndpointSlice { imported: false, ..imported.clone() };
    let before_we_came = view_of(Some(&distributed), Some(&edited), &objects);
    let mut while_we_ran = view_of(Some(&distributed), Some(&imported), &objects);
    let mut unbound = EndpointSlice { service: None, ..edited };
    unbound.meta.resource_version += 1;
    let requeue = observe_change(&mut while_we_ran, unbound.object());
    assert!(requeue.contains(&key(&distributed)), "{requeue:?}");
    for view in [before_we_came, while_we_ran] {
        let planned = writes(&view, &key(&distributed));
        let [Write { at, action: Action::Patch { .. }, .. }] = &planned[..] else { panic!("{planned:?}") };
        assert_eq!(*at, imported.meta.name);
    }
}

/// Also rule P8.
#[test]
fn a_slice_without_labels_is_known_by_the_annotation_with_its_generation() {
    let (distributed, objects) = distributed();
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    let bare = EndpointSlice { imported: false, service: None, ..imported.clone() };
    let repaired = writes(&view_of(Some(&distributed), Some(&bare), &objects), &key(&distributed));
    let [Write { at, action: Action::Patch { .. }, .. }] = &repaired[..] else { panic!("{repaired:?}") };
    assert_eq!(*at, imported.meta.name);
    let orphan = member_view(objects.clone().into_iter().chain([bare.clone().object()]));
    assert_eq!(writes(&orphan, &key(&distributed)), [Write::delete(Kind::EndpointSlice, &bare.meta)]);
    let theirs = EndpointSlice { observed_generation: None, ..bare };
    assert_eq!(writes(&view_of(Some(&distributed), Some(&theirs), &objects), &key(&distributed)), []);
}

/// Rule M17: A user edits the labels of the derived Service while the agent runs
/// Then: The member agent restores the labels of the derived Service, and creates no second Service
#[test]
fn a_derived_service_whose_labels_were_edited_is_labelled_again_and_not_made_twice() {
    let service = derived_service("work-app", "work/app");
    let (request, objects) = standing(service.clone());
    let mut view = member_view(objects);
    let mut edited = Service { derived_from: None, ..service };
    edited.meta.resource_version += 1;
    let requeue = observe_change(&mut view, edited.clone().object());
    assert!(requeue.contains(&app()), "{requeue:?}");
    let mend = Write::patch(&edited.meta, Patch::DerivedService(derived(&request)));
    assert_eq!(writes(&view, &app()), [mend]);
}
