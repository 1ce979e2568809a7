//! Tests of `fleetnet version` and `fleetnet completion`, and of contexts that do not exist or do not answer.

use crate::hub::{Cluster, folder};
use crate::program::run;
use std::net::{Ipv4Addr, TcpListener};
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_this_program_needs_no_cluster() {
    let ended = run(["version", "--client", "-o", "name"]).await.expect(0);
    assert_eq!(ended.output, format!("fleetnet/{}\n", env!("CARGO_PKG_VERSION")));
    let ended = run(["version"]).await.expect(0);
    assert_eq!((ended.output.lines().count(), ended.errors.as_str()), (2, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_a_reached_hub_is_shown_in_each_format() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let kubeconfig = hub.kubeconfig.to_str().unwrap();
    for format in ["table", "wide", "json", "yaml", "name"] {
        let ended = run(["version", "--kubeconfig", kubeconfig, "-o", format]).await.expect(0);
        assert!(ended.output.contains("kube-apiserver") && ended.errors.is_empty(), "{ended:?}");
    }
    let json = run(["version", "--kubeconfig", kubeconfig, "-o", "json"]).await.json("Versions");
    assert_eq!(json["versions"][1]["cluster"], "admin@hub");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_does_not_exist_is_a_usage_error_that_names_the_contexts() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let kubeconfig = hub.kubeconfig.to_str().unwrap();
    for format in ["table", "json", "yaml", "name"] {
        let ended = run(["version", "--kubeconfig", kubeconfig, "--hub-context", "east", "-o", format]).await.expect(2);
        assert!(ended.errors.contains("context east: NoContext: ") && ended.errors.contains("admin@hub"), "{ended:?}");
    }
    let ended = run(["version", "--kubeconfig", "/does/not/exist"]).await.expect(2);
    assert!(ended.errors.contains("/does/not/exist") && ended.errors.contains("No such file"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_named_with_url_host_port_and_class() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let config = std::fs::read_to_string(&hub.kubeconfig).unwrap();
    // The first port has no listener, the second one accepts and never answers, the third one speaks no TLS.
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = (silent.local_addr().unwrap().port(), silent).0;
    let plain = Cluster::with_tokens(folder.path()).await;
    let plain = plain.url.trim_start_matches("http://127.0.0.1:").parse().unwrap();
    for (port, class, exit) in [(free, "TCP", 3), (silent, "TCP", 3), (plain, "TLS", 3)] {
        let path = folder.path().join(port.to_string());
        std::fs::write(&path, config.replace(&hub.url, &format!("https://127.0.0.1:{port}"))).unwrap();
        let ended =
            run(["version", "--kubeconfig", path.to_str().unwrap(), "--request-timeout", "2s"]).await.expect(exit);
        let expected = format!("context admin@hub (https://127.0.0.1:{port}/, host 127.0.0.1, port {port}): {class}: ");
        assert!(ended.errors.contains(&expected), "{expected}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_command_lines_are_usage_errors() {
    let long = format!("join {}", "a".repeat(51));
    for line in [
        "statu",
        "explain",
        "explain app",
        "explain W/app",
        "status --wait=x",
        "latency --quantile 2",
        "latency --quantile 0.5,2",
        "services work/app -A",
        // These views have no notices.
        "status --strict",
        "services --strict",
        "latency --strict",
        "join",
        "join West",
        "join west.east",
        &long,
        "join west --wait",
        "join west --overwrite",
        "join west --apply --print hub",
        "join west --token-ttl 1s",
        "join west --hub-server hub",
        "join west --context a --context b",
        "leave",
        "leave West",
        "leave west --force --context a",
        "leave west --wait=0s",
        "leave west --context a --context b --yes",
        "rotate",
        "rotate West",
        "rotate west --hub-only --context a",
        "rotate west --token-ttl 1s",
        "rotate west --context a --context b",
        "migrate check",
        "migrate check --to rust",
        "migrate to-go",
        "migrate to-go West",
        "migrate to-go west --hub",
    ] {
        let ended = run(line.split_whitespace()).await.expect(2);
        assert!(ended.output.is_empty() && ended.errors.starts_with("error: "), "{line}: {ended:?}");
    }
    // Without a command, the help is shown.
    for line in ["", "migrate"] {
        let ended = run(line.split_whitespace()).await.expect(2);
        assert!(ended.output.is_empty() && ended.errors.contains("Usage: fleetnet "), "{line}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completion_prints_a_script_for_each_shell() {
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef fleetnet"), ("fish", "complete -c fleetnet")] {
        let ended = run(["completion", shell]).await.expect(0);
        assert!(ended.output.contains(word) && ended.output.contains("join"), "{ended:?}");
    }
    run(["completion", "tcsh"]).await.expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_completes_commands_flags_and_values_with_the_script_for_kubectl() {
    let folder = folder();
    let script = folder.path().join("kubectl_complete-fleetnet");
    programs::write_script(&script, &run(["completion", "kubectl"]).await.expect(0).output).unwrap();
    // kubectl passes the words after `kubectl fleetnet`. The last one is to be completed.
    for (words, expected) in [
        (&["stat"][..], "status\n:4\n"),
        (&["serv"], "services\n:4\n"),
        (&["join", "west", "--hub-is"], "--hub-is-member\n:4\n"),
        (&["status", "-o", "ya"], "yaml\n:4\n"),
        (&["completion", "kube"], "kubectl\n:4\n"),
        (&["nonsense"], ":4\n"),
    ] {
        let output = Command::new(&script).args(words).output().await.unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((out.as_str(), err.as_str()), (expected, ""), "{words:?}");
    }
    let all = Command::new(&script).arg("").output().await.unwrap().stdout;
    let all = String::from_utf8(all).unwrap();
    assert!(["explain\n", "join\n", "version\n"].iter().all(|command| all.contains(command)), "{all}");
}
