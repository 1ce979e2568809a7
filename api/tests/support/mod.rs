//! Fixtures and builders that several tests use.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

pub(crate) mod schema;

use fleetnet_core::model::{
    AddressType, Condition, Endpoint, EndpointPort, Finalizers, HubSliceSpec, ImportStatus, ImportType, Meta,
    Reference, ServicePort, SessionAffinity, SliceContent, TargetPort,
};
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};
use serde_json::Value;

/// Creation time of the fixtures' objects: 2026-11-21T03:46:06Z.
pub(crate) const MADE: Timestamp = Timestamp(1_795_232_766_000_000);

/// Returns the JSON of a fixture: an object as the Go agents or fleetnet wrote it.
pub(crate) fn fixture(name: &str) -> Value {
    let sources = [include_str!("../fixtures/go-agents.json"), include_str!("../fixtures/fleetnet.json")];
    let all = sources.map(|source| serde_json::from_str::<Value>(source).unwrap());
    all.iter().find_map(|all| all.get(name)).unwrap_or_else(|| panic!("no fixture {name:?}")).clone()
}

pub(crate) fn meta(namespace: &str, name: &str, uid: &str, resource_version: u64, generation: i64) -> Meta {
    Meta {
        name: ObjectName::new(namespace, name),
        uid: uid.into(),
        resource_version,
        generation,
        created: MADE,
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

/// Returns the metadata with our finalizer.
pub(crate) fn kept(mut meta: Meta) -> Meta {
    meta.finalizers.ours = true;
    meta
}

pub(crate) fn http_80() -> ServicePort {
    ServicePort {
        name: "http".into(),
        protocol: "TCP".into(),
        app_protocol: None,
        port: 80.into(),
        target_port: Some(TargetPort::Number(8080.into())),
    }
}

pub(crate) fn imported_from(cluster: &str) -> ImportStatus {
    ImportStatus {
        import_type: Some(ImportType::ClusterSetIp),
        ports: vec![http_80()],
        session_affinity: SessionAffinity::None,
        clusters: vec![cluster.into()],
    }
}

pub(crate) fn condition(
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
    since: Timestamp,
) -> Condition {
    Condition {
        condition_type: condition_type.into(),
        status: ConditionStatus::named(status).expect(status),
        reason: reason.into(),
        message: message.into(),
        observed_generation: 1,
        last_transition: since,
    }
}

pub(crate) fn reference(
    cluster: &str,
    name: &str,
    uid: &str,
    version: &str,
    generation: i64,
    since: Timestamp,
) -> Reference {
    Reference {
        cluster: cluster.into(),
        source: ObjectName::new("work", name),
        uid: uid.into(),
        resource_version: version.into(),
        generation,
        exported_since: Some(since),
    }
}

pub(crate) fn content(addresses: &[&str]) -> SliceContent {
    let endpoint = |address: &&str| Endpoint { addresses: vec![(*address).into()], ..Endpoint::default() };
    let http =
        EndpointPort { name: "http".into(), protocol: "TCP".into(), port: Some(8080.into()), app_protocol: None };
    SliceContent {
        address_type: AddressType::IPv4,
        endpoints: addresses.iter().map(endpoint).collect(),
        draining: Vec::new(),
        ports: vec![http],
    }
}

/// Returns the spec of the fixtures' slice in the hub.
pub(crate) fn exported_slice() -> HubSliceSpec {
    let since = Timestamp(1_795_232_775_000_000);
    HubSliceSpec {
        reference: reference("exporter", "svc0-0", "4a210213-4fbc-4116-ac85-ccffe838e4a9", "301", 3, since),
        owner: ObjectName::new("work", "svc0"),
        content: content(&["10.1.0.13", "172.16.0.2"]).into(),
    }
}

pub(crate) fn text(value: &str) -> Text {
    value.into()
}
