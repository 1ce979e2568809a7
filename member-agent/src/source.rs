//! Watches of the member agent: kinds in its own cluster, and kinds in its member namespace of the hub.

use crate::logic::Member;
use crate::settings::Settings;
use crate::{export, import};
use fleetnet_agent::convert;
use fleetnet_core::member::McsApi;
use fleetnet_core::model::Kind;
use fleetnet_runtime::SourceSpec;
use fleetnet_runtime::io::client::Cluster;
use std::sync::Arc;

/// Returns the watches of the member agent: kinds in its own cluster, and kinds in its member namespace of the hub. An
/// agent that only sends heartbeats to a fleet manager watches no kind of Services and slices.
pub(crate) fn sources(member: &Arc<Cluster>, hub: &Arc<Cluster>, settings: &Settings) -> Vec<SourceSpec<Member>> {
    let hub_namespace = &*settings.member.hub_namespace;
    let mut sources = Vec::new();
    if settings.parts.in_fleet() {
        let local = export::LOCAL.into_iter().chain(import::LOCAL);
        let remote = export::REMOTE.into_iter().chain(import::REMOTE);
        sources.extend(local.map(|kind| convert::source(kind, member, None)));
        sources.extend(remote.map(|kind| convert::source(kind, hub, Some(hub_namespace))));
    }
    // Optional, because a hub of Go agents lacks the CRD of MemberAgent. This agent then announces no features and
    // writes the Go form.
    sources.push(SourceSpec { optional: true, ..convert::source(Kind::MemberAgent, hub, Some(hub_namespace)) });
    // Optional: the UID of the namespace `kube-system` distinguishes this cluster from another cluster with the same
    // cluster id. Without the right to read the namespace, the agent does not make this check. The heartbeat needs this
    // watch, so it does not depend on other rights.
    let system = convert::source(Kind::SystemNamespace, member, None);
    sources.push(SourceSpec { optional: true, name: Some("kube-system"), ..system });
    if settings.member.mcs_api != McsApi::Off && settings.parts.in_fleet() {
        // Without the right to list all Namespaces, the agent is not ready, so a rollout stops. Only imports of the
        // standard API need this kind.
        sources.push(convert::source(Kind::Namespace, member, None));
        // Optional: without the definitions of the standard API, everything else works.
        let local = [Kind::McsServiceExport, Kind::McsServiceImport];
        sources.extend(local.map(|kind| SourceSpec { optional: true, ..convert::source(kind, member, None) }));
        let merged = convert::source(Kind::MergedServiceImport, hub, Some(hub_namespace));
        sources.push(SourceSpec { optional: true, ..merged });
    }
    if settings.member.cluster_selection.is_some() && settings.parts.in_fleet() {
        // Optional: the definition of ClusterProperty is not installed in most clusters, and Nodes only add properties.
        let local = [Kind::ClusterProperty, Kind::Node];
        sources.extend(local.map(|kind| SourceSpec { optional: true, ..convert::source(kind, member, None) }));
    }
    // Optional: most fleets have no manager that defines members.
    if !settings.member.membership.agents.is_empty() {
        let membership = convert::source(Kind::InternalMemberCluster, hub, Some(hub_namespace));
        sources.push(SourceSpec { optional: true, ..membership });
    }
    sources
}
