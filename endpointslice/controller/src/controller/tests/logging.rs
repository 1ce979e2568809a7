//! Tests of the log lines at each level of the flag `--v`. The help text of the flag describes the levels.

use super::builders::{Build as _, BuildPod as _, BuildSlice as _, node, pod, service, slice};
use super::world::{Fate, MILLISECOND, World};
use endpointslice::names::LABEL_SERVICE_NAME;
use fleetnet_runtime::process::logging::captured::Captured;
use serde_json::json;

const LEVELS: [u8; 3] = [1, 2, 4];
/// Parts of the lines of the controller. The engine has lines of its own.
const OWN: [&str; 3] = ["a sync ", "queued after a change of Nodes", "of a slice was changed"];

/// Runs `act` at three log levels. Returns the log lines of each level.
fn lines(act: impl Fn(&mut World)) -> [Vec<String>; 3] {
    LEVELS.map(|verbosity| {
        let mut world = World::new();
        let log = Captured::at(verbosity, &["endpointslice_controller"]);
        act(&mut world);
        let is_own = |line: &String| OWN.iter().any(|own| line.contains(own));
        log.take().into_iter().filter(is_own).collect()
    })
}

#[test]
fn syncs_have_a_beginning_and_an_end_with_their_duration_from_level_4() {
    let found = lines(|world| {
        world.set(pod(1));
        let mut failures = 1;
        world.writes_are(move |_| {
            failures -= 1;
            if failures == 0 { Fate::Failed } else { Fate::Slow }
        });
        world.set_and_settle(service("web"));
        world.advance(MILLISECOND * 27);
        world.deliver_responses();
        world.set_and_settle(service("web").labelled([("team", "a")]));
        world.deliver_responses();
    });
    let none: [&str; 0] = [];
    assert_eq!(found[0], none);
    assert_eq!(found[1], none);
    let without_times: Vec<_> = found[2].iter().filter_map(|line| line.split(" took=").next()).collect();
    assert_eq!(
        without_times,
        [
            "TRACE a sync begins service=testing/web",
            r#"TRACE a sync has ended service=testing/web result="error""#,
            "TRACE a sync begins service=testing/web",
            r#"TRACE a sync has ended service=testing/web result="success""#,
            "TRACE a sync begins service=testing/web",
            r#"TRACE a sync has ended service=testing/web result="success""#,
        ]
    );
    assert!(found[2][1].ends_with("took=0ns") && found[2][3].ends_with("ms"), "{found:?}");
}

#[test]
fn services_that_a_change_of_nodes_overloads_are_named_from_level_2() {
    let found = lines(|world| {
        world.remove_node("node-1");
        world.set_all([node("node-a", "zone-a", "2"), node("node-b", "zone-b", "2")]);
        world.set_all([pod(1).on_node("node-a"), pod(2).on_node("node-b")]);
        world.set_and_settle(service("web").annotated("service.kubernetes.io/topology-mode", "Auto"));
        world.set_and_settle(node("node-b", "zone-b", "64"));
    });
    let queued =
        "DEBUG queued after a change of Nodes: its topology hints may no longer fit namespace=testing service=web";
    let none: [&str; 0] = [];
    assert_eq!(found[0], none);
    assert_eq!(found[1], [queued]);
    assert_eq!(found[2].iter().filter(|line| *line == queued).count(), 1, "{:?}", found[2]);
    assert!(found[2].len() > 1);
}

#[test]
fn a_slice_that_moves_to_another_service_is_warned_of_at_each_level() {
    for lines in lines(|world| {
        world.make_slice(&slice("web-1", &service("web")).holding([&pod(1)]));
        world.settle();
        world.edit_slice("web-1", |slice| slice["metadata"]["labels"][LABEL_SERVICE_NAME] = json!("shop"));
        world.settle();
    }) {
        let warning = "WARN the label kubernetes.io/service-name of a slice was changed namespace=testing slice=web-1 \
                       before=web after=shop";
        assert_eq!(lines, [warning]);
    }
}
