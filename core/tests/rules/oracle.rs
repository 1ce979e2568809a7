//! Oracle of a fleet at rest, for the model of the fleet ([`World`]).

use crate::support::world::World;
use fleetnet_core::model::Object;
use histories::fleet::{Cluster, Fleet};
use histories::oracle;
pub(crate) use histories::oracle::CLASSES;
use std::collections::BTreeMap;

fn fleet(world: &World) -> Fleet {
    let copy = |cluster: &crate::support::cluster::Cluster| {
        Cluster::new(cluster.all().cloned(), cluster.missing_namespaces.clone())
    };
    Fleet { hub: copy(&world.hub), members: world.members.iter().map(|member| copy(&member.cluster)).collect() }
}

/// Asserts that the fleet is in the state that its users' objects demand.
pub(crate) fn assert_settled(world: &World) {
    oracle::assert_settled(&fleet(world));
}

/// Asserts that no derived Service is left of a Service without exporters.
pub(crate) fn assert_grace_is_over(world: &World) {
    oracle::assert_grace_is_over(&fleet(world));
}

/// Asserts that no cluster contains any object.
pub(crate) fn assert_empty(world: &World) {
    oracle::assert_empty(&fleet(world));
}

/// Returns the situations of [`CLASSES`] that occur in the current state of the fleet.
pub(crate) fn classes(world: &World) -> Vec<&'static str> {
    oracle::classes(&fleet(world))
}

/// Returns all objects without UIDs, versions and times, which may differ between two runs of the same history.
pub(crate) fn state(world: &World) -> BTreeMap<String, Object> {
    oracle::state(&fleet(world))
}
