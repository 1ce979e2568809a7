//! Tests of the rules' running time: if the data of members doubles, the running time may at most double, apart from a
//! logarithmic factor. The tests count steps, not time. A step is a visit of an object, of a name in an index, or of an
//! endpoint.

use crate::handover;
use crate::hub;
use crate::member;
use crate::model::{ConsumerType, HubSlice, Kind, Object, SliceContent};
use crate::support::agent::View;
use crate::support::agent::{KindChange, applied, undecodable_change};
use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildRequest, BuildSlice, IntoObject, claim, content,
    derived_service, distributed_slice, endpoint, found, in_hub_of, internal_export, named, namespace, request,
    resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{NOW, hub_view, member_view, observe_and_plan};
use fleetnet_types::WatchState;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn count() {
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

fn steps_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = STEPS.with(Cell::get);
    let done = work();
    (STEPS.with(Cell::get) - before, done)
}

/// Asserts that the number of steps is at most proportional to n log n for n items, from 100 to 1,600. Each doubling of
/// n may take at most 2.5 times as many steps. With n log n steps, the largest increase is 2.3 times, from 100 to 200
/// items.
fn assert_linear(what: &str, mut work: impl FnMut(usize) -> usize) {
    let measured: Vec<usize> = [100, 200, 400, 800, 1600].into_iter().map(&mut work).collect();
    assert!(measured[0] >= 100, "{what}: {measured:?} is too little to have looked at each");
    let is_linear = measured.windows(2).all(|pair| 2 * pair[1] <= 5 * pair[0]);
    assert!(is_linear, "{what}: {measured:?}");
}

/// Asserts that every size of input takes the same number of steps.
fn assert_constant(what: &str, mut work: impl FnMut(usize) -> usize) {
    let measured: Vec<usize> = [100, 200, 400, 800].into_iter().map(&mut work).collect();
    assert!(measured[0] > 0, "{what}: nothing was counted");
    assert!(measured.iter().all(|steps| steps == &measured[0]), "{what}: {measured:?}");
}

fn apply<V: View>(view: &mut V, change: KindChange) -> Vec<V::Key> {
    observe_and_plan(view, change, seconds(20))
}

fn many(from: usize, endpoints: usize) -> SliceContent {
    // The addresses are different and not in order, so that sorting them has its full cost. They are different because
    // the odd factor 40,503 has no common factor with 65,536.
    let mixed = |at: usize| at * 40_503 % 65_536;
    let address = |at: usize| format!("10.0.{}.{}", mixed(at) >> 8, mixed(at) & 255);
    SliceContent { endpoints: (from..from + endpoints).map(|at| endpoint(&address(at))).collect(), ..content(&[]) }
}

/// Rule T35: A member writes as many objects as its limits allow, each as large as the limits allow
/// Then: The computing time of each rule grows at most linearly with the total size of the member's objects. Planning
/// for other members takes the same time as before
#[test]
fn replacement_pending_takes_linear_time_in_the_endpoints() {
    assert_linear("disjoint endpoints", |endpoints| {
        let (present, removed) = (many(0, endpoints), many(endpoints, endpoints));
        let wanted = many(0, endpoints - 1);
        let (steps, pending) = steps_of(|| handover::replacement_pending(Some(&present), &wanted, &removed));
        assert!(!pending);
        steps
    });
}

/// Returns a hub view with one slice of member-1, which is distributed to ten importers. The record of claims also
/// names an eleventh importer that has no claim.
fn imported() -> (hub::Planner, hub::Key) {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let importers: Vec<String> = (10..20).map(|number| format!("member-{number}")).collect();
    let importers: Vec<&str> = importers.iter().map(String::as_str).collect();
    let recorded: Vec<&str> = importers.iter().copied().chain(["member-20"]).collect();
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&recorded);
    let claims = importers.iter().map(|importer| {
        claim(importer, &service_import("work/app")).east_west().marked().with_status(resolved(&["member-1"])).object()
    });
    let distributed_slices =
        importers.iter().map(|importer| Object::EndpointSliceImport(distributed_slice(importer, &export)));
    let objects =
        claims.chain(distributed_slices).chain([Object::EndpointSliceExport(export.clone()), import.object()]);
    (hub_view(objects), hub::Key::Slice(export.meta.name.name))
}

/// Also rule T35.
#[test]
fn a_plan_costs_the_same_however_many_objects_of_another_member_cannot_be_decoded() {
    assert_constant("plans of a slice and its Service", |objects| {
        let (mut view, slice) = imported();
        for kind in [Kind::EndpointSliceExport, Kind::InternalServiceImport, Kind::InternalServiceExport] {
            for number in 0..objects {
                let name = in_hub_of("member-9", &format!("undecodable-{number}"));
                apply(&mut view, undecodable_change(kind, name));
            }
        }
        let plan = |key: &hub::Key| view.plan(key, NOW).writes.len();
        steps_of(|| plan(&slice) + plan(&hub::Key::Service(named("work/app")))).0
    });
}

/// Also rule T35.
#[test]
fn another_object_of_a_member_that_cannot_be_decoded_plans_nobody_else_again() {
    let (mut view, _) = imported();
    let of = |number: usize| {
        undecodable_change(Kind::InternalServiceImport, in_hub_of("member-10", &format!("undecodable-{number}")))
    };
    let first = apply(&mut view, of(0));
    assert!(first.contains(&hub::Key::Service(named("work/app"))), "it may be the claim of member-10: {first:?}");
    let (steps, more) = steps_of(|| (1..100).flat_map(|number| apply(&mut view, of(number))).collect::<Vec<_>>());
    assert_eq!(more, []);
    assert!(steps <= 99 * 10, "{steps} steps for 99 objects");
}

/// Returns an export by member-2 that claims the same source slice as the other exports. A member can create many such
/// exports.
fn rival(number: usize) -> Object {
    let name = format!("member-2-work-app-1-{number:05}");
    let export = slice_export("member-2", &slice("work/app-1")).called(&name).uid(&name).created(seconds(3));
    Object::EndpointSliceExport(export)
}

fn rivals(number: usize) -> hub::Planner {
    let import = service_import("work/app").showing(resolved(&["member-2"]));
    hub_view((0..number).map(rival).chain([import.object()]))
}

/// Also rule T35.
#[test]
fn the_exports_of_one_source_cost_no_more_than_linear_time_together() {
    assert_linear("taking them in", |exports| steps_of(|| rivals(exports)).0);
    assert_linear("planning each of them", |exports| {
        let view = rivals(exports);
        let key = |number| hub::Key::Slice(rival(number).meta().name.name.clone());
        steps_of(|| (0..exports).map(|number| view.plan(&key(number), NOW).writes.len()).sum::<usize>()).0
    });
    assert_linear("accepting their member as an exporter", |exports| {
        let mut view = rivals(exports);
        let resolved_again = service_import("work/app").version(2).showing(resolved(&["member-1"]));
        let (steps, requeue) = steps_of(|| apply(&mut view, applied(resolved_again.object())));
        assert!(requeue.len() <= 3 * exports, "{} keys for {exports} exports", requeue.len());
        steps
    });
}

/// Also rule T35.
#[test]
fn a_change_of_an_export_that_is_not_the_holder_plans_no_other() {
    assert_constant("a change of the last one", |exports| {
        let mut view = rivals(exports);
        let Object::EndpointSliceExport(last) = rival(exports - 1) else { unreachable!("a slice") };
        let change = applied(Object::EndpointSliceExport(last.with_addresses(&["10.0.0.9"], 2)));
        let (steps, requeue) = steps_of(|| apply(&mut view, change));
        assert_eq!(requeue.len(), 1, "{requeue:?}");
        steps
    });
}

/// Also rule T35.
#[test]
fn the_slices_of_a_service_that_are_on_their_way_out_cost_linear_time_together() {
    let emptied = |number: usize| {
        let path = format!("work/app-{number:05}");
        slice_export("member-2", &slice(&path).uid(&path).endpoints(&[])).marked()
    };
    assert_linear("taking in slices without endpoints", |slices| {
        steps_of(|| hub_view((0..slices).map(|number| Object::EndpointSliceExport(emptied(number))))).0
    });
    assert_linear("slices of what is withdrawn", |slices| {
        let mut view = hub_view((0..slices).map(|number| Object::EndpointSliceExport(emptied(number).deleting())));
        let distributed = |number: usize| Object::EndpointSliceImport(distributed_slice("member-3", &emptied(number)));
        steps_of(|| (0..slices).for_each(|number| drop(apply(&mut view, applied(distributed(number)))))).0
    });
}

/// Also rule T35.
#[test]
fn a_namespace_that_is_made_costs_what_is_exported_from_it() {
    assert_constant("a namespace without anything", |exports| {
        let other = |number: usize| {
            let path = format!("zoo/app-{number:05}");
            [
                internal_export("member-1", &service(&path)).object(),
                Object::EndpointSliceExport(slice_export("member-1", &slice(&path).uid(&path))),
            ]
        };
        let mut view = hub_view((0..exports).flat_map(other));
        let mut made = namespace("work");
        made.exporters = Some(["member-1".into()].into());
        let (steps, requeue) = steps_of(|| apply(&mut view, applied(made.object())));
        assert_eq!(requeue, []);
        steps + 1
    });
}

#[test]
fn disputes_cost_linear_time_together_and_plan_only_what_they_are_about() {
    let slice = |number: usize| (Kind::EndpointSliceImport, in_hub_of("member-2", &format!("slice-{number:05}")));
    let message = || Some("undone".to_owned());
    type About = fn(usize) -> String;
    let table: [(&str, About); 2] = [
        ("each about its own Service", |number| format!("work/app-{number:05}")),
        ("all about one", |_| "work/app".to_owned()),
    ];
    for (what, about) in table {
        assert_linear(what, |disputes| {
            let mut view = hub_view([]);
            let mut requeue = Vec::new();
            let steps = steps_of(|| {
                for number in 0..disputes {
                    view.disputed(Some(named(&about(number))), slice(number), message(), &mut requeue);
                }
                for number in 0..disputes {
                    view.disputed(None, slice(number), None, &mut requeue);
                }
            });
            assert_eq!(requeue.len(), 2 * disputes, "{what}: one key when a dispute begins and when it is over");
            steps.0
        });
    }
}

// === Work of a member that imports ===

fn distributed(number: usize) -> HubSlice {
    let path = format!("work/app-{number:05}");
    distributed_slice("member-1", &slice_export("member-2", &slice(&path).uid(&path))).marked()
}

fn importer(slices: usize) -> member::Planner {
    let request = request("work/app")
        .taken_on()
        .deriving("work-app")
        .with_conditions(&[found()])
        .consumed_as(ConsumerType::ClusterIp);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let derived = derived_service("work-app", "work/app").object();
    let distributed = (0..slices).map(|number| Object::EndpointSliceImport(distributed(number)));
    member_view([request.object(), import.object(), derived].into_iter().chain(distributed))
}

/// Also rule T35.
#[test]
fn the_slices_of_one_exporter_cost_linear_time_together() {
    assert_linear("taking them in", |slices| steps_of(|| importer(slices)).0);
    assert_constant("a change of one", |slices| {
        let mut view = importer(slices);
        let change = distributed(0).with_addresses(&["10.0.0.9"], 2);
        let (steps, requeue) = steps_of(|| apply(&mut view, applied(Object::EndpointSliceImport(change))));
        assert_eq!(requeue.len(), 1, "{requeue:?}");
        steps
    });
}

/// Returns a Service of the importing cluster with this cluster IP, or without one.
fn own_service(ip: Option<&str>) -> KindChange {
    let mut own = service("shop/db");
    own.cluster_ips = ip.into_iter().map(Into::into).collect();
    applied(own.object())
}

/// Also rule T35.
#[test]
fn an_address_of_the_importing_cluster_validates_only_the_imports_that_have_it() {
    assert_constant("a Service without an address", |slices| {
        let mut view = importer(slices);
        steps_of(|| apply(&mut view, own_service(None))).0
    });
    let (slices, few) = (400, 20);
    let mut view = importer(slices);
    let (steps, requeue) = steps_of(|| apply(&mut view, own_service(Some("10.96.0.10"))));
    assert_eq!(requeue, []);
    assert!(steps <= slices + few, "{steps} steps: each import was looked at once");
    // While Services or slices are not listed, nothing is validated. It is once the last list is complete.
    let mut watch = |kind, state| steps_of(|| view.watch_state(kind, state, NOW, &mut Vec::new())).0;
    assert!(watch(Kind::ServiceExport, WatchState::Complete) <= few);
    assert!(watch(Kind::EndpointSlice, WatchState::Incomplete) <= few);
    assert!(watch(Kind::Service, WatchState::Incomplete) <= few);
    assert!(watch(Kind::Service, WatchState::Complete) <= few);
    let mut listing = view.clone();
    let (steps, _) = steps_of(|| apply(&mut listing, own_service(Some("10.96.0.11"))));
    assert!(steps <= few, "{steps}");
    let mut watch = |kind, state| steps_of(|| view.watch_state(kind, state, NOW, &mut Vec::new())).0;
    assert!(watch(Kind::EndpointSlice, WatchState::Complete) >= slices);
}

#[test]
fn a_change_of_a_distributed_slice_validates_each_of_its_endpoints_once() {
    let steps = |endpoints: usize| {
        let mut view = importer(10);
        let mut changed = distributed(0);
        changed.spec.content = Arc::new(many(0, endpoints));
        changed.spec.reference.generation += 1;
        steps_of(|| apply(&mut view, applied(Object::EndpointSliceImport(changed)))).0
    };
    assert_eq!(steps(500) - steps(100), 400);
}
