//! Pods live and end as under a kubelet.

use anyhow::{Context as _, ensure};
use harness::eventually;
use harness::kubectl::Kubectl;
use harness::user::User;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::DeleteParams;
use packets::{Fleet, Settings, workload};
use serde_json::{Value, json};

/// Namespace of the pods.
const NAMESPACE: &str = "pods";

/// Starts a member without the agents. Returns it with a user.
async fn member() -> anyhow::Result<(Fleet, User)> {
    let fleet = Fleet::start(Settings { nodes: vec![1], ..Settings::default() }).await?;
    fleet.servers.members[0].control_plane.create_namespace(NAMESPACE).await?;
    let user = fleet.user(0, NAMESPACE);
    Ok((fleet, user))
}

/// Returns a pod with a shell that runs a script.
fn shell(name: &str, script: &str, more: &Value) -> Value {
    let container = json!({"name": "shell", "image": "shell", "command": ["sh", "-c", script]});
    let container = workload::with(container, more);
    json!({"metadata": {"name": name}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 60}})
}

async fn sees(
    user: &User,
    name: &str,
    what: &str,
    condition: impl Fn(&ContainerStatus) -> bool,
) -> anyhow::Result<Pod> {
    let holds = |pod: &Pod| {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        statuses.take(1).any(&condition)
    };
    eventually::object(&user.api::<Pod>(), name, &format!("{name} {what}"), holds).await
}

#[test]
fn pods_run_commands_end_with_their_hooks_and_start_again() -> anyhow::Result<()> {
    packets::inside(async || {
        let (fleet, user) = member().await?;
        let run = async { commands(&fleet, &user).await.context("commands in a pod") };
        let end = async { hook(&user).await.context("the end of a pod") };
        let again = async { restart_and_probe(&user).await.context("a container that ends") };
        futures::try_join!(run, end, again).map(drop)
    })
}

/// Runs commands in a pod, and reads its output.
async fn commands(fleet: &Fleet, user: &User) -> anyhow::Result<()> {
    let script = "echo hello; trap 'exit 0' TERM; while :; do sleep 0.1; done";
    user.create::<Pod>(shell("talks", script, &json!({"env": [{"name": "COLOUR", "value": "blue"}]}))).await?;
    sees(user, "talks", "to be ready", |status| status.ready).await?;
    let kubectl = Kubectl::with(fleet.servers.members[0].control_plane.admin_kubeconfig()?).await?;
    let logs = kubectl.print(&format!("logs -n {NAMESPACE} talks")).await?;
    ensure!(logs.trim() == "hello", "{logs:?}");
    let shown = kubectl.print(&format!("exec -n {NAMESPACE} talks -- env")).await?;
    ensure!(shown.contains("COLOUR=blue"), "{shown}");
    let resolver = kubectl.print(&format!("exec -n {NAMESPACE} talks -- cat /etc/resolv.conf")).await?;
    ensure!(resolver.contains("nameserver 10.96.0.10"), "{resolver}");
    Ok(())
}

/// Deletes a pod. It runs its hook, and then gets SIGTERM.
async fn hook(user: &User) -> anyhow::Result<()> {
    // The exit code shows that the hook ran before SIGTERM.
    let script = "trap 'test -e /tmp/hook && exit 7' TERM; mount -t tmpfs none /tmp; touch /tmp/ready
        while :; do sleep 0.1; done";
    let more = json!({
        "lifecycle": {"preStop": {"exec": {"command": ["touch", "/tmp/hook"]}}},
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1},
    });
    let mut pod = shell("ends", script, &more);
    pod["metadata"]["finalizers"] = json!(["fleetnet.example/keeps"]);
    user.create::<Pod>(pod).await?;
    sees(user, "ends", "to be ready", |status| status.ready).await?;
    user.api::<Pod>().delete("ends", &DeleteParams::default()).await?;
    let code = |status: &ContainerStatus| status.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code);
    let pod = sees(user, "ends", "to end", |status| code(status).is_some()).await?;
    let status = pod.status.and_then(|status| status.container_statuses).context("statuses")?;
    ensure!(code(&status[0]) == Some(7), "{status:?}");
    user.merge::<Pod>("ends", json!({"metadata": {"finalizers": null}})).await?;
    eventually::gone(&user.api::<Pod>(), "ends").await
}

/// Starts a pod whose probe fails later, and one whose container ends.
async fn restart_and_probe(user: &User) -> anyhow::Result<()> {
    let script = "mount -t tmpfs none /tmp; touch /tmp/ready; sleep 3; rm /tmp/ready; exec sleep 1000";
    let probe = json!({"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1});
    user.create::<Pod>(shell("probed", script, &json!({"readinessProbe": probe}))).await?;
    sees(user, "probed", "to be ready", |status| status.ready).await?;
    user.create::<Pod>(shell("again", "exit 3", &json!({}))).await?;
    let ended = |status: &ContainerStatus| status.last_state.as_ref()?.terminated.as_ref().map(|it| it.exit_code);
    sees(user, "again", "to start again", |status| status.restart_count > 0 && ended(status) == Some(3)).await?;
    sees(user, "probed", "not to be ready any more", |status| !status.ready).await.map(drop)
}
