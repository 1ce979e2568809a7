//! Tests of the rules of the fleet on real API servers, with agents in separate processes.

use anyhow::{Context as _, ensure};
use harness::kubectl::Kubectl;
use harness::user::Consume;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use regex::Regex;
use scenarios::announced::sees_shares;
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec, OnProcesses};
use scenarios::{announced, carried, conflicts, deletion, trust};

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnProcesses>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    harness::run(async { scenario(Environment::create(spec).await?).await })
}

#[test]
fn a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts,
    )
}

#[test]
fn fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement,
    )
}

#[test]
fn fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement,
    )
}

#[test]
fn a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), announced::a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn)
}

#[test]
fn all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), carried::all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes)
}

#[test]
fn a_headless_service_arrives_headless_where_its_export_asks_for_it() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), carried::a_headless_service_arrives_headless_where_its_export_asks_for_it)
}

#[test]
fn a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        conflicts::a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it,
    )
}

#[test]
fn a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::WITHOUT_GRACE,
        deletion::a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports,
    )
}

#[test]
fn a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports)
}

#[test]
fn a_namespace_deleted_in_the_hub_removes_nothing_in_the_members() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_namespace_deleted_in_the_hub_removes_nothing_in_the_members)
}

#[test]
fn an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::WITHOUT_GRACE,
        deletion::an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports,
    )
}

#[test]
fn an_importing_members_namespace_deleted_in_the_hub_is_removed() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::an_importing_members_namespace_deleted_in_the_hub_is_removed)
}

#[test]
fn a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion)
}

#[test]
fn a_service_export_is_removed_with_any_propagation_of_its_deletion() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_service_export_is_removed_with_any_propagation_of_its_deletion)
}

#[test]
fn a_deleted_service_is_removed_with_its_slices_and_their_exports() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_deleted_service_is_removed_with_its_slices_and_their_exports)
}

#[test]
fn a_service_import_without_its_owner_is_garbage_collected_and_created_again() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_service_import_without_its_owner_is_garbage_collected_and_created_again)
}

#[test]
fn an_exporter_that_is_not_allowed_exports_nothing_and_is_notified() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::an_exporter_that_is_not_allowed_exports_nothing_and_is_notified)
}

#[test]
fn an_importer_that_is_not_allowed_imports_nothing_and_is_notified() -> anyhow::Result<()> {
    run_scenario(FleetSpec::WITHOUT_GRACE, trust::an_importer_that_is_not_allowed_imports_nothing_and_is_notified)
}

#[test]
fn addresses_outside_the_declared_ranges_are_not_imported_and_are_reported() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2).with_source_ranges("10.1.0.0/16,fd00:1::/32"),
        trust::addresses_outside_the_declared_ranges_are_not_imported_and_are_reported,
    )
}

#[test]
fn addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported)
}

#[test]
fn objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing)
}

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
