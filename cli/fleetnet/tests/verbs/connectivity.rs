//! Tests of `fleetnet test connectivity` in the sandbox. Its pods run nothing and have no logs.

use crate::fleet::Fleet;
use crate::program::{Ended, run_with};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

/// Time limit of what takes seconds. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

async fn connectivity(flags: &[String], more: &[&str]) -> Ended {
    run_with(&["test", "connectivity"], flags, more).await
}

/// Waits until a member has pods of the command, or none.
async fn pods(fleet: &Fleet, member: &str, are_gone: bool) {
    let pods: Api<Pod> = Api::namespaced(fleet.client(member).await, "work");
    let selection = ListParams::default().labels("app.kubernetes.io/name=fleetnet-connectivity");
    let seen = async {
        while pods.list(&selection).await.unwrap().items.is_empty() != are_gone {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, seen).await.unwrap_or_else(|_| panic!("waited for pods in {member}, gone: {are_gone}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_without_results_are_not_known_and_deleted_also_after_a_signal() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let to = ["work/app", "--to", "member-2", "--timeout=1s"];
    let ended = connectivity(&flags, &[&to[..], &["-o", "json"]].concat()).await.expect(3).json("Connectivity");
    let results = ended["pairs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|it| it["outcome"] == "notTested"), "{ended}");
    assert!(results[0]["detail"].as_str().unwrap().contains("no result within 1s"), "{ended}");
    assert_eq!((&ended["verdict"], ended["pairs"].as_array().unwrap().len()), (&"notKnown".into(), 2), "{ended}");
    pods(&fleet, "member-2", true).await;
    let text = connectivity(&flags, &to).await.expect(3).output;
    assert!(text.starts_with("work/app: member-1 → member-2: not known\n  by address  "), "{text}");
    pods(&fleet, "member-2", true).await;

    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.args(["test", "connectivity", "--to", "member-2"]).args(&flags).env_clear();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let child = child.unwrap();
    pods(&fleet, "member-2", false).await;
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = timeout(LIMIT, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("not tested: interrupted"), "{output:?}");
    pods(&fleet, "member-2", true).await;

    let missing = connectivity(&flags, &["work/other"]).await.expect(3).output;
    assert!(missing.contains("nobody → nobody: not known"), "{missing}");
    let here = connectivity(&flags, &["work/app", "--from-here", "--to", "member-1", "-o", "json"]).await;
    let here = here.json("Connectivity");
    assert!(here["pairs"][0]["results"].as_array().unwrap().iter().all(|it| it["by"] != "name"), "{here}");
    connectivity(&flags, &["work/app", "--to", "nobody"]).await.expect(2);
    connectivity(&flags, &["work/app", "--from-here", "--image", "a"]).await.expect(2);
    fleet.end().await;
}
