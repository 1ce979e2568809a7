//! Waits until the hub hears from the agent of a member.

use super::manifests::namespace;
use crate::cli::contexts::connect::Cluster;
use crate::cli::exit::Stop;
use crate::cli::output::progress::Progress;
use crate::limits::POLL;
use diagnosis::agents::AgentNamespace;
use fleetnet_api::crd::MemberAgent;
use kube::Api;
use std::time::Duration;
use tokio::time::Instant;

/// Waits until the MemberAgent is written. The first heartbeat that this command has not seen yet counts, because a
/// MemberAgent may be older than the agent.
pub(super) async fn until_heard(
    hub: &Cluster,
    member: &str,
    agent_namespace: &AgentNamespace,
    limit: Duration,
    progress: &Progress,
) -> Result<(), Stop> {
    let agents: Api<MemberAgent> = Api::namespaced(hub.client.clone(), &namespace(member));
    let (end, mut first) = (Instant::now() + limit, None);
    progress.step(&format!("waiting for the agent of {member}"));
    loop {
        // A request that fails says nothing about the agent. The next one may succeed.
        let (renewed, last) = match hub.find(agents.get(member)).await {
            Ok(agent) => (Some(agent.map(|agent| agent.spec.renew_time)), None),
            Err(failure) => (None, Some(failure)),
        };
        if let Some(renewed) = renewed {
            let before = first.get_or_insert_with(|| renewed.clone());
            if renewed.is_some() && renewed != *before {
                return Ok(());
            }
        }
        if Instant::now() >= end {
            let seen = match (&first, last) {
                (_, Some(failure)) => failure.to_string(),
                (Some(Some(_)), None) => "its MemberAgent is not renewed".to_owned(),
                _ => "it has no MemberAgent".to_owned(),
            };
            return Err(Stop::timeout(format!(
                "the hub has not heard from the agent of {member} within {limit:?}: {seen}: look at the pods of the member agent \
                 in {} of the member",
                agent_namespace
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}
