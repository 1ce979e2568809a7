//! Watches of the member agent: kinds in its own cluster, and kinds in its member namespace of the hub.

use crate::logic::Member;
use crate::{export, import};
use fleetnet_agent::convert;
use fleetnet_core::member::Settings;
use fleetnet_core::model::Kind;
use fleetnet_runtime::SourceSpec;
use fleetnet_runtime::client::Cluster;
use std::sync::Arc;

/// Returns the watches of the member agent: kinds in its own cluster, and kinds in its member namespace of the hub.
pub(crate) fn sources(member: &Arc<Cluster>, hub: &Arc<Cluster>, settings: &Settings) -> Vec<SourceSpec<Member>> {
    let hub_namespace = &*settings.hub_namespace;
    let local = export::LOCAL.into_iter().chain(import::LOCAL);
    let remote = export::REMOTE.into_iter().chain(import::REMOTE);
    let remote = remote.map(|kind| convert::source(kind, hub, Some(hub_namespace)));
    let mut sources: Vec<_> = local.map(|kind| convert::source(kind, member, None)).chain(remote).collect();
    // Optional, because a hub of Go agents lacks the CRD of MemberAgent. This agent then announces no features and writes the Go
    // form.
    sources.push(SourceSpec { optional: true, ..convert::source(Kind::MemberAgent, hub, Some(hub_namespace)) });
    // Optional: the UID of the namespace `kube-system` distinguishes this cluster from another cluster with the same cluster id.
    // Without the right to read the namespace, the agent does not make this check.
    let kube_system = convert::source(Kind::Namespace, member, None);
    sources.push(SourceSpec { optional: true, name: Some("kube-system"), ..kube_system });
    // Optional: most fleets have no manager that defines members.
    if !settings.membership.is_empty() {
        let membership = convert::source(Kind::InternalMemberCluster, hub, Some(hub_namespace));
        sources.push(SourceSpec { optional: true, ..membership });
    }
    sources
}
