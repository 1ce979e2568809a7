//! Systematic tests of the planner of the hub agent: a change of any object, of its decodability or of a watch requeues
//! every key whose plan it changes.

use crate::support::fleets::{
    Fleet, competing, lists, of_fleet, of_mcs, of_mcs_api, others_of_fleet, previewing, silent, states,
};
use crate::support::requeued::{NEEDLESS, paths_of, paths_of_new};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::model::Object;

#[test]
fn a_change_of_any_object_requeues_every_key_whose_plan_it_changes() {
    assert_eq!(Fleet::new(of_fleet(), Vec::new()).assert_requeued(), 857, "{NEEDLESS}");
}

#[test]
fn an_object_that_comes_requeues_every_key_whose_plan_it_changes() {
    let fleet = Fleet::new(of_fleet(), Vec::new());
    let further = others_of_fleet().into_iter().flat_map(|object| paths_of_new(states(&object)));
    assert_eq!(fleet.settled().assert_requeued(further), 521, "{NEEDLESS}");
}

#[test]
fn a_change_of_any_object_of_the_mcs_api_requeues_every_key_whose_plan_it_changes() {
    assert_eq!(of_mcs().assert_requeued(), 1_908, "{NEEDLESS}");
}

#[test]
fn a_change_of_slices_that_compete_requeues_every_key_whose_plan_it_changes() {
    let mut objects = of_fleet();
    objects.extend(competing());
    assert_eq!(Fleet::new(objects, Vec::new()).assert_requeued(), 1_070, "{NEEDLESS}");
}

#[test]
fn a_change_of_namespaces_requeues_every_key_whose_plan_it_changes() {
    let policies = [NamespacePolicy::Enforce, NamespacePolicy::Strict, NamespacePolicy::Listed, NamespacePolicy::Off];
    let mut needless = 0;
    for policy in policies {
        for objects in [of_fleet(), of_mcs_api()] {
            let mut fleet = Fleet { further: of_mcs().further, ..Fleet::new(objects, Vec::new()) };
            fleet.empty.namespace_policy = policy;
            let namespaces = lists();
            let coming = namespaces.iter().flat_map(|object| paths_of_new(states(object)));
            needless += fleet.settled().assert_requeued(coming);
            fleet.present.extend(namespaces.clone());
            let paths = namespaces.iter().flat_map(|object| paths_of(object, states(object)));
            needless += fleet.settled().assert_requeued(paths);
        }
    }
    assert_eq!(needless, 1_807, "{NEEDLESS}");
}

/// Returns a fleet whose members may cause this number of objects in other member namespaces.
fn limited(objects: Vec<Object>, fan_out: usize) -> Fleet {
    let mut fleet = Fleet { further: of_mcs().further, ..Fleet::new(objects, Vec::new()) };
    fleet.empty.budgets.fan_out_limit = Some(fan_out);
    fleet
}

#[test]
fn a_change_of_a_fleet_at_its_limits_requeues_every_key_whose_plan_it_changes() {
    let mut needless = 0;
    for fan_out in [1, 2] {
        needless += limited(of_fleet(), fan_out).assert_requeued();
        needless += limited(of_mcs_api(), fan_out).assert_requeued();
    }
    // The view keeps the last state of an object that needs more memory than is left. So only what is requeued counts.
    let mut fleet = Fleet { is_forgetful: false, ..Fleet::new(of_fleet(), others_of_fleet()) };
    fleet.empty.budgets.limit = Some(7_000);
    needless += fleet.assert_requeued();
    assert_eq!(needless, 4_394, "{NEEDLESS}");
}

#[test]
fn a_change_beside_a_silent_member_requeues_every_key_whose_plan_it_changes() {
    let needless = [silent().assert_requeued(), previewing().assert_requeued()];
    assert_eq!(needless, [816, 775], "{NEEDLESS}");
}
