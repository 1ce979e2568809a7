//! Tests of the rules of the fleet on real API servers, with agents in separate processes.

use anyhow::{Context as _, ensure};
use harness::kubectl::Kubectl;
use harness::user::Consume;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use regex::Regex;
use scenarios::announced::sees_shares;
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec, OnProcesses};

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnProcesses>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    harness::run(async { scenario(Environment::create(spec).await?).await })
}

scenarios::fleet_rule_tests!(run_scenario);

/// Returns a line of kubectl's table with `|` between its cells. The cells are aligned with the headline. A placeholder
/// replaces ages.
fn cells(headline: &str, line: &str) -> anyhow::Result<String> {
    let starts: Vec<usize> = Regex::new(r"\S+")?.find_iter(headline).map(|title| title.start()).collect();
    let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
    // This pattern matches the ages that kubectl prints, such as `119s`, `2m` and `2m1s`.
    let age = Regex::new(r"^(\d+[dhms]){1,2}$")?;
    let cell = |(start, end): (&usize, usize)| {
        let cell = line.get(*start..end.min(line.len())).unwrap_or_default().trim();
        if age.is_match(cell) { "<age>".to_owned() } else { cell.to_owned() }
    };
    Ok(starts.iter().zip(ends).map(cell).collect::<Vec<_>>().join("|"))
}

/// Rule U11: A user runs `kubectl get memberagents -A`
/// Then: `kubectl` shows each member with the versions of both agents, the time of the last heartbeat or planned stop,
/// and the numbers of exported and imported objects
#[test]
fn kubectl_shows_the_members_with_their_versions_and_counts() -> anyhow::Result<()> {
    harness::run(async {
        let mut env = Environment::<OnProcesses>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1", "10.1.0.2"]).await?;
        // Restart the member agents, because an agent renews its MemberAgent at its start. The hub agent updates the
        // counts in a MemberAgent only after such a renewal.
        for place in [AgentPlace::Member(0), AgentPlace::Member(1)] {
            env.backend.stop_agent(place).await?;
            env.backend.start_agent(place).await?;
        }
        sees_shares(&env, 0, [1, 1, 2, 0, 0]).await?;
        sees_shares(&env, 1, [0, 0, 0, 1, 1]).await?;
        env.backend.stop_agent(AgentPlace::Member(1)).await?;

        let kubectl = Kubectl::with(env.backend.hub_kubeconfig()?).await?;
        let table = kubectl.print("get memberagents -A -o wide").await?;
        let headline = table.lines().next().context("a table has a headline")?;
        let lines: Vec<String> = table.lines().map(|line| cells(headline, line)).collect::<anyhow::Result<_>>()?;
        let version = env!("CARGO_PKG_VERSION");
        let all = r#"["IPv6","DrainingEndpoints","EndpointDetails","Headless","SessionAffinity","SilentMembers"]"#;
        let mut clusters = Vec::new();
        for member in &env.members {
            let system = Api::<Namespace>::all(member.client.clone()).get("kube-system").await?;
            clusters.push(system.metadata.uid.context("a namespace has a UID")?);
        }
        let expected = [
            "NAMESPACE|NAME|VERSION|HUB-VERSION|RENEWED|STOPPED|SILENCE|EXPORTS|ENDPOINTS|IMPORTS|EXPORTED-SLICES|\
             IMPORTED-SLICES|SLICE-STREAM|UNDERSTANDS|CLUSTER-UID|AGE"
                .to_owned(),
            format!(
                "{}|{}|{version}|{version}|<age>|||1|2|0|1|0||{all}|{}|<age>",
                env.members[0].hub_namespace, env.members[0].cluster_id, clusters[0]
            ),
            format!(
                "{}|{}|{version}|{version}|<age>|<age>||0|0|1|0|1||{all}|{}|<age>",
                env.members[1].hub_namespace, env.members[1].cluster_id, clusters[1]
            ),
        ];
        ensure!(lines == expected, "{table}\nis {lines:#?}\nnot {expected:#?}");
        Ok(())
    })
}

/// Returns the lines of tables that kubectl printed, without empty lines, in the form of [`cells`].
fn tables(printed: &str) -> anyhow::Result<Vec<String>> {
    let mut headline = "";
    let mut lines = Vec::new();
    for line in printed.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("NAME ") {
            headline = line;
        }
        lines.push(cells(headline, line)?);
    }
    Ok(lines)
}

#[test]
fn kubectl_shows_the_state_of_an_export_and_an_import() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(1)).await?;
        let (user, namespace) = (env.user(0), &env.namespace);
        user.export_new("app", &["10.1.0.1"]).await?;
        user.import("app", "app", Consume::ClusterIp).await?;
        user.sees("app", &["10.1.0.1"]).await?;
        user.sees_import("app", "True").await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        user.sees_event("ServiceExport", "NoConflictFound", "").await?;

        let kubectl = Kubectl::with(env.backend.member_kubeconfig(0)?).await?;
        let table = kubectl.print(&format!("get svcexport,mcs -n {namespace}")).await?;
        let import = format!("multiclusterservice.networking.fleet.azure.com/app|app|{namespace}-app||True|<age>");
        let expected = [
            "NAME|IS-VALID|IS-CONFLICTED|AGE",
            "serviceexport.networking.fleet.azure.com/app|True|False|<age>",
            "NAME|SERVICE-IMPORT|DERIVED-SERVICE|EXTERNAL-IP|IS-VALID|AGE",
            &import,
        ];
        let lines = tables(&table)?;
        ensure!(lines == expected, "{table}\nis {lines:#?}\nnot {expected:#?}");

        let yaml = kubectl.print(&format!("get svcexport,mcs -n {namespace} -o yaml")).await?;
        for reason in ["ServiceIsValid", "NoConflictFound", "FoundServiceImport"] {
            ensure!(yaml.contains(&format!("reason: {reason}")), "{reason} is not in:\n{yaml}");
        }
        let described = kubectl.print(&format!("describe svcexport app -n {namespace}")).await?;
        let (_, events) = described.split_once("\nEvents:").context("it describes Events")?;
        ensure!(events.contains("NoConflictFound"), "{described}");
        Ok(())
    })
}
