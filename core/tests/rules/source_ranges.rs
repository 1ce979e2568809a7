//! Tests of the source ranges that the operator of the hub declares on a member namespace.

use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, IntoObject, distributed_slice,
    internal_export, member_agent, namespace, no_conflict, resolved, seconds, service, service_import, slice,
    slice_export,
};
use crate::support::view::{
    NOW, SEEN, blocking_reasons, claimed_hub_view, events_of, observe_change, observe_removal, planned, writes,
};
use fleetnet_core::features::Features;
use fleetnet_core::hub::{Key, NamespacePolicy, Planner};
use fleetnet_core::model::{HubSlice, Kind, Object};
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::WatchState;

/// Returns an exported slice of `work/app` in member-1 with these addresses and this generation of its source slice.
fn export(addresses: &[&str], generation: i64) -> HubSlice {
    slice_export("member-1", &slice("work/app-1")).marked().with_addresses(addresses, generation)
}

/// Returns the distributed slice of member-2 for [`export`].
fn of_hub(addresses: &[&str], generation: i64) -> HubSlice {
    distributed_slice("member-2", &export(addresses, generation))
}

fn ranges(ranges: &str) -> Object {
    namespace("fleet-member-member-1").exporting_from(ranges).object()
}

/// Returns the view of a hub in which member-2 imports `work/app` from member-1, with these objects.
fn hub(others: impl IntoIterator<Item = Object>) -> Planner {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(5));
    let internal = internal.judged(no_conflict("work/app"));
    claimed_hub_view([import.object(), internal.object()].into_iter().chain(others))
}

fn key() -> Key {
    Key::Slice(export(&[], 1).meta.name.name)
}

/// Returns the addresses of the one distributed slice that a plan writes; `None` if the plan writes nothing.
fn distributed(view: &Planner) -> Option<Vec<String>> {
    let writes = writes(view, &key());
    let spec = match &writes[..] {
        [] => return None,
        [Write { action: Action::Create(Desired::EndpointSliceImport(spec)), .. }] => spec,
        [Write { action: Action::Patch { patch: Patch::EndpointSliceImport(spec), .. }, .. }] => spec,
        _ => panic!("one distributed slice, not {writes:#?}"),
    };
    Some(spec.content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect())
}

fn some(addresses: &[&str]) -> Option<Vec<String>> {
    Some(addresses.iter().map(|address| (*address).to_owned()).collect())
}

const LEFT_OUT: &str = "EndpointSlice work/app-1 of cluster member-1 has addresses outside of the source ranges of \
                        fleet-member-member-1 in the hub: 10.2.0.1, 10.3.0.1. Importers do not get them. Correct the \
                        slice in cluster member-1, or the source ranges in the hub";

/// Rule T63: The annotation `source-ranges` of a member namespace in the hub has address ranges
/// Then: The hub agent leaves out the addresses of this member's exported slices that are outside of these ranges, when
/// it distributes the slices. So no importer gets them, also if it runs Go agents. The EndpointSliceExport gets an
/// Event `AddressRefused` with the first addresses. While the annotation is malformed, importers get no new addresses
/// and no new slices of this member, and lose those that the member removes. While the namespaces are not listed, a
/// distributed slice stays as it is until its source slice changes. A change of the annotation costs one write for each
/// distributed slice that it changes
#[test]
fn addresses_outside_of_the_ranges_in_the_hub_are_not_distributed() {
    let slice = Object::EndpointSliceExport(export(&["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.1.0.2"], 4));
    let view = hub([slice.clone(), ranges("10.1.0.0/16")]);
    assert_eq!(distributed(&view), some(&["10.1.0.1", "10.1.0.2"]));
    let plan = planned(&view, &key());
    assert_eq!(
        (events_of(&plan), blocking_reasons(&plan)),
        (vec![("AddressRefused", LEFT_OUT)], vec![("AddressRefused", LEFT_OUT)])
    );

    let all = some(&["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.1.0.2"]);
    let within = hub([slice.clone(), ranges("10.0.0.0/8")]);
    assert_eq!((distributed(&within), events_of(&planned(&within, &key()))), (all.clone(), vec![]));
    assert_eq!(distributed(&hub([slice.clone(), namespace("fleet-member-member-1").object()])), all);
    let of_another = namespace("fleet-member-member-2").exporting_from("10.1.0.0/16").object();
    assert_eq!(distributed(&hub([slice.clone(), of_another])), all);
    assert_eq!(distributed(&hub([slice.clone(), ranges("")])), some(&[]), "an empty list allows no address");
    let mut off = hub([slice, ranges("10.1.0.0/16")]);
    off.namespace_policy = NamespacePolicy::Off;
    assert_eq!(distributed(&off), all);
}

/// Also rule T63.
#[test]
fn an_event_names_a_few_of_many_addresses_outside_of_the_ranges() {
    let addresses: Vec<String> = (1..=5).map(|it| format!("10.2.0.{it}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let view = hub([Object::EndpointSliceExport(export(&addresses, 4)), ranges("10.1.0.0/16")]);
    let plan = planned(&view, &key());
    let [(_, message)] = blocking_reasons(&plan)[..] else { panic!("{plan:?}") };
    assert!(message.contains(": 10.2.0.1, 10.2.0.2, 10.2.0.3 and 2 more. Importers"), "{message}");
}

/// Also rule T63.
#[test]
fn a_slice_without_an_address_outside_of_the_ranges_is_distributed_as_it_is() {
    let mut whole = export(&["10.1.0.1"], 4);
    std::sync::Arc::make_mut(&mut whole.spec.content).endpoints.push(fleetnet_core::model::Endpoint::default());
    let view = hub([Object::EndpointSliceExport(whole.clone()), ranges("10.1.0.0/16")]);
    let at = distributed_slice("member-2", &whole).meta.name;
    assert_eq!(writes(&view, &key()), [Write::create(at, Desired::EndpointSliceImport(whole.spec))]);
}

/// Also rule T63.
#[test]
fn left_out_addresses_cost_no_write_and_a_change_of_the_ranges_one() {
    let addresses = ["10.1.0.1", "10.2.0.1"];
    let objects =
        [Object::EndpointSliceExport(export(&addresses, 4)), Object::EndpointSliceImport(of_hub(&["10.1.0.1"], 4))];
    let mut view = hub(objects.into_iter().chain([ranges("10.1.0.0/16")]));
    assert_eq!(distributed(&view), None, "also after a restart");
    let requeued = observe_change(&mut view, ranges("10.2.0.0/16"));
    assert!(requeued.contains(&key()), "{requeued:?}");
    assert_eq!(distributed(&view), some(&["10.2.0.1"]));
    let requeued = observe_removal(&mut view, &ranges("10.2.0.0/16"));
    assert!(requeued.contains(&key()), "{requeued:?}");
    assert_eq!(distributed(&view), some(&addresses));
}

/// Also rule T63.
#[test]
fn importers_get_no_new_address_while_the_ranges_are_malformed() {
    let changed = Object::EndpointSliceExport(export(&["10.1.0.2", "10.1.0.3"], 5));
    let present = Object::EndpointSliceImport(of_hub(&["10.1.0.1", "10.1.0.2"], 4));
    let view = hub([changed.clone(), present, ranges("10.1.0.0")]);
    assert_eq!(distributed(&view), some(&["10.1.0.2"]), "an endpoint that is gone leaves");
    assert_eq!(events_of(&planned(&view, &key())), [], "the slice is not at fault");
    assert_eq!(distributed(&hub([changed, ranges("10.1.0.0")])), None, "and no new slice");
}

/// Rule T64: The annotation `source-ranges` of a member namespace is malformed
/// Then: The hub agent emits an Event `AddressRefused` on the MemberAgent of this member, with the malformed range, and
/// logs it
#[test]
fn the_operator_is_told_of_malformed_ranges() {
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    let message = "the source ranges of namespace fleet-member-member-1 in the hub are malformed: \"10.1.0.0\" does not \
                   end in the length of a range: /0 to /32 after an IPv4 address, /0 to /128 after one of IPv6. \
                   Importers get no new addresses of its member. Correct the annotation";
    for (written, expected) in [("10.1.0.0", vec![("AddressRefused", message)]), ("10.1.0.0/16", Vec::new())] {
        let mut view = hub([agent.clone(), ranges(written)]);
        view.announces = fleetnet_core::model::Announcement::new("1.2.3", Features::ALL);
        assert_eq!(blocking_reasons(&planned(&view, &Key::Member("member-1".into()))), expected, "{written}");
    }
}

/// Rule CS2: The annotation `cluster-properties` of a member namespace is malformed
/// Then: The hub agent emits an Event `PropertiesUnknown` on the MemberAgent of this member, and logs it
#[test]
fn the_operator_is_told_of_malformed_properties() {
    let agent = member_agent("member-1", Features::ALL, Features::ALL).object();
    let mut malformed = namespace("fleet-member-member-1");
    malformed.properties = Err("no JSON".into());
    let mut view = hub([agent, malformed.object()]);
    view.announces = fleetnet_core::model::Announcement::new("1.2.3", Features::ALL);
    let message = "the annotation networking.fleet.azure.com/cluster-properties of namespace fleet-member-member-1 in \
                   the hub is malformed, so the properties of its cluster are unknown: no JSON. Correct the annotation, \
                   or remove it";
    let key = Key::Member("member-1".into());
    assert_eq!(blocking_reasons(&planned(&view, &key)), [("PropertiesUnknown", message)]);
    observe_change(&mut view, namespace("fleet-member-member-1").version(2).object());
    assert_eq!(blocking_reasons(&planned(&view, &key)), []);
}

/// Also rule T63.
#[test]
fn while_the_namespaces_are_not_listed_the_same_state_of_a_slice_stays_as_it_is() {
    let mut view = hub([
        Object::EndpointSliceExport(export(&["10.1.0.1", "10.2.0.1"], 4)),
        Object::EndpointSliceImport(of_hub(&["10.1.0.1"], 4)),
    ]);
    view.watch_state(Kind::Namespace, WatchState::Incomplete, SEEN, &mut Vec::new());
    assert_eq!(distributed(&view), None, "a restart of the hub agent writes nothing");
    let mut of_another = of_hub(&["10.1.0.1"], 4);
    of_another.spec.reference.uid = "uid-of-another".into();
    let mut other = view.clone();
    observe_change(&mut other, Object::EndpointSliceImport(of_another.version(2)));
    assert_eq!(distributed(&other), some(&["10.1.0.1", "10.2.0.1"]), "another source slice");
    observe_change(&mut view, Object::EndpointSliceExport(export(&["10.1.0.1", "10.1.0.3"], 5)));
    assert_eq!(distributed(&view), some(&["10.1.0.1", "10.1.0.3"]), "without the right, importers follow changes");
}

/// Also rule T63.
#[test]
fn no_removal_waits_for_an_address_that_is_not_distributed() {
    let removed = export(&["10.1.0.1"], 4).deleting();
    let distributed = distributed_slice("member-2", &removed);
    let distributed =
        HubSlice { meta: fleetnet_core::model::Meta { deleting: false, ..distributed.meta }, ..distributed };
    let mut moved = slice("work/app-2");
    moved.meta.uid = "uid-of-app-2".into();
    let moved = slice_export("member-1", &moved).marked().with_addresses(&["10.1.0.1"], 1);
    let objects = [
        Object::EndpointSliceExport(removed),
        Object::EndpointSliceImport(distributed.clone()),
        Object::EndpointSliceExport(moved),
    ];
    let withdrawn = Write::delete(Kind::EndpointSliceImport, &distributed.meta);
    let view = hub(objects.clone().into_iter().chain([ranges("10.1.0.0/16")]));
    assert_eq!(writes(&view, &key()), [], "it waits for its replacement");
    let view = hub(objects.into_iter().chain([ranges("10.9.0.0/16")]));
    assert_eq!(writes(&view, &key()), [withdrawn], "no importer gets the replacement at {NOW:?}");
}
