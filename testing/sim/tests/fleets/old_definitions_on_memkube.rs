//! Tests of fleets that still have parts of the Go agents: CRDs without the fields of fleetnet, and writers that remove
//! unknown fields. In such a fleet, the agents work and settle.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::crds::{self, Form};
use futures::StreamExt as _;
use harness::audit::Ledger;
use harness::fleet::manifests;
use harness::user::Consume;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::core::{ApiResource, DynamicObject, WatchEvent};
use kube::{Api, Client};
use memkube::User;
use scenarios::actions::Action;
use scenarios::announced::member_agents;
use scenarios::carried::go_form_fields_of_a_rich_service_arrive;
use scenarios::environment::{AgentPlace, Backend as _, Environment};
use scenarios::rich;
use serde_json::Value;
use sim::{Fleet, Options};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Time in which all effects of an action happen, including the end of the grace period of the derived Service.
const DONE: Duration = Duration::from_secs(10);
/// Time for which the test counts heartbeats. The ledger waits for 5 s more, so the total is one minute.
const MINUTE: Duration = Duration::from_secs(55);
/// Time without writes after an action that proves that the fleet has settled.
const QUIET: Duration = Duration::from_secs(20);
/// Grace period of derived Services, shorter than [`DONE`].
const GRACE: Duration = Duration::from_secs(5);
/// Kinds in the hub that a member agent writes for the hub agent.
const OF_EXPORTER: [&str; 2] = ["EndpointSliceExport", "InternalServiceExport"];
/// Kinds in the hub that the hub agent writes for a member agent, at least in part.
const FOR_IMPORTER: [&str; 2] = ["EndpointSliceImport", "InternalServiceImport"];

async fn fleet(form: Form) -> anyhow::Result<Fleet> {
    Fleet::new(Options { form, derived_service_grace: GRACE, ..Options::members(2) }).await
}

async fn completes_and_settles(action: Action, env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    action.prepare(env).await?;
    action.act(env).await?;
    action.is_visible(env).await?;
    is_settled(env).await
}

async fn is_settled(env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    sleep(DONE).await;
    let mark = env.backend.mark().await?;
    sleep(QUIET).await;
    let ledger = env.backend.since(&mark).await?.objects();
    ensure!(ledger.clusters().map(Ledger::count).sum::<usize>() == 0, "the fleet is not settled:\n{ledger}");
    Ok(())
}

#[test]
fn with_definitions_in_the_go_form_every_action_completes_and_settles() -> anyhow::Result<()> {
    for action in Action::ALL {
        sim::paused(async {
            let env = Environment::on(OnMemkube(fleet(Form::Go).await?)).await?;
            completes_and_settles(action, &env).await
        })
        .with_context(|| format!("{action:?}"))?;
    }
    Ok(())
}

#[test]
fn with_definitions_in_the_go_form_their_fields_of_a_rich_service_are_carried() -> anyhow::Result<()> {
    sim::paused(async {
        let env = Environment::on(OnMemkube(fleet(Form::Go).await?)).await?;
        go_form_fields_of_a_rich_service_arrive(&env).await?;
        is_settled(&env).await
    })
}

/// Also rules O7, U1.
#[test]
fn with_the_previous_definition_of_memberagent_a_member_renews_no_more_often_and_exports() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = fleet(Form::Full).await?;
        fleet.hub.replace_definition(&serde_saphyr::from_str(manifests::PREVIOUS_MEMBER_AGENTS)?).await?;
        let env = Environment::on(OnMemkube(fleet)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        is_settled(&env).await?;
        let mark = env.backend.mark().await?;
        sleep(MINUTE).await;
        let heartbeats = env.backend.since(&mark).await?.hub.heartbeats().counts();
        let lines: Vec<(&str, usize)> = heartbeats.iter().map(|(line, count)| (line.as_str(), *count)).collect();
        let expected =
            ["member-1", "member-2"].map(|id| format!("patch memberagents in fleet-member-{id} by member-agent"));
        ensure!(lines == [(&*expected[0], 6), (&*expected[1], 6)], "{lines:?}");
        for member in [0, 1] {
            let agent: MemberAgent = member_agents(&env, member).get(&env.members[member].cluster_id).await?;
            ensure!(agent.spec.cluster_uid.is_none() && agent.spec.leader_identity.is_none(), "nothing was pruned");
            let metrics = env.backend.metrics(member).await?;
            ensure!(
                metrics.contains("fleetnet_hindrances{kind=\"MemberAgent\",reason=\"ClusterIdNotChecked\"} 1"),
                "it is not said:\n{metrics}"
            );
        }
        Ok(())
    })
}

/// Schema of the stored version of a CRD, and the resource that it defines.
fn stored(definition: &CustomResourceDefinition) -> anyhow::Result<(Value, ApiResource)> {
    let version = definition.spec.versions.iter().find(|version| version.storage).context("a version is stored")?;
    let schema = serde_json::to_value(version.schema.as_ref().and_then(|it| it.open_api_v3_schema.as_ref()))?;
    Ok((schema, manifests::stored_resource(definition)))
}

/// Also rule U17.
#[test]
fn with_the_definitions_of_the_previous_version_every_action_completes_and_settles() -> anyhow::Result<()> {
    for action in Action::ALL {
        sim::paused(async {
            let fleet = fleet(Form::Full).await?;
            for (_, server) in fleet.servers() {
                for previous in manifests::previous_definitions()? {
                    server.replace_definition(&serde_saphyr::from_str(&previous)?).await?;
                }
            }
            completes_and_settles(action, &Environment::on(OnMemkube(fleet)).await?).await
        })
        .with_context(|| format!("{action:?}"))?;
    }
    Ok(())
}

/// Simulated Go agent. It decodes each new object of the group networking.fleet.azure.com with the Go types, and writes
/// the object back without the fields that the Go types lack.
struct Typed {
    /// Number of written objects that lost a field.
    reduced: Arc<AtomicUsize>,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Typed {
    fn beside(fleet: &Fleet) -> Self {
        let (reduced, mut tasks) = (Arc::default(), JoinSet::new());
        for (_, server) in fleet.servers() {
            for definition in crds::all(Form::Go) {
                let client = server.memkube().client(User::new("typed-writer"));
                tasks.spawn(write_back(client, definition, Arc::clone(&reduced)));
            }
        }
        Self { reduced, tasks }
    }

    /// Returns the number of objects that have lost a field until now.
    async fn reduced(&mut self) -> anyhow::Result<usize> {
        if let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        Ok(self.reduced.load(Ordering::Relaxed))
    }
}

async fn write_back(
    client: Client,
    definition: CustomResourceDefinition,
    reduced: Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let (schema, resource) = stored(&definition)?;
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut events = everywhere.watch(&WatchParams::default().initial_events(), "").await?.boxed();
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event? else { continue };
        let mut typed = object.clone();
        reduce(&schema, &mut typed.data);
        reduced.fetch_add(usize::from(typed != object), Ordering::Relaxed);
        let namespace = object.metadata.namespace.as_deref().context("all kinds have namespaces")?;
        let name = object.metadata.name.as_deref().context("an object has a name")?;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        match api.replace(name, &PostParams::default(), &typed).await {
            // Do nothing: the object has a newer version or was deleted, and the watch shows the new state next.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            written => drop(written?),
        }
    }
    Ok(())
}

/// Reduces a value to the content that the Go types keep: the fields of the schema, and times in whole seconds. Returns
/// the paths of what was removed.
fn reduce(schema: &Value, value: &mut Value) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    reduce_at("", schema, value, &mut lost);
    lost
}

fn reduce_at(path: &str, schema: &Value, value: &mut Value, lost: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let Some(known) = schema["properties"].as_object() else { return };
            lost.extend(fields.keys().filter(|name| !known.contains_key(*name)).map(|name| format!("{path}.{name}")));
            fields.retain(|name, _| known.contains_key(name));
            for (name, value) in fields {
                reduce_at(&format!("{path}.{name}"), &known[name], value, lost);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| reduce_at(path, &schema["items"], item, lost)),
        Value::String(time) if schema["format"] == "date-time" => {
            if let Some((seconds, _)) = time.split_once('.') {
                lost.insert(format!("{path} (fraction of a second)"));
                *time = format!("{seconds}Z");
            }
        }
        _ => {}
    }
}

/// Also rule U15.
#[test]
fn beside_a_writer_that_drops_unknown_fields_every_action_completes_and_settles() -> anyhow::Result<()> {
    for action in Action::ALL {
        sim::paused(async {
            let fleet = fleet(Form::Full).await?;
            let mut typed = Typed::beside(&fleet);
            let env = Environment::on(OnMemkube(fleet)).await?;
            completes_and_settles(action, &env).await?;
            ensure!(typed.reduced().await? > 0, "nothing was ever taken out");
            Ok(())
        })
        .with_context(|| format!("{action:?}"))?;
    }
    Ok(())
}

#[test]
fn a_type_of_import_that_such_a_writer_drops_becomes_the_default() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = fleet(Form::Full).await?;
        let mut typed = Typed::beside(&fleet);
        let env = Environment::on(OnMemkube(fleet)).await?;
        env.export(&["10.1.0.1"]).await?;
        env.user(1).import("app", "app", Consume::ClusterIp).await?;
        env.user(1).sees("app", &["10.1.0.1"]).await?;
        is_settled(&env).await?;
        let derived = env.user(1).derived_service("app").await?;
        ensure!(derived.spec.and_then(|spec| spec.type_).as_deref() == Some("LoadBalancer"));
        ensure!(typed.reduced().await? > 0, "nothing was ever taken out");
        Ok(())
    })
}

/// Returns what Go types lack of the objects of some kinds in the hub. Objects that are being deleted do not count.
async fn beyond_the_go_form(env: &Environment<OnMemkube>, kinds: [&str; 2]) -> anyhow::Result<Vec<String>> {
    let mut lost = BTreeSet::new();
    for definition in crds::all(Form::Go).into_iter().filter(|it| kinds.contains(&&*it.spec.names.kind)) {
        let (schema, resource) = stored(&definition)?;
        let objects = Api::<DynamicObject>::all_with(env.backend.hub(), &resource).list(&ListParams::default()).await?;
        let live: Vec<_> = objects.into_iter().filter(|it| it.metadata.deletion_timestamp.is_none()).collect();
        ensure!(!live.is_empty(), "no {}", resource.kind);
        for mut object in live {
            lost.extend(reduce(&schema, &mut object.data).into_iter().map(|path| format!("{}{path}", resource.kind)));
        }
    }
    Ok(lost.into_iter().collect())
}

/// Returns a fleet with an exported and imported Service that uses every feature.
async fn rich_fleet() -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::on(OnMemkube(fleet(Form::Full).await?)).await?;
    rich::export_and_import(&env).await?;
    is_settled(&env).await?;
    Ok(env)
}

/// Returns what Go types lack of the objects of some kinds, after an agent is gone and the MemberAgents of these
/// members are deleted. The others then take these members, or the hub agent, for agents without features.
async fn beyond_the_go_form_without(
    place: AgentPlace,
    members: &[usize],
    kinds: [&str; 2],
) -> anyhow::Result<Vec<String>> {
    let mut env = rich_fleet().await?;
    env.backend.stop_agent(place).await?;
    for member in members {
        member_agents(&env, *member).delete(&env.members[*member].cluster_id, &DeleteParams::default()).await?;
    }
    sleep(MINUTE + QUIET).await;
    beyond_the_go_form(&env, kinds).await
}

/// Rule U15: A peer announces no feature: a Go agent
/// Then: The agents write nothing for this peer that the types of the Go agents lack, except fractions of a second in
/// `exportedSince`, which Go agents read and cut off. For a peer with all features, the fields that Go types lack are
/// `drainingEndpoints`, `hostname` and `zone` of endpoints, `sessionAffinity`, `sessionAffinityConfig` and `headless`
/// of an InternalServiceExport. A Go agent that writes such an object back removes these fields, and the fleet settles
#[test]
fn what_go_types_lack_of_a_service_that_uses_every_feature_is_this() -> anyhow::Result<()> {
    sim::paused(async {
        let env = rich_fleet().await?;
        let of_exporter = [
            "EndpointSliceExport.spec.drainingEndpoints",
            "EndpointSliceExport.spec.endpointSliceReference.exportedSince (fraction of a second)",
            "EndpointSliceExport.spec.endpoints.hostname",
            "EndpointSliceExport.spec.endpoints.zone",
            "InternalServiceExport.spec.serviceReference.exportedSince (fraction of a second)",
            "InternalServiceExport.spec.sessionAffinity",
            "InternalServiceExport.spec.sessionAffinityConfig",
        ];
        assert_eq!(beyond_the_go_form(&env, OF_EXPORTER).await?, of_exporter);
        let of_hub = [
            "EndpointSliceImport.spec.drainingEndpoints",
            "EndpointSliceImport.spec.endpointSliceReference.exportedSince (fraction of a second)",
            "EndpointSliceImport.spec.endpoints.hostname",
            "EndpointSliceImport.spec.endpoints.zone",
            "InternalServiceImport.spec.serviceImportReference.exportedSince (fraction of a second)",
        ];
        assert_eq!(beyond_the_go_form(&env, FOR_IMPORTER).await?, of_hub);
        Ok(())
    })
}

/// Also rule U15.
#[test]
fn a_hub_agent_without_features_gets_nothing_that_go_types_lack_but_fractions_of_seconds() -> anyhow::Result<()> {
    let lost = sim::paused(beyond_the_go_form_without(AgentPlace::Hub, &[0, 1], OF_EXPORTER))?;
    let in_time = [
        "EndpointSliceExport.spec.endpointSliceReference.exportedSince (fraction of a second)",
        "InternalServiceExport.spec.serviceReference.exportedSince (fraction of a second)",
    ];
    assert_eq!(lost, in_time);
    Ok(())
}

/// Also rule U15.
#[test]
fn an_importer_without_features_gets_nothing_that_go_types_lack_but_fractions_of_seconds() -> anyhow::Result<()> {
    let lost = sim::paused(beyond_the_go_form_without(AgentPlace::Member(1), &[1], FOR_IMPORTER))?;
    let in_time = [
        "EndpointSliceImport.spec.endpointSliceReference.exportedSince (fraction of a second)",
        "InternalServiceImport.spec.serviceImportReference.exportedSince (fraction of a second)",
    ];
    assert_eq!(lost, in_time);
    Ok(())
}
