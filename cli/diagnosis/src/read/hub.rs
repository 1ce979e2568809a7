//! Kinds to read from the hub.

use super::rights;
use super::server::{Server, joined};
use super::target::{Scope, unread};
use crate::agents::AgentNamespace;
use crate::latency::{Summary, summary_of};
use crate::snapshot::{AgentObjects, Hub, Listing, Reached};
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::model::Kind;
use fleetnet_core::names::cluster_of;
use fleetnet_core::reasons::Reason;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads the objects of the hub. The hub agent runs in `namespace`.
pub(super) async fn read(server: &Server<'_>, namespace: &AgentNamespace, scope: &Scope) -> Hub {
    let mut hub = Hub { connection: server.connect().await, agent: unread(namespace), ..Hub::default() };
    if hub.connection.reached != Reached::Yes {
        return hub;
    }
    let needs_services = matches!(scope, Scope::Services | Scope::Service(_) | Scope::Migration);
    let needs_service = matches!(scope, Scope::Service(_));
    let needs_installation = matches!(scope, Scope::Check | Scope::Service(_));
    let needs_definitions = needs_installation || *scope == Scope::Migration;
    let agents = member_agents(server);
    ((hub.member_agents, hub.latencies), hub.agent) = tokio::join!(agents, agent(server, namespace, needs_definitions));
    (hub.namespaces, hub.internal_exports, hub.claims) = tokio::join!(
        all(server, None, true),
        all(server, Some(Kind::InternalServiceExport), true),
        all(server, Some(Kind::InternalServiceImport), true),
    );
    (hub.slice_exports, hub.service_imports, hub.distributed_slices) = tokio::join!(
        all(server, Some(Kind::EndpointSliceExport), needs_services),
        all(server, Some(Kind::ServiceImport), needs_services),
        all(server, Some(Kind::EndpointSliceImport), needs_service),
    );
    (hub.merged_imports, hub.accounts, hub.quotas, hub.events) = tokio::join!(
        all(server, Some(Kind::MergedServiceImport), needs_services || *scope == Scope::Status),
        all(server, None, needs_installation),
        all(server, None, needs_installation),
        events(server, needs_service),
    );
    if needs_installation {
        hub.agent.missing_rights = rights::of_hub_agent(server, &hub.agent).await;
    }
    hub.connection.throttled |= server.was_throttled();
    hub
}

/// Lists a kind in all namespaces, if it is needed.
async fn all<K>(server: &Server<'_>, kind: Option<Kind>, is_needed: bool) -> Listing<K>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    if !is_needed {
        return Listing::NotAsked;
    }
    server.list(None, &ListParams::default(), kind).await
}

/// Lists the Events about refused writes. All Events of a hub would be too many.
async fn events(server: &Server<'_>, is_needed: bool) -> Listing<Event> {
    if !is_needed {
        return Listing::NotAsked;
    }
    let of = |reason: Reason| ListParams::default().fields(&format!("reason={reason}"));
    let (refused, denied) = (of(Reason::WriteRefused), of(Reason::WriteDenied));
    let (refused, denied) = tokio::join!(server.list(None, &refused, None), server.list(None, &denied, None));
    joined(refused, denied)
}

/// Lists the MemberAgents, with the latency summaries in them.
async fn member_agents(server: &Server<'_>) -> (Listing<MemberAgent>, BTreeMap<String, Result<Summary, String>>) {
    let mut latencies = BTreeMap::new();
    let seen = |json: &str| {
        let Ok(object) = serde_json::from_str::<Value>(json) else { return };
        let member = object["metadata"]["namespace"].as_str().and_then(cluster_of);
        if let (Some(member), Some(summary)) = (member, summary_of(&object)) {
            latencies.insert(member.to_string(), summary);
        }
    };
    let listing = server.list_with(None, &ListParams::default(), Some(Kind::MemberAgent), seen).await;
    (listing, latencies)
}

async fn agent(server: &Server<'_>, namespace: &AgentNamespace, needs_definitions: bool) -> AgentObjects {
    let (own, parameters) = (Some(&**namespace), ListParams::default());
    let (deployments, leases, pods) = tokio::join!(
        server.list(own, &parameters, None),
        server.list(own, &parameters, None),
        server.list(own, &parameters, None)
    );
    let definitions = all(server, None, needs_definitions).await;
    AgentObjects { deployments, pods, leases, definitions, ..unread(namespace) }
}
