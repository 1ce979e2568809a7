//! Target for the plans that the agents make from objects of others.

use crate::message::check_message;
use fleetnet_agent::convert::{observe, verb};
use fleetnet_api::encode::TraceChange;
use fleetnet_core::features::Features;
use fleetnet_core::hub::{self, NamespacePolicy};
use fleetnet_core::member::{self, Membership, OnLeave, Settings};
use fleetnet_core::model::{Announcement, Kind, MembershipAgent};
use fleetnet_core::plan::{Action, Plan};
use fleetnet_types::{Change, Text, Timestamp, WatchState};
use std::collections::BTreeMap;

/// Time of the plans: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_seconds(1_767_225_600);

/// Kinds that the hub agent watches.
const HUB: [Kind; 7] = [
    Kind::InternalServiceExport,
    Kind::InternalServiceImport,
    Kind::ServiceImport,
    Kind::EndpointSliceExport,
    Kind::EndpointSliceImport,
    Kind::MemberAgent,
    Kind::Namespace,
];

/// Decodes each line of the input as an object of the kind that it names, and plans all keys that the objects requeue,
/// as the hub agent and as the member agent.
///
/// A plan never fails, each of its writes has a body, and a write has the precondition of the object that it changes.
pub fn plans(bytes: &[u8]) {
    let mut hub = hub::Planner::new(announcement(), NamespacePolicy::Enforce);
    let mut member = member::Planner::new(settings());
    let (mut hub_keys, mut member_keys) = (Vec::new(), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').take(16) {
        let Some(kind) = kind_of(line) else { continue };
        let change = match observe(kind, line) {
            Ok(observed) => Change::Applied(observed.object),
            Err(error) if error.name.name.is_empty() => continue,
            Err(error) => Change::Undecodable { name: error.name },
        };
        if HUB.contains(&kind) {
            hub.apply(kind, change.clone(), NOW, &mut hub_keys);
        }
        member.apply(kind, change, NOW, &mut member_keys);
    }
    for kind in Kind::ALL {
        hub.watch_state(kind, WatchState::Complete, NOW, &mut hub_keys);
        member.watch_state(kind, WatchState::Complete, NOW, &mut member_keys);
    }
    member.slices_followed(&mut member_keys);
    for later in [0, 3600] {
        let now = NOW.plus_micros(later * 1_000_000);
        hub_keys.iter().for_each(|key| check(&hub.plan(key, now)));
        member_keys.iter().for_each(|key| check(&member.plan(key, now)));
    }
}

fn announcement() -> Announcement {
    Announcement { version: "0.1.0".into(), features: Features::ALL.names().map(Text::from).collect() }
}

fn settings() -> Settings {
    Settings {
        cluster: "member-1".into(),
        hub_namespace: "fleet-member-member-1".into(),
        fleet_system_namespace: "fleet-system".into(),
        derived_service_grace_micros: 0,
        source_ranges: BTreeMap::new(),
        own_ranges: fleetnet_core::member::OwnRanges::default(),
        load_balancers_per_namespace: None,
        announces: Some(announcement()),
        leader: "candidate".into(),
        takeover_after_micros: 60_000_000,
        membership: Membership { agents: MembershipAgent::ALL.to_vec(), on_leave: OnLeave::Delete },
        mcs_api: fleetnet_core::member::McsApi::Off,
        routing_slices: false,
        cluster_selection: None,
        limits: fleetnet_core::member::Limits::default(),
    }
}

fn kind_of(line: &[u8]) -> Option<Kind> {
    #[derive(serde::Deserialize)]
    struct Named {
        kind: String,
    }
    let named: Named = serde_json::from_slice(line).ok()?;
    Kind::ALL.into_iter().find(|kind| format!("{kind:?}") == named.kind)
}

fn check(plan: &Plan) {
    for write in &plan.writes {
        assert!(!write.at.name.is_empty(), "a write to no object: {write:?}");
        if let Action::Patch { resource_version, .. } = &write.action {
            assert_ne!(*resource_version, 0, "a patch without precondition: {write:?}");
        }
        let _body = verb(write, TraceChange::Keep);
    }
    plan.blocking_reasons.iter().for_each(|blocked| check_message(&blocked.message));
}
