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

#[test]
fn a_missing_or_malformed_setting_of_the_member_agent_is_named() -> anyhow::Result<()> {
    run(async {
        let without = |name: &str| MEMBER.into_iter().filter(|(known, _)| *known != name).collect::<Vec<_>>();
        rejects("member-agent", &without("MEMBER_CLUSTER_NAME"), &[], "MEMBER_CLUSTER_NAME").await?;
        rejects("member-agent", &without("HUB_SERVER_URL"), &[], "HUB_SERVER_URL").await?;
        rejects("member-agent", &without("CONFIG_PATH"), &[], "CONFIG_PATH").await?;
        let table = [
            (("HUB_CERTIFICATE_AUTHORITY", "&"), vec![], "HUB_CERTIFICATE_AUTHORITY"),
            (("HUB_KUBE_HEADER", "no header"), vec![], "HUB_KUBE_HEADER"),
            (("HUB_KUBE_HEADER", "Authorization: Bearer x"), vec![], "authorization"),
            (("MEMBER_CLUSTER_NAME", "Not_A_Name"), vec![], "Not_A_Name"),
            (("HUB_SERVER_URL", "https://a b"), vec!["--kubeconfig=KUBECONFIG"], "server URL"),
            (("HUB_SERVER_URL", "http://127.0.0.1:1"), vec!["--kubeconfig=KUBECONFIG"], "--hub-insecure-http"),
            (("X", ""), vec!["--hub-namespace=a b"], "--hub-namespace"),
            (("X", ""), vec!["--fleet-system-namespace=a/b"], "--fleet-system-namespace"),
            (("X", ""), vec!["--leader-election-namespace=Fleet"], "--leader-election-namespace"),
            (("X", ""), vec!["--metrics-bind-address=nonsense"], "--metrics-bind-address"),
            (("X", ""), vec!["--controllers=exports"], "--controllers"),
            (("X", ""), vec!["--derived-service-grace=1"], "--derived-service-grace"),
            (("X", ""), vec!["--enable-traffic-manager-feature=true"], "member-net-controller-manager"),
            (("X", ""), vec!["--enable-v1alpha1-apis=true"], "--enable-v1alpha1-apis"),
            (("X", ""), vec!["--kubeconfig=/nowhere/kubeconfig"], "/nowhere/kubeconfig"),
            (("X", ""), vec!["--no-such-flag"], "--no-such-flag"),
        ];
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, KUBECONFIG)?;
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        for ((name, value), arguments, named) in table {
            let mut environment = without(name);
            environment.push((name, value));
            let mut arguments: Vec<&str> = arguments
                .into_iter()
                .map(|it| if it == "--kubeconfig=KUBECONFIG" { &kubeconfig } else { it })
                .collect();
            if !arguments.iter().any(|argument| argument.starts_with("--kubeconfig")) {
                arguments.push(&kubeconfig);
            }
            rejects("member-agent", &environment, &arguments, named).await?;
        }
        Ok(())
    })
}

#[test]
fn a_malformed_setting_of_the_hub_agent_is_named() -> anyhow::Result<()> {
    run(async {
        let table = [
            ("--enable-traffic-manager-feature", "hub-net-controller-manager"),
            ("--health-probe-bind-address=:99999", "--health-probe-bind-address"),
            ("--force-delete-wait-time=soon", "--force-delete-wait-time"),
            ("--leader-election-lease-duration=1s", "--leader-election-lease-duration"),
            ("--leader-election-namespace=a b", "--leader-election-namespace"),
            ("--kubeconfig=/nowhere/kubeconfig", "/nowhere/kubeconfig"),
            ("--metrics-cert-path=/nowhere", "--metrics-secure"),
        ];
        for (argument, named) in table {
            rejects("hub-agent", &[], &[argument], named).await?;
        }
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
