//! Deployments and pods of the agents. memkube has no controllers, so the tests do their work: an agent ends with its
//! Deployment. The agents are tasks of the test, so a change of a pod template changes nothing.

use crate::world::{World, agent_deployment, agent_pod};
use diagnosis::report::Api;
use fleetnet_api::names::FLEET_SYSTEM_NAMESPACE;
use harness::user::User;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};
use sim::fleet::Place;

/// Creates the Deployment of a cluster's agent and a pod of it.
pub(super) async fn install(world: &World, place: Place) -> anyhow::Result<()> {
    world.memkube(place).add_workloads();
    let name = if place == Place::Hub { "hub-agent" } else { "member-agent" };
    let is_mcs = place != Place::Hub && world.api == Api::Mcs;
    let arguments: &[&str] = if is_mcs { &["--multicluster-api"] } else { &[] };
    let system = User::new(world.server(place).admin(), FLEET_SYSTEM_NAMESPACE);
    let (deployment, pod) = (agent_deployment(name, arguments), agent_pod(name));
    let status = |object: &Value| object["status"].clone();
    system.create::<Deployment>(deployment.clone()).await?;
    system.merge_status::<Deployment>(name, status(&deployment)).await?;
    system.create::<Pod>(pod.clone()).await?;
    system.merge_status::<Pod>(&format!("{name}-1"), status(&pod)).await?;
    Ok(())
}

/// Ends the agent of a cluster if no Deployment wants a replica of it.
pub(super) async fn follow(world: &mut World, place: Place) -> anyhow::Result<()> {
    let system = User::new(world.server(place).admin(), FLEET_SYSTEM_NAMESPACE);
    let deployments = system.api::<Deployment>().list(&ListParams::default()).await?.items;
    if deployments.iter().any(|deployment| deployment.spec.replicas != Some(0)) {
        return Ok(());
    }
    for deployment in deployments {
        system.merge_status::<Deployment>(&deployment.name_any(), json!({"readyReplicas": 0})).await?;
    }
    for pod in system.api::<Pod>().list(&ListParams::default()).await?.items {
        system.delete::<Pod>(&pod.name_any()).await?;
    }
    world.fleet.stop(place).await
}
