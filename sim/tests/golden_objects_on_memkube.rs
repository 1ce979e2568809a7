//! Golden objects: what the agents of each version store, in `fixtures/golden`. Every later version takes such a fleet over without a
//! write, and works on.
//!
//! After a change of what the agents store, renew the file of the version in development, never that of a released version:
//! `FLEETNET_RENEW_GOLDEN=1 cargo test --package sim --test golden_objects_on_memkube`.

use anyhow::{Context as _, ensure};
use fleetnet_api::crds::{self, Form};
use fleetnet_tests::scenarios::rich;
use harness::fleet::manifests;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const RENEW: &str = "FLEETNET_RENEW_GOLDEN";
/// Time in which a fleet settles, and in which a dead member is drained. It is shorter than the hard limit of silence.
const SETTLES: Duration = Duration::from_secs(120);
/// Time between the last write of the golden fleet and its takeover.
const LATER: Duration = Duration::from_secs(3600);
/// Index of the importer.
const IMPORTER: usize = 2;
/// Index of the member that is dead.
const DEAD: usize = 3;

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

/// Starts all agents but that of the dead member.
async fn start(fleet: &mut Fleet) -> anyhow::Result<()> {
    for place in [Place::Hub, Place::Member(0), Place::Member(1), Place::Member(IMPORTER)] {
        fleet.start(place)?;
    }
    fleet.ready().await
}

/// Plays a fleet in which the agents write every field: exports with all features, headless exports, weights, conflicts and a member
/// that is dead.
async fn played() -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::new(Options::members(4)).await?;
    for (_, server) in fleet.servers() {
        // The versions of the golden objects are higher than those of any new server. Namespaces are among them, because the UID of
        // one identifies the cluster.
        server.memkube().restore_bumped(&server.memkube().backup());
        let namespaces: Api<Namespace> = Api::all(server.admin());
        let touch = json!({"metadata": {"annotations": {"example.com/golden": "true"}}});
        for namespace in namespaces.list(&ListParams::default()).await? {
            namespaces.patch(&namespace.name_any(), &PatchParams::default(), &Patch::Merge(&touch)).await?;
        }
    }
    fleet.make_namespace("work").await?;
    let users = users(&fleet);
    start(&mut fleet).await?;
    fleet.start(Place::Member(DEAD))?;
    rich::create(&users[0]).await?;
    users[0].create::<Service>(rich::headless_service("db")).await?;
    users[0].create_slice("db", "db-1", &["10.1.0.9"]).await?;
    users[1].create_service("app").await?;
    users[1].create_slice("app", "app-1", &["10.2.0.1"]).await?;
    users[1].create_service_with_port("odd", 81).await?;
    users[0].create_service_with_port("odd", 80).await?;
    users[DEAD].create_service("app").await?;
    users[DEAD].create_slice("app", "app-1", &["10.4.0.1"]).await?;
    for (member, services) in [(0, &["app", "db", "odd"][..]), (1, &["app", "odd"]), (DEAD, &["app"])] {
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
    sleep(SETTLES).await;
    fleet.kill(Place::Member(DEAD)).await;
    sleep(SETTLES).await;
    Ok(fleet)
}

/// Returns the kinds that agents and users of fleetnet write.
fn kinds() -> Vec<ApiResource> {
    let mut kinds: Vec<ApiResource> = crds::all(Form::Full).iter().map(manifests::stored_resource).collect();
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
        for kind in kinds() {
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

/// Returns the path of each field, such as `MemberAgent.spec.renewTime`. Items of a list have the path of the list.
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
        add(object["kind"].as_str().unwrap_or_default(), &Value::Object(object.clone()), &mut paths);
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

#[test]
fn the_golden_objects_of_this_version_have_each_field_that_is_stored() -> anyhow::Result<()> {
    sim::paused(async {
        let stored = objects(&played().await?).await?;
        if std::env::var_os(RENEW).is_some() {
            write(VERSION, &stored)?;
        }
        let (stored, golden) = (paths(&stored), paths(&read(VERSION)?));
        let missing: Vec<&String> = stored.difference(&golden).collect();
        ensure!(missing.is_empty(), "fields without a golden object, run with {RENEW}=1: {missing:#?}");
        Ok(())
    })
}

/// Lets today's agents take a golden fleet over.
async fn takes_over(version: &str) -> anyhow::Result<()> {
    // With another seed, new objects get other UIDs than those of the golden fleet.
    let mut fleet = Fleet::new(Options { seed: 1, ..Options::members(4) }).await?;
    sleep(LATER).await;
    let mut golden = read(version)?;
    for (cluster, server) in fleet.servers() {
        let objects = golden.remove(cluster).with_context(|| format!("objects of {cluster}"))?;
        server.memkube().load(objects).map_err(anyhow::Error::msg)?;
    }
    let users = users(&fleet);
    let mut routes = users[IMPORTER].routes("app");
    let [one, two, six] = ["10.1.0.1:8080", "10.2.0.1:8080", "fd00:1::1:8080"];
    routes.are(&[one, two, six]).await?;
    start(&mut fleet).await?;
    sleep(SETTLES).await;
    let written: Vec<_> = fleet.agent_writes().into_iter().map(|entry| entry.call).collect();
    ensure!(written.is_empty(), "{version}: {written:#?}");
    routes.always_had(&[one, two, six])?;

    users[1].set_endpoints("app-1", &["10.2.0.2"]).await?;
    routes.are(&[one, "10.2.0.2:8080", six]).await?;
    for (user, services) in [(&users[0], &["app", "db", "odd"][..]), (&users[1], &["app", "odd"])] {
        for service in services {
            user.delete::<fleetnet_api::crd::ServiceExport>(service).await?;
        }
    }
    sleep(SETTLES).await;
    let of_dead = fleet.members[DEAD].hub_namespace.to_string();
    let of_others = |object: &&Map<String, Value>| {
        let exported =
            ["EndpointSliceExport", "InternalServiceExport"].contains(&object["kind"].as_str().unwrap_or_default());
        exported && object["metadata"]["namespace"] != *of_dead
    };
    let left = objects(&fleet).await?.remove("hub").context("the hub")?;
    let left: Vec<&Map<String, Value>> = left.iter().filter(of_others).collect();
    ensure!(left.is_empty(), "{version}: {left:#?}");
    Ok(())
}

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
