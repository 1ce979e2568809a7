//! Tests of `fleetnet gather`.

use crate::fleet::Fleet;
use crate::hub::{Cluster, admit, folder};
use crate::program::{Ended, run, run_with};
use flate2::read::GzDecoder;
use fleetnet_core::names::mcs_derived;
use fleetnet_types::ObjectName;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, PostParams};
use memkube::{Call, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// Text in Secrets, ConfigMaps and variables that must not be in an archive.
const CANARY: &str = "c4nary";

/// Returns the files of an archive, without the folder that contains them all.
fn unpack(path: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (path.split_once('/').unwrap().1.to_owned(), text)
    });
    entries.collect()
}

/// Gathers a hub, to an archive at this path.
async fn of_hub(hub: &Cluster, path: &Path, more: &[&str]) -> Ended {
    run_with(&["gather", "--context=admin@hub", "--file", path.to_str().unwrap()], &[hub.flag()], more).await
}

/// Fills a hub with canaries in each place that may have a secret.
async fn plant(hub: &Cluster) {
    admit(hub, "west").await;
    for namespace in ["fleet-system", "fleet-member-west"] {
        hub.create::<Secret>(namespace, json!({"metadata": {"name": "own"}, "stringData": {"token": CANARY}})).await;
        hub.create::<ConfigMap>(namespace, json!({"metadata": {"name": "own"}, "data": {"token": CANARY}})).await;
    }
    hub.create::<Deployment>("fleet-system", json!({
        "metadata": {
            "name": "member-agent",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": CANARY, "note": "eyJhbGciOiJ.eyJjNG5hcnkifQ.x"},
        },
        "spec": {"selector": {}, "template": {"spec": {"containers": [{
            "name": "a", "env": [{"name": "PASSWORD", "value": CANARY}, {"name": "MEMBER_CLUSTER_NAME", "value": "west"}],
        }]}}},
    }))
    .await;
    hub.create::<Event>(
        "fleet-system",
        json!({
            "metadata": {"name": "e"}, "involvedObject": {"namespace": "fleet-system"}, "message": "from 10.1.2.3",
            "lastTimestamp": "2020-01-01T00:00:00Z",
        }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_a_real_fleet_has_the_objects_of_all_clusters() {
    let fleet = Fleet::start(2).await;
    let files = gathered(&fleet).await;
    for expected in [
        "summary.json",
        "hub/objects/all/endpointsliceexports.json",
        "hub/objects/all/memberagents.json",
        "hub/objects/namespaces.json",
        "hub/objects/customresourcedefinitions.json",
        "hub/objects/fleet-system/leases.json",
        "hub/events.json",
        "member-member-1/objects/all/multiclusterservices.json",
        "member-member-1/objects/work/endpointslices.json",
        "member-member-2/objects/fleet-system/services.json",
    ] {
        assert!(files.contains_key(expected), "{expected} is not in {:?}", files.keys());
    }
    let exports: Value = serde_json::from_str(&files["member-member-2/objects/all/serviceexports.json"]).unwrap();
    assert_eq!(exports["items"][0]["metadata"]["name"], "app");
    fleet.end().await;
}

/// Gathers all clusters of a fleet of two members, and returns the files of the archive.
async fn gathered(fleet: &Fleet) -> BTreeMap<String, String> {
    let folder = folder();
    let path = folder.path().join("a.tar.gz");
    let arguments = ["gather", "-o", "json", "--file", path.to_str().unwrap()].map(str::to_owned);
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let ended = run(arguments.into_iter().chain(flags)).await.expect(0).json("Gather");
    assert_eq!(ended["notRead"], json!([]), "{ended}");
    unpack(&path)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_a_fleet_of_the_mcs_api_has_its_objects() {
    let fleet = Fleet::start_with(2, "multicluster").await;
    let client = fleet.client("member-1").await;
    let labels = json!({"kubernetes.io/service-name": mcs_derived(&ObjectName::new("work", "app")).name.to_string()});
    let routing = json!({"metadata": {"name": "a-routing", "labels": labels}, "addressType": "IPv4", "endpoints": []});
    let slices: Api<EndpointSlice> = Api::namespaced(client, "work");
    slices.create(&PostParams::default(), &serde_json::from_value(routing).unwrap()).await.unwrap();
    let files = gathered(&fleet).await;
    let number = |path: &str| {
        let list: Value = serde_json::from_str(&files[path]).unwrap();
        list["items"].as_array().unwrap().len()
    };
    let member = "member-member-1/objects";
    let numbers = [
        ("hub/objects/all/mergedserviceimports.json".to_owned(), 2),
        (format!("{member}/all/serviceexports.multicluster.x-k8s.io.json"), 1),
        (format!("{member}/all/serviceimports.multicluster.x-k8s.io.json"), 1),
        (format!("{member}/work/services.json"), 2),
        (format!("{member}/work/endpointslices.json"), 2 + 4 + 1),
    ];
    for (path, expected) in numbers {
        assert_eq!(number(&path), expected, "{path} in {:?}", files.keys());
    }
    let namespaces = &files[&format!("{member}/namespaces.json")];
    assert!(namespaces.contains("\"work\""), "the namespace that imports: {namespaces}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_never_requested_and_never_in_the_archive() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    plant(&hub).await;
    // A request for Secrets or ConfigMaps would be denied, and then be named.
    let policy =
        |call: &Call| call.verb == Verb::Create || !["secrets", "configmaps"].contains(&&*call.target.resource);
    hub.server.memkube().set_policy(Arc::new(policy));
    let path = folder.path().join("a.tar.gz");
    let ended = of_hub(&hub, &path, &["-o", "json"]).await.expect(0);
    assert!(!ended.output.contains("secrets") && !ended.errors.contains("secrets"), "{ended:?}");
    let files = unpack(&path);
    for (path, text) in &files {
        assert!(!text.contains(CANARY) && !text.contains("eyJ"), "{path}: {text}");
    }
    let deployments = &files["hub/objects/fleet-system/deployments.json"];
    assert!(
        deployments.contains("<removed>") && deployments.contains("\"west\"") && deployments.contains("<token>"),
        "{deployments}"
    );
    assert!(files["hub/events.json"].contains("10.1.2.3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_redacted_and_old_events_left_out_on_request() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    plant(&hub).await;
    hub.create::<Event>(
        "fleet-system",
        json!({
            "metadata": {"name": "new"}, "involvedObject": {"namespace": "fleet-system"}, "message": "from 10.1.2.4",
            "lastTimestamp": "2099-01-01T00:00:00Z",
        }),
    )
    .await;
    let path = folder.path().join("a.tar.gz");
    of_hub(&hub, &path, &["--redact-addresses", "--since", "1h"]).await.expect(0);
    let files = unpack(&path);
    let events = &files["hub/events.json"];
    assert!(events.contains("from ip-") && !events.contains("10.1.2."), "{events}");
    assert_eq!(events.matches("involvedObject").count(), 1, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_named_in_each_format() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    plant(&hub).await;
    hub.create::<Pod>(
        "fleet-system",
        json!({
            "metadata": {"name": "hub-agent-1", "labels": {"app.kubernetes.io/part-of": "fleetnet"}},
            "spec": {"containers": [{"name": "hub-agent", "ports": [{"name": "metrics", "containerPort": 8080}]}]},
        }),
    )
    .await;
    for format in ["table", "wide", "json", "yaml", "name"] {
        let path = folder.path().join(format);
        // The server in memory has no kubelets, so it has neither logs nor metrics.
        let ended = of_hub(&hub, &path, &["-o", format]).await.expect(3);
        assert!(
            ended.errors.contains("log of pod hub-agent-1") && ended.errors.contains("metrics of pod hub-agent-1"),
            "{ended:?}"
        );
        assert!(unpack(&path)["summary.json"].contains("log of pod hub-agent-1"));
    }
    let again = of_hub(&hub, &folder.path().join("json"), &[]).await;
    assert!(again.expect(1).errors.contains("the file already exists"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_answer_is_named() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let (flag, path) = (hub.flag(), folder.path().join("a.tar.gz"));
    drop(hub);
    let ended = run(["gather", &flag, "--file", path.to_str().unwrap()]).await.expect(3);
    assert!(
        ended.errors.contains("context admin@hub (https://127.0.0.1:") && ended.errors.contains(": TCP: "),
        "{ended:?}"
    );
    assert!(!path.exists());
}
