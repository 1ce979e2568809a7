//! Tests of the hub agent's record of granted claims, and of the reasons why a claim waits.

use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildNamespace, BuildService, IntoObject, claim,
    finalizers_of, in_hub_of, internal_export, member_agent, named, namespace, no_conflict, resolved, seconds, service,
    service_import,
};
use crate::support::view::{NOW, blocking_reasons, events, hub_view, planned, undecodable, writes};
use fleetnet_core::features::Features;
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::model::{ImportStatus, ImportType, InternalServiceImport, Kind, Object, ServiceImport};
use fleetnet_core::names;
use fleetnet_core::plan::{Patch, Write};
use fleetnet_types::{ClusterId, WatchState};

fn app() -> Key {
    Key::Service(named("work/app"))
}

fn status() -> ImportStatus {
    resolved(&["member-1"])
}

/// Returns the ServiceImport of `work/app`, which member-1 exports, with these recorded importers.
fn import_of(importers: &[&str]) -> ServiceImport {
    service_import("work/app").showing(status()).claimed_by(importers)
}

/// Returns a new exclusive claim.
fn fresh(cluster: &str) -> InternalServiceImport {
    claim(cluster, &service_import("work/app"))
}

/// Returns an exclusive claim that shows its grant.
fn granted(cluster: &str) -> InternalServiceImport {
    fresh(cluster).marked().with_status(status())
}

/// Returns a second exclusive claim of a member.
fn second(cluster: &str) -> InternalServiceImport {
    let mut second = fresh(cluster).uid("second").marked();
    second.meta.name.name = "second".into();
    second
}

fn view_of(import: &ServiceImport, claims: &[&InternalServiceImport]) -> Planner {
    let export = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let claims = claims.iter().map(|claim| (*claim).clone().object());
    hub_view([export.judged(no_conflict("work/app")).object(), import.clone().object()].into_iter().chain(claims))
}

fn mark(claim: &InternalServiceImport) -> Write {
    Write::add_finalizer(Kind::InternalServiceImport, &claim.meta)
}

fn unmark(claim: &InternalServiceImport) -> Write {
    Write::remove_finalizer(Kind::InternalServiceImport, &claim.meta)
}

fn answer(claim: &InternalServiceImport, status: ImportStatus) -> Write {
    Write::patch(&claim.meta, Patch::InternalServiceImportStatus(status))
}

/// Returns the write of a record with these importers. `alone` is the importer with the exclusive claim, if the record
/// names it.
fn record(import: &ServiceImport, importers: &[&str], alone: Option<&str>) -> Write {
    let finalizers = finalizers_of(&import.meta, !importers.is_empty());
    let load_balancer = alone.map(names::member_namespace);
    let importers =
        importers.iter().map(|cluster| (names::member_namespace(cluster), ClusterId::from(*cluster))).collect();
    Write::patch(&import.meta, Patch::Claims { importers, load_balancer, finalizers })
}

/// Also rule C1.
#[test]
fn a_claim_gets_its_finalizer_before_its_record_also_beside_other_records() {
    let import = service_import("work/app").showing(status());
    let claim = fresh("member-2");
    let mut view = view_of(&import, &[&claim]);
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-web"));
    assert_eq!(writes(&view, &app()), [mark(&claim)], "beside an undecodable claim of another Service");

    let shared = ["member-4", "member-5"].map(|cluster| granted(cluster).east_west());
    let view = view_of(&import_of(&["member-4", "member-5"]), &[&claim, &shared[0], &shared[1]]);
    assert_eq!(writes(&view, &app()), [mark(&claim)], "beside shared claims");

    let import = import_of(&["member-2", "member-3"]).claimed_alone_by("member-3");
    let view = view_of(&import, &[&claim]);
    assert_eq!(writes(&view, &app()), [mark(&claim), record(&import, &[], None)], "the record names another claim");
}

/// Also rule C2.
#[test]
fn the_exclusive_claim_is_free_only_if_its_recorded_holder_has_none() {
    let both = import_of(&["member-2", "member-4"]);
    let waits = fresh("member-3");
    let (shared, exclusive) = (granted("member-4").east_west(), granted("member-2"));
    let alone = |cluster| both.clone().claimed_alone_by(cluster);
    let gone = view_of(&alone("member-2"), &[&shared, &waits]);
    assert!(writes(&gone, &app()).contains(&mark(&waits)), "the claim of the holder is gone");

    let beside = |import: &ServiceImport, claims: &[&InternalServiceImport], lost| {
        let mut view = view_of(import, claims);
        undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of(lost, "work-app"));
        writes(&view, &app())
    };
    assert_eq!(beside(&alone("member-2"), &[&shared, &waits], "member-2"), [], "that of the holder is undecodable");
    let written = beside(&alone("member-4"), &[&waits], "member-2");
    assert!(written.contains(&mark(&waits)), "the undecodable claim is not the recorded one: {written:?}");
    let named = [record(&both, &["member-2", "member-4"], Some("member-2"))];
    assert_eq!(beside(&both, &[&exclusive], "member-4"), named, "the holder keeps the claim that it has");
}

/// Also rule C9.
#[test]
fn a_new_import_records_the_exclusive_claim_of_a_member_without_a_shared_one() {
    let import = service_import("work/app").showing(status());
    let (shared, holder) = (granted("member-2").east_west(), granted("member-3").created(seconds(9)));
    let of_sharer = second("member-2").created(seconds(1)).with_status(status());
    let written = writes(&view_of(&import, &[&shared, &of_sharer, &holder]), &app());
    assert!(written.contains(&record(&import, &["member-2", "member-3"], Some("member-3"))), "{written:?}");
}

/// Also rule T15.
#[test]
fn while_rights_are_unknown_a_shared_claim_stays_and_no_exclusive_one_is_granted_beside_it() {
    let (shared, waits) = (granted("member-2").east_west(), second("member-2"));
    let mut view = view_of(&import_of(&["member-2"]), &[&shared, &waits]);
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &app()), []);
}

#[test]
fn no_claim_changes_before_the_features_of_the_members_are_known() {
    let mut view = view_of(&import_of(&[]), &[&fresh("member-2")]);
    assert_ne!(writes(&view, &app()), []);
    view.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &app()), []);
}

/// Also rule C6.
#[test]
fn claims_of_a_service_without_exporters_stay_recorded_and_lose_their_answers() {
    let export = internal_export("member-1", &service("work/app")).object();
    let holder = fresh("member-2");
    let unresolved = service_import("work/app").claimed_by(&["member-2"]);
    let view = hub_view([export, unresolved.object(), holder.clone().object()]);
    assert!(writes(&view, &app()).contains(&mark(&holder)), "a recorded claim gets its finalizer again");

    // The last export is gone, and the record was lost before.
    let (import, answered) = (service_import("work/app").showing(status()), granted("member-2"));
    let view = hub_view([import.clone().object(), answered.clone().object()]);
    let deletion = Write::delete(Kind::ServiceImport, &import.meta);
    assert_eq!(writes(&view, &app()), [deletion, answer(&answered, ImportStatus::default())]);
}

/// Also rule C9.
#[test]
fn a_deleted_claim_is_released_while_the_import_is_missing() {
    let export = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let dying = fresh("member-2").marked().deleting();
    let view = hub_view([export.object(), dying.clone().object()]);
    assert!(writes(&view, &app()).contains(&unmark(&dying)));
}

/// Also rule T14.
#[test]
fn a_denied_claim_loses_its_answer_before_it_gets_its_finalizer() {
    let answered = fresh("member-2").with_status(status());
    let export = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let import = service_import("work/app").showing(status());
    let objects = [export.judged(no_conflict("work/app")).object(), import.object(), answered.clone().object()];
    let view = hub_view(objects.into_iter().chain([namespace("work").imported_from_by("").object()]));
    assert_eq!(writes(&view, &app()), [answer(&answered, ImportStatus::default())]);
}

#[test]
fn an_answered_claim_waits_for_no_announcement() {
    let view = view_of(&import_of(&["member-2"]), &[&fresh("member-2").marked()]);
    let plan = planned(&view, &app());
    assert_eq!((plan.writes.len(), plan.again), (1, None));
}

/// Also rule R10.
#[test]
fn a_waiting_claim_names_what_it_waits_for() {
    let reasons = |view: &Planner| -> Vec<(&'static str, String)> {
        let plan = planned(view, &app());
        blocking_reasons(&plan).into_iter().map(|(reason, text)| (reason, text.to_owned())).collect()
    };
    let (holder, shared, waits) = (granted("member-2"), granted("member-4").east_west(), fresh("member-3"));
    let import = import_of(&["member-2", "member-4"]).claimed_alone_by("member-2");
    let told = reasons(&view_of(&import, &[&holder, &shared, &waits]));
    assert_eq!(told.len(), 1);
    assert!(told[0].1.contains("is imported by member-2 already"), "only the holder: {told:?}");

    let dying = hub_view([import.deleting().object(), waits.clone().object()]);
    assert_eq!(reasons(&dying), [], "the import is being deleted");

    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..status() };
    let import = service_import("work/app").showing(headless).claimed_by(&["member-2"]);
    let export = internal_export("member-1", &service("work/app").headless()).port_set_since(seconds(2));
    let agents = ["member-2", "member-3"].map(|member| member_agent(member, Features::ALL, Features::ALL).object());
    let objects: [Object; 4] = [import.object(), export.object(), holder.object(), waits.object()];
    let told = reasons(&hub_view(objects.into_iter().chain(agents)));
    let held: Vec<&str> = told.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(held, ["ImportHeldByAnother"], "its agent supports headless Services");
}

/// Also rule R8.
#[test]
fn an_event_about_importers_is_emitted_only_if_the_importers_change() {
    let (shared, exclusive) = (granted("member-2").east_west(), second("member-2"));
    let import = import_of(&["member-2"]);
    let view = view_of(&import, &[&shared, &exclusive]);
    assert_eq!(writes(&view, &app()), [record(&import, &["member-2"], Some("member-2"))]);
    assert_eq!(events(&view, &app()), [""; 0], "only the type of its claim changes");

    let mut unmarked = import;
    unmarked.meta.finalizers.ours = false;
    let view = view_of(&unmarked, &[&granted("member-2")]);
    assert_eq!(writes(&view, &app()), [record(&unmarked, &["member-2"], None)], "the finalizer is restored");
    assert_eq!(events(&view, &app()), [""; 0]);
}
