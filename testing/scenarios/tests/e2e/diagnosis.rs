//! Tests of the diagnosis on real API servers: the header `Date`, `metadata.managedFields` and SubjectAccessReviews,
//! which memkube does not have or answers in another way.

use anyhow::{Context as _, ensure};
use diagnosis::agents::AgentNamespaces;
use diagnosis::explain::Filter;
use diagnosis::read::{Limits, Scope, Target, read};
use diagnosis::report::{Explanation, MemberState, Verdict};
use diagnosis::snapshot::Listing;
use diagnosis::{Code, Snapshot, explain, status};
use fleetnet_api::crd::ServiceExport;
use fleetnet_api::names::annotations::WEIGHT;
use fleetnet_types::ObjectName;
use harness::eventually::Deadline;
use harness::kubectl::Kubectl;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::DeleteParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use scenarios::environment::{Backend as _, Environment, FleetSpec, OnProcesses};
use serde_json::json;

fn target(context: &str, client: Client) -> Target {
    let (context, server_url) = (Some(context.to_owned()), String::new());
    Target { context, server_url, authority: None, proxy: None, client: Ok(client) }
}

async fn snapshot(env: &Environment<OnProcesses>) -> Snapshot {
    let members = env.members.iter().map(|it| (it.cluster_id.clone(), target(&it.cluster_id, it.client.clone())));
    let scope = Scope::Service(ObjectName::new(env.namespace.as_str(), "app"));
    let agents = AgentNamespaces::default();
    read(Some(&target("hub", env.backend.hub())), &members.collect(), &agents, &scope, Limits::default()).await
}

fn explained(env: &Environment<OnProcesses>, snapshot: &Snapshot) -> Explanation {
    explain(snapshot, &ObjectName::new(env.namespace.as_str(), "app"), &Filter::default())
}

#[test]
fn a_healthy_fleet_gives_no_code_and_the_hub_shows_heartbeats_and_clocks() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1", "10.1.0.2"]).await?;
        let snapshot = snapshot(&env).await;
        let explanation = explained(&env, &snapshot);
        let is_healthy = explanation.verdict == Verdict::Healthy && explanation.notices.is_empty();
        ensure!(is_healthy, "{explanation:#?}");

        ensure!(snapshot.now().is_some(), "the hub sends its time");
        for member in &env.members {
            let status = status(&snapshot);
            let row =
                status.members.into_iter().find(|row| row.member == member.cluster_id).context("it is a member")?;
            // A heartbeat comes every 10 s. All clusters of the test have the same clock, but a heartbeat can be on its
            // way for as long as an agent waits for an answer.
            ensure!(row.state == MemberState::Ready && row.heard_seconds.is_some_and(|age| age <= 30), "{row:?}");
            ensure!((-10_000..=0).contains(&row.clock_milliseconds.context("the clock is known")?), "{row:?}");
            let rights = &snapshot.member(&member.cluster_id).context("it was read")?.missing_hub_rights;
            ensure!(*rights == Listing::of(Vec::new()), "{rights:?}");
        }
        Ok(())
    })
}

#[test]
fn the_command_in_the_evidence_shows_the_field_again() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let exporter = env.user(0);
        exporter.merge::<ServiceExport>("app", json!({"metadata": {"annotations": {WEIGHT: "many"}}})).await?;
        exporter.sees_export("app", "Valid", "False", "ServiceExportInvalidWeightAnnotation").await?;

        let kubeconfig = env.backend.member_kubeconfig(0)?;
        let context = Kubeconfig::read_from(&kubeconfig)?.current_context.context("it has a context")?;
        let mut snapshot = snapshot(&env).await;
        let member = snapshot.members.iter_mut().find(|member| member.id == env.members[0].cluster_id);
        member.context("it was read")?.connection.context = Some(context);
        let explanation = explained(&env, &snapshot);
        let cause = explanation.pairs[0].cause.as_ref().context("there is a cause")?;
        ensure!(cause.code == Code::FN305, "{cause:?}");
        let shown = Kubectl::with(kubeconfig).await?.script(&cause.evidence.command).await?;
        for part in ["kind: ServiceExport", "reason: ServiceExportInvalidWeightAnnotation", "weight: many"] {
            ensure!(shown.contains(part), "{} does not show {part}:\n{shown}", cause.evidence.command);
        }
        Ok(())
    })
}

#[test]
fn a_member_whose_role_in_the_hub_is_deleted_is_fn202() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let roles: Api<Role> = Api::namespaced(env.backend.hub(), &env.members[0].hub_namespace);
        roles.delete("fleetnet-member-agent", &DeleteParams::default()).await?;
        // The authorizer of the API server sees the deletion a moment later.
        let deadline = Deadline::start();
        loop {
            let explanation = explained(&env, &snapshot(&env).await);
            let cause = explanation.pairs[0].cause.as_ref();
            if cause.is_some_and(|cause| cause.code == Code::FN202) {
                return Ok(());
            }
            deadline.pause(|| format!("the cause is not FN202 but {cause:?}")).await?;
        }
    })
}
