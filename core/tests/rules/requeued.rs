//! Systematic tests of the planner of the hub agent: a change of any object, of its decodability or of a watch requeues
//! every key whose plan it changes.

use crate::support::fleets::{
    Fleet, competing, lists, of_fleet, of_standard_api, others_of_fleet, previewing, silent, standard, states,
};
use crate::support::requeued::{paths_of, paths_of_new};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::model::Object;

#[test]
fn a_change_of_any_object_requeues_every_key_whose_plan_it_changes() {
    Fleet::new(of_fleet(), Vec::new()).assert_requeued();
}

#[test]
fn an_object_that_comes_requeues_every_key_whose_plan_it_changes() {
    let fleet = Fleet::new(of_fleet(), Vec::new());
    let further = others_of_fleet().into_iter().flat_map(|object| paths_of_new(states(&object)));
    fleet.settled().assert_requeued(further);
}

#[test]
fn a_change_of_any_object_of_the_standard_api_requeues_every_key_whose_plan_it_changes() {
    standard().assert_requeued();
}

#[test]
fn a_change_of_slices_that_compete_requeues_every_key_whose_plan_it_changes() {
    let mut objects = of_fleet();
    objects.extend(competing());
    Fleet::new(objects, Vec::new()).assert_requeued();
}

#[test]
fn a_change_of_namespaces_requeues_every_key_whose_plan_it_changes() {
    let policies = [NamespacePolicy::Enforce, NamespacePolicy::Strict, NamespacePolicy::Listed, NamespacePolicy::Off];
    for policy in policies {
        for objects in [of_fleet(), of_standard_api()] {
            let mut fleet = Fleet { further: standard().further, ..Fleet::new(objects, Vec::new()) };
            fleet.empty.namespace_policy = policy;
            let namespaces = lists();
            let coming = namespaces.iter().flat_map(|object| paths_of_new(states(object)));
            fleet.settled().assert_requeued(coming);
            fleet.present.extend(namespaces.clone());
            fleet.settled().assert_requeued(namespaces.iter().flat_map(|object| paths_of(object, states(object))));
        }
    }
}

/// Returns a fleet whose members may cause this number of objects in other member namespaces.
fn limited(objects: Vec<Object>, fan_out: usize) -> Fleet {
    let mut fleet = Fleet { further: standard().further, ..Fleet::new(objects, Vec::new()) };
    fleet.empty.budgets.fan_out_limit = Some(fan_out);
    fleet
}

#[test]
fn a_change_of_a_fleet_at_its_limits_requeues_every_key_whose_plan_it_changes() {
    for fan_out in [1, 2] {
        limited(of_fleet(), fan_out).assert_requeued();
        limited(of_standard_api(), fan_out).assert_requeued();
    }
    // The view keeps the last state of an object that needs more memory than is left. So only what is requeued counts.
    let mut fleet = Fleet { is_forgetful: false, ..Fleet::new(of_fleet(), others_of_fleet()) };
    fleet.empty.budgets.limit = Some(7_000);
    fleet.assert_requeued();
}

#[test]
fn a_change_beside_a_silent_member_requeues_every_key_whose_plan_it_changes() {
    silent().assert_requeued();
    previewing().assert_requeued();
}
