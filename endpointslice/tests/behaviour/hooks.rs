//! Tests of hooks, which change a plan before it is applied.

use crate::builders::{BuildPod as _, BuildSlice as _, pod, pods, service, slice};
use crate::world::{World, reconciled, world};
use endpointslice::plan::{Precondition, Veto, Vetoed, Write};

#[test]
fn a_hook_may_add_metadata_to_what_will_be_written() {
    let mut world =
        world(pods(0..150)).with_slices([slice(1, &service("web")).with_pods(&pods(0..1)).with_label("old", "1")]);
    world.config.foreign_labels = ["team".into()].into();
    let mut plan = world.plan();
    plan.change_metadata(|metadata| {
        metadata.labels.insert("team", "x");
        metadata.annotations.insert("note", "1");
    });
    world.apply(&plan);
    for slice in world.memory.slices() {
        assert_eq!(slice.metadata.labels.get("team").unwrap(), "x");
        assert_eq!(slice.metadata.annotations.get("note").unwrap(), "1");
    }
    assert!(world.plan().is_empty());
}

/// Returns a simulated cluster whose plan creates one slice, updates one slice and deletes one slice.
fn three_writes() -> World {
    let service = service("web");
    let slices = [
        slice(1, &service).with_pods(&pods(0..1)).with_label("old", "label"),
        slice(2, &service).with_pods(&pods(300..301)).with_owner_uid("earlier"),
    ];
    world(pods(0..150)).with_slices(slices)
}

#[test]
fn a_denied_write_is_not_made_and_a_denied_addition_keeps_removals_back() {
    let world = three_writes();
    let mut plan = world.plan();
    plan.veto(|write| match write {
        Write::Delete(_) => Veto::Deny("not today".into()),
        Write::Create(_) | Write::Update(_) => Veto::Allow,
    });
    assert_eq!(plan.vetoed, [Vetoed { slice: "web-2".into(), reason: "not today".into() }]);
    let mut plan = world.plan();
    plan.veto(|write| match write {
        Write::Create(_) => Veto::Deny("no quota".into()),
        Write::Update(_) | Write::Delete(_) => Veto::Allow,
    });
    let kept_delete = Vetoed { slice: "web-2".into(), reason: "an addition was refused".into() };
    assert_eq!(plan.vetoed, [Vetoed { slice: "web-".into(), reason: "no quota".into() }, kept_delete]);
    world.apply(&plan);
    assert_eq!(world.memory.take_calls(), ["update web-1"]);
}

#[test]
fn a_plan_can_be_read() {
    let service = service("web");
    let slices = [
        slice(1, &service).with_pods(&pods(0..3)),
        slice(2, &service).with_pods(&pods(7..8)).with_owner_uid("earlier"),
    ];
    let world = world(vec![pod(0), pod(1).not_ready(), pod(3)]).with_slices(slices);
    let expected = "\
update web-1 IPv4 [web:80] 3 endpoints -> IPv4 [web:80] 3 endpoints
  - 10.1.0.3 pod2 ready
  + 10.1.0.4 pod3 ready
  ~ 10.1.0.2 pod1 not ready
delete web-2 IPv4 [web:80] 1 endpoints
";
    assert_eq!(world.plan().to_string(), expected);
}

#[test]
fn a_patch_names_owned_fields_only() {
    let mut world = reconciled(vec![pod(1)]);
    world.pods = vec![pod(1).not_ready()];
    let plan = world.plan();
    let update = &plan.families[0].draft.updates[0];
    let patch = update.merge_patch(Precondition::None);
    let keys: Vec<_> = patch.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["endpoints", "ports"]);
    assert_eq!(update.merge_patch(Precondition::SameVersion)["metadata"], serde_json::json!({"resourceVersion": "1"}));
    assert_eq!(patch["endpoints"][0]["conditions"]["ready"], false);
}
