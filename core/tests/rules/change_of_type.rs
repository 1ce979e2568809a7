//! Tests of changes of `MultiClusterService.spec.type` from ClusterIP to LoadBalancer and back, while endpoints are
//! imported.

use crate::fleet::{derived, edit_request, import_in_hub, imported, request_reason};
use crate::oracle::{assert_settled, state};
use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildRequest, BuildService, IntoObject, claim, condition,
    derived_service, found, in_hub_of, internal_export, named, no_conflict, reference, request, resolved, seconds,
    service, service_import,
};
use crate::support::view::{
    NOW, blocking_reasons, hub_view, member_view, observe_change, observe_removal, planned, undecodable, writes,
};
use crate::support::world::{GRACE_MICROS, Who, World, fleet};
use fleetnet_core::model::{
    Claims, Condition, ConsumerType, ImportStatus, ImportType, InternalServiceImport, Kind, MultiClusterService,
    Object, Service, ServiceImport, ServiceType,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{ClusterId, MemberNamespace, WatchState};
use std::collections::BTreeMap;

const EXPORTED: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
const NONE: [&str; 0] = [];
/// Limit of steps: more steps mean that the fleet never comes to rest, and the test fails. Each change of type takes
/// fewer steps.
const STEPS_MAX: usize = 2_000;

fn turn(world: &mut World, member: usize, consumer_type: ConsumerType) {
    edit_request(world, member, "work/app", |request| request.consumer_type = consumer_type);
}

/// Returns a member's claims in the hub that are not being deleted.
fn claims(world: &World, member: usize) -> Vec<InternalServiceImport> {
    let namespace = format!("fleet-member-member-{}", member + 1);
    let claims = world.hub.list(Kind::InternalServiceImport).filter_map(|object| match object {
        Object::InternalServiceImport(claim) => Some(claim.clone()),
        _ => None,
    });
    claims.filter(|claim| *claim.meta.name.namespace == *namespace && !claim.meta.deleting).collect()
}

fn types(world: &World, member: usize) -> Vec<ConsumerType> {
    claims(world, member).iter().map(|claim| claim.consumer_type).collect()
}

fn service_type(world: &World, member: usize) -> Option<ServiceType> {
    derived(world, member, "work-app").map(|service| service.service_type)
}

/// Returns the cluster ids of all importers of `work/app`.
fn importers(world: &World) -> Vec<ClusterId> {
    import_in_hub(world, "work/app").expect("it is exported").claims.importers.values().cloned().collect()
}

/// Runs the fleet until no step is possible, and asserts after each step that member-2 imports all exported endpoints.
fn run_with_endpoints(world: &mut World, case: &str) {
    for _ in 0..STEPS_MAX {
        if !world.step() {
            return;
        }
        assert_eq!(imported(world, 1), EXPORTED, "{case}: after {:?}", world.last);
    }
    panic!("{case}: no end after {STEPS_MAX} steps");
}

/// Returns a fleet in which member-2 and member-3 share the import of `work/app`. Then member-3 requests LoadBalancer
/// and gets the exclusive claim.
fn with_a_rival() -> World {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    turn(&mut world, 2, ConsumerType::LoadBalancer);
    world.run_for(2_000_000); // 2 s, because claims of the same second have no fixed order
    assert_eq!(
        (types(&world, 2), service_type(&world, 2)),
        (vec![ConsumerType::LoadBalancer], Some(ServiceType::LoadBalancer))
    );
    world
}

fn assert_exclusive(world: &World, case: &str) {
    assert_eq!(types(world, 1), [ConsumerType::LoadBalancer], "{case}");
    assert_eq!(service_type(world, 1), Some(ServiceType::LoadBalancer), "{case}");
    assert_eq!(request_reason(world, 1, "work/app"), "FoundServiceImport", "{case}");
    assert_settled(world);
}

fn assert_waits_beside(world: &World, case: &str) {
    // The waiting claim has no finalizer: the hub agent adds a finalizer only to a claim that it grants.
    let mut claims: Vec<_> = claims(world, 1).iter().map(|it| (it.consumer_type, it.meta.finalizers.ours)).collect();
    claims.sort_by_key(|(consumer_type, _)| *consumer_type == ConsumerType::LoadBalancer);
    assert_eq!(claims, [(ConsumerType::ClusterIp, true), (ConsumerType::LoadBalancer, false)], "{case}");
    assert_eq!(service_type(world, 1), Some(ServiceType::ClusterIp), "{case}");
    assert_eq!(request_reason(world, 1, "work/app"), "LoadBalancerNotGranted", "{case}");
    assert_eq!(importers(world), ["member-2".into(), "member-3".into()], "{case}");
    assert_eq!(service_type(world, 2), Some(ServiceType::LoadBalancer), "{case}");
    assert_settled(world);
}

fn assert_shared(world: &World, case: &str) {
    assert_eq!(types(world, 1), [ConsumerType::ClusterIp], "{case}");
    assert_eq!(service_type(world, 1), Some(ServiceType::ClusterIp), "{case}");
    assert_eq!(request_reason(world, 1, "work/app"), "FoundServiceImport", "{case}");
    assert_settled(world);
}

/// Also rule I6.
#[test]
fn an_import_that_turns_to_loadbalancer_is_never_without_endpoints() {
    for seed in 0..40 {
        let mut world = fleet(1, ConsumerType::ClusterIp).in_any_order(seed);
        turn(&mut world, 1, ConsumerType::LoadBalancer);
        run_with_endpoints(&mut world, &format!("seed {seed}"));
        assert_exclusive(&world, &format!("seed {seed}"));
        let mark = world.ledger.len();
        world.restart_all();
        world.run_for(2 * GRACE_MICROS);
        assert_eq!(world.lines_since(mark), Vec::<String>::new(), "seed {seed}");
    }
}

/// Rule I7: The type of a ServiceImport changes from ClusterIP to LoadBalancer (rule I6). But another cluster already
/// has the exclusive claim (InternalServiceImport), or no name is available for the second claim
/// Then: The import continues with type ClusterIP. The member agent sets `Valid=True` (reason
/// `LoadBalancerNotGranted`). The second claim is pending until the hub agent can grant it
#[test]
fn where_another_cluster_has_the_exclusive_claim_the_import_stays_and_its_user_gets_an_event() {
    for seed in 0..20 {
        let case = format!("seed {seed}");
        let mut world = with_a_rival().in_any_order(seed);
        turn(&mut world, 1, ConsumerType::LoadBalancer);
        run_with_endpoints(&mut world, &case);
        assert_waits_beside(&world, &case);
        // All agents restart and write nothing. Their watches may list the objects in any order.
        let mark = world.ledger.len();
        world.restart_all();
        world.run_for(2 * GRACE_MICROS);
        assert_eq!(world.lines_since(mark), Vec::<String>::new(), "{case}");
        // The exporter is removed and added again, so the hub creates the ServiceImport again.
        world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
        world.run();
        assert_eq!(imported(&world, 1), NONE, "{case}");
        world.create(Who::Member(0), crate::support::build::service_export("work/app").object());
        world.run();
        assert_waits_beside(&world, &case);
        // Member-3 stops importing, so member-2 gets the exclusive claim.
        world.delete(Who::Member(2), Kind::MultiClusterService, &named("work/app"));
        run_with_endpoints(&mut world, &case);
        assert_exclusive(&world, &case);
    }
}

/// Returns the number of steps until no step is possible, with the steps in a fixed order.
fn steps_of(mut world: World) -> usize {
    (0..STEPS_MAX).find(|_| !world.step()).expect("it ends")
}

/// Case of a change of type, with three parts: its name, a fleet in which a user has just requested LoadBalancer, and
/// the check of this fleet after its last step.
type Turned = (&'static str, World, fn(&World, &str));

fn turned() -> [Turned; 2] {
    let (mut free, mut rivalled) = (fleet(1, ConsumerType::ClusterIp), with_a_rival());
    turn(&mut free, 1, ConsumerType::LoadBalancer);
    turn(&mut rivalled, 1, ConsumerType::LoadBalancer);
    [("free", free, assert_exclusive), ("held by another", rivalled, assert_waits_beside)]
}

/// Also rule I6.
#[test]
fn an_import_that_turns_back_at_any_moment_is_never_without_endpoints() {
    for (case, start, _) in turned() {
        for steps in 0..=steps_of(start.clone()) {
            let case = format!("{case}, back after {steps} steps");
            let mut world = start.clone();
            (0..steps).for_each(|_| _ = world.step());
            turn(&mut world, 1, ConsumerType::ClusterIp);
            run_with_endpoints(&mut world, &case);
            assert_shared(&world, &case);
            // The user changes the type to LoadBalancer a second time.
            turn(&mut world, 1, ConsumerType::LoadBalancer);
            run_with_endpoints(&mut world, &case);
        }
    }
}

/// Also rule I6.
#[test]
fn a_crash_at_any_moment_of_the_change_costs_no_endpoint_and_ends_alike() {
    for (case, start, expect) in turned() {
        let mut whole = start.clone();
        whole.run();
        for who in [Who::Hub, Who::Member(1)] {
            for steps in 0..=steps_of(start.clone()) {
                let case = format!("{case}, {who:?} crashes after {steps} steps");
                let mut world = start.clone();
                (0..steps).for_each(|_| _ = world.step());
                world.restart(who);
                run_with_endpoints(&mut world, &case);
                expect(&world, &case);
                assert_eq!(state(&world), state(&whole), "{case}");
            }
        }
    }
}

/// Also rule I6.
#[test]
fn a_multi_cluster_service_that_is_deleted_at_any_moment_of_the_change_leaves_nothing() {
    for (case, start, _) in turned() {
        for steps in 0..=steps_of(start.clone()) {
            let case = format!("{case}, deleted after {steps} steps");
            let mut world = start.clone();
            (0..steps).for_each(|_| _ = world.step());
            world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
            world.run();
            let left: Vec<Kind> = world.cluster(Who::Member(1)).all().map(Object::kind).collect();
            assert_eq!((left, claims(&world, 1)), (Vec::new(), Vec::new()), "{case}");
            assert_settled(&world);
        }
    }
}

// === A hub agent of the previous version, which grants either all claims of a member or none ===

/// Handles claims as the hub agent of the previous version did: it grants either all claims of a member or none.
/// Returns true if an object changed.
fn previous_hub(world: &mut World) -> bool {
    let Some(import) = import_in_hub(world, "work/app").cloned() else { return false };
    let all: Vec<InternalServiceImport> =
        (1..world.members.len()).flat_map(|member| all_claims(world, member)).collect();
    let live = || all.iter().filter(|claim| !claim.meta.deleting);
    let is_shared = |claim: &&InternalServiceImport| claim.consumer_type == ConsumerType::ClusterIp;
    let namespace = |claim: &InternalServiceImport| claim.meta.name.member_namespace();
    let holds = |claim: &InternalServiceImport| {
        let is_recorded = || import.claims.importers.contains_key(&namespace(claim));
        let named = import.claims.load_balancer.as_ref();
        let shares = live().filter(is_shared).any(|shared| namespace(shared) == namespace(claim));
        !shares && named.map_or_else(is_recorded, |named| *named == namespace(claim))
    };
    let exclusive = live()
        .filter(|claim| !is_shared(claim))
        .min_by_key(|claim| (!holds(claim), claim.meta.created, claim.meta.name.clone()));
    let rightful: BTreeMap<MemberNamespace, ClusterId> = exclusive
        .into_iter()
        .chain(live().filter(is_shared))
        .map(|claim| (namespace(claim), names::cluster_of(&namespace(claim)).expect("a member's")))
        .collect();
    let mut changed = false;
    for claim in &all {
        let is_granted = rightful.contains_key(&namespace(claim)) && !claim.meta.deleting;
        let status = if is_granted { import.status.clone() } else { ImportStatus::default() };
        changed |= world.edit(Who::Hub, Kind::InternalServiceImport, &claim.meta.name, |object| {
            let Object::InternalServiceImport(claim) = object else { return };
            claim.meta.finalizers.ours = is_granted;
            claim.status = status;
        });
    }
    let load_balancer = exclusive.map(namespace).filter(|_| rightful.len() > 1);
    let recorded = Claims { present: !rightful.is_empty(), importers: rightful, load_balancer };
    changed
        | world.edit(Who::Hub, Kind::ServiceImport, &import.meta.name, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.meta.finalizers.ours = recorded.present;
            import.claims = recorded;
        })
}

/// Returns a member's claims in the hub, including those that are being deleted.
fn all_claims(world: &World, member: usize) -> Vec<InternalServiceImport> {
    let namespace = format!("fleet-member-member-{}", member + 1);
    let claims = world.hub.list(Kind::InternalServiceImport).filter_map(|object| match object {
        Object::InternalServiceImport(claim) => Some(claim.clone()),
        _ => None,
    });
    claims.filter(|claim| *claim.meta.name.namespace == *namespace).collect()
}

/// Runs the fleet until no step is possible, and calls `check` after each step. The previous version's rule for claims
/// replaces the rule of our hub agent.
fn run_with_the_previous_hub(world: &mut World, check: fn(&World)) {
    for _ in 0..STEPS_MAX {
        world.hub_agent.in_flight.retain(|(write, _)| {
            let records =
                matches!(&write.action, fleetnet_core::plan::Action::Patch { patch: Patch::Claims { .. }, .. });
            write.kind() != Kind::InternalServiceImport && !records
        });
        let moved = previous_hub(world) | world.step();
        check(world);
        if !moved {
            return;
        }
    }
    panic!("no end after {STEPS_MAX} steps");
}

/// Rule I8: The type of a ServiceImport changes from ClusterIP to LoadBalancer (rule I6), and the hub agent has an
/// earlier version
/// Then: A hub agent of an earlier version sets the status of the second claim (InternalServiceImport) at once. So the
/// member agent also deletes the first claim at once. If no other cluster has the exclusive claim, the change completes
/// as in rule I6. If another cluster has the exclusive claim, the import stops until the second claim is granted, as in
/// the earlier version of fleetnet
#[test]
fn a_hub_agent_of_the_version_before_grants_the_second_claim_and_no_endpoint_is_lost() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    turn(&mut world, 1, ConsumerType::LoadBalancer);
    run_with_the_previous_hub(&mut world, |world| assert_eq!(imported(world, 1), EXPORTED));
    assert_exclusive(&world, "the version before");
}

/// Member-3 has the exclusive claim, but a hub agent of the previous version also grants the second claim of member-2.
/// So member-2 deletes its first claim, which was shared, and loses its import. Member-2 imports again after member-3
/// stops importing.
///
/// Also rule I8.
#[test]
fn beside_a_hub_agent_of_the_version_before_the_importer_waits_for_the_exclusive_claim() {
    let mut world = with_a_rival();
    turn(&mut world, 1, ConsumerType::LoadBalancer);
    run_with_the_previous_hub(&mut world, |world| assert_eq!(imported(world, 2), EXPORTED));
    assert_eq!(types(&world, 1), [ConsumerType::LoadBalancer]);
    assert_eq!((importers(&world), imported(&world, 1)), (vec!["member-3".into()], vec![]));
    world.delete(Who::Member(2), Kind::MultiClusterService, &named("work/app"));
    run_with_the_previous_hub(&mut world, |_| {});
    assert_eq!(imported(&world, 1), EXPORTED);
    assert_exclusive(&world, "the version before");
}

// === Single plans of a member agent ===

fn shared_request() -> MultiClusterService {
    request("work/app").taken_on().consumed_as(ConsumerType::ClusterIp)
}

fn claimed_import() -> ServiceImport {
    service_import("work/app").uid("0a1b2c3d").controlled_by(&request("work/app")).showing(resolved(&["member-2"]))
}

fn key() -> member::Key {
    member::Key::Import(named("work/app"))
}

fn second(import: &ServiceImport) -> InternalServiceImport {
    let mut second = claim("member-1", import).uid("second").created(seconds(9));
    second.meta.name.name = "work-app-0a1b2".into();
    second
}

fn delete(claim: &InternalServiceImport) -> Write {
    Write::delete(Kind::InternalServiceImport, &claim.meta)
}

/// Rule I6: The type of a ServiceImport changes from ClusterIP to LoadBalancer
/// Then: The member agent creates a second claim (InternalServiceImport), of type LoadBalancer, under the other of the
/// two possible names of a claim (rule N1). The creationTimestamp of the second claim decides the place of this claim
/// in the order of exclusive claims. The first claim and the import continue until the second claim is granted. Then
/// the member agent deletes the first claim. During the change, the member agent deletes only the older of the two
/// claims. No endpoint is missing at any moment, in any order of steps, even after a crash or a change back. If the
/// MultiClusterService is deleted during the change, no object is left
#[test]
fn a_second_claim_is_made_beside_a_shared_one_and_takes_its_place_once_it_is_answered() {
    let exclusive = request("work/app").taken_on();
    let import = claimed_import();
    let first = claim("member-1", &import).east_west().marked().with_status(resolved(&["member-2"]));
    let view = |request: &MultiClusterService, claims: &[&InternalServiceImport]| {
        let claims = claims.iter().map(|claim| (*claim).clone().object());
        member_view([request.clone().object(), import.clone().object()].into_iter().chain(claims))
    };
    let plan =
        |request: &MultiClusterService, claims: &[&InternalServiceImport]| writes(&view(request, claims), &key());

    let reference = reference("member-1", &import.meta, Some(seconds(1)));
    let desired = Desired::InternalServiceImport { reference, consumer_type: ConsumerType::LoadBalancer };
    let at = in_hub_of("member-1", "work-app-0a1b2");
    assert_eq!(plan(&exclusive, &[&first]), [Write::create(at, desired)]);
    let waits = second(&import);
    assert_eq!(plan(&exclusive, &[&first, &waits]), [], "the first one's answer is shown, and it stays");
    let granted = waits.clone().marked().with_status(resolved(&["member-2"]));
    assert_eq!(plan(&exclusive, &[&first, &granted]), [delete(&first)]);
    assert_eq!(plan(&exclusive, &[&first.clone().deleting(), &granted]), []);

    // The user has changed the type back to ClusterIP. The agent changes the type of the newer claim and keeps it. It
    // cannot keep the older claim instead, because a delete of that claim may already be on its way.
    let turned = Patch::ConsumerType(ConsumerType::ClusterIp);
    let turned = |claim: &InternalServiceImport| Write::patch(&claim.meta, turned.clone());
    assert_eq!(plan(&shared_request(), &[&first, &waits]), [turned(&waits)]);
    assert_eq!(plan(&shared_request(), &[&first, &granted]), [turned(&granted), delete(&first)]);
    assert_eq!(plan(&shared_request(), &[&first, &granted.east_west()]), [delete(&first)]);
    // And to LoadBalancer again. The claims of this import have both names.
    assert_eq!(planned(&view(&exclusive, &[&first, &waits.east_west()]), &key()), Plan::default());
}

/// Also rule T38.
#[test]
fn a_derived_service_keeps_its_type_while_the_claims_are_not_listed() {
    let not_granted = condition("Valid", "True", "LoadBalancerNotGranted", "waits", 1);
    let in_cluster = derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp);
    let written = |shown: &Condition, import: &ServiceImport, present: Option<&Service>| {
        let exclusive =
            request("work/app").taken_on().deriving("work-app").with_conditions(std::slice::from_ref(shown));
        let objects = [exclusive.object(), import.clone().object()];
        let mut view = member_view(objects.into_iter().chain(present.cloned().map(IntoObject::object)));
        view.watch_state(Kind::InternalServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
        writes(&view, &member::Key::MultiClusterService(named("work/app")))
    };
    let types = |shown: &Condition, present: Option<&Service>| -> Vec<ConsumerType> {
        let type_of = |write: Write| match write.action {
            Action::Create(Desired::Service(service)) | Action::Patch { patch: Patch::DerivedService(service), .. } => {
                Some(service.consumer_type)
            }
            _ => None,
        };
        written(shown, &claimed_import(), present).into_iter().filter_map(type_of).collect()
    };
    assert_eq!(types(&not_granted, Some(&in_cluster)), []);
    assert_eq!(types(&found(), Some(&in_cluster)), [], "the user has just changed the type");
    assert_eq!(types(&not_granted, None), [ConsumerType::ClusterIp], "somebody deleted it");
    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-2"]) };
    let import = claimed_import().showing(headless);
    assert_eq!(written(&found(), &import, Some(&in_cluster.headless())), [], "it never has a load balancer");
}

/// Rule T38: The granted claim of a member is undecodable, and its second claim waits for type LoadBalancer
/// Then: The hub agent keeps the member in the record of importers. The member agent keeps the status of the
/// ServiceImport, and the type of the derived Service
#[test]
fn an_import_stays_while_its_granted_claim_is_undecodable_and_its_second_claim_waits() {
    let condition = condition("Valid", "True", "LoadBalancerNotGranted", "waits", 1);
    let exclusive = request("work/app").taken_on().deriving("work-app").with_conditions(&[condition]);
    let import = claimed_import();
    let first = claim("member-1", &import).east_west().marked().with_status(resolved(&["member-2"]));
    let waits = second(&import);
    let in_cluster = derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp);
    let objects = [exclusive.object(), import.clone().object(), waits.clone().object(), in_cluster.object()];
    let mut view = member_view(objects);
    undecodable(&mut view, Kind::InternalServiceImport, &first.meta.name);
    assert_eq!(writes(&view, &key()), [], "the status stays");
    let derives = member::Key::MultiClusterService(named("work/app"));
    let changed: Vec<Kind> =
        writes(&view, &derives).iter().map(Write::kind).filter(|kind| *kind == Kind::Service).collect();
    assert_eq!(changed, [], "the type of the derived Service stays");
    let granted = waits.clone().marked().with_status(resolved(&["member-3"]));
    observe_change(&mut view, granted.object());
    let types = |view: &member::Planner| -> Vec<ConsumerType> {
        let type_of = |write: Write| match write.action {
            Action::Patch { patch: Patch::DerivedService(service), .. } => Some(service.consumer_type),
            _ => None,
        };
        writes(view, &derives).into_iter().filter_map(type_of).collect()
    };
    assert_eq!(types(&view), [ConsumerType::LoadBalancer], "whatever the other claim says");
    let shown = Patch::ServiceImportStatus(resolved(&["member-3"]));
    assert_eq!(writes(&view, &key()), [Write::patch(&import.meta, shown)], "the second claim is granted");

    let in_hub = service_import("work/app").showing(resolved(&["member-2"])).claimed_by(&["member-1", "member-4"]);
    let in_hub = in_hub.claimed_alone_by("member-4");
    let holder = claim("member-4", &service_import("work/app")).marked().with_status(resolved(&["member-2"]));
    let export = internal_export("member-2", &service("work/app")).port_set_since(seconds(2));
    let export = export.judged(no_conflict("work/app"));
    let mut hub = hub_view([in_hub.object(), export.object(), holder.object(), waits.marked().object()]);
    undecodable(&mut hub, Kind::InternalServiceImport, &first.meta.name);
    let changed = writes(&hub, &hub::Key::Service(named("work/app")));
    assert!(changed.iter().all(|write| write.kind() != Kind::ServiceImport), "it stays recorded: {changed:?}");
}

/// Also rule I7.
#[test]
fn a_second_claim_without_a_name_is_reported_and_created_when_one_is_free() {
    let exclusive = request("work/app").taken_on();
    let import = claimed_import();
    let first = claim("member-1", &import).east_west().marked().with_status(resolved(&["member-2"]));
    let mut theirs = claim("member-1", &service_import("work/other"));
    theirs.meta.name.name = "work-app-0a1b2".into();
    let objects = [exclusive.object(), import.object(), first.object(), theirs.clone().object()];
    let mut view = member_view(objects);
    let plan = planned(&view, &key());
    assert_eq!(plan.writes, []);
    let message = "service work/app cannot be imported into cluster member-1: another InternalServiceImport in the \
                   hub uses each name that its claim may have: fleet-member-member-1/work-app-0a1b2 (of service \
                   work/other). Delete one of these, or import another service";
    assert_eq!(blocking_reasons(&plan), [("NameHeldByAnother", message)]);
    observe_removal(&mut view, &theirs.object());
    assert_eq!(writes(&view, &key()).len(), 1);
}

/// Rule C13: A member has a shared and an exclusive claim (InternalServiceImport) of one Service (rule I6)
/// Then: The hub agent grants the exclusive claim only if the key `LoadBalancer` of `service-in-use-by` contains the
/// member. The hub agent checks `service-in-use-by` even if no other member imports the Service. If an earlier version
/// of the hub agent granted the exclusive claim without this entry, the hub agent revokes the grant
#[test]
fn the_exclusive_claim_of_a_member_that_shares_is_answered_when_the_record_names_it() {
    let status = || resolved(&["member-1"]);
    let internal =
        internal_export("member-1", &service("work/app")).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let planned = |import: &ServiceImport, claims: &[&InternalServiceImport]| {
        let claims = claims.iter().map(|claim| (*claim).clone().object());
        let view = hub_view([internal.clone().object(), import.clone().object()].into_iter().chain(claims));
        writes(&view, &hub::Key::Service(named("work/app")))
    };
    let shared = claim("member-2", &service_import("work/app")).east_west().marked().with_status(status());
    let mut second = claim("member-2", &service_import("work/app")).created(seconds(9)).marked();
    second.meta.name.name = "second".into();
    let alone = service_import("work/app").showing(status()).claimed_by(&["member-2"]);
    let record = |import: &ServiceImport, load_balancer: Option<&str>| {
        let importers = import.claims.importers.clone();
        let load_balancer = load_balancer.map(MemberNamespace::from);
        let patch = Patch::Claims { importers, load_balancer, finalizers: import.meta.finalizers.clone() };
        Write::patch(&import.meta, patch)
    };
    let answer = |claim: &InternalServiceImport, status: ImportStatus| {
        Write::patch(&claim.meta, Patch::InternalServiceImportStatus(status))
    };
    assert_eq!(planned(&alone, &[&shared, &second]), [record(&alone, Some("fleet-member-member-2"))]);
    let named = alone.clone().claimed_alone_by("member-2");
    assert_eq!(planned(&named, &[&shared, &second]), [answer(&second, status())]);
    // A later claim of another member is not granted. Without the shared claim, member-2 is the only importer. Then the
    // ServiceImport has the Go form, which does not name the exclusive importer.
    let granted = second.clone().with_status(status());
    let rival = claim("member-3", &service_import("work/app")).created(seconds(5));
    assert_eq!(planned(&named, &[&shared, &granted, &rival]), []);
    assert_eq!(planned(&named, &[&granted]), [record(&named, None)]);
    assert_eq!(planned(&alone, &[&granted]), []);

    // Member-3 has the exclusive claim. A hub agent of the previous version wrote a status to the second claim of
    // member-2, so our hub agent clears this status.
    let both = service_import("work/app").showing(status()).claimed_by(&["member-2", "member-3"]);
    let claimed = both.claimed_alone_by("member-3");
    let holder = claim("member-3", &service_import("work/app")).marked().with_status(status());
    let answered_before = second.clone().with_status(status());
    let taken_back = answer(&answered_before, ImportStatus::default());
    assert_eq!(planned(&claimed, &[&shared, &answered_before, &holder]), [taken_back]);
    assert_eq!(
        planned(&claimed, &[&shared, &second, &holder]),
        [Write::remove_finalizer(Kind::InternalServiceImport, &second.meta)]
    );
}
