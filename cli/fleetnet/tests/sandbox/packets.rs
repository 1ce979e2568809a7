//! Test of the option `--packets`. It needs root and nftables; without them, it is reported as not run.

use super::browser::Browser;
use super::page::messages;
use super::{Running, text};
use programs::control_plane::{Program, locate};
use rustix::process::Signal;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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
    assert_eq!(traffic["exporters"], json!(["member-1", "member-2"]), "{traffic}");
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
    assert_eq!((&rollout["cluster"], &rollout["lost_by_kind"]), (&"member-1".into(), &json!({})));
    for cluster in ["member-1", "member-2"] {
        assert!(rollout["answers_by_cluster"][cluster].as_u64() > Some(0), "{rollout}");
    }
    let output = sandbox.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!folder.exists(), "the kubeconfigs are left behind");
}

#[test]
fn the_page_shows_the_fleet_and_the_requests() {
    let name = "the_page_shows_the_fleet_and_the_requests";
    if !packets::can_run(name, &[]).unwrap() {
        return;
    }
    packets::again().unwrap();
    let browser = Browser::start();
    let mut sandbox = Running::start(&["--packets", "--json", "--requests-per-second", "50"]);
    let page = until_event(&mut sandbox, "page");
    let url = page["url"].as_str().unwrap();
    until_event(&mut sandbox, "traffic");

    // Each message has the documents that changed.
    let (mut fleet, mut sent, mut answers) = (Map::new(), 0, BTreeMap::new());
    let is_ready = |fleet: &Map<String, Value>| fleet["services"]["services"][0]["state"] == "Ready";
    for (name, mut data) in messages(url) {
        match name.as_str() {
            "fleet" => fleet.append(data.as_object_mut().unwrap()),
            "requests" => {
                sent += data["sent"].as_u64().unwrap();
                for (cluster, number) in data["answersByCluster"].as_object().unwrap() {
                    *answers.entry(cluster.clone()).or_insert(0) += number.as_u64().unwrap();
                }
            }
            _ => {}
        }
        if !fleet.is_empty() && is_ready(&fleet) && sent > 0 && answers.values().all(|number| *number > 0) {
            break;
        }
    }
    let clusters: Vec<&str> = answers.keys().map(String::as_str).collect();
    assert_eq!(clusters, ["member-1", "member-2"]);
    assert!(answers.values().sum::<u64>() <= sent, "{answers:?} of {sent}");
    let expected = json!({
        "service": "work/app", "exporters": ["member-1", "member-2"], "importer": "member-3", "client": "work/client",
        "requestsPerSecond": 50,
    });
    assert_eq!(fleet["traffic"], expected);
    assert_eq!(fleet["services"]["services"][0]["exporters"], expected["exporters"], "{fleet:#?}");
    assert_eq!(fleet["status"]["verdict"], "healthy", "{fleet:#?}");
    browser.run(&json!({"test": "requests", "url": url, "clusters": clusters}));
    assert_eq!(sandbox.end(Signal::INT), (Some(0), String::new()));
}
