//! Agents as processes with the settings of their Deployments: arguments, environment, files and service account. There
//! is no kubelet that would start their pods.

use crate::agent::{Agent, AgentSpec};
use crate::control_plane::{ControlPlane, SERVICE_ACCOUNT};
use crate::fleet::FLEET_SYSTEM;
use anyhow::{Context as _, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{EnvVar, PodSpec, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::fs;
use std::path::Path;
use uuid::Uuid;

/// Starts an agent with the settings of its Deployment, and waits until it is ready. `folder` is for the files.
pub async fn start(control_plane: &ControlPlane, name: &'static str, folder: &Path) -> anyhow::Result<Agent> {
    settings(control_plane, name, folder).await?.start_ready().await
}

/// Starts an agent as [`start`] does, and sets the status of the Deployment as its controller would. The files are in a
/// folder of the cluster.
pub async fn run(control_plane: &ControlPlane, name: &'static str, folder: &Path) -> anyhow::Result<Agent> {
    let agent = start(control_plane, name, &folder.join(control_plane.name())).await?;
    let deployments: Api<Deployment> = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
    let status = json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2,
                                   "observedGeneration": 1}});
    deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(agent)
}

/// Returns the arguments, environment, files and service account of the Deployment of an agent in [`FLEET_SYSTEM`].
/// `folder` is for the files.
pub async fn settings(control_plane: &ControlPlane, name: &'static str, folder: &Path) -> anyhow::Result<AgentSpec> {
    let deployments: Api<Deployment> = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
    let template = deployments.get(name).await?.spec.template;
    let pod = template.spec.context("a template has a spec")?;
    let account = pod.service_account_name.as_deref().context("the pods have an account")?;
    let user = format!("{SERVICE_ACCOUNT}{FLEET_SYSTEM}:{account}");
    // In a pod, the agent reads the credentials of its service account from files. Here the agent gets a kubeconfig
    // instead.
    let mut spec = AgentSpec::new(name, name).flag("--kubeconfig", control_plane.kubeconfig(&user).await?);
    let [container] = &pod.containers[..] else { bail!("one container") };
    for argument in container.args.iter().flatten() {
        let (flag, value) = argument.split_once('=').context("flags have values")?;
        let value = if value.starts_with(":80") { "127.0.0.1:0" } else { value };
        spec = spec.flag(flag, value);
    }
    mount(control_plane, &pod, folder).await?;
    for variable in container.env.iter().flatten() {
        let value = value_of(control_plane, variable).await.with_context(|| variable.name.clone())?;
        let mounts = container.volume_mounts.iter().flatten();
        let mounted = mounts.into_iter().any(|mount| value.starts_with(&format!("{}/", mount.mount_path)));
        let value = if mounted { format!("{}{value}", folder.display()) } else { value };
        spec = spec.variable(&variable.name, value);
    }
    Ok(spec)
}

/// Writes the files that the pod would mount. `folder` replaces the root folder of the container.
async fn mount(control_plane: &ControlPlane, pod: &PodSpec, folder: &Path) -> anyhow::Result<()> {
    let mounts = pod.containers.iter().flat_map(|container| container.volume_mounts.iter().flatten());
    for mount in mounts {
        let volume = pod.volumes.iter().flatten().find(|volume| volume.name == mount.name);
        let secret = volume.and_then(|volume| volume.secret.as_ref()).context("all volumes are Secrets")?;
        let at = folder.join(mount.mount_path.trim_start_matches('/'));
        fs::create_dir_all(&at)?;
        for item in secret.items.iter().flatten() {
            let name = secret.secret_name.as_deref().context("a Secret has a name")?;
            fs::write(at.join(&item.path), key(control_plane, name, &item.key).await?)?;
        }
    }
    Ok(())
}

async fn value_of(control_plane: &ControlPlane, variable: &EnvVar) -> anyhow::Result<String> {
    if let Some(value) = &variable.value {
        return Ok(value.clone());
    }
    let source = variable.value_from.as_ref().context("it has a value, or a source of one")?;
    if source.field_ref.as_ref().is_some_and(|field| field.field_path == "metadata.uid") {
        return Ok(Uuid::new_v4().to_string()); // no pod has this process
    }
    let source =
        source.secret_key_ref.as_ref().context("it has a value, the UID of the pod or the value of a Secret")?;
    key(control_plane, &source.name, &source.key).await
}

async fn key(control_plane: &ControlPlane, secret: &str, key: &str) -> anyhow::Result<String> {
    let secrets: Api<Secret> = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
    let data = secrets.get(secret).await?.data.unwrap_or_default();
    let value = data.get(key).with_context(|| format!("the Secret {secret} has no key {key}"))?;
    Ok(String::from_utf8(value.0.clone())?)
}
