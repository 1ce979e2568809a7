//! Kinds to read from a member.

use super::rights;
use super::server::{Server, joined};
use super::target::{Scope, unread};
use crate::agents::AgentNamespace;
use crate::snapshot::{HubSecret, Listing, Member, Reached, TokenClaims};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fleetnet_api::names::labels;
use fleetnet_core::model::Kind;
use fleetnet_core::names::{CONTROLLER_MANAGER_LEASE, KUBE_SYSTEM};
use fleetnet_types::ObjectName;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Secret with the member agent's access to the hub.
const HUB_SECRET: &str = "fleetnet-hub";

/// Reads the objects of a member. The member agent runs in `namespace`.
pub(super) async fn read(server: &Server<'_>, id: &str, namespace: &AgentNamespace, scope: &Scope) -> Member {
    let (connection, agent) = (server.connect().await, unread(namespace));
    let mut member = Member { id: id.to_owned(), connection, agent, ..Member::default() };
    let (system, parameters) = (Some(&**namespace), ListParams::default());
    match scope {
        _ if member.connection.reached != Reached::Yes => return member,
        Scope::Status => {
            (member.agent.deployments, member.agent.leases, member.controller_manager) = tokio::join!(
                server.list(system, &parameters, None),
                server.list(system, &parameters, None),
                named(server, Some(KUBE_SYSTEM), CONTROLLER_MANAGER_LEASE),
            );
            member.agent.missing_slice_rights = rights::of_slices(server, &member.agent).await;
            return member;
        }
        Scope::Services => {
            read_imports(server, &mut member).await;
            return member;
        }
        Scope::Check | Scope::Service(_) | Scope::Migration => {}
    }
    (member.agent.deployments, member.agent.leases, member.agent.pods, member.agent.definitions) = tokio::join!(
        server.list(system, &parameters, None),
        server.list(system, &parameters, None),
        server.list(system, &parameters, None),
        server.list(None, &parameters, None),
    );
    (member.controller_manager, member.agent.missing_slice_rights) = tokio::join!(
        named(server, Some(KUBE_SYSTEM), CONTROLLER_MANAGER_LEASE),
        rights::of_slices(server, &member.agent),
    );
    match scope {
        Scope::Migration => read_migration(server, &mut member).await,
        Scope::Status | Scope::Services | Scope::Check | Scope::Service(_) => {
            (member.hub_secret, member.cluster_uid) = tokio::join!(hub_secret(server, namespace), cluster_uid(server));
            member.agent.missing_rights = rights::of_member_agent(server, &member.agent).await;
            if matches!(scope, Scope::Check) {
                member.nodes = server.list(None, &parameters, None).await;
            }
        }
    }
    if let Scope::Service(service) = scope {
        read_service(server, service, &mut member).await;
    }
    member.connection.throttled |= server.was_throttled();
    member
}

/// Reads what is imported: MultiClusterServices and ServiceImports, derived Services and imported slices.
async fn read_imports(server: &Server<'_>, member: &mut Member) {
    let (namespace, parameters) = (member.agent.namespace.clone(), ListParams::default());
    let imported = ListParams::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_IMPORT));
    (member.multi_cluster_services, member.mcs_imports, member.services, member.slices) = tokio::join!(
        server.list(None, &parameters, Some(Kind::MultiClusterService)),
        server.list(None, &parameters, Some(Kind::McsServiceImport)),
        server.list(Some(&namespace), &parameters, None),
        server.list(None, &imported, None),
    );
}

/// Reads the exports, imports, Services and slices of all namespaces.
async fn read_migration(server: &Server<'_>, member: &mut Member) {
    let parameters = ListParams::default();
    member.cluster_uid = cluster_uid(server).await;
    (member.service_exports, member.multi_cluster_services, member.services, member.slices) = tokio::join!(
        server.list(None, &parameters, Some(Kind::ServiceExport)),
        server.list(None, &parameters, Some(Kind::MultiClusterService)),
        server.list(None, &parameters, None),
        server.list(None, &parameters, None),
    );
}

/// Reads the objects of one Service: its namespace, and the derived Services and imported slices in that of the agent.
async fn read_service(server: &Server<'_>, service: &ObjectName, member: &mut Member) {
    let agents = member.agent.namespace.clone();
    let (own, system) = (Some(&*service.namespace), Some(&*agents));
    let parameters = ListParams::default();
    (member.service_exports, member.multi_cluster_services, member.service_imports) = tokio::join!(
        server.list(own, &parameters, Some(Kind::ServiceExport)),
        server.list(own, &parameters, Some(Kind::MultiClusterService)),
        server.list(own, &parameters, Some(Kind::ServiceImport)),
    );
    (member.mcs_exports, member.mcs_imports, member.namespaces) = tokio::join!(
        server.list(own, &parameters, Some(Kind::McsServiceExport)),
        server.list(own, &parameters, Some(Kind::McsServiceImport)),
        named(server, None, &service.namespace),
    );
    let (services, derived, slices, imported) = tokio::join!(
        server.list(own, &parameters, None),
        server.list(system, &parameters, None),
        server.list(own, &parameters, None),
        server.list(system, &parameters, None),
    );
    (member.services, member.slices) =
        if own == system { (services, slices) } else { (joined(services, derived), joined(slices, imported)) };
    (member.pods, member.events) =
        tokio::join!(server.list(own, &parameters, None), server.list(own, &parameters, None));
}

/// Returns the UID of the namespace kube-system.
async fn cluster_uid(server: &Server<'_>) -> Option<String> {
    named::<Namespace>(server, None, KUBE_SYSTEM).await.objects().next()?.metadata.uid.clone()
}

/// Lists the object with this name.
async fn named<K>(server: &Server<'_>, namespace: Option<&str>, name: &str) -> Listing<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
    let mut listing: Listing<K> = server.list(namespace, &parameters, None).await;
    // A server that ignores the selector lists all objects.
    if let Some(objects) = listing.objects_mut() {
        objects.retain(|object| object.name_any() == name);
    }
    listing
}

/// Reads the Secret with the access to the hub. Keeps the claims of the token, and drops the token.
async fn hub_secret(server: &Server<'_>, namespace: &AgentNamespace) -> Listing<HubSecret> {
    match named::<Secret>(server, Some(namespace), HUB_SECRET).await {
        Listing::Known { objects, undecodable } => {
            Listing::Known { objects: objects.iter().map(without_token).collect(), undecodable }
        }
        Listing::Denied(message) => Listing::Denied(message),
        Listing::NotDefined => Listing::NotDefined,
        Listing::Unknown(why) => Listing::Unknown(why),
        Listing::NotAsked => Listing::NotAsked,
    }
}

fn without_token(secret: &Secret) -> HubSecret {
    let text = |key: &str| {
        let value = secret.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok()
    };
    HubSecret {
        namespace: secret.namespace().unwrap_or_default(),
        name: secret.name_any(),
        url: text("url").unwrap_or_default(),
        authority: text("certificate-authority"),
        token: text("token").and_then(|token| claims(&token)),
    }
}

/// Returns the claims of a JWT. The signature is not checked: only the hub can do that.
fn claims(token: &str) -> Option<TokenClaims> {
    let payload = token.trim().split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()?;
    let uid = claims["kubernetes.io"]["serviceaccount"]["uid"].as_str();
    Some(TokenClaims {
        expires: claims["exp"].as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok()),
        subject: claims["sub"].as_str()?.to_owned(),
        account_uid: uid.or(claims["kubernetes.io/serviceaccount/service-account.uid"].as_str()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_of_a_token_are_read_and_the_token_is_not_kept() {
        let payload = r#"{"exp":1800014400,"sub":"system:serviceaccount:fleet-member-west:member-agent","kubernetes.io":{"serviceaccount":{"uid":"u1"}}}"#;
        let token = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        let mut secret = Secret::default();
        let data = [("url", "https://hub:6443"), ("certificate-authority", "Q0E="), ("token", token.as_str())];
        let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        secret.data = Some(data.map(|(key, value)| (key.to_owned(), bytes(value))).into());
        let read = without_token(&secret);
        assert_eq!(read.url, "https://hub:6443");
        assert_eq!(read.authority.as_deref(), Some("Q0E="));
        let claims = read.token.clone().expect("it has claims");
        assert_eq!(claims.expires.map(|time| time.to_string()).as_deref(), Some("2027-01-15T12:00:00Z"));
        assert_eq!(claims.account_uid.as_deref(), Some("u1"));
        assert!(!format!("{read:?}").contains("c2ln"), "no part of the token stays");
    }

    #[test]
    fn a_text_that_is_no_token_has_no_claims() {
        for text in ["", "a", "a.b.c", "a.e30.c", "..", "a.!!.c"] {
            assert_eq!(claims(text), None, "{text:?}");
        }
    }
}
