//! Tests of routing slices: slices of the standard API that only kube-proxy reads.

use crate::support::agent::View as _;
use crate::support::build::{
    Build, BuildHubSlice, IntoObject, content, distributed_slice, in_system, member_agent, merged_service_import,
    namespace, seconds, service, slice, slice_export,
};
use crate::support::mcs::{app, execute, import, importing, merged, settle};
use crate::support::view::{
    NOW, blocking_reasons, events_of, observe_change, observe_removal, planned, planned_at, undecodable, with_objects,
    writes,
};
use crate::support::world::settings;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::limits::ORPHAN_GRACE_MICROS;
use fleetnet_core::member::{Key, McsApi, Planner, Settings};
use fleetnet_core::model::{
    EndpointSlice, HubSlice, ImportType, Kind, McsLabels, MergedImport, Object, SilentMember, Treatment,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Desired, ImportedSlice, Patch, Plan, Sample, Write};
use fleetnet_types::{ObjectName, Text, WatchState};

fn view(routing_slices: bool, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mcs_api = McsApi::LabelledNamespaces;
    with_objects(Planner::new(Settings { mcs_api, routing_slices, ..settings(0) }), objects)
}

/// Returns the view of the next process, with the same objects.
fn restarted(view: &Planner, routing_slices: bool) -> Planner {
    self::view(routing_slices, view.objects())
}

/// Returns the distributed slice of a source slice of `work/app` in a cluster.
fn from(cluster: &str, source: &str) -> HubSlice {
    distributed_slice("member-1", &slice_export(cluster, &slice(source))).marked()
}

fn distributed() -> HubSlice {
    from("member-3", "work/app-1")
}

fn object(distributed: &HubSlice) -> Object {
    Object::EndpointSliceImport(distributed.clone())
}

fn standard(distributed: &HubSlice) -> ObjectName {
    ObjectName::new("work", distributed.meta.name.name.clone())
}

fn routing(distributed: &HubSlice) -> ObjectName {
    ObjectName::new("work", format!("{}-routing", distributed.meta.name.name))
}

/// Returns the keys of the standard slice and of the routing slice.
fn keys(distributed: &HubSlice) -> [Key; 2] {
    [standard(distributed), routing(distributed)].map(Key::SliceImport)
}

fn derived() -> Text {
    names::mcs_derived(&app()).name
}

/// Returns a view of a member that has imported `work/app` with these distributed slices.
fn with_slices(routing_slices: bool, distributed: &[HubSlice]) -> Planner {
    let mut view = view(routing_slices, [importing().object(), merged(import()).object()]);
    settle(&mut view, &Key::McsImport(app()));
    for distributed in distributed {
        observe_change(&mut view, object(distributed));
        keys(distributed).iter().for_each(|key| drop(settle(&mut view, key)));
    }
    view
}

fn present(view: &Planner, at: &ObjectName) -> EndpointSlice {
    view.slices.get(at).cloned().expect("it is imported")
}

fn wanted_standard(addresses: &[&str], observed_generation: i64) -> ImportedSlice {
    let mcs = Some(McsLabels { service: "app".into(), cluster: "member-3".into(), headless: true });
    ImportedSlice { service: None, mcs, content: content(addresses), observed_generation }
}

fn wanted_routing(addresses: &[&str], observed_generation: i64) -> ImportedSlice {
    ImportedSlice { service: Some(derived()), mcs: None, content: content(addresses), observed_generation }
}

/// Rule MI26: Routing slices are on (`--routing-slices`), and the hub agent distributes a slice of a Service that the
/// member imports by the standard API
/// Then: The member agent imports two slices. The standard slice has the labels of the standard API and is not bound to
/// the derived Service; the label `service.kubernetes.io/headless` hides it from kube-proxy. The routing slice has the
/// name of the standard slice with the ending `-routing`. It is bound to the derived Service, and has no label of the
/// standard API. A change costs one more write for each importing member. It gives one latency sample, that of the
/// standard slice, so that turning routing slices on or off neither repeats nor loses a sample
#[test]
fn a_slice_is_imported_for_gateways_and_for_kube_proxy_with_one_more_write_for_each_change() {
    let (mut view, distributed) = (with_slices(true, &[]), distributed());
    let [of_standard, of_routing] = keys(&distributed);
    let requeued = observe_change(&mut view, object(&distributed));
    assert!([&of_standard, &of_routing].iter().all(|key| requeued.contains(key)));
    let sample =
        |first| Some(Sample::SliceImported { origin: "member-3".into(), first, exported_since: Some(seconds(5)) });
    let create = Write::create(standard(&distributed), Desired::EndpointSlice(wanted_standard(&["10.0.0.1"], 1)));
    assert_eq!(writes(&view, &of_standard), [create.measured(sample(true))]);
    let create = Write::create(routing(&distributed), Desired::EndpointSlice(wanted_routing(&["10.0.0.1"], 1)));
    assert_eq!(writes(&view, &of_routing), [create]);
    for key in [&of_standard, &of_routing] {
        assert_eq!(settle(&mut view, key), ["create EndpointSlice"]);
    }
    let changed = distributed.clone().with_addresses(&["10.0.0.9"], 2).version(3);
    let requeued = observe_change(&mut view, object(&changed));
    assert!([&of_standard, &of_routing].iter().all(|key| requeued.contains(key)));
    let patch = |at: &ObjectName, wanted| Write::patch(&present(&view, at).meta, Patch::ImportedSlice(wanted));
    let of_gateways = patch(&standard(&distributed), wanted_standard(&["10.0.0.9"], 2));
    assert_eq!(writes(&view, &of_standard), [of_gateways.measured(sample(false))]);
    assert_eq!(writes(&view, &of_routing), [patch(&routing(&distributed), wanted_routing(&["10.0.0.9"], 2))]);
    for key in [&of_standard, &of_routing] {
        assert_eq!(settle(&mut view, key), ["patch EndpointSlice"]);
    }
    assert_eq!(writes(&view, &Key::SliceImport(in_system(&distributed.meta.name.name))), []);
}

/// Also rule MI26.
#[test]
fn an_edited_or_deleted_routing_slice_is_repaired() {
    let distributed = distributed();
    let [_, key] = keys(&distributed);
    for edit in 0..4 {
        let mut view = with_slices(true, std::slice::from_ref(&distributed));
        let mut edited = present(&view, &routing(&distributed)).version(90);
        match edit {
            0 => edited.imported = false,
            1 => edited.service = None,
            2 => edited.content = content(&["10.0.0.9"]),
            _ => edited.mcs = present(&view, &standard(&distributed)).mcs,
        }
        assert!(observe_change(&mut view, edited.clone().object()).contains(&key));
        let repair = Write::patch(&edited.meta, Patch::ImportedSlice(wanted_routing(&["10.0.0.1"], 1)));
        assert_eq!(writes(&view, &key), std::slice::from_ref(&repair), "edit {edit}");
        // The same if the edit was made while no agent ran.
        let mut objects = view.objects();
        objects.retain(|object| object.meta().name != edited.meta.name);
        let restarted = self::view(true, objects.into_iter().chain([edited.clone().object()]));
        assert_eq!(writes(&restarted, &key), [repair], "edit {edit}");
        let gone = present(&view, &routing(&distributed)).object();
        assert!(observe_removal(&mut view, &gone).contains(&key));
        assert_eq!(settle(&mut view, &key), ["create EndpointSlice"]);
    }
}

/// Also rule MI26.
#[test]
fn a_headless_service_has_a_routing_slice_only_while_clients_have_an_address_of_it() {
    let distributed = distributed();
    let [of_standard, of_routing] = keys(&distributed);
    let headless = MergedImport { import_type: ImportType::Headless, ..import() };
    let mut view = with_slices(true, std::slice::from_ref(&distributed));
    observe_change(&mut view, merged(headless).marked().version(9).object());
    assert_eq!((writes(&view, &of_standard), writes(&view, &of_routing)), (Vec::new(), Vec::new()));
    let gone = view.services.get(&names::mcs_derived(&app())).cloned().expect("a Service").object();
    assert!(observe_removal(&mut view, &gone).contains(&of_routing));
    assert_eq!(settle(&mut view, &of_routing), ["delete EndpointSlice"]);
    assert_eq!(writes(&view, &of_standard), []);
}

/// Also rules MI10, MI26.
#[test]
fn only_the_routing_slice_waits_for_the_derived_service() {
    let distributed = distributed();
    let [of_standard, of_routing] = keys(&distributed);
    let foreign = service(&names::mcs_derived(&app()).to_string()).object();
    let objects = [importing().object(), merged(import()).marked().object(), foreign, object(&distributed)];
    let mut view = view(true, objects);
    assert_eq!(planned(&view, &of_routing), Plan::default(), "clients of this Service expect other endpoints");
    assert_eq!(settle(&mut view, &of_standard), ["create EndpointSlice"]);
}

/// Returns if kube-proxy and gateways have this endpoint.
fn serve(view: &Planner, address: &str) -> [bool; 2] {
    let has = |slice: &EndpointSlice| slice.content.endpoints.iter().any(|it| it.addresses == [address.into()]);
    let is_bound = |slice: &EndpointSlice| slice.service == Some(derived());
    let is_of_import = |slice: &EndpointSlice| slice.mcs.as_ref().is_some_and(|labels| &*labels.service == "app");
    let slices = || view.slices.iter().filter(|slice| slice.imported && has(slice));
    [slices().any(is_bound), slices().any(is_of_import)]
}

/// Returns all orders of these keys.
fn orders(keys: &[Key]) -> Vec<Vec<Key>> {
    if keys.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let mut others = keys.to_vec();
        let first = others.remove(at);
        orders(&others).into_iter().map(move |rest| [vec![first.clone()], rest].concat())
    };
    (0..keys.len()).flat_map(first).collect()
}

/// Makes the writes of these keys one after the other, and calls `check` after each. Returns the number of writes.
fn play(view: &mut Planner, keys: &[Key], check: impl Fn(&Planner)) -> usize {
    play_until(usize::MAX, view, keys, check)
}

/// [`play`], for a process that ends after some writes.
fn play_until(killed_after: usize, view: &mut Planner, keys: &[Key], check: impl Fn(&Planner)) -> usize {
    let mut number = 0;
    for _ in 0..20 {
        let before = number;
        for key in keys {
            for write in planned(view, key).writes {
                if number == killed_after {
                    return number;
                }
                execute(view, write);
                check(view);
                number += 1;
            }
        }
        if number == before {
            return number;
        }
    }
    panic!("it never ends");
}

/// Rule MI27: The member agent starts with routing slices on, and the process before it ran without them, or the other
/// way round
/// Then: The slice that was bound to the derived Service stays bound, and follows its source, until the other slice is
/// bound with the same content. Then the standard slice loses its binding, or the routing slice is removed. Endpoints
/// that moved to another slice meanwhile count too. The change costs two writes for each slice
#[test]
fn after_a_restart_with_another_value_kube_proxy_has_the_endpoints_after_each_write() {
    let distributed = distributed();
    for to in [true, false] {
        for order in orders(&keys(&distributed)) {
            let mut view = restarted(&with_slices(!to, std::slice::from_ref(&distributed)), to);
            assert_eq!(play(&mut view, &order, |view| assert_eq!(serve(view, "10.0.0.1"), [true, true])), 2);
            assert_eq!(view.slices.get(&routing(&distributed)).is_some(), to);
            assert_eq!(present(&view, &standard(&distributed)).service.is_some(), !to);
            // It follows its source meanwhile.
            let mut view = with_slices(!to, std::slice::from_ref(&distributed));
            observe_change(&mut view, object(&distributed.clone().with_addresses(&["10.0.0.9"], 2).version(3)));
            let mut view = restarted(&view, to);
            let has_any = |view: &Planner| {
                let [old, new] = ["10.0.0.1", "10.0.0.9"].map(|address| serve(view, address));
                assert!(old[0] || new[0] && old[1] || new[1], "{old:?} {new:?}");
            };
            play(&mut view, &order, has_any);
            assert_eq!([serve(&view, "10.0.0.1"), serve(&view, "10.0.0.9")], [[false; 2], [true; 2]]);
        }
    }
}

/// Also rule MI27.
#[test]
fn a_bound_slice_stays_bound_and_follows_its_source_while_the_other_one_cannot_be_written() {
    let distributed = distributed();
    let [of_standard, of_routing] = keys(&distributed);
    let mut view = with_slices(false, std::slice::from_ref(&distributed));
    observe_change(&mut view, slice(&routing(&distributed).to_string()).object());
    let mut view = restarted(&view, true);
    let plan = planned(&view, &of_routing);
    assert_eq!(plan.writes, []);
    let [(reason, message)] = blocking_reasons(&plan)[..] else { panic!("one reason") };
    assert_eq!(reason, "NameHeldByAnother");
    assert!(message.contains(&routing(&distributed).to_string()), "{message}");
    observe_change(&mut view, object(&distributed.clone().with_addresses(&["10.0.0.9"], 2).version(3)));
    assert_eq!(settle(&mut view, &of_standard), ["patch EndpointSlice"]);
    assert_eq!(serve(&view, "10.0.0.9"), [true, true]);

    let mut view = restarted(&with_slices(true, std::slice::from_ref(&distributed)), false);
    let mut dying = view.clone();
    observe_change(&mut dying, present(&view, &standard(&distributed)).deleting().version(50).object());
    observe_change(&mut dying, object(&distributed.clone().with_addresses(&["10.0.0.9"], 2).version(3)));
    assert_eq!(settle(&mut dying, &of_routing), ["patch EndpointSlice"], "the other one is not bound yet");
    assert!(serve(&dying, "10.0.0.9")[0]);
    // Without its name for the derived Service, kube-proxy does not use it.
    let unbound = EndpointSlice { service: None, ..present(&view, &routing(&distributed)) };
    observe_change(&mut view, unbound.version(60).object());
    assert_eq!(settle(&mut view, &of_routing), ["delete EndpointSlice"]);
}

/// Rule MI28: Routing slices are on, and the endpoints of a source slice move to another slice of the same Service
/// Then: The standard slice stays until the new standard slice has the endpoints, and the routing slice until the new
/// routing slice has them. A standard slice that is still bound to the derived Service waits for both. None of them
/// waits for a slice whose name another writer has
///
/// Also rule MI27.
#[test]
fn endpoints_that_move_to_another_slice_are_never_missing() {
    let (old, new) = (from("member-3", "work/app-1"), from("member-3", "work/app-2"));
    let all = [keys(&old), keys(&new)].concat();
    for (before, between, now) in [(true, true, true), (false, false, false), (false, true, true), (true, false, false)]
        .into_iter()
        .chain([(true, false, true), (false, true, false), (true, true, false), (false, false, true)])
    {
        for (order, killed_after) in orders(&all).iter().flat_map(|order| (0..4).map(move |it| (order, it))) {
            for moved in [old.clone().deleting(), old.clone().with_addresses(&[], 2)] {
                let is_emptied = !moved.meta.deleting;
                let what = format!("{before} {between} {now}, emptied: {is_emptied}, {killed_after} {order:?}");
                let check = |view: &Planner| assert_eq!(serve(view, "10.0.0.1"), [true, true], "{what}");
                let mut view = with_slices(before, std::slice::from_ref(&old));
                observe_change(&mut view, object(&new));
                observe_change(&mut view, object(&moved.version(5)));
                let mut view = restarted(&view, between);
                play_until(killed_after, &mut view, order, check);
                let mut view = restarted(&view, now);
                play(&mut view, order, check);
                let bound = |slice: &EndpointSlice| (slice.meta.name.clone(), slice.service.is_some());
                let left: Vec<_> = view.slices.iter().map(bound).collect();
                let distributed = [&old, &new].into_iter().skip(usize::from(!is_emptied));
                let expected = distributed.flat_map(|it| {
                    let both = [(standard(it), !now), (routing(it), true)];
                    both.into_iter().take(if now { 2 } else { 1 })
                });
                assert_eq!(left, expected.collect::<Vec<_>>(), "{what}");
            }
        }
    }
}

/// Also rule MI28.
#[test]
fn a_slice_does_not_wait_for_a_replacement_whose_name_another_writer_has() {
    let (old, new) = (from("member-3", "work/app-1"), from("member-3", "work/app-2"));
    for (on, held) in [(true, routing(&new)), (false, standard(&new))] {
        let mut view = with_slices(!on, std::slice::from_ref(&old));
        observe_change(&mut view, slice(&held.to_string()).object());
        observe_change(&mut view, object(&new));
        observe_change(&mut view, object(&old.clone().deleting().version(5)));
        let mut view = restarted(&view, on);
        play(&mut view, &[keys(&new), keys(&old)].concat(), |_| ());
        let left: Vec<_> = view.slices.iter().filter(|slice| slice.imported).map(|slice| &slice.meta.name).collect();
        let written = standard(&new);
        assert_eq!(left, if on { vec![&written] } else { Vec::new() });
    }
}

/// Also rules MI16, MI28.
#[test]
fn while_the_import_is_not_known_a_slice_stays_until_each_of_its_readers_has_the_replacement() {
    let (old, new) = (from("member-3", "work/app-1"), from("member-3", "work/app-2"));
    let [of_standard, of_routing] = keys(&new);
    for (key, of_old) in [(&of_standard, standard(&old)), (&of_routing, standard(&old))] {
        let mut view = restarted(&with_slices(false, std::slice::from_ref(&old)), true);
        observe_change(&mut view, object(&new));
        assert_eq!(settle(&mut view, key), ["create EndpointSlice"]);
        observe_change(&mut view, object(&old.clone().deleting().version(5)));
        undecodable(&mut view, Kind::Namespace, &ObjectName::new("", "work"));
        assert_eq!(writes(&view, &Key::SliceImport(of_old.clone())), [], "{key:?} is not enough");
        observe_change(&mut view, importing().version(9).object());
        keys(&new).iter().for_each(|key| drop(settle(&mut view, key)));
        undecodable(&mut view, Kind::Namespace, &ObjectName::new("", "work"));
        assert_eq!(settle(&mut view, &Key::SliceImport(of_old)), ["delete EndpointSlice"]);
    }
}

/// Also rule MI27.
#[test]
fn without_its_derived_service_a_slice_that_was_not_bound_follows_its_source() {
    let distributed = distributed();
    let [of_standard, _] = keys(&distributed);
    let mut view = with_slices(true, std::slice::from_ref(&distributed));
    let gone = present(&view, &routing(&distributed)).object();
    observe_removal(&mut view, &gone);
    let derived_at = names::mcs_derived(&app());
    let made = view.services.get(&derived_at).cloned().expect("a Service");
    observe_removal(&mut view, &made.clone().object());
    observe_change(&mut view, service(&derived_at.to_string()).object());
    let mut view = restarted(&view, false);
    assert_eq!(writes(&view, &of_standard), [], "it is as it should be");
    observe_change(&mut view, object(&distributed.with_addresses(&["10.0.0.9"], 2).version(3)));
    assert_eq!(settle(&mut view, &of_standard), ["patch EndpointSlice"]);
    assert_eq!(serve(&view, "10.0.0.9"), [false, true]);
    observe_change(&mut view, made.version(9).object());
    assert_eq!(settle(&mut view, &of_standard), ["patch EndpointSlice"]);
    assert_eq!(serve(&view, "10.0.0.9"), [true, true]);
}

/// Also rule MI29.
#[test]
fn without_routing_slices_a_slice_of_another_writer_with_such_a_name_does_not_count() {
    let distributed = distributed();
    let in_system = Key::SliceImport(in_system(&distributed.meta.name.name));
    let theirs = slice(&routing(&distributed).to_string());
    let annotated = EndpointSlice { observed_generation: Some(1), ..theirs.clone() };
    let bound = EndpointSlice { service: Some(derived()), ..theirs };
    for theirs in [annotated.clone(), bound] {
        let mut view = with_slices(false, &[]);
        let requeued = observe_change(&mut view, theirs.clone().object());
        assert!(!present(&view, &theirs.meta.name).imported && !requeued.contains(&keys(&distributed)[1]));
        let dying = distributed.clone().deleting().version(5);
        observe_change(&mut view, object(&dying));
        assert_eq!(writes(&view, &keys(&distributed)[1]), []);
        assert_eq!(writes(&view, &in_system), [Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta)]);
    }
    // A routing slice of the process before this one, whose label somebody has removed.
    let left = EndpointSlice { service: Some(derived()), ..annotated };
    let mut view = with_slices(false, &[]);
    assert!(observe_change(&mut view, left.object()).contains(&keys(&distributed)[1]));
    observe_change(&mut view, object(&distributed.clone().deleting().version(5)));
    assert_eq!(writes(&view, &in_system), []);
    assert_eq!(settle(&mut view, &keys(&distributed)[1]), ["delete EndpointSlice"]);
}

/// Rule MI29: Routing slices are on, and the hub agent withdraws a distributed slice
/// Then: Its finalizer goes when all slices that were imported from it are gone. A preview of the slice stream is
/// acknowledged when all of them have it
#[test]
fn a_withdrawn_slice_keeps_its_finalizer_until_both_imported_slices_are_gone() {
    let distributed = distributed();
    let [of_standard, of_routing] = keys(&distributed);
    let in_system = Key::SliceImport(in_system(&distributed.meta.name.name));
    for [first, last] in [[&of_standard, &of_routing], [&of_routing, &of_standard]] {
        for on in [true, false] {
            let mut view = with_slices(true, std::slice::from_ref(&distributed));
            let dying = distributed.clone().deleting().version(9);
            observe_change(&mut view, object(&dying));
            let mut view = restarted(&view, on);
            assert_eq!(settle(&mut view, first), ["delete EndpointSlice"]);
            assert_eq!(writes(&view, &in_system), [], "the other one is left");
            assert_eq!(settle(&mut view, last), ["delete EndpointSlice"]);
            assert_eq!(writes(&view, &in_system), [Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta)]);
            undecodable(&mut view, Kind::EndpointSlice, &routing(&distributed));
            assert_eq!(writes(&view, &in_system), [], "perhaps it was created again");
        }
    }
}

/// Also rule MI29.
#[test]
fn a_preview_is_acknowledged_when_the_standard_slice_and_the_routing_slice_have_it() {
    let distributed = distributed();
    let [of_standard, of_routing] = keys(&distributed);
    let preview = || distributed.clone().with_addresses(&["10.0.0.9"], 2).spec;
    for first in [&of_standard, &of_routing] {
        let mut view = with_slices(true, std::slice::from_ref(&distributed));
        view.show_preview(&distributed.meta.name.name, preview(), seconds(30), &mut Vec::new());
        settle(&mut view, first);
        assert_eq!(planned(&view, &of_standard).acknowledged, None);
        keys(&distributed).iter().for_each(|key| drop(settle(&mut view, key)));
        assert_eq!(planned(&view, &of_standard).acknowledged, Some(2), "one key of the two is enough");
        assert_eq!(planned(&view, &of_routing).acknowledged, None);
    }
    let mut view = with_slices(true, &[]);
    observe_change(&mut view, object(&distributed));
    view.show_preview(&distributed.meta.name.name, preview(), seconds(30), &mut Vec::new());
    settle(&mut view, &of_standard);
    assert_eq!(planned(&view, &of_standard).acknowledged, None, "the routing slice does not exist yet");
    settle(&mut view, &of_routing);
    assert_eq!(planned(&view, &of_standard).acknowledged, Some(2));
    let gone = present(&view, &routing(&distributed)).object();
    observe_removal(&mut view, &gone);
    observe_change(&mut view, slice(&routing(&distributed).to_string()).object());
    assert_eq!(planned(&view, &of_standard).acknowledged, Some(2), "another writer has the name");
}

/// Rule MI30: Routing slices are on, and the name of a distributed slice ends in `-routing`
/// Then: The standard API does not import it, and no slice of its name is taken for one. Hub agents give no distributed
/// slice such a name. The log and the metric `fleetnet_hindrances` name it
#[test]
fn a_distributed_slice_with_the_name_of_a_routing_slice_is_refused() {
    let mut named_so = distributed();
    named_so.meta.name.name = routing(&distributed()).name;
    let [key, _] = keys(&named_so);
    let mut view = with_slices(true, std::slice::from_ref(&named_so));
    assert!(view.slices.get(&standard(&named_so)).is_none());
    let plan = planned(&view, &key);
    let [(reason, message)] = blocking_reasons(&plan)[..] else { panic!("one reason") };
    assert_eq!(reason, "NameRefused");
    assert!(message.contains("-routing is not imported by the standard API"), "{message}");
    observe_change(&mut view, object(&distributed()));
    keys(&distributed()).iter().for_each(|key| drop(settle(&mut view, key)));
    assert_eq!(present(&view, &standard(&named_so)).mcs, None, "the routing slice of the other one has the name");
    let view = with_slices(false, std::slice::from_ref(&named_so));
    assert!(present(&view, &standard(&named_so)).mcs.is_some(), "without routing slices, it is a slice like others");
}

/// Also rule MI13.
#[test]
fn a_routing_slice_that_the_hub_lost_stays_for_the_grace_period() {
    let distributed = distributed();
    let mut view = with_slices(true, std::slice::from_ref(&distributed));
    observe_removal(&mut view, &object(&distributed));
    let until = seconds(20).plus_micros(ORPHAN_GRACE_MICROS);
    for (key, at) in keys(&distributed).iter().zip([standard(&distributed), routing(&distributed)]) {
        let plan = planned(&view, key);
        assert_eq!((plan.writes, plan.again), (Vec::new(), Some(until)), "{key:?}");
        let deletion = Write::delete(Kind::EndpointSlice, &present(&view, &at).meta);
        assert_eq!(planned_at(&view, key, until).writes, [deletion]);
    }
    let [_, key] = keys(&distributed);
    let mut unknown = view.clone();
    undecodable(&mut unknown, Kind::Service, &names::mcs_derived(&app()));
    assert_eq!(planned_at(&unknown, &key, until), Plan::default());
    // The name of the imported Service is in the derived Service, and in the standard slice.
    let mut lost = view.clone();
    let gone = lost.services.get(&names::mcs_derived(&app())).cloned().expect("a Service").object();
    observe_removal(&mut lost, &gone);
    assert_eq!((planned(&lost, &key).writes, planned(&lost, &key).again), (Vec::new(), Some(until)));
    let gone = present(&lost, &standard(&distributed)).object();
    observe_removal(&mut lost, &gone);
    assert_eq!(settle(&mut lost, &key), ["delete EndpointSlice"], "nobody knows what it was imported for");
    undecodable(&mut view, Kind::EndpointSliceImport, &distributed.meta.name);
    assert_eq!(planned_at(&view, &key, until), Plan::default(), "it exists");
}

/// Also rule MI1.
#[test]
fn both_slices_end_with_the_import() {
    let distributed = distributed();
    for on in [true, false] {
        let mut view = restarted(&with_slices(true, std::slice::from_ref(&distributed)), on);
        observe_change(&mut view, namespace("work").version(2).object());
        for key in keys(&distributed) {
            assert_eq!(settle(&mut view, &key), ["delete EndpointSlice"]);
        }
    }
    let mut view = with_slices(true, std::slice::from_ref(&distributed));
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    observe_change(&mut view, namespace("work").version(2).object());
    keys(&distributed).iter().for_each(|key| assert_eq!(writes(&view, key), [], "it is not known"));
}

/// Also rule O20.
#[test]
fn a_silent_cluster_is_replaced_for_kube_proxy_and_for_gateways_by_the_slices_that_they_read() {
    let (two, three) = (from("member-2", "work/app-1"), from("member-3", "work/app-1"));
    let features = Features::from_iter([Feature::SilentMembers]);
    let mut agent = member_agent("member-1", features, features);
    agent.status.silent_members = vec![SilentMember { cluster: "member-3".into(), treatment: Treatment::Withdrawn }];
    for lost in [standard(&two), routing(&two)] {
        let mut view = with_slices(true, &[two.clone(), three.clone()]);
        let gone = present(&view, &lost).object();
        observe_removal(&mut view, &gone);
        observe_change(&mut view, agent.clone().object());
        let settled = keys(&three).map(|key| settle(&mut view, &key).len());
        assert_eq!(settled, if lost == standard(&two) { [0, 1] } else { [1, 0] }, "{lost}");
    }
    // A user's Service with the name of the derived Service is another Service.
    let mut other = from("member-2", "work/other-1");
    other.spec.owner = names::mcs_derived(&app());
    let mut view = with_slices(true, std::slice::from_ref(&three));
    observe_change(
        &mut view,
        merged_service_import("member-1", &other.spec.owner.to_string(), &import().into()).object(),
    );
    observe_change(&mut view, object(&other));
    assert_eq!(settle(&mut view, &keys(&other)[0]), ["create EndpointSlice"]);
    observe_change(&mut view, agent.object());
    assert_eq!(keys(&three).map(|key| writes(&view, &key).len()), [0, 0]);
}

#[test]
fn parts_that_are_not_imported_are_reported_once() {
    let mut distributed = distributed();
    distributed.spec.content = content(&["10.0.0.1", "127.0.0.1"]).into();
    let mut view = with_slices(true, &[]);
    observe_change(&mut view, object(&distributed));
    let reported = keys(&distributed).map(|key| {
        let plan = planned(&view, &key);
        (plan.writes.len(), events_of(&plan).len(), plan.blocking_reasons.len())
    });
    assert_eq!(reported, [(1, 1, 1), (1, 0, 0)]);
}

/// Also rule E11.
#[test]
fn a_routing_slice_whose_label_was_removed_while_no_agent_ran_stays_an_imported_slice() {
    let distributed = distributed();
    let view = with_slices(true, std::slice::from_ref(&distributed));
    let edited = EndpointSlice { imported: false, ..present(&view, &routing(&distributed)) };
    let mut objects = view.objects();
    objects.retain(|object| object.meta().name != edited.meta.name);
    objects.push(edited.version(90).object());
    for on in [true, false] {
        assert!(present(&self::view(on, objects.clone()), &routing(&distributed)).imported);
    }
}
