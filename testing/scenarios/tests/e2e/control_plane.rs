//! Tests of the harness's control planes: they count writes exactly and leave nothing behind.

use anyhow::Context as _;
use futures::future::try_join_all;
use harness::control_plane::{ControlPlane, Options, shared};
use harness::eventually::{self, Deadline};
use harness::turn::Turn;
use harness::{binaries, limits, run};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object
}

#[test]
fn the_ledger_counts_100_patches_by_user_exactly() -> anyhow::Result<()> {
    run(async {
        let control_plane = shared().await?;
        allow_all(control_plane, &["alice", "bob"]).await?;
        control_plane.create_namespace("audited").await?;
        let admin: Api<ConfigMap> = Api::namespaced(control_plane.admin(), "audited");
        admin.create(&PostParams::default(), &config_map("counted")).await?;

        let mark = control_plane.audit().mark().await?;
        let alice = patch_100_times(control_plane, "alice");
        let bob = patch_100_times(control_plane, "bob");
        futures::future::try_join(alice, bob).await?;
        let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"stale": "yes"}});
        let failure = admin.patch("counted", &PatchParams::default(), &Patch::Merge(stale)).await;
        assert!(matches!(&failure, Err(kube::Error::Api(status)) if status.code == 409), "{failure:?}");
        let ledger = control_plane.audit().since(mark).await?;

        assert_eq!(
            ledger.filter(|entry| entry.resource == "configmaps" && entry.namespace == "audited").to_string(),
            concat!(
                "    1 patch configmaps in audited by admin: 409\n",
                "  100 patch configmaps in audited by alice\n",
                "  100 patch configmaps in audited by bob\n",
            )
        );
        let nothing = control_plane.audit().since(control_plane.audit().mark().await?).await?;
        assert_eq!(nothing.of_user("alice").count(), 0);
        Ok(())
    })
}

async fn patch_100_times(control_plane: &ControlPlane, user: &str) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(control_plane.access(user).await?.client().await?, "audited");
    let patches = (0..100).map(|number| {
        let patch = Patch::Merge(json!({"data": {user: format!("{number}")}}));
        let api = &api;
        async move { api.patch("counted", &PatchParams::default(), &patch).await }
    });
    try_join_all(patches).await.map(drop).context("a patch was refused")
}

async fn allow_all(control_plane: &ControlPlane, users: &[&str]) -> anyhow::Result<()> {
    use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
    let subjects: Vec<_> = users
        .iter()
        .map(|user| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}))
        .collect();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "allow-all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": subjects,
    }))?;
    Api::all(control_plane.admin()).create(&PostParams::default(), &binding).await?;
    Ok(())
}

#[test]
fn a_control_plane_that_is_ended_leaves_nothing() -> anyhow::Result<()> {
    run(async {
        let _turn = Turn::with_own_servers().await;
        let control_plane = ControlPlane::start(Options { name: "ended".to_owned(), ..Options::default() }).await?;
        let (pids, folder) = (control_plane.pids(), control_plane.folder().to_path_buf());
        assert_eq!(pids.iter().filter(|pid| alive(**pid)).count(), 4, "etcd, kube-apiserver and a supervisor for each");
        assert!(folder.join("audit.log").is_file());
        control_plane.end().await?;
        assert_eq!(pids.iter().filter(|pid| alive(**pid)).count(), 0);
        assert!(!folder.exists());
        Ok(())
    })
}

#[test]
fn a_test_that_is_killed_leaves_neither_processes_nor_files() -> anyhow::Result<()> {
    run(async {
        let _turn = Turn::with_own_servers().await;
        let program = binaries::find("fleetnet-control-plane").await?;
        let mut holder =
            Command::new(program).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = holder.stdout.take().context("a pipe that was asked for")?;
        let printed =
            tokio::time::timeout(limits::CONTROL_PLANE_START, BufReader::new(output).lines().next_line()).await??;
        let printed: serde_json::Value = serde_json::from_str(&printed.context("it ended without a word")?)?;
        let pids: Vec<i32> = serde_json::from_value(printed["pids"].clone())?;
        let folder = PathBuf::from(printed["folder"].as_str().context("a folder")?);
        assert_eq!(pids.iter().filter(|pid| alive(**pid)).count(), 4, "etcd, kube-apiserver and a supervisor for each");
        let kubeconfig = Path::new(printed["kubeconfig"].as_str().context("a kubeconfig")?);
        assert!(kubeconfig.starts_with(&folder) && kubeconfig.is_file(), "{}", kubeconfig.display());

        holder.kill().await?;

        let deadline = Deadline::start();
        while folder.exists() || pids.iter().any(|pid| alive(*pid)) {
            let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
            deadline.pause(|| format!("left behind: {left:?} {}", folder.display())).await?;
        }
        Ok(())
    })
}

#[test]
fn a_wait_that_times_out_shows_the_last_state() -> anyhow::Result<()> {
    run(async {
        let api: Api<Namespace> = Api::all(shared().await?.admin());
        let selection = WatchParams::default().fields("metadata.name=default");
        let (mut limit, mut is_seen) = (Duration::from_millis(500), false);
        // Repeat if the time limit passed before the first watch event, because the message then shows no state.
        let message = loop {
            let see = |_: &_| {
                is_seen = true;
                false
            };
            let waited = eventually::objects_within(limit, &api, &selection, "a green namespace", see).await;
            if is_seen {
                break waited.err().context("no error")?.to_string();
            }
            limit *= 2;
        };
        assert!(message.contains(&format!("waited {limit:?} for a green namespace")), "{message}");
        assert!(message.contains("\"kubernetes.io/metadata.name\": \"default\""), "{message}");
        Ok(())
    })
}

/// True if a process runs. False for a zombie: it has ended, but its parent has not yet collected the exit status.
fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state != Some('Z')
}
