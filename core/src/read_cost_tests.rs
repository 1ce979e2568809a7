//! Tests of the memory of a view: of a recorded read, of a plan that reads the same values again, and of a merged
//! import.

use crate::features::Features;
use crate::hub;
use crate::member;
use crate::model::{
    ConsumerType, EndpointSlice, ImportType, MemberAgent, MergedCluster, MergedImport, Object, SessionAffinity,
};
use crate::support::agent::{View, applied};
use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildRequest, IntoObject, accepted_export, claim,
    derived_service, distributed_slice, found, internal_export, mcs_part, member_agent, merged_service_import,
    no_conflict, request, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::mcs;
use crate::support::view::{NOW, hub_view, member_view, observe_and_plan, observe_change, observe_removal};
use std::sync::Arc;

/// Number of Services in each view.
const SERVICES: usize = 100;
/// Most bytes that a read may keep, on average.
const BYTES_FOR_A_READ: usize = 64;

fn path(number: usize) -> String {
    format!("work/app{number:05}")
}

/// Returns the slice of a Service.
fn source(number: usize) -> EndpointSlice {
    let path = format!("{}-1", path(number));
    slice(&path).uid(&path)
}

/// Returns the view of a hub in which member-1 exports every Service, and ten members import it.
fn hub() -> hub::Planner {
    hub_view(hub_objects(SERVICES))
}

fn hub_objects(services: usize) -> Vec<Object> {
    let importers: Vec<String> = (10..20).map(|number| format!("member-{number}")).collect();
    let importers: Vec<&str> = importers.iter().map(String::as_str).collect();
    let objects = (0..services).flat_map(|number| {
        let (path, slice) = (path(number), source(number));
        let internal = internal_export("member-1", &service(&path)).port_set_since(seconds(5));
        let export = slice_export("member-1", &slice).marked();
        let import = service_import(&path).showing(resolved(&["member-1"])).claimed_by(&importers);
        let claim = |importer: &&str| claim(importer, &import).east_west().marked().with_status(import.status.clone());
        let claims: Vec<Object> = importers.iter().map(|importer| claim(importer).object()).collect();
        let distributed = |importer: &&str| Object::EndpointSliceImport(distributed_slice(importer, &export));
        let distributed_slices: Vec<Object> = importers.iter().map(distributed).collect();
        let internal = internal.judged(no_conflict(&path)).object();
        let first = [import.object(), internal, Object::EndpointSliceExport(export)];
        first.into_iter().chain(claims).chain(distributed_slices)
    });
    objects.collect()
}

/// Returns the view of member-1, which exports a half of the Services and imports the others.
fn member() -> member::Planner {
    member_view(member_objects(SERVICES))
}

fn member_objects(services: usize) -> Vec<Object> {
    let exported = (0..services / 2).flat_map(|number| {
        let (path, slice) = (path(number), source(number));
        let (service, export) = (service(&path), slice_export("member-1", &slice).marked());
        let internal = internal_export("member-1", &service).judged(no_conflict(&path)).object();
        let export = Object::EndpointSliceExport(export);
        [service.object(), slice.object(), accepted_export(&path).object(), internal, export]
    });
    let imported = (services / 2..services).flat_map(|number| {
        let (path, derived) = (path(number), format!("work-app{number:05}"));
        let request = request(&path).taken_on().deriving(&derived).with_conditions(&[found()]);
        let request = request.consumed_as(ConsumerType::ClusterIp);
        let import = service_import(&path).controlled_by(&request).showing(resolved(&["member-2"]));
        let claim = claim("member-1", &import).east_west().marked().with_status(import.status.clone());
        let distributed = distributed_slice("member-1", &slice_export("member-2", &source(number))).marked();
        let derived = derived_service(&derived, &path).object();
        [request.object(), import.object(), claim.object(), derived, Object::EndpointSliceImport(distributed)]
    });
    exported.chain(imported).collect()
}

fn assert_a_read_keeps_64_bytes<V: View, T>(view: &mut V, reads: usize, take: impl FnOnce(&mut V) -> T) {
    assert!(reads > 5 * SERVICES, "{reads} reads are too few for {SERVICES} Services");
    let freed = -allocation_counter::measure(|| drop(take(view))).bytes_current;
    let freed = usize::try_from(freed).expect("memory is freed");
    assert!(freed <= BYTES_FOR_A_READ * reads, "{freed} bytes for {reads} reads: {} each", freed / reads);
}

#[test]
fn a_read_of_the_hub_agent_keeps_64_bytes() {
    let mut view = hub();
    let reads = view.number_of_reads();
    assert_a_read_keeps_64_bytes(&mut view, reads, hub::Planner::take_reads);
}

#[test]
fn a_read_of_the_member_agent_keeps_64_bytes() {
    let mut view = member();
    let reads = view.number_of_reads();
    assert_a_read_keeps_64_bytes(&mut view, reads, member::Planner::take_reads);
}

fn assert_nothing_more_is_kept<V: View>(mut view: V) {
    let keys = view.every_key();
    let mut plan_all = || keys.iter().for_each(|key| drop(view.decide_and_record(key, NOW)));
    plan_all();
    assert_eq!(allocation_counter::measure(plan_all).bytes_current, 0);
}

#[test]
fn a_plan_that_reads_the_same_values_again_keeps_nothing_more() {
    assert_nothing_more_is_kept(hub());
    assert_nothing_more_is_kept(member());
}

/// Removes objects from views in many orders. An agent would keep the reads that are left until it restarts.
fn assert_nothing_is_read_without<V: View>(
    view: impl Fn(Vec<Object>) -> V,
    objects: &[Object],
    reads: fn(&V) -> usize,
) {
    let without = reads(&view(Vec::new()));
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let mut order = objects.to_vec();
        random.shuffle(&mut order);
        let mut view = view(objects.to_vec());
        assert!(reads(&view) > without);
        for object in &order {
            observe_removal(&mut view, object);
        }
        let order: Vec<_> = order.iter().map(|object| (object.kind(), &object.meta().name)).collect();
        assert_eq!(reads(&view), without, "removed in this order: {order:?}");
    }
}

#[test]
fn nothing_is_read_any_more_after_all_objects_are_gone_in_any_order() {
    assert_nothing_is_read_without(hub_view, &hub_objects(1), hub::Planner::number_of_reads);
    assert_nothing_is_read_without(hub_view, &objects_with_merged_imports(1, 2), hub::Planner::number_of_reads);
    assert_nothing_is_read_without(member_view, &member_objects(2), member::Planner::number_of_reads);

    let mut importing = mcs::view([mcs::importing().object(), mcs::merged(mcs::import()).object()]);
    mcs::settle(&mut importing, &member::Key::McsImport(mcs::app()));
    let merged = importing.merged_imports.iter().cloned().map(Object::MergedServiceImport);
    let derived = importing.services.iter().cloned().map(Object::Service);
    let imports = importing.mcs_imports.iter().cloned().map(Object::McsServiceImport);
    let objects: Vec<Object> = merged.chain(derived).chain(imports).collect();
    assert_eq!(objects.len(), 3);
    let view = |objects| {
        let mut view = mcs::view(Vec::new());
        for object in objects {
            observe_change(&mut view, object);
        }
        view
    };
    assert_nothing_is_read_without(view, &objects, member::Planner::number_of_reads);
}

/// Returns the objects of a hub in which member-1 exports every Service by the standard API to this number of members.
fn objects_with_merged_imports(services: usize, members: usize) -> Vec<Object> {
    let import = Arc::new(MergedImport {
        import_type: ImportType::ClusterSetIp,
        ports: Vec::new(),
        session_affinity: SessionAffinity::None,
        properties: mcs_part().properties,
        clusters: vec![MergedCluster { cluster: "member-1".into(), ports: None }],
    });
    let ids: Vec<String> = (1..=members).map(|number| format!("member-{number}")).collect();
    let agents = ids.iter().map(|id| member_agent(id, Features::ALL, Features::ALL).object());
    let of_service = |number: usize| {
        let export = internal_export("member-1", &service(&path(number))).mcs(mcs_part()).object();
        let imports = ids.iter().map(|id| merged_service_import(id, &path(number), &import).object());
        std::iter::once(export).chain(imports.collect::<Vec<_>>())
    };
    agents.chain((0..services).flat_map(of_service)).collect()
}

fn with_merged_imports(members: usize) -> hub::Planner {
    let mut view = hub_view(objects_with_merged_imports(SERVICES, members));
    for key in view.every_key() {
        drop(view.decide_and_record(&key, NOW));
    }
    view
}

/// Also rule MC6.
#[test]
fn nothing_is_kept_of_the_imports_of_a_member_that_left() {
    let mut view = with_merged_imports(3);
    let of_member = |object: &Object| {
        let name = &object.meta().name;
        &*name.namespace == "fleet-member-member-3" || &*name.name == "member-3"
    };
    let gone: Vec<Object> = view.objects().into_iter().filter(of_member).collect();
    assert_eq!(gone.len(), 1 + SERVICES);
    for object in &gone {
        observe_removal(&mut view, object);
    }
    for id in ["member-1", "member-2"] {
        let agent = member_agent(id, Features::ALL, Features::ALL).version(9);
        let heartbeat = MemberAgent { renewed: Some(seconds(100_000)), ..agent }.object();
        observe_and_plan(&mut view, applied(heartbeat), seconds(100_000));
    }
    assert_eq!(view.number_of_reads(), with_merged_imports(2).number_of_reads());
}

/// Also rule MC6.
#[test]
fn the_merged_imports_of_100_members_and_1000_services_keep_at_most_64_mib_with_their_reads() {
    let kept = |members: usize| {
        let view = with_merged_imports(members);
        -allocation_counter::measure(|| drop(view)).bytes_current
    };
    let number = i64::try_from(10 * SERVICES).expect("a small number");
    let each = (kept(11) - kept(1)) / number;
    assert!((400..=(64 << 20) / (100 * 1_000)).contains(&each), "{each} bytes");
}
