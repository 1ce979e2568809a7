//! Golden objects: what the agents of each version store, in `fixtures/golden`. Every later version takes such a fleet
//! over without a write, and works on.
//!
//! After a change of what the agents store, renew the file of the version in development, never that of a released
//! version: `FLEETNET_RENEW_GOLDEN=1 cargo test --package sim --test fleets golden_objects_on_memkube`.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs;
use fleetnet_api::crds::{self, Form};
use fleetnet_api::names::labels;
use fleetnet_core::member::McsApi;
use fleetnet_core::model::MembershipAgent;
use harness::fleet::manifests;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, ResourceExt as _};
use scenarios::rich;
use serde_json::{Map, Value, json};
use sim::fleet::Place;
use sim::manager::{self, Manager};
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const RENEW: &str = "FLEETNET_RENEW_GOLDEN";
/// Time in which a fleet settles, and in which a dead member is drained. It is shorter than the hard limit of silence.
const SETTLES: Duration = Duration::from_secs(120);
/// Time after which a dead member is withdrawn.
const WITHDRAWN: Duration = Duration::from_secs(660);
/// Time between the last write of the golden fleet and its takeover.
const LATER: Duration = Duration::from_secs(3600);
/// Index of the importer.
const IMPORTER: usize = 2;
/// Index of the member that has been dead for longer than the hard limit of silence.
const DEAD: usize = 3;
/// Index of the member that has just died.
const DYING: usize = 4;
/// Index of the member that was dead and has returned.
const RETURNED: usize = 5;
/// Period of the heartbeats to the fleet manager, in seconds.
const HEARTBEAT: u32 = 60;

/// Objects of each cluster, by the name of the cluster.
type Golden = BTreeMap<String, Vec<Map<String, Value>>>;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden")
}

fn file(version: &str) -> PathBuf {
    folder().join(format!("{version}.json"))
}

fn users(fleet: &Fleet) -> Vec<User> {
    fleet.members.iter().map(|member| User::new(member.server.admin(), "work")).collect()
}

/// Makes the servers of a fleet with a manager.
async fn servers(seed: u64) -> anyhow::Result<(Fleet, Manager)> {
    let mcs_api = McsApi::LabelledNamespaces;
    let mut options = Options { seed, mcs_api, force_delete: Some(WITHDRAWN), ..Options::members(6) };
    options.membership.agents = MembershipAgent::ALL.to_vec();
    let fleet = Fleet::new(options).await?;
    let manager = Manager::new(fleet.hub.admin());
    manager.install().await?;
    Ok((fleet, manager))
}

/// Starts all agents but those of dead members.
async fn start(fleet: &mut Fleet) -> anyhow::Result<()> {
    for place in [Place::Hub].into_iter().chain([0, 1, IMPORTER, RETURNED].map(Place::Member)) {
        fleet.start(place)?;
    }
    fleet.ready().await
}

/// Exports Services by the standard API, with a conflict of ports and one of labels. One of them is headless, and one
/// is exported by both APIs.
async fn export_by_mcs_api(users: &[User]) -> anyhow::Result<()> {
    users[IMPORTER].label_namespace(Some("true")).await?;
    for (member, ports) in [
        (0, json!([{"name": "http", "port": 80}, {"name": "metrics", "port": 90}])),
        (1, json!([{"name": "web", "port": 80}, {"name": "metrics", "port": 91}])),
    ] {
        let affinity = json!({"clientIP": {"timeoutSeconds": 60}});
        let spec = json!({
            "ports": ports, "sessionAffinity": "ClientIP", "sessionAffinityConfig": affinity,
            "trafficDistribution": "PreferClose",
        });
        users[member].create::<Service>(json!({"metadata": {"name": "shop"}, "spec": spec})).await?;
        let slice = json!({
            "metadata": {"name": "shop-1", "labels": {labels::SERVICE_NAME: "shop"}}, "addressType": "IPv4",
            "endpoints": [{"addresses": [format!("10.{}.0.20", member + 1)]}], "ports": ports,
        });
        users[member].create::<EndpointSlice>(slice).await?;
        let labels = json!({"exportedLabels": {"team": member.to_string()}, "exportedAnnotations": {"note": "golden"}});
        users[member].export_mcs("shop", labels).await?;
        sleep(Duration::from_secs(1)).await;
    }
    for service in ["app", "db"] {
        users[0].export_mcs(service, json!({})).await?;
    }
    Ok(())
}

/// Plays a fleet in which the agents write every field. It has exports with all features, headless exports, weights and
/// conflicts, by both APIs. It also has a fleet manager, and members that are dead or were dead.
async fn played() -> anyhow::Result<Fleet> {
    let (mut fleet, manager) = servers(0).await?;
    for (_, server) in fleet.servers() {
        // The versions of the golden objects are higher than those of any new server. Namespaces are among them,
        // because the UID of one identifies the cluster.
        server.memkube().restore_bumped(&server.memkube().backup());
        let namespaces: Api<Namespace> = Api::all(server.admin());
        let touch = json!({"metadata": {"annotations": {"example.com/golden": "true"}}});
        for namespace in namespaces.list(&ListParams::default()).await? {
            namespaces.patch(&namespace.name_any(), &PatchParams::default(), &Patch::Merge(&touch)).await?;
        }
    }
    fleet.make_namespace("work").await?;
    let users = users(&fleet);
    for member in &fleet.members {
        manager.admit(&member.name, HEARTBEAT).await?;
    }
    start(&mut fleet).await?;
    fleet.start(Place::Member(DEAD))?;
    fleet.start(Place::Member(DYING))?;
    rich::create(&users[0]).await?;
    users[0].create::<Service>(rich::headless_service("db")).await?;
    users[0].create_slice("db", "db-1", &["10.1.0.9"]).await?;
    users[1].serve("app", &["10.2.0.1"]).await?;
    users[1].create_service_with_port("odd", 81).await?;
    users[0].create_service_with_port("odd", 80).await?;
    for (member, address) in [(DEAD, "10.4.0.1"), (DYING, "10.5.0.1"), (RETURNED, "10.6.0.1")] {
        users[member].serve("app", &[address]).await?;
    }
    let only_app = [DEAD, DYING, RETURNED].map(|member| (member, &["app"][..]));
    for (member, services) in [(0, &["app", "db", "odd"][..]), (1, &["app", "odd"])].into_iter().chain(only_app) {
        for service in services {
            users[member].export(service).await?;
            sleep(Duration::from_secs(1)).await;
        }
    }
    users[0].merge::<fleetnet_api::crd::ServiceExport>("db", rich::export_headless()).await?;
    let weight = json!({"metadata": {"annotations": {"networking.fleet.azure.com/weight": "10"}}});
    users[1].merge::<fleetnet_api::crd::ServiceExport>("app", weight).await?;
    let importer = &users[IMPORTER];
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.import("db", "db", Consume::ClusterIp).await?;
    importer.import("odd", "odd", Consume::ClusterIp).await?;
    export_by_mcs_api(&users).await?;
    sleep(SETTLES).await;
    fleet.kill(Place::Member(RETURNED)).await;
    sleep(SETTLES).await;
    fleet.start(Place::Member(RETURNED))?;
    fleet.kill(Place::Member(DEAD)).await;
    sleep(WITHDRAWN).await;
    fleet.kill(Place::Member(DYING)).await;
    sleep(SETTLES).await;
    Ok(fleet)
}

/// Returns the kinds in a cluster that agents, users and a fleet manager write.
fn kinds(cluster: &str) -> Vec<ApiResource> {
    let mut kinds: Vec<ApiResource> = crds::all(Form::Full).iter().map(manifests::stored_resource).collect();
    match cluster {
        "hub" => kinds.extend(manager::definitions().iter().map(manifests::stored_resource)),
        _ => kinds.extend(crds::mcs().iter().map(manifests::stored_resource)),
    }
    kinds.push(ApiResource::erase::<Namespace>(&()));
    kinds.push(ApiResource::erase::<Service>(&()));
    kinds.push(ApiResource::erase::<EndpointSlice>(&()));
    kinds
}

/// Returns all objects of a fleet.
async fn objects(fleet: &Fleet) -> anyhow::Result<Golden> {
    let mut golden = Golden::new();
    for (cluster, server) in fleet.servers() {
        let objects = golden.entry(cluster.to_owned()).or_default();
        for kind in kinds(cluster) {
            for object in Api::<DynamicObject>::all_with(server.admin(), &kind).list(&ListParams::default()).await? {
                let mut value = serde_json::to_value(object)?;
                let object = value.as_object_mut().context("an object")?;
                object.insert("apiVersion".into(), kind.api_version.clone().into());
                object.insert("kind".into(), kind.kind.clone().into());
                objects.push(std::mem::take(object));
            }
        }
    }
    Ok(golden)
}

/// Returns the path of each field, such as `networking.fleet.azure.com/v1alpha1/MemberAgent.spec.renewTime`. Items of a
/// list have the path of the list.
fn paths(golden: &Golden) -> BTreeSet<String> {
    fn add(path: &str, value: &Value, paths: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| add(&format!("{path}.{name}"), value, paths));
            }
            Value::Array(items) => items.iter().for_each(|item| add(path, item, paths)),
            _ => drop(paths.insert(path.to_owned())),
        }
    }
    let mut paths = BTreeSet::new();
    for object in golden.values().flatten() {
        let [version, kind] = ["apiVersion", "kind"].map(|field| object[field].as_str().unwrap_or_default());
        add(&format!("{version}/{kind}"), &Value::Object(object.clone()), &mut paths);
    }
    paths
}

/// Writes a file with one object in each line.
fn write(version: &str, golden: &Golden) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for (cluster, objects) in golden {
        let objects: Result<Vec<String>, _> = objects.iter().map(serde_json::to_string).collect();
        lines.push(format!("{}: [\n{}\n]", json!(cluster), objects?.join(",\n")));
    }
    std::fs::create_dir_all(folder())?;
    Ok(std::fs::write(file(version), format!("{{\n{}\n}}\n", lines.join(",\n")))?)
}

fn read(version: &str) -> anyhow::Result<Golden> {
    let file = file(version);
    let text = std::fs::read_to_string(&file).with_context(|| format!("{}: run with {RENEW}=1", file.display()))?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// Also rule U17.
#[test]
fn the_golden_objects_of_this_version_have_each_field_that_is_stored() -> anyhow::Result<()> {
    sim::paused(async {
        let stored = objects(&played().await?).await?;
        if std::env::var_os(RENEW).is_some() {
            write(VERSION, &stored)?;
        }
        let golden = read(VERSION)?;
        let phase = |object: &Map<String, Value>| {
            object.get("status")?.get("silence")?.get("phase")?.as_str().map(str::to_owned)
        };
        let phases: BTreeSet<String> = golden["hub"].iter().filter_map(phase).collect();
        // The phases Postponed and Returning last for seconds or minutes.
        ensure!(phases.iter().eq(&["Draining", "Returned", "Withdrawn"]), "{phases:?}");
        let (stored, golden) = (paths(&stored), paths(&golden));
        let missing: Vec<&String> = stored.difference(&golden).collect();
        ensure!(missing.is_empty(), "fields without a golden object, run with {RENEW}=1: {missing:#?}");
        Ok(())
    })
}

/// Definitions on the servers of a golden fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definitions {
    OfThisVersion,
    /// Definitions of the previous version, which lack fields.
    Previous,
}

/// Returns servers with the objects of a golden fleet, an hour after its last write.
async fn golden_fleet(version: &str, definitions: Definitions) -> anyhow::Result<Fleet> {
    // With another seed, new objects get other UIDs than those of the golden fleet.
    let (fleet, _) = servers(1).await?;
    if definitions == Definitions::Previous {
        for (_, server) in fleet.servers() {
            for previous in manifests::previous_definitions()? {
                server.replace_definition(&serde_saphyr::from_str(&previous)?).await?;
            }
        }
    }
    sleep(LATER).await;
    let mut golden = read(version)?;
    for (cluster, server) in fleet.servers() {
        let objects = golden.remove(cluster).with_context(|| format!("objects of {cluster}"))?;
        server.memkube().load(objects).map_err(anyhow::Error::msg)?;
    }
    Ok(fleet)
}

/// Lets today's agents take a golden fleet over.
async fn takes_over(version: &str) -> anyhow::Result<()> {
    let mut fleet = golden_fleet(version, Definitions::OfThisVersion).await?;
    let users = users(&fleet);
    let mut routes = users[IMPORTER].routes("app");
    let [one, two, returned, six] = ["10.1.0.1:8080", "10.2.0.1:8080", "10.6.0.1:8080", "fd00:1::1:8080"];
    routes.are(&[one, two, returned, six]).await?;
    start(&mut fleet).await?;
    sleep(SETTLES).await;
    let written: Vec<_> = fleet.agent_writes().into_iter().map(|entry| entry.call).collect();
    ensure!(written.is_empty(), "{version}: {written:#?}");
    routes.always_had(&[one, two, returned, six])?;
    ensure!(fleet.answers().is_empty(), "{version}: {:?}", fleet.answers());

    users[IMPORTER].sees_mcs_slices("shop", &["member-1 10.1.0.20", "member-2 10.2.0.20"]).await?;
    users[0].set_endpoints("shop-1", &["10.1.0.21"]).await?;
    users[IMPORTER].sees_mcs_slices("shop", &["member-1 10.1.0.21", "member-2 10.2.0.20"]).await?;
    users[1].set_endpoints("app-1", &["10.2.0.2"]).await?;
    routes.are(&[one, "10.2.0.2:8080", returned, six]).await?;
    for (user, services) in
        [(&users[0], &["app", "db", "odd"][..]), (&users[1], &["app", "odd"]), (&users[RETURNED], &["app"])]
    {
        for service in services {
            user.delete::<fleetnet_api::crd::ServiceExport>(service).await?;
        }
    }
    for (user, services) in [(&users[0], &["app", "db", "shop"][..]), (&users[1], &["shop"])] {
        for service in services {
            user.delete::<mcs::ServiceExport>(service).await?;
        }
    }
    sleep(SETTLES).await;
    users[IMPORTER].sees_mcs_slices("shop", &[]).await?;
    let of_dead = [DEAD, DYING].map(|member| fleet.members[member].hub_namespace.to_string());
    let of_others = |object: &&Map<String, Value>| {
        let exported =
            ["EndpointSliceExport", "InternalServiceExport"].contains(&object["kind"].as_str().unwrap_or_default());
        exported && of_dead.iter().all(|namespace| object["metadata"]["namespace"] != **namespace)
    };
    let left = objects(&fleet).await?.remove("hub").context("the hub")?;
    let left: Vec<&Map<String, Value>> = left.iter().filter(of_others).collect();
    ensure!(left.is_empty(), "{version}: {left:#?}");
    Ok(())
}

/// Rule U17: Agents of a newer version start on the objects or with the CRDs of an older version
/// Then: The agents write nothing until something changes. With the CRDs of the previous version, all work is done, and
/// the fleet settles. Nobody can store then that a member is silent: its endpoints stay in use, and the hub agent tries
/// once a minute
#[test]
fn the_golden_objects_of_every_version_are_taken_over_without_a_write() -> anyhow::Result<()> {
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        versions.push(path.file_stem().and_then(|stem| stem.to_str()).context("a version")?.to_owned());
    }
    ensure!(
        versions.iter().any(|version| version == VERSION),
        "there are no golden objects of {VERSION}: run with {RENEW}=1"
    );
    for version in versions {
        sim::paused(async { takes_over(&version).await })?;
    }
    Ok(())
}

/// The definitions of the previous version have no field for silence. So nobody is silent, and nothing is lost.
///
/// Also rule U17.
#[test]
fn golden_objects_under_the_definitions_of_the_previous_version_keep_their_endpoints_and_nothing_loops()
-> anyhow::Result<()> {
    sim::paused(async {
        let mut fleet = golden_fleet(VERSION, Definitions::Previous).await?;
        let mut routes = users(&fleet)[IMPORTER].routes("app");
        let of_living = ["10.1.0.1:8080", "10.2.0.1:8080", "10.6.0.1:8080", "fd00:1::1:8080"];
        routes.are(&of_living).await?;
        start(&mut fleet).await?;
        sleep(WITHDRAWN).await;
        routes.are(&[&of_living[..], &["10.4.0.1:8080", "10.5.0.1:8080"]].concat()).await?;
        let first = fleet.agent_writes().len();

        fleet.kill(Place::Member(0)).await;
        sleep(WITHDRAWN).await;
        routes.always_had(&of_living)?;
        let writes: Vec<_> = fleet.agent_writes().into_iter().skip(first).map(|entry| entry.call.target).collect();
        ensure!(writes.is_empty(), "{writes:#?}");
        let answers = fleet.answers().len();
        // One write a minute for each of three dead members finds out if the definition was upgraded.
        ensure!((20..=50).contains(&answers), "{answers} writes of the hub agent to MemberAgents");
        Ok(())
    })
}
