//! Tests of the memory of a view: of a recorded read, of a plan that reads the same values again, and of a merged
//! import.

use crate::features::Features;
use crate::hub;
use crate::member;
use crate::model::{ConsumerType, EndpointSlice, ImportType, MergedCluster, MergedImport, Object, SessionAffinity};
use crate::support::agent::View;
use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildMcs, IntoObject, accepted_export, claim, derived_service,
    distributed_slice, found, internal_export, mcs, member_agent, merged_service_import, multicluster, no_conflict,
    resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{NOW, hub_view, member_view};
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
    let importers: Vec<String> = (10..20).map(|number| format!("member-{number}")).collect();
    let importers: Vec<&str> = importers.iter().map(String::as_str).collect();
    let objects = (0..SERVICES).flat_map(|number| {
        let (path, slice) = (path(number), source(number));
        let internal = internal_export("member-1", &service(&path)).port_set_since(seconds(5));
        let export = slice_export("member-1", &slice).marked();
        let import = service_import(&path).showing(resolved(&["member-1"])).claimed_by(&importers);
        let claim = |importer: &&str| claim(importer, &import).east_west().marked().with_status(import.status.clone());
        let claims: Vec<Object> = importers.iter().map(|importer| claim(importer).object()).collect();
        let copy = |importer: &&str| Object::EndpointSliceImport(distributed_slice(importer, &export));
        let copies: Vec<Object> = importers.iter().map(copy).collect();
        let internal = internal.judged(no_conflict(&path)).object();
        let first = [import.object(), internal, Object::EndpointSliceExport(export)];
        first.into_iter().chain(claims).chain(copies)
    });
    hub_view(objects.collect::<Vec<_>>())
}

/// Returns the view of member-1, which exports a half of the Services and imports the others.
fn member() -> member::Planner {
    let exported = (0..SERVICES / 2).flat_map(|number| {
        let (path, slice) = (path(number), source(number));
        let (service, export) = (service(&path), slice_export("member-1", &slice).marked());
        let internal = internal_export("member-1", &service).judged(no_conflict(&path)).object();
        let export = Object::EndpointSliceExport(export);
        [service.object(), slice.object(), accepted_export(&path).object(), internal, export]
    });
    let imported = (SERVICES / 2..SERVICES).flat_map(|number| {
        let (path, derived) = (path(number), format!("work-app{number:05}"));
        let mcs = mcs(&path).taken_on().deriving(&derived).with_conditions(&[found()]);
        let mcs = mcs.consumed_as(ConsumerType::ClusterIp);
        let import = service_import(&path).controlled_by(&mcs).showing(resolved(&["member-2"]));
        let claim = claim("member-1", &import).east_west().marked().with_status(import.status.clone());
        let copy = distributed_slice("member-1", &slice_export("member-2", &source(number))).marked();
        let derived = derived_service(&derived, &path).object();
        [mcs.object(), import.object(), claim.object(), derived, Object::EndpointSliceImport(copy)]
    });
    member_view(exported.chain(imported).collect::<Vec<_>>())
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

/// Returns the view of a hub in which member-1 exports every Service by the standard API, with this number of members.
fn with_merged_imports(members: usize) -> hub::Planner {
    let import = Arc::new(MergedImport {
        import_type: ImportType::ClusterSetIp,
        ports: Vec::new(),
        session_affinity: SessionAffinity::None,
        properties: multicluster().properties,
        clusters: vec![MergedCluster { cluster: "member-1".into(), ports: None }],
    });
    let ids: Vec<String> = (1..=members).map(|number| format!("member-{number}")).collect();
    let agents = ids.iter().map(|id| member_agent(id, Features::ALL, Features::ALL).object());
    let of_service = |number: usize| {
        let export = internal_export("member-1", &service(&path(number))).standard(multicluster()).object();
        let imports = ids.iter().map(|id| merged_service_import(id, &path(number), &import).object());
        std::iter::once(export).chain(imports.collect::<Vec<_>>())
    };
    let mut view = hub_view(agents.chain((0..SERVICES).flat_map(of_service)).collect::<Vec<_>>());
    for key in view.every_key() {
        drop(view.decide_and_record(&key, NOW));
    }
    view
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
