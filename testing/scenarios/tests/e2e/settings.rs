//! Tests that a missing or malformed setting ends an agent with exit code 2. The agent prints one line that names the
//! setting.

use anyhow::Context as _;
use harness::{binaries, run};
use std::process::Stdio;

/// Environment variables for all cases. A case may add variables, or remove a variable with an empty value.
const MEMBER: [(&str, &str); 3] =
    [("MEMBER_CLUSTER_NAME", "member-1"), ("HUB_SERVER_URL", "https://127.0.0.1:1"), ("CONFIG_PATH", "/nowhere/token")];

async fn rejects(
    binary: &'static str,
    environment: &[(&str, &str)],
    arguments: &[&str],
    named: &str,
) -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new(binaries::find(binary).await?);
    command.env_clear().envs(environment.iter().copied()).args(arguments);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let command_line = || format!("{binary} {environment:?} {arguments:?}");
    let output =
        tokio::time::timeout(harness::limits::PROCESS, command.output()).await.with_context(command_line)??;
    let errors = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{}: {errors}", command_line());
    assert_eq!(errors.lines().count(), 1, "{}: {errors}", command_line());
    assert!(errors.contains(named), "{}: {named} is not in: {errors}", command_line());
    assert!(output.stdout.is_empty());
    Ok(())
}

/// Returns the name of a flag, which the message must contain.
fn name(flag: &str) -> &str {
    flag.split('=').next().unwrap_or_default()
}

#[test]
fn a_missing_or_malformed_setting_of_the_member_agent_is_named() -> anyhow::Result<()> {
    run(async {
        let without = |name: &str| MEMBER.into_iter().filter(|(known, _)| *known != name).collect::<Vec<_>>();
        for (name, _) in MEMBER {
            rejects("member-agent", &without(name), &[], name).await?;
        }
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, KUBECONFIG)?;
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        for (name, value, named) in [
            ("HUB_CERTIFICATE_AUTHORITY", "&", "HUB_CERTIFICATE_AUTHORITY"),
            ("HUB_KUBE_HEADER", "no header", "HUB_KUBE_HEADER"),
            ("HUB_KUBE_HEADER", "Authorization: Bearer x", "authorization"),
            ("MEMBER_CLUSTER_NAME", "Not_A_Name", "Not_A_Name"),
            ("HUB_SERVER_URL", "https://a b", "server URL"),
            ("HUB_SERVER_URL", "http://127.0.0.1:1", "--hub-insecure-http"),
        ] {
            let environment = [without(name), vec![(name, value)]].concat();
            rejects("member-agent", &environment, &[&kubeconfig], named).await?;
        }
        for flag in [
            "--hub-namespace=a b",
            "--fleet-system-namespace=a/b",
            "--leader-election-namespace=Fleet",
            "--metrics-bind-address=nonsense",
            "--controllers=exports",
            "--derived-service-grace=1",
            "--enable-v1alpha1-apis=true",
            "--no-such-flag",
        ] {
            rejects("member-agent", &MEMBER, &[flag, &kubeconfig], name(flag)).await?;
        }
        let go_only = ["--enable-traffic-manager-feature=true", &kubeconfig];
        rejects("member-agent", &MEMBER, &go_only, "member-net-controller-manager").await?;
        rejects("member-agent", &MEMBER, &["--kubeconfig=/nowhere/kubeconfig"], "/nowhere/kubeconfig").await
    })
}

#[test]
fn a_malformed_setting_of_the_hub_agent_is_named() -> anyhow::Result<()> {
    run(async {
        for flag in [
            "--health-probe-bind-address=:99999",
            "--force-delete-wait-time=soon",
            "--leader-election-lease-duration=1s",
            "--leader-election-namespace=a b",
        ] {
            rejects("hub-agent", &[], &[flag], name(flag)).await?;
        }
        rejects("hub-agent", &[], &["--enable-traffic-manager-feature"], "hub-net-controller-manager").await?;
        rejects("hub-agent", &[], &["--kubeconfig=/nowhere/kubeconfig"], "/nowhere/kubeconfig").await?;
        rejects("hub-agent", &[], &["--metrics-cert-path=/nowhere"], "--metrics-secure").await?;
        rejects("hub-agent", &[], &[], "no way to connect").await
    })
}

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: me, user: {token: x}}]
";
