//! Test of the option `--packets`. It needs root and nftables; without them, it is reported as not run.

use super::{Running, text};
use programs::control_plane::{Program, locate};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Reads events of the sandbox until one of this kind. Returns it.
fn until_event(sandbox: &mut Running, kind: &str) -> Value {
    serde_json::from_str(&sandbox.until(&format!("\"event\":\"{kind}\""))).unwrap()
}

/// Runs kubectl with these words, outside of the sandbox's namespaces. Returns its output.
fn kubectl(words: &str, home: &Path) -> String {
    let invocation = locate(Program::Kubectl).unwrap();
    let mut command = Command::new(invocation.file);
    command.args(invocation.first_argument).args(words.split_whitespace()).env("HOME", home);
    let output = command.output().unwrap();
    assert!(output.status.success(), "kubectl {words}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

fn is_answer_of_an_exporter(answer: &str) -> bool {
    answer.starts_with("app-") && (answer.ends_with("@member-1") || answer.ends_with("@member-2"))
}

#[test]
fn a_rolling_update_loses_no_request_and_kubectl_exec_works_from_outside() {
    let name = "a_rolling_update_loses_no_request_and_kubectl_exec_works_from_outside";
    if !packets::can_run(name, &["curl"]).unwrap() {
        return;
    }
    // Builds what is missing before the time limit of the sandbox begins.
    packets::again().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    let arguments = ["--packets", "--once", "--json", "--requests-per-second", "50", "--kubeconfigs"];
    let mut sandbox = Running::start(&[&arguments[..], &[folder.to_str().unwrap()]].concat());

    let traffic = until_event(&mut sandbox, "traffic");
    assert_eq!(traffic["exporters"], serde_json::json!(["member-1", "member-2"]), "{traffic}");
    let command = traffic["command"].as_str().unwrap().strip_prefix("kubectl ").unwrap();
    let answer = kubectl(command, scratch.path());
    assert!(is_answer_of_an_exporter(&answer), "{answer}");
    let fleet = folder.join("fleet.kubeconfig");
    let pods = format!("--kubeconfig {} --context member-3 get pods -n work -o name", fleet.display());
    assert_eq!(kubectl(&pods, scratch.path()), "pod/client\n");
    let second = until_event(&mut sandbox, "requests");
    assert_eq!((&second["lost"], &second["lost_so_far"]), (&0.into(), &0.into()), "{second}");

    let rollout = until_event(&mut sandbox, "rollout");
    assert_eq!((&rollout["passed"], &rollout["lost"]), (&true.into(), &0.into()), "{rollout}");
    assert_eq!((&rollout["cluster"], &rollout["lost_by_kind"]), (&"member-1".into(), &serde_json::json!({})));
    for cluster in ["member-1", "member-2"] {
        assert!(rollout["answers_by_cluster"][cluster].as_u64() > Some(0), "{rollout}");
    }
    let output = sandbox.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!folder.exists(), "the kubeconfigs are left behind");
}
