//! Random actions of users and of other controllers in a fleet of [`MEMBERS`] members. Tests of core apply them to a
//! model of the fleet, and the simulator sends them to API servers.

use fastrand::Rng;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};

/// Number of members in a fleet.
pub const MEMBERS: usize = 3;
/// Services that users export and import, as `namespace/name`.
pub const APPS: [&str; 2] = ["work/app", "work/web"];
/// MultiClusterServices, as `namespace/name`.
pub const REQUEST_NAMES: [&str; 2] = ["work/app", "work/other"];
/// Sum of the weights in [`an_action`], for generators that also generate other events.
pub const WEIGHT: u32 = 59;

/// Action of a user, or of another controller. Members, Services and names are indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A user creates a Service with a variant of the ports ([`ports`]).
    MakeService { member: usize, app: usize, ports: usize },
    /// A user deletes a Service.
    DeleteService { member: usize, app: usize },
    /// A user changes the ports of a Service.
    ChangePorts { member: usize, app: usize, ports: usize },
    /// A user makes a Service one of type ExternalName, or of type ClusterIP again.
    ChangeServiceType { member: usize, app: usize, external: bool },
    /// A user creates a ServiceExport.
    Export { member: usize, app: usize },
    /// A user deletes a ServiceExport.
    Unexport { member: usize, app: usize },
    /// A user sets or removes the weight of an export.
    Weigh { member: usize, app: usize, weight: Option<&'static str> },
    /// A slice is created, or gets these endpoints.
    SetSlice { member: usize, app: usize, slice: usize, endpoints: Vec<u8> },
    /// A user scales a Deployment to zero and back. kube-controller-manager removes all endpoints of a slice and later
    /// adds new ones; name and UID of the slice stay the same.
    RecycleSlice { member: usize, app: usize, slice: usize, endpoints: Vec<u8> },
    /// A slice changes in a way that importers cannot see: a pod that is not ready is added or removed.
    TouchSlice { member: usize, app: usize, slice: usize },
    /// The last ready endpoint of a slice is not ready any more. The pod of a draining endpoint still serves.
    Unready { member: usize, app: usize, slice: usize, is_draining: bool },
    /// A slice is deleted.
    DeleteSlice { member: usize, app: usize, slice: usize },
    /// A user creates a MultiClusterService.
    CreateRequest { member: usize, name: usize, app: usize, consumer: usize },
    /// A user lets a MultiClusterService import another Service.
    Retarget { member: usize, name: usize, app: usize },
    /// A user changes the type of an import.
    ChangeConsumer { member: usize, name: usize, consumer: usize },
    /// A user deletes a MultiClusterService.
    DeleteRequest { member: usize, name: usize },
    /// The cloud assigns an address to a load balancer.
    Address { member: usize, name: usize },
    /// Somebody deletes an object that an agent created.
    Meddle { hub: bool, member: usize, which: usize },
}

impl Action {
    /// Names of all actions.
    pub const NAMES: &[&str] = &[
        "MakeService",
        "DeleteService",
        "ChangePorts",
        "ChangeServiceType",
        "Export",
        "Unexport",
        "Weigh",
        "SetSlice",
        "RecycleSlice",
        "TouchSlice",
        "Unready",
        "DeleteSlice",
        "CreateRequest",
        "Retarget",
        "ChangeConsumer",
        "DeleteRequest",
        "Address",
        "Meddle",
    ];

    /// Returns the name of the action, one of [`Self::NAMES`].
    #[must_use]
    pub fn name(&self) -> String {
        format!("{self:?}").split(' ').next().unwrap_or_default().to_owned()
    }
}

/// Returns the name and number of each port in a variant of the ports.
#[must_use]
pub fn ports(variant: usize) -> &'static [(&'static str, u16)] {
    match variant {
        0 => &[("http", 80)],
        1 => &[("http", 80), ("admin", 81)],
        _ => &[("admin", 81), ("http", 80)], // the same ports in another order
    }
}

/// Returns the name of a slice of a Service, as `namespace/name`.
#[must_use]
pub fn slice_name(app: usize, slice: usize) -> String {
    format!("{}-{slice}", APPS[app])
}

/// Returns the addresses of endpoints of a Service in a member. Slices of one Service share addresses, because
/// endpoints move between them. Services share none, so that an endpoint in the wrong one is found. None is in
/// 10.0.0.0/16, the range of a cluster's Services.
#[must_use]
pub fn addresses(member: usize, app: usize, endpoints: &[u8]) -> Vec<String> {
    endpoints.iter().map(|last| format!("10.{}.{app}.{last}", member + 1)).collect()
}

/// Returns the strategy of random actions. [`WEIGHT`] is the sum of the weights.
pub fn an_action() -> impl Strategy<Value = Action> {
    let member = 0..MEMBERS;
    let app = prop_oneof![4 => 0..1usize, 1 => 1..2usize];
    let request = prop_oneof![4 => 0..1usize, 1 => 1..2usize];
    let endpoints = || prop::collection::vec(1..5u8, 0..3);
    let weights = prop_oneof![Just(None), Just(Some("0")), Just(Some("7")), Just(Some("many"))];
    let (m, a, w) = (member, app, request);
    prop_oneof![
        6 => (m.clone(), a.clone(), 0..3usize).prop_map(|(member, app, ports)| Action::MakeService { member, app, ports }),
        2 => (m.clone(), a.clone()).prop_map(|(member, app)| Action::DeleteService { member, app }),
        3 => (m.clone(), a.clone(), 0..3usize).prop_map(|(member, app, ports)| Action::ChangePorts { member, app, ports }),
        1 => (m.clone(), a.clone(), any::<bool>())
            .prop_map(|(member, app, external)| Action::ChangeServiceType { member, app, external }),
        7 => (m.clone(), a.clone()).prop_map(|(member, app)| Action::Export { member, app }),
        3 => (m.clone(), a.clone()).prop_map(|(member, app)| Action::Unexport { member, app }),
        2 => (m.clone(), a.clone(), weights).prop_map(|(member, app, weight)| Action::Weigh { member, app, weight }),
        8 => (m.clone(), a.clone(), 0..2usize, endpoints())
            .prop_map(|(member, app, slice, endpoints)| Action::SetSlice { member, app, slice, endpoints }),
        2 => (m.clone(), a.clone(), 0..2usize, endpoints())
            .prop_map(|(member, app, slice, endpoints)| Action::RecycleSlice { member, app, slice, endpoints }),
        2 => (m.clone(), a.clone(), 0..2usize).prop_map(|(member, app, slice)| Action::TouchSlice { member, app, slice }),
        3 => (m.clone(), a.clone(), 0..2usize, any::<bool>())
            .prop_map(|(member, app, slice, is_draining)| Action::Unready { member, app, slice, is_draining }),
        2 => (m.clone(), a.clone(), 0..2usize).prop_map(|(member, app, slice)| Action::DeleteSlice { member, app, slice }),
        7 => (m.clone(), w.clone(), a.clone(), 0..2usize)
            .prop_map(|(member, name, app, consumer)| Action::CreateRequest { member, name, app, consumer }),
        2 => (m.clone(), w.clone(), a).prop_map(|(member, name, app)| Action::Retarget { member, name, app }),
        2 => (m.clone(), w.clone(), 0..2usize)
            .prop_map(|(member, name, consumer)| Action::ChangeConsumer { member, name, consumer }),
        3 => (m.clone(), w.clone()).prop_map(|(member, name)| Action::DeleteRequest { member, name }),
        2 => (m.clone(), w).prop_map(|(member, name)| Action::Address { member, name }),
        2 => (any::<bool>(), m, 0..20usize).prop_map(|(hub, member, which)| Action::Meddle { hub, member, which }),
    ]
}

/// Returns the first actions in each member, in the order of the members. At least one member exports and one imports,
/// and usually more members do.
pub fn prelude(random: &mut Rng) -> Vec<Vec<Action>> {
    let mut members = Vec::new();
    for (member, exports, imports) in
        [(0, true, random.usize(..4) == 0), (1, random.usize(..2) == 0, true), (2, true, true)]
    {
        let mut actions = Vec::new();
        if exports {
            let ports = [0, 0, 0, 1, 2][random.usize(..5)];
            actions.push(Action::MakeService { member, app: 0, ports });
            actions.push(Action::SetSlice { member, app: 0, slice: 0, endpoints: vec![1, 2] });
            actions.push(Action::Export { member, app: 0 });
        }
        if imports {
            actions.push(Action::CreateRequest { member, name: 0, app: 0, consumer: random.usize(..2) });
        }
        members.push(actions);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    use std::collections::BTreeSet;

    #[test]
    fn the_names_are_those_of_all_random_actions() {
        let mut runner = TestRunner::deterministic();
        let actions = (0..2_000).map(|_| an_action().new_tree(&mut runner).expect("an action").current());
        let names: BTreeSet<String> = actions.map(|action| action.name()).collect();
        assert_eq!(names, Action::NAMES.iter().map(ToString::to_string).collect());
    }
}
