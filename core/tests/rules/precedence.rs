//! Tests of the order of exports by the standard API. The order survives what users, operators and agents create again.

use crate::support::build::{
    Build, BuildInternalExport, BuildService, IntoObject, condition, internal_export, mcs_part, member_agent, named,
    port, seconds, service,
};
use crate::support::server::merge;
use crate::support::view::{hub_view, observe_change, observe_removal, planned, writes};
use fleetnet_core::features::Features;
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::limits::{PLACES_MAX, RECREATION_MICROS};
use fleetnet_core::model::{ExportedBy, InternalServiceExport, Kind, McsExport, Place};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch};

/// Returns the export of a cluster, with ports of its own. `created` is its creation in the hub, and `exported` that of
/// its ServiceExport.
fn export(number: i64, created: i64, exported: i64) -> InternalServiceExport {
    let ports = [port("http", 80 + i32::try_from(number).expect("small"))];
    let part = McsExport { export_created: Some(seconds(exported)), ..mcs_part() };
    let export = internal_export(&format!("member-{number}"), &service("work/app").ports(&ports));
    export.created(seconds(created)).uid(&format!("uid-{number}-{created}")).mcs(part)
}

/// Returns the same export after its member has created it again, because the hub had lost it.
fn recreated(export: InternalServiceExport) -> InternalServiceExport {
    let part = export.mcs.as_deref().cloned().expect("a part");
    export.mcs(McsExport { is_recreated: true, ..part })
}

fn app() -> Key {
    Key::Service(named("work/app"))
}

/// Returns a hub with these exports, which came one after the other, and with one importer.
fn hub(exports: &[InternalServiceExport]) -> Planner {
    let mut view = hub_view([member_agent("importer", Features::ALL, Features::ALL).object()]);
    exports.iter().for_each(|export| comes(&mut view, export));
    view
}

fn comes(view: &mut Planner, export: &InternalServiceExport) {
    observe_change(view, export.clone().object());
    settle(view);
}

fn goes(view: &mut Planner, export: &InternalServiceExport) {
    observe_removal(view, &export.clone().object());
    settle(view);
}

/// Executes the writes of the hub agent to the exports, as an API server does.
fn settle(view: &mut Planner) {
    for _ in 0..10 {
        let mut writes = writes(view, &app());
        writes.retain(|write| write.kind() == Kind::InternalServiceExport);
        if writes.is_empty() {
            return;
        }
        for write in writes {
            let Action::Patch { patch, .. } = write.action else { panic!("{write:?}") };
            let present = view.internal_exports.get(&write.at).expect("an export");
            let mut object = present.clone().object();
            merge(&mut object, patch);
            object.meta_mut().resource_version += 1;
            observe_change(view, object);
        }
    }
    panic!("it never ends");
}

/// Returns the numbers of the exporting clusters in their order. The first one decides.
fn order(view: &Planner) -> Vec<i64> {
    let ordered = clusters(view);
    let exports = view.internal_exports.iter().cloned().map(IntoObject::object);
    let agent = member_agent("importer", Features::ALL, Features::ALL).object();
    assert_eq!(clusters(&hub_view(exports.chain([agent]))), ordered, "a restart of the hub agent changes nothing");
    ordered
}

fn clusters(view: &Planner) -> Vec<i64> {
    let importer = names::member_namespace("importer");
    let plan = planned(view, &Key::MergedImport { service: named("work/app"), importer });
    let import = plan.writes.into_iter().find_map(|write| match write.action {
        Action::Create(Desired::MergedServiceImport { import, .. }) => Some(import),
        _ => None,
    });
    let import = import.expect("a MergedServiceImport");
    let number = |cluster: &str| cluster.rsplit('-').next().and_then(|number| number.parse().ok()).expect("a number");
    import.clusters.iter().map(|it| number(&it.cluster)).collect()
}

fn in_hub(view: &Planner, number: i64) -> InternalServiceExport {
    let namespace = names::member_namespace(&format!("member-{number}"));
    view.internal_exports.iter().find(|it| it.meta.name.member_namespace() == namespace).cloned().expect("an export")
}

/// Rule MC14: The hub agent writes the outcome of a merge to an InternalServiceExport
/// Then: In the same write, the hub agent records the places of this export and of the 15 oldest ones before it in
/// `status.precedence`. Exports that are gone keep their places in the records of younger exports. So an export that
/// comes back with the same ServiceExport has its place again. A record alone costs a write only if the server has kept
/// one that lacks a present place. So the younger exports also remember an older export that the hub had lost
///
/// Also rule MC13.
#[test]
fn a_service_that_is_created_again_keeps_the_place_of_its_service_export() {
    let (oldest, other, third) = (export(1, 10, 10), export(2, 15, 15), export(3, 17, 17));
    let mut view = hub(&[oldest.clone(), other.clone(), third]);
    assert_eq!(order(&view), [1, 2, 3]);
    goes(&mut view, &oldest);
    assert_eq!(order(&view), [2, 3]);
    comes(&mut view, &export(1, 40, 10));
    assert_eq!(order(&view), [1, 2, 3]);
    goes(&mut view, &export(1, 40, 10));
    goes(&mut view, &other);
    comes(&mut view, &export(2, 50, 15));
    comes(&mut view, &export(1, 51, 10));
    assert_eq!(order(&view), [1, 2, 3], "the third one remembers both");
    goes(&mut view, &export(1, 51, 10));
    comes(&mut view, &export(1, 60, 59));
    assert_eq!(order(&view), [2, 3, 1], "another ServiceExport is a new one");
}

/// Rule MC13: Several clusters export a Service by the standard API
/// Then: The exports are in the order of their ages. An export with a place in a record (rule MC14) keeps it. A new
/// export has the age of its InternalServiceExport or of its ServiceExport, whichever is later, and comes after each
/// export that the hub knows. An export that the hub has lost and its member creates again has the age of its
/// ServiceExport. Among such exports, created within 10 minutes, the ServiceExports decide. An InternalServiceExport
/// that the fleet's API made earlier gives no age
#[test]
fn an_export_that_is_new_to_the_hub_is_never_placed_before_one_that_the_hub_knows() {
    let known = export(1, 10, 10);
    let mut view = hub(&[known.clone(), export(2, 20, 0)]);
    assert_eq!(order(&view), [1, 2]);
    goes(&mut view, &export(2, 20, 0));
    comes(&mut view, &recreated(export(2, 30, 0)));
    assert_eq!(order(&view), [1, 2], "it says that the hub has lost it");
    comes(&mut view, &recreated(export(2, 30, -5)).version(7));
    assert_eq!(order(&view), [1, 2], "it changes its time");
    let view = hub_view([
        known.clone().object(),
        export(2, 20, 0).object(),
        member_agent("importer", Features::ALL, Features::ALL).object(),
    ]);
    assert_eq!(order(&view), [1, 2], "the hub agent has seen neither before");
    let by_fleet = InternalServiceExport { mcs: None, ..export(2, 1, 0) };
    let mut view = hub(&[known, by_fleet.port_set_since(seconds(1))]);
    comes(&mut view, &export(2, 1, 0).port_set_since(seconds(1)).version(9));
    assert_eq!(order(&view), [1, 2], "its InternalServiceExport is older, but was of the fleet's API");
    let returned = recreated(export(1, 110, 10));
    let mut view = hub(&[returned, export(2, 111, 0)]);
    assert_eq!(order(&view), [1, 2], "the hub has lost only the first one");
    comes(&mut view, &export(3, 112, i64::MAX / 1_000_000));
    comes(&mut view, &export(4, 113, 0));
    assert_eq!(order(&view), [1, 2, 3, 4]);
    let since: Vec<i64> = in_hub(&view, 4).precedence.iter().map(|place| place.since.0).collect();
    assert_eq!(since, [10_000_000, 111_000_000, 253_370_764_800_000_000, 253_370_764_800_000_001]);
}

/// Also rule MC13.
#[test]
fn exports_that_the_hub_has_lost_come_back_in_the_order_of_their_service_exports() {
    let lost = |number, created, exported| recreated(export(number, created, exported));
    let mut view = hub(&[lost(1, 100, 39), lost(2, 101, 35), lost(3, 99, 37)]);
    assert_eq!(order(&view), [2, 3, 1]);
    goes(&mut view, &lost(2, 101, 35));
    comes(&mut view, &export(2, 200, 35));
    assert_eq!(order(&view), [2, 3, 1], "and they keep it");
    let late = 100 + RECREATION_MICROS / 1_000_000;
    assert_eq!(order(&hub(&[lost(1, 100, 39), lost(2, late, 35)])), [2, 1]);
    assert_eq!(order(&hub(&[lost(1, 100, 39), lost(2, late + 1, 35)])), [1, 2], "too late");
    assert_eq!(
        order(&hub(&[export(1, 10, 10), lost(2, 100, 39), lost(3, 101, 5)])),
        [1, 3, 2],
        "only one was not lost"
    );
}

/// Also rule MC14.
#[test]
fn exports_that_come_back_and_agree_remember_the_place_of_the_first_one() {
    let agrees = |export: InternalServiceExport| {
        let ports = vec![port("http", 80)];
        InternalServiceExport { ports, ..export }
    };
    let lost = |number, created, exported| agrees(recreated(export(number, created, exported)));
    let first = lost(1, 101, 35);
    let recorded = |view: &Planner, number| {
        let places = in_hub(view, number).precedence;
        places.iter().map(|place| place.cluster.to_string()).collect::<Vec<_>>()
    };
    let table = [
        (vec![lost(2, 100, 37), first.clone()], "the younger one came back first"),
        (vec![first.clone(), lost(2, 102, 37)], "the older one came back first"),
        (vec![lost(3, 99, 39), lost(2, 100, 37), first.clone()], "the youngest one came back first"),
    ];
    for (exports, case) in table {
        let mut view = hub(&exports);
        let after: Vec<i64> = (2..=i64::try_from(exports.len()).expect("small")).collect();
        let before = || [1].into_iter().chain(after.clone()).collect::<Vec<_>>();
        assert_eq!(order(&view), before(), "{case}");
        assert_eq!(recorded(&view, 1), ["member-1"], "{case}");
        assert_eq!(recorded(&view, 2), ["member-1", "member-2"], "{case}");
        goes(&mut view, &first);
        assert_eq!(order(&view), after, "{case}");
        comes(&mut view, &export(1, 200, 35));
        assert_eq!(order(&view), before(), "its Service is created again with another port: {case}");
    }
}

/// Also rule MC13.
#[test]
fn an_older_export_by_the_fleets_api_has_the_age_of_its_service_export() {
    let both = |created, exported| {
        let export = export(1, created, exported);
        let part = export.mcs.as_deref().cloned().expect("a part");
        let part = McsExport { exported_by: ExportedBy::Both, ..part };
        export.mcs(part).port_set_since(seconds(created))
    };
    let view = hub_view([
        both(1, 39).object(),
        export(2, 35, 35).object(),
        member_agent("importer", Features::ALL, Features::ALL).object(),
    ]);
    assert_eq!(order(&view), [2, 1]);
}

/// Also rule MC7.
#[test]
fn exports_of_one_second_are_in_the_order_of_their_service_exports_and_then_of_their_clusters() {
    let view = |exports: [InternalServiceExport; 3]| {
        let agent = member_agent("importer", Features::ALL, Features::ALL).object();
        hub_view(exports.map(IntoObject::object).into_iter().chain([agent]))
    };
    let mut view = view([export(1, 9, 8), export(3, 9, 7), export(2, 9, 8)]);
    assert_eq!(order(&view), [3, 1, 2]);
    settle(&mut view);
    goes(&mut view, &export(3, 9, 7));
    comes(&mut view, &export(3, 30, 7));
    assert_eq!(order(&view), [3, 1, 2]);
}

/// Also rule MC14.
#[test]
fn an_export_records_its_place_and_those_of_the_15_oldest_ones() {
    let exports: Vec<_> = (1..=20).map(|number| export(number, number, number)).collect();
    let mut view = hub(&exports);
    let recorded = |view: &Planner, number| {
        let places = in_hub(view, number).precedence;
        places.iter().map(|place| place.since.0 / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(recorded(&view, 1), [1]);
    assert_eq!(recorded(&view, 3), [1, 2, 3]);
    assert_eq!(recorded(&view, 20), (1..=15).chain([20]).collect::<Vec<_>>());
    assert_eq!(recorded(&view, 20).len(), PLACES_MAX);
    goes(&mut view, &exports[0]);
    comes(&mut view, &export(1, 100, 1));
    assert_eq!(order(&view), (1..=20).collect::<Vec<_>>());
}

/// Also rule MC14.
#[test]
fn a_record_costs_no_write_of_its_own_and_is_corrected_only_if_the_server_keeps_it() {
    let outcome =
        condition("multicluster.x-k8s.io/Conflict", "False", "NoConflicts", "all exports of service work/app agree", 1);
    let judged = InternalServiceExport { conditions: vec![outcome], ..export(1, 10, 5) };
    let mut view = hub_view([
        judged.clone().object(),
        export(2, 1, 0).object(),
        member_agent("importer", Features::ALL, Features::ALL).object(),
    ]);
    assert_eq!(order(&view), [1, 2], "an earlier version has merged the first one");
    observe_change(&mut view, InternalServiceExport { conditions: Vec::new(), ..judged.clone() }.version(2).object());
    assert_eq!(order(&view), [2, 1]);
    observe_change(&mut view, judged.clone().version(3).object());
    assert_eq!(order(&view), [1, 2]);
    let written = |export: InternalServiceExport| writes(&hub_view([export.object()]), &app());
    assert_eq!(written(judged.clone()), [], "an older CRD has dropped the record");
    let place = Place { cluster: "member-1".into(), export_created: seconds(5), since: seconds(10) };
    let recorded = |place: Place| InternalServiceExport { precedence: vec![place], ..judged.clone() };
    assert_eq!(written(recorded(place.clone())), []);
    let earlier = Place { export_created: seconds(3), ..place.clone() };
    let [write] = &written(recorded(earlier))[..] else { panic!("one write") };
    let Action::Patch { patch: Patch::InternalServiceExportMerge { conditions, precedence }, .. } = &write.action
    else {
        panic!("{write:?}")
    };
    assert_eq!((conditions, precedence), (&judged.conditions, &vec![place]));
    assert_eq!(write.kind(), Kind::InternalServiceExport);
}
