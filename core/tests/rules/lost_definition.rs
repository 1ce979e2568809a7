//! Tests of a missing CRD of MemberAgent. For 60 s, agents use the last announced features. After that, they write
//! changes in the Go form. Agents do not remove or rewrite anything that did not change.

use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildService, BuildSlice, IntoObject, accepted_export, claim,
    content, distributed_slice, endpoint, internal_export, member_agent, named, no_conflict, resolved, seconds,
    service, service_import, slice, slice_export,
};
use crate::support::view::{
    blocking_reasons, events, hub_view, member_view, observe_change, observe_removal, planned, planned_at, writes,
};
use fleetnet_core::features::Features;
use fleetnet_core::hub;
use fleetnet_core::member::{self, Key};
use fleetnet_core::model::{
    AddressType, EndpointSlice, HubSlice, ImportStatus, ImportType, InternalServiceExport, InternalServiceImport, Kind,
    Object, Service, ServiceExport, SessionAffinity, SliceContent,
};
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::WatchState;
use std::sync::Arc;

const STICKY: SessionAffinity = SessionAffinity::ClientIp { timeout_seconds: 60 };

/// Returns a slice that uses every addition of fleetnet to the Go form.
fn rich() -> EndpointSlice {
    let mut rich = slice("work/app-1").endpoints(&["10.0.0.1"]);
    rich.content.endpoints[0].hostname = Some("db-0".into());
    rich.content.endpoints[0].zone = Some("zone-1".into());
    rich.content.draining = vec![endpoint("10.0.0.2")];
    rich
}

/// Returns the slice of [`rich`] with one more endpoint.
fn changed() -> EndpointSlice {
    let mut changed = rich().version(2).generation(2);
    changed.content.endpoints.push(endpoint("10.0.0.3"));
    changed
}

fn six(address: &str) -> EndpointSlice {
    let six = slice("work/app-1");
    EndpointSlice { content: SliceContent { address_type: AddressType::IPv6, ..content(&[address]) }, ..six }
}

/// Returns the contents of the slices in these writes.
fn carried(writes: &[Write]) -> Vec<SliceContent> {
    let content = |write: &Write| match &write.action {
        Action::Create(Desired::EndpointSliceExport(spec) | Desired::EndpointSliceImport(spec))
        | Action::Patch { patch: Patch::EndpointSliceExport(spec) | Patch::EndpointSliceImport(spec), .. } => {
            Some((*spec.content).clone())
        }
        _ => None,
    };
    writes.iter().filter_map(content).collect()
}

fn addresses(addresses: &[&str]) -> Vec<SliceContent> {
    vec![content(addresses)]
}

// === The hub agent while a CRD is missing ===

/// Returns the hub agent's view of an export of member-1 and its distributed slice for member-2 (`distributed`). The
/// CRD is deleted at second 20 if `was_there` is true. Otherwise it never existed.
fn hub_without(export: &HubSlice, distributed: Option<&HubSlice>, was_there: bool) -> hub::Planner {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let claim = claim("member-2", &service_import("work/app")).marked().with_status(resolved(&["member-1"]));
    let mut objects = vec![Object::EndpointSliceExport(export.clone()), import.object(), claim.object()];
    objects.extend(distributed.map(|distributed| Object::EndpointSliceImport(distributed.clone())));
    without_definition(objects, was_there)
}

fn without_definition(objects: Vec<Object>, was_there: bool) -> hub::Planner {
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let state = if was_there { WatchState::Unknown } else { WatchState::Absent };
    let mut view = hub_view(objects.into_iter().chain(was_there.then_some(agent)));
    view.watch_state(Kind::MemberAgent, state, seconds(20), &mut Vec::new());
    view
}

fn key_of(export: &HubSlice) -> hub::Key {
    hub::Key::Slice(export.meta.name.name.clone())
}

/// Rule U12: The CRD of MemberAgent is deleted
/// Then: For 60 s, the agents use the features that the peers announced last. After the 60 s, the agents write changed
/// objects in the Go form (as Go agents write objects). The agents do not rewrite unchanged objects
#[test]
fn the_hub_goes_on_in_the_last_form_for_a_minute_and_then_in_the_go_form() {
    let export = slice_export("member-1", &changed()).marked();
    let distributed = distributed_slice("member-2", &slice_export("member-1", &rich()));
    let view = hub_without(&export, Some(&distributed), true);
    let in_time = planned_at(&view, &key_of(&export), seconds(79));
    assert_eq!((carried(&in_time.writes), in_time.again), (vec![changed().content], Some(seconds(80))));
    let later = planned_at(&view, &key_of(&export), seconds(80));
    assert_eq!((carried(&later.writes), later.again), (addresses(&["10.0.0.1", "10.0.0.3"]), None));
    let never_there = hub_without(&export, Some(&distributed), false);
    assert_eq!(carried(&writes(&never_there, &key_of(&export))), addresses(&["10.0.0.1", "10.0.0.3"]));
    let none = hub_without(&export, None, false);
    assert_eq!(carried(&writes(&none, &key_of(&export))), addresses(&["10.0.0.1", "10.0.0.3"]), "and what is new");
}

/// Also rule U12.
#[test]
fn the_hub_rewrites_no_distributed_slice_for_want_of_the_definition() {
    let export = slice_export("member-1", &rich()).marked();
    let distributed = distributed_slice("member-2", &export);
    let mut half = distributed.clone();
    Arc::make_mut(&mut half.spec.content).draining.clear();
    for distributed in [distributed, half] {
        let view = hub_without(&export, Some(&distributed), false);
        assert_eq!(planned(&view, &key_of(&export)), Plan::default(), "{:?}", distributed.spec.content);
    }
}

/// Rule U13: The CRD of MemberAgent is missing, or the agent may not list MemberAgents, also at the start of the agent
/// Then: The agents neither remove nor change existing objects that the Go form (as Go agents write objects) cannot
/// represent (IPv6 slices, headless Services). The agents create no new objects that the Go form cannot represent. The
/// agents still update the exported slices of a headless Service
#[test]
fn a_distributed_slice_that_the_go_form_cannot_carry_is_neither_removed_nor_changed() {
    let export = slice_export("member-1", &six("fd00::2")).marked();
    let distributed = distributed_slice("member-2", &slice_export("member-1", &six("fd00::1")));
    for was_there in [true, false] {
        let mut view = hub_without(&export, Some(&distributed), was_there);
        assert_eq!(planned_at(&view, &key_of(&export), seconds(900)), Plan::default(), "{was_there}");
        let none = hub_without(&export, None, was_there);
        assert_eq!(planned_at(&none, &key_of(&export), seconds(900)).writes.len(), 1, "it is marked for nobody");
        let withdrawn = Write::delete(Kind::EndpointSliceImport, &distributed.meta);
        observe_removal(&mut view, &Object::EndpointSliceExport(export.clone()));
        assert_eq!(planned_at(&view, &key_of(&export), seconds(900)).writes, [withdrawn], "its source goes");
    }
}

/// Also rules A13, U14.
#[test]
fn a_peer_has_six_minutes_for_its_first_announcement() {
    let export = slice_export("member-1", &six("fd00::1")).marked();
    let distributed = distributed_slice("member-2", &export);
    let mut view = hub_without(&export, Some(&distributed), false);
    view.watch_state(Kind::MemberAgent, WatchState::Complete, seconds(100), &mut Vec::new());
    let waits = Plan { again: Some(seconds(460)), ..Plan::default() };
    assert_eq!(planned_at(&view, &key_of(&export), seconds(459)), waits, "the definition is there");
    let mut set = view.clone();
    set.clock_set(10_000_000);
    let waits = Plan { again: Some(seconds(470)), ..Plan::default() };
    assert_eq!(planned_at(&set, &key_of(&export), seconds(469)), waits, "the wall clock was set forward by 10 s");
    let withdrawn = [Write::delete(Kind::EndpointSliceImport, &distributed.meta)];
    assert_eq!(planned_at(&view, &key_of(&export), seconds(460)).writes, withdrawn, "and it announces nothing");
    observe_change(&mut view, member_agent("member-2", Features::ALL, Features::ALL).object());
    assert_eq!(planned_at(&view, &key_of(&export), seconds(460)), Plan::default(), "it announces them again");
}

/// Returns the hub agent's writes for a Service that member-1 exports and member-2 claims, while the CRD of MemberAgent
/// is missing. If `is_claimed` is true, the ServiceImport records the claim as granted.
fn service_plan(status: &ImportStatus, claim: &InternalServiceImport, is_claimed: bool) -> Vec<Write> {
    let mut content = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    (content.headless, content.session_affinity) = (status.is_headless(), status.session_affinity);
    let import = service_import("work/app").showing(status.clone());
    let import = if is_claimed { import.claimed_by(&["member-2"]) } else { import };
    let objects = vec![content.port_set_since(seconds(2)).object(), import.object(), claim.clone().object()];
    writes(&without_definition(objects, false), &hub::Key::Service(named("work/app")))
}

fn headless() -> ImportStatus {
    ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) }
}

/// Also rule U13.
#[test]
fn a_claim_of_a_headless_service_is_kept_as_it_is_and_none_is_granted() {
    let fresh = claim("member-2", &service_import("work/app"));
    let stored = fresh.clone().marked().with_status(headless());
    assert_eq!(service_plan(&headless(), &stored, true), []);
    let other = fresh.clone().marked().with_status(ImportStatus { clusters: vec!["member-3".into()], ..headless() });
    assert_eq!(service_plan(&headless(), &other, true), [], "nor changed");
    assert_eq!(service_plan(&headless(), &fresh, false), []);
    let unmark = Write::remove_finalizer(Kind::InternalServiceImport, &fresh.clone().marked().meta);
    assert_eq!(service_plan(&headless(), &fresh.marked(), false), [unmark]);
}

/// Also rule U12.
#[test]
fn an_answer_keeps_the_session_affinity_that_it_shows_until_it_changes() {
    let sticky = ImportStatus { session_affinity: STICKY, ..resolved(&["member-1"]) };
    let shown = claim("member-2", &service_import("work/app")).marked().with_status(sticky.clone());
    assert_eq!(service_plan(&sticky, &shown, true), []);
    let other = ImportStatus { clusters: vec!["member-3".into()], ..sticky.clone() };
    let before = claim("member-2", &service_import("work/app")).marked().with_status(other);
    let answer = Write::patch(&before.meta, Patch::InternalServiceImportStatus(resolved(&["member-1"])));
    assert_eq!(service_plan(&sticky, &before, true), [answer]);
}

/// Also rule U14.
#[test]
fn a_kept_claim_is_planned_again_when_the_wait_for_an_announcement_ends_only_if_it_would_change_then() {
    let sticky = ImportStatus { session_affinity: STICKY, ..resolved(&["member-1"]) };
    for (status, again) in
        [(sticky, Some(seconds(460))), (headless(), Some(seconds(460))), (resolved(&["member-1"]), None)]
    {
        let mut content = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
        (content.headless, content.session_affinity) = (status.is_headless(), status.session_affinity);
        let import = service_import("work/app").showing(status.clone()).claimed_by(&["member-2"]);
        let claim = claim("member-2", &service_import("work/app")).marked().with_status(status.clone());
        let objects = vec![content.port_set_since(seconds(2)).object(), import.object(), claim.object()];
        let mut view = without_definition(objects, false);
        view.watch_state(Kind::MemberAgent, WatchState::Complete, seconds(100), &mut Vec::new());
        let plan = view.plan(&hub::Key::Service(named("work/app")), seconds(459));
        assert_eq!((plan.writes, plan.again), (Vec::new(), again), "{status:?}");
    }
}

// === A member agent while a CRD is missing ===

fn member_without(objects: impl IntoIterator<Item = Object>, was_there: bool) -> member::Planner {
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    let state = if was_there { WatchState::Unknown } else { WatchState::Absent };
    let mut view = member_view(objects.into_iter().chain(was_there.then_some(agent)));
    view.watch_state(Kind::MemberAgent, state, seconds(20), &mut Vec::new());
    view
}

fn exporter_without(source: &EndpointSlice, stored: Option<&HubSlice>, was_there: bool) -> member::Planner {
    let objects = [service("work/app").object(), accepted_export("work/app").object(), source.clone().object()];
    let stored = stored.map(|stored| Object::EndpointSliceExport(stored.clone()));
    member_without(objects.into_iter().chain(stored), was_there)
}

fn app_slice() -> Key {
    Key::SliceExport(named("work/app-1"))
}

/// Also rule U12.
#[test]
fn a_member_goes_on_in_the_last_form_for_a_minute_and_then_in_the_go_form() {
    let stored = slice_export("member-1", &rich());
    let view = exporter_without(&changed(), Some(&stored), true);
    let in_time = view.plan(&app_slice(), seconds(79));
    assert_eq!((carried(&in_time.writes), in_time.again), (vec![changed().content], Some(seconds(80))));
    let later = view.plan(&app_slice(), seconds(80));
    assert_eq!((carried(&later.writes), later.again), (addresses(&["10.0.0.1", "10.0.0.3"]), None));
    for was_there in [true, false] {
        let same = exporter_without(&rich(), Some(&stored), was_there);
        assert_eq!(same.plan(&app_slice(), seconds(900)), Plan::default(), "what has not changed is not rewritten");
        let none = exporter_without(&rich(), None, was_there);
        assert_eq!(carried(&none.plan(&app_slice(), seconds(900)).writes), addresses(&["10.0.0.1"]), "what is new");
    }
}

/// Also rule U13.
#[test]
fn an_export_that_the_go_form_cannot_carry_is_neither_withdrawn_nor_changed() {
    let stored = slice_export("member-1", &six("fd00::1"));
    for was_there in [true, false] {
        let view = exporter_without(&six("fd00::2"), Some(&stored), was_there);
        let plan = view.plan(&app_slice(), seconds(900));
        assert_eq!((plan.writes.len(), plan.again), (0, None));
        let message = "EndpointSlice work/app-1 of cluster member-1 stays in the hub unchanged: the hub agent does \
                       not announce support for IPv6 slices. Upgrade it, or apply the CRD of MemberAgent in the hub";
        assert_eq!(blocking_reasons(&plan), [("NotUnderstood", message)]);
        let none = exporter_without(&six("fd00::2"), None, was_there);
        assert_eq!(none.plan(&app_slice(), seconds(900)).writes, []);
        let mut view = view;
        observe_removal(&mut view, &six("fd00::2").object());
        let withdrawn = Write::delete(Kind::EndpointSliceExport, &stored.meta);
        assert_eq!(view.plan(&app_slice(), seconds(900)).writes, [withdrawn], "its source goes");
    }
    let mut of_another = stored;
    of_another.spec.reference.uid = "before".into();
    let withdrawn = [Write::delete(Kind::EndpointSliceExport, &of_another.meta)];
    let view = exporter_without(&six("fd00::2"), Some(&of_another), false);
    assert_eq!(writes(&view, &app_slice()), withdrawn, "that of a slice which is gone goes");
}

/// Also rule U14.
#[test]
fn a_member_whose_hub_announces_nothing_waits_six_minutes_before_it_withdraws() {
    let stored = slice_export("member-1", &six("fd00::1"));
    let mut view = exporter_without(&six("fd00::1"), Some(&stored), false);
    view.watch_state(Kind::MemberAgent, WatchState::Complete, seconds(100), &mut Vec::new());
    let waits = view.plan(&app_slice(), seconds(459));
    assert_eq!((waits.writes, waits.again), (Vec::new(), Some(seconds(460))));
    let withdrawn = [Write::delete(Kind::EndpointSliceExport, &stored.meta)];
    assert_eq!(view.plan(&app_slice(), seconds(460)).writes, withdrawn);
}

/// Returns the objects of a headless Service with one slice. Its user requests a headless export. `stored` is the
/// export in the hub.
fn headless_export(stored: Option<&InternalServiceExport>) -> Vec<Object> {
    let export = ServiceExport { headless: true, ..accepted_export("work/app").marked() };
    let slice = slice("work/app-1").endpoints(&["10.0.0.1"]);
    let objects = [service("work/app").headless().object(), export.object(), slice.object()];
    objects.into_iter().chain(stored.map(|stored| stored.clone().object())).collect()
}

/// Also rule U13.
#[test]
fn a_headless_export_is_kept_as_it_is_its_slices_follow_and_none_is_begun() {
    let app = Key::Export(named("work/app"));
    let mut stored = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    (stored.headless, stored.ports) = (true, Vec::new());
    let view = member_without(headless_export(Some(&stored)), false);
    assert_eq!(writes(&view, &app), [], "though its ports are others by now");
    assert_eq!(carried(&writes(&view, &app_slice())), addresses(&["10.0.0.1"]));

    let view = member_without(headless_export(None), false);
    assert_eq!(events(&view, &app), ["ServiceIneligible"]);
    let mut not_listed = view;
    not_listed.watch_state(Kind::InternalServiceExport, WatchState::Incomplete, seconds(20), &mut Vec::new());
    assert_eq!(planned(&not_listed, &app), Plan::default(), "what the hub has is not known yet");
    let export = slice_export("member-1", &slice("work/app-1").endpoints(&["10.0.0.9"]));
    observe_change(&mut not_listed, Object::EndpointSliceExport(export));
    assert_eq!(planned(&not_listed, &app_slice()), Plan::default());
}

/// Also rule U14.
#[test]
fn a_headless_export_ends_when_the_hub_does_not_announce_that_in_six_minutes() {
    let app = Key::Export(named("work/app"));
    let mut stored = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    stored.headless = true;
    let mut view = member_without(headless_export(Some(&stored)), false);
    view.watch_state(Kind::MemberAgent, WatchState::Complete, seconds(100), &mut Vec::new());
    assert_eq!(view.plan(&app, seconds(459)), Plan { again: Some(seconds(460)), ..Plan::default() });
    let reported: Vec<_> = view.plan(&app, seconds(460)).writes.iter().map(|write| write.kind()).collect();
    assert_eq!(reported, [Kind::ServiceExport], "it is told first");
}

/// Also rule U12.
#[test]
fn an_export_keeps_the_session_affinity_that_it_shows_until_it_changes() {
    let app = Key::Export(named("work/app"));
    let sticky = Service { session_affinity: STICKY, ..service("work/app") };
    let mut stored = internal_export("member-1", &sticky).judged(no_conflict("work/app"));
    stored.session_affinity = STICKY;
    let objects = |stored: &InternalServiceExport| {
        [sticky.clone().object(), accepted_export("work/app").marked().object(), stored.clone().object()]
    };
    assert_eq!(writes(&member_without(objects(&stored), false), &app), []);
    stored.ports.clear();
    let written = writes(&member_without(objects(&stored), false), &app);
    let [Write { action: Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. }, .. }] =
        &written[..]
    else {
        panic!("{written:?}")
    };
    assert_eq!(content.session_affinity, SessionAffinity::None);
}
