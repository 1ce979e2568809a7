//! Tests of the kinds of a fleet manager: InternalMemberCluster and MemberCluster.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use fleetnet_api::decode::decode;
use fleetnet_api::encode::{Body, encode};
use fleetnet_core::model::{AgentStatus, InternalMemberCluster, Kind, MembershipAgent, MembershipState, Object};
use fleetnet_core::plan::{Patch, Write};
use fleetnet_types::Timestamp;
use serde_json::{Value, json};

fn object(spec: &Value, status: &Value) -> Value {
    let metadata = json!({
        "namespace": "fleet-member-a", "name": "a", "uid": "u", "resourceVersion": "7", "generation": 2,
    });
    json!({ "metadata": metadata, "spec": spec, "status": status })
}

fn membership(spec: &Value, status: &Value) -> InternalMemberCluster {
    let json = object(spec, status).to_string();
    match decode(Kind::InternalMemberCluster, json.as_bytes()).unwrap() {
        Object::InternalMemberCluster(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Returns the status with an entry of the fleet's own agent, and one of an agent of this repository.
fn status() -> Value {
    json!({
        "conditions": [{ "type": "Joined", "status": "True" }],
        "agentStatus": [
            {
                "type": "MemberAgent",
                "conditions": [{ "type": "Healthy", "status": "True", "reason": "x" }],
                "lastReceivedHeartbeat": "2026-11-21T03:46:06Z",
                "more": [1, { "a": "b" }],
            },
            {
                "type": "ServiceExportImportAgent",
                "conditions": [{
                    "type": "Joined", "status": "True", "reason": "AgentJoined", "message": "",
                    "observedGeneration": 2, "lastTransitionTime": "2026-11-21T03:46:06Z",
                }],
                "lastReceivedHeartbeat": "2026-11-21T03:47:06Z",
            },
        ],
    })
}

/// Also rule O10.
#[test]
fn an_internal_member_cluster_keeps_the_entries_of_other_agents_word_for_word() {
    let found = membership(&json!({ "state": "Join", "heartbeatPeriodSeconds": 30 }), &status());
    assert_eq!((found.state, found.heartbeat_micros), (MembershipState::Join, 30_000_000));
    let [AgentStatus::Other(_), AgentStatus::Known { agent, joined, heartbeat }] = &found.agents[..] else {
        panic!("{found:?}")
    };
    assert_eq!(*agent, MembershipAgent::ServiceExportImport);
    let joined = joined.as_ref().unwrap();
    assert_eq!((&*joined.reason, joined.observed_generation), ("AgentJoined", 2));
    assert_eq!(*heartbeat, Some(Timestamp::from_seconds(1_795_232_826)));

    let patch = Patch::InternalMemberClusterStatus(found.agents.clone());
    let Body::Patch { subresource: Some("status"), resource_version: 7, body } =
        encode(&Write::patch(&found.meta, patch))
    else {
        panic!("a patch of the status")
    };
    assert_eq!(body, json!({ "status": { "agentStatus": status()["agentStatus"] } }));
}

#[test]
fn an_agent_without_a_heartbeat_has_none() {
    let agent = MembershipAgent::MultiClusterService;
    let agents = vec![AgentStatus::Known { agent, joined: None, heartbeat: None }];
    let found = membership(&json!({ "state": "Join" }), &Value::Null);
    let write = Write::patch(&found.meta, Patch::InternalMemberClusterStatus(agents));
    let Body::Patch { body, .. } = encode(&write) else { panic!("{write:?}") };
    let entry = json!({ "type": "MultiClusterServiceAgent", "conditions": [], "lastReceivedHeartbeat": null });
    assert_eq!(body["status"]["agentStatus"], json!([entry]));
}

#[test]
fn states_and_periods_that_are_missing_or_odd_have_a_meaning() {
    for (spec, state, seconds) in [
        (json!({ "state": "Leave" }), MembershipState::Leave, 60),
        (json!({ "state": "Elsewhere", "heartbeatPeriodSeconds": 0 }), MembershipState::Other, 1),
        (json!({ "heartbeatPeriodSeconds": 1_000_000_000_000_i64 }), MembershipState::Other, 600),
        (Value::Null, MembershipState::Other, 60),
    ] {
        let found = membership(&spec, &Value::Null);
        assert_eq!((found.state, found.heartbeat_micros), (state, seconds * 1_000_000), "{spec}");
        assert_eq!(found.agents, [], "{spec}");
    }
}

#[test]
fn a_list_of_agents_that_would_be_lost_makes_the_object_undecodable() {
    for agents in [json!("x"), json!([{ "type": "ServiceExportImportAgent", "conditions": "x" }])] {
        let json = object(&json!({ "state": "Join" }), &json!({ "agentStatus": agents })).to_string();
        assert!(decode(Kind::InternalMemberCluster, json.as_bytes()).is_err(), "{agents}");
    }
}

#[test]
fn the_deletion_of_a_member_cluster_has_a_time() {
    let mut json = json!({ "metadata": {
        "name": "a", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-11-21T03:46:06Z",
    } });
    for (deleted, expected) in [
        (Value::Null, None),
        (json!("2026-11-21T03:47:06Z"), Some(1_795_232_826)),
        (json!("soon"), Some(1_795_232_766)),
    ] {
        json["metadata"]["deletionTimestamp"] = deleted;
        let found = decode(Kind::MemberCluster, json.to_string().as_bytes()).unwrap();
        let Object::MemberCluster(found) = found else { panic!("{found:?}") };
        assert_eq!(found.deleted, expected.map(Timestamp::from_seconds));
    }
}
