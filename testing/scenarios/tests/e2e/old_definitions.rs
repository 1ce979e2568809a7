//! Test of agents on real API servers with the CRD of MemberAgent of the previous release.

use anyhow::{Context as _, bail, ensure};
use fleetnet_api::crd::MemberAgent;
use harness::audit::Entry;
use harness::eventually::{self, Deadline};
use harness::fleet::manifests;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec, OnProcesses};
use scenarios::marker::Marker;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const FLEET: FleetSpec = FleetSpec::of(2).with_grace(Duration::from_millis(1));

const MEMBER_AGENTS: &str = "memberagents.networking.fleet.azure.com";
/// Interval between two renewals of a MemberAgent by its member agent.
const RENEWAL: Duration = Duration::from_secs(10);

/// Returns the names of the fields of `spec` and `status` in a CRD of MemberAgent.
fn fields(definition: &CustomResourceDefinition) -> anyhow::Result<BTreeSet<String>> {
    let schema = serde_json::to_value(&definition.spec.versions[0].schema)?;
    let mut fields = BTreeSet::new();
    for part in ["spec", "status"] {
        let properties = &schema["openAPIV3Schema"]["properties"][part]["properties"];
        let properties = properties.as_object().with_context(|| format!("{part} has fields"))?;
        fields.extend(properties.keys().map(|field| format!("{part}.{field}")));
    }
    Ok(fields)
}

fn previous_member_agents() -> anyhow::Result<CustomResourceDefinition> {
    let [previous] = &manifests::objects(manifests::PREVIOUS_MEMBER_AGENTS)?[..] else { bail!("one definition") };
    Ok(serde_json::from_value(serde_json::to_value(previous)?)?)
}

/// Waits for this many writes to the MemberAgent of each member from now on. Returns, for each member, the time from
/// the first to the last of these writes.
async fn writes(env: &Environment<OnProcesses>, number: usize) -> anyhow::Result<Vec<Duration>> {
    let audit = env.backend.hub_audit();
    let mark = audit.mark().await?;
    let mut spans = Vec::new();
    for member in &env.members {
        let is_of_member = |entry: &Entry| entry.is_heartbeat() && entry.namespace == member.hub_namespace;
        let deadline = Deadline::start();
        loop {
            let times = audit.times(mark, is_of_member).await?;
            if let [first, .., last] = times.get(..number).unwrap_or_default() {
                spans.push(last.duration_since(*first).try_into()?);
                break;
            }
            let come = times.len();
            deadline.pause(|| format!("{come} of {number} writes in {}", member.hub_namespace)).await?;
        }
    }
    Ok(spans)
}

#[test]
fn with_the_previous_definition_of_memberagent_no_pruned_field_causes_a_write() -> anyhow::Result<()> {
    harness::run(async {
        let backend = OnProcesses::with_own_servers(FLEET).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(backend.hub());
        let present = definitions.get(MEMBER_AGENTS).await?;
        let previous = previous_member_agents()?;
        let new: Vec<String> = fields(&present)?.difference(&fields(&previous)?).cloned().collect();
        // The code below refers to each new field. Extend this test when the list grows.
        let expected = [
            "spec.clusterUid",
            "spec.latency",
            "spec.leaderIdentity",
            "spec.properties",
            "spec.sliceStream",
            "status.silence",
            "status.silentMembers",
            "status.sliceStream",
        ];
        ensure!(new == expected, "{new:?} are new");
        definitions.delete(MEMBER_AGENTS, &DeleteParams::default()).await?;
        eventually::gone(&definitions, MEMBER_AGENTS).await?;
        definitions.create(&PostParams::default(), &previous).await?;
        eventually::usable(&backend.hub(), MEMBER_AGENTS).await?;

        let mut env = Environment::on(backend).await?;
        let mut marker = Marker::make(&env).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        for (index, member) in [0, 1].into_iter().zip(env.members.clone()) {
            let agents = env.hub::<MemberAgent>(&member.hub_namespace);
            let is_answered = |agent: &MemberAgent| agent.status.is_some();
            let agent = eventually::object(&agents, &member.cluster_id, "the hub's answer", is_answered).await?;
            ensure!(agent.spec.cluster_uid.is_none(), "spec.clusterUid is not pruned: {agent:?}");
            ensure!(agent.spec.leader_identity.is_none(), "spec.leaderIdentity is not pruned: {agent:?}");
            ensure!(agent.spec.properties.is_none(), "spec.properties is not pruned: {agent:?}");
            ensure!(agent.spec.latency.is_none(), "spec.latency is not pruned: {agent:?}");
            ensure!(agent.spec.slice_stream.is_none(), "spec.sliceStream is not pruned: {agent:?}");
            let silent = agent.status.as_ref().is_some_and(|it| it.silence.is_some() || it.silent_members.is_some());
            ensure!(!silent, "status.silence or status.silentMembers is not pruned: {agent:?}");
            let offered = agent.status.as_ref().is_some_and(|status| status.slice_stream.is_some());
            ensure!(!offered, "status.sliceStream is not pruned: {agent:?}");
            let metrics = env.backend.metrics(index).await?;
            let unchecked = "fleetnet_hindrances{kind=\"MemberAgent\",reason=\"ClusterIdNotChecked\"} 1";
            ensure!(metrics.contains(unchecked), "it is not said:\n{metrics}");
        }
        marker.is_settled(&env).await?;
        // Wait for the next renewal, after which the hub agent writes its final counts. From then on, the only writes
        // to a MemberAgent are renewals: four writes in 30 s. If a pruned field caused writes, four writes would take
        // less time.
        writes(&env, 2).await?;
        let spans = writes(&env, 4).await?;
        ensure!(spans.iter().all(|span| *span > RENEWAL * 2), "four writes in {spans:?}");

        // After the upgrade to the present CRD, the next renewal writes the new fields again.
        env.backend.stop_agent(AgentPlace::Member(1)).await?;
        roll_forward(&env.backend.hub(), &present).await?;
        let first = env.members[0].clone();
        let agents = env.hub::<MemberAgent>(&first.hub_namespace);
        let is_whole = |agent: &MemberAgent| agent.spec.cluster_uid.is_some() && agent.spec.leader_identity.is_some();
        eventually::object(&agents, &first.cluster_id, "the new fields", is_whole).await?;
        env.backend.start_agent(AgentPlace::Member(1)).await?;
        marker.is_settled(&env).await
    })
}

/// Replaces the spec of a CRD by a newer one.
async fn roll_forward(client: &Client, definition: &CustomResourceDefinition) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let spec = kube::api::Patch::Merge(json!({"spec": definition.spec}));
    definitions.patch(MEMBER_AGENTS, &kube::api::PatchParams::default(), &spec).await?;
    Ok(())
}
