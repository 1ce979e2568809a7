//! Tests of `fleetnet migrate`.

use crate::fleet::Fleet;
use crate::hub::{Cluster, admit, folder, heard, hub_and_west, hub_secret};
use crate::program::{Ended, run, run_with};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, MemberAgent};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Resource};
use memkube::auth::{Call, Verb};
use memkube::faults::{Fault, Faults};
use memkube::status::{Named, Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const NAMESPACE: &str = "fleet-member-west";
const UNIQUE_NAME: &str = "networking.fleet.azure.com/fleet-unique-name";

async fn all<K>(cluster: &Cluster) -> Vec<K>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = ()>,
{
    Api::<K>::all(cluster.client()).list(&ListParams::default()).await.unwrap().items
}

async fn migrate(arguments: &[&str], clusters: &[&Cluster]) -> Ended {
    let flags: Vec<String> = clusters.iter().map(|cluster| cluster.flag()).collect();
    run_with(&["migrate"], &flags, arguments).await
}

/// Creates a member whose agent has stopped: a source slice with its export, an export whose source slice is gone, a
/// distributed slice with a zone, and a MemberAgent.
async fn stopped_member(hub: &Cluster, west: &Cluster) {
    admit(hub, "west").await;
    hub_secret(west, "west").await;
    west.server.make_namespace("work").await.unwrap();
    let slice = json!({
        "metadata": {"name": "app-1", "labels": {"kubernetes.io/service-name": "app"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"]}], "ports": [],
    });
    let slice: EndpointSlice = west.create("work", slice).await;
    let exported = |name: &str, kind: &str, uid: &str, zone: Option<&str>| {
        json!({
            "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": {
                "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"], "zone": zone}], "ports": [],
                "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"},
                "endpointSliceReference": {
                    "clusterId": "west", "kind": "EndpointSlice", "namespace": "work", "name": "app-1", "uid": uid,
                    "resourceVersion": "1", "generation": 1, "namespacedName": "work/app-1",
                    "exportedSince": "2026-11-23T06:00:00.123456Z",
                },
            },
        })
    };
    let slice_uid = slice.metadata.uid.unwrap();
    hub.create::<EndpointSliceExport>(NAMESPACE, exported("kept", "EndpointSliceExport", &slice_uid, None)).await;
    hub.create::<EndpointSliceExport>(NAMESPACE, exported("orphan", "EndpointSliceExport", "gone", None)).await;
    hub.create::<EndpointSliceImport>(NAMESPACE, exported("east-1", "EndpointSliceImport", "east", Some("a"))).await;
    heard(hub, "west", &west.uid().await).await;
}

/// Starts a hub and its member west, whose agent has stopped.
async fn stopped() -> (TempDir, Cluster, Cluster) {
    let folder = folder();
    let (hub, west) = hub_and_west(folder.path()).await;
    stopped_member(&hub, &west).await;
    (folder, hub, west)
}

/// Creates the Deployment of a Go agent of the member.
async fn agent_deployment(cluster: &Cluster) {
    let container = json!({"name": "agent", "env": [{"name": "MEMBER_CLUSTER_NAME", "value": "west"}]});
    let deployment = json!({
        "metadata": {"name": "member-net-controller-manager"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
    });
    cluster.create::<Deployment>("fleet-system", deployment).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_real_fleet_shows_the_objects_in_each_format_and_changes_nothing() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let check = |to: &str, format: &str| {
        let arguments = ["migrate", "check", "--to", to, "-o", format].map(str::to_owned);
        run(arguments.into_iter().chain(flags.clone()))
    };
    for format in ["table", "wide", "json", "yaml", "name"] {
        let ended = check("go", format).await.expect(1);
        assert!(ended.output.contains("cluster-ip"), "{ended:?}");
        assert!(format == "name" || ended.output.contains("MultiClusterService"), "{ended:?}");
        check("fleetnet", format).await.expect(0);
    }
    let json = check("go", "json").await.expect(1).json("MigrationCheck");
    let item = json["items"].as_array().unwrap().iter().find(|item| item["id"] == "cluster-ip").unwrap();
    let clusters: Vec<&str> =
        item["objects"].as_array().unwrap().iter().filter_map(|object| object["cluster"].as_str()).collect();
    assert_eq!(clusters, ["member-1", "member-2"]);
    // The members were not read.
    let hub_only = ["migrate", "check", "--to", "fleetnet"].map(str::to_owned).into_iter().chain(fleet.flags(&["hub"]));
    let ended = run(hub_only).await.expect(3);
    assert!(ended.errors.contains("member-1: no kubeconfig context leads to this cluster"), "{ended:?}");

    // The clusters of the sandbox have no Secret that names the member.
    for (cluster, holder) in
        [(&["member-2", "--context=kubectl@member-2"][..], "member-2: the agent"), (&["--hub"], "hub: the agent")]
    {
        let arguments = ["migrate", "to-go"].iter().chain(cluster).map(|it| (*it).to_owned());
        let ended = run(arguments.chain(flags.clone())).await.expect(1);
        assert!(ended.errors.contains(holder) && ended.errors.contains("0 replicas"), "{ended:?}");
        assert_eq!(ended.output, "");
    }
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_to_go_agents_annotates_slices_and_deletes_what_they_do_not_continue() {
    let (_folder, hub, west) = stopped().await;
    let clusters = [&hub, &west];
    let planned = migrate(&["to-go", "west", "--dry-run", "-o", "json"], &clusters).await.expect(0);
    assert!(planned.errors.contains("dry run: nothing was changed"), "{planned:?}");
    assert_eq!(all::<EndpointSliceExport>(&hub).await.len(), 2);
    assert_eq!(all::<MemberAgent>(&hub).await.len(), 1);

    // No hub agent writes the Go form.
    let ended = migrate(&["to-go", "west", "--wait=1s", "-o", "json"], &clusters).await.expect(4);
    assert!(ended.errors.contains("the hub agent did not write 1 objects in the Go form"), "{ended:?}");
    let (planned, done) = (planned.json("MigrateToGo"), ended.json("MigrateToGo"));
    assert_eq!((&planned["objects"], &planned["dryRun"]), (&done["objects"], &true.into()));
    let objects: Vec<String> = done["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", it["action"], it["kind"], it["name"]))
        .collect();
    let expected = [
        r#""updated" "EndpointSlice" "app-1""#,
        r#""deleted" "EndpointSliceExport" "orphan""#,
        r#""deleted" "MemberAgent" "west""#,
    ];
    assert_eq!(objects, expected);
    let slices: Vec<EndpointSlice> = all(&west).await;
    let annotations = slices[0].metadata.annotations.clone().unwrap();
    assert_eq!(annotations[UNIQUE_NAME], "kept");
    assert_eq!(annotations["networking.fleet.azure.com/last-seen-generation"], "1");
    assert_eq!(annotations["networking.fleet.azure.com/last-seen-timestamp"], "2026-11-23T06:00:00Z");

    // The second time, the Deployment of the Go agent shows the member's id.
    let slices: Api<EndpointSliceImport> = Api::namespaced(hub.client(), NAMESPACE);
    slices.delete("east-1", &DeleteParams::default()).await.unwrap();
    agent_deployment(&west).await;
    let again = migrate(&["to-go", "west"], &clusters).await.expect(0);
    assert_eq!((again.output.as_str(), again.errors.contains("start the Go agents now")), ("", true), "{again:?}");
}

/// Answers the first patches of slices with a conflict, as if somebody changed the slices each time after the program
/// read them.
struct Conflicts(AtomicUsize);

impl Faults for Conflicts {
    fn request(&self, call: &Call) -> Fault {
        let is_meant = call.verb == Verb::Patch && &*call.target.resource == "endpointslices";
        let is_hit =
            is_meant && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let named = Named { group: &call.target.group, kind: &call.target.resource, name: &call.target.name };
        let refuse = is_hit.then(|| Status::modified(named));
        Fault { refuse, ..Fault::default() }
    }
}

/// Also rule U18.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_change_meanwhile_are_read_again_some_times() {
    for (conflicts, exit) in [(1, 4), (usize::MAX, 1)] {
        let (_folder, hub, west) = stopped().await;
        west.server.memkube().set_faults(Some(Arc::new(Conflicts(AtomicUsize::new(conflicts)))));
        let ended = migrate(&["to-go", "west", "--wait=1s"], &[&hub, &west]).await.expect(exit);
        let is_given_up = ended.errors.contains("objects changed 5 times while the command ran");
        assert_eq!(is_given_up, exit == 1, "{ended:?}");
        let slices: Vec<EndpointSlice> = all(&west).await;
        let annotations = slices[0].metadata.annotations.clone().unwrap_or_default();
        assert_eq!(annotations.contains_key(UNIQUE_NAME), exit == 4);
        let agents = all::<MemberAgent>(&hub).await.len();
        assert_eq!(agents, usize::from(exit == 1), "it stays while not everything is prepared");
    }
}

/// Also rule U18.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_waits_until_the_hub_agent_has_written_the_go_form() {
    let (_folder, hub, west) = stopped().await;
    // In place of the hub agent: when the MemberAgent is gone, the importer understands no features.
    let client = hub.client();
    let hub_agent = tokio::spawn(async move {
        let agents: Api<MemberAgent> = Api::namespaced(client.clone(), NAMESPACE);
        let mut events = pin!(agents.watch(&WatchParams::default(), "0").await.unwrap());
        while !matches!(events.next().await.unwrap().unwrap(), WatchEvent::Deleted(_)) {}
        // It goes on with the announcement for a while.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let slices: Api<EndpointSliceImport> = Api::namespaced(client, NAMESPACE);
        let endpoints = json!([{"addresses": ["10.1.0.1"]}]);
        let patch = Patch::Merge(json!({"spec": {"endpoints": endpoints}}));
        slices.patch("east-1", &PatchParams::default(), &patch).await.unwrap();
    });
    let ended = migrate(&["to-go", "west", "--wait=1m"], &[&hub, &west]).await.expect(0);
    assert!(ended.errors.contains("start the Go agents now"), "{ended:?}");
    assert_eq!(all::<EndpointSliceImport>(&hub).await[0].spec.slice.endpoints[0].zone, None, "it did not wait");
    hub_agent.await.unwrap();
}

async fn set_status(hub: &Cluster, status: Value) {
    let agents: Api<MemberAgent> = Api::namespaced(hub.client(), NAMESPACE);
    let patch = Patch::Merge(json!({"status": status}));
    agents.patch_status("west", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_of_the_hub_ends_the_announcements_of_its_agent() {
    let (_folder, hub, _west) = stopped().await;
    set_status(&hub, json!({"version": "1", "features": ["IPv6"], "silentMembers": []})).await;
    let planned = migrate(&["to-go", "--hub", "-o", "name", "--dry-run"], &[&hub]).await.expect(0);
    let done = migrate(&["to-go", "--hub", "-o", "name"], &[&hub]).await.expect(0);
    assert_eq!((planned.output.as_str(), &planned.output), ("MemberAgent/fleet-member-west/west\n", &done.output));
    let status = all::<MemberAgent>(&hub).await.remove(0).status.unwrap();
    assert_eq!((status.features, status.silent_members.is_none()), (Some(Vec::new()), true));
    assert_eq!(all::<EndpointSliceExport>(&hub).await.len(), 2, "exports belong to the members");
    let again = migrate(&["to-go", "--hub"], &[&hub]).await.expect(0);
    assert_eq!(again.output, "", "nothing is left to do");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_member_gets_a_heartbeat_and_keeps_its_memberagent_until_it_is_trusted() {
    let (_folder, hub, west) = stopped().await;
    let time = "2026-11-23T06:00:00.000000Z";
    let silence = |phase: &str| json!({"phase": phase, "phaseTime": time, "lastRenewTime": time, "count": 1});
    set_status(&hub, json!({"silence": silence("Draining")})).await;
    let ended = migrate(&["to-go", "west", "--wait=1s"], &[&hub, &west]).await.expect(4);
    assert!(ended.errors.contains("treats the member as silent"), "{ended:?}");
    let spec = all::<MemberAgent>(&hub).await.remove(0).spec;
    assert_eq!(spec.planned_stop_time, Some(spec.renew_time.clone()));
    assert!(spec.renew_time.0.to_string().as_str() > time, "{spec:?}");
    assert_eq!(all::<EndpointSliceExport>(&hub).await.len(), 2, "nothing else was changed");

    // The hub agent answers.
    set_status(&hub, json!({"silence": silence("Returned")})).await;
    migrate(&["to-go", "west", "--wait=1s"], &[&hub, &west]).await.expect(4);
    assert_eq!(all::<MemberAgent>(&hub).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_with_the_id_of_the_member_is_refused() {
    let folder = folder();
    let (hub, west) = hub_and_west(folder.path()).await;
    let other = Cluster::https(folder.path(), "a-copy").await;
    stopped_member(&hub, &west).await;
    agent_deployment(&other).await;
    let named = migrate(&["to-go", "west", "--context=admin@a-copy"], &[&hub, &other, &west]).await.expect(2);
    assert!(named.errors.contains("admin@a-copy") && named.errors.contains("not a member of this hub"), "{named:?}");
    // The context of the copy comes first.
    let planned = migrate(&["to-go", "west", "--dry-run"], &[&hub, &other, &west]).await.expect(0);
    assert!(planned.output.contains("admin@west") && !planned.output.contains("a-copy"), "{planned:?}");
    // Nobody knows the UID any more: the source slices show which cluster is the member.
    Api::<MemberAgent>::namespaced(hub.client(), NAMESPACE).delete("west", &DeleteParams::default()).await.unwrap();
    let ended = migrate(&["to-go", "west"], &[&hub, &other]).await.expect(1);
    assert!(ended.errors.contains("no source slice of the member's exports"), "{ended:?}");
    assert_eq!(all::<EndpointSliceExport>(&hub).await.len(), 2);
}

/// Also rule O26.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_names_the_cluster_of_another_gets_no_write_there() {
    let (_folder, hub, west) = stopped().await;
    // The cluster with this UID says that it is east.
    hub_secret(&west, "east").await;
    let ended = migrate(&["to-go", "west"], &[&hub, &west]).await.expect(2);
    assert!(ended.errors.contains("leads to the member east"), "{ended:?}");
    // It says that it is both.
    agent_deployment(&west).await;
    let ended = migrate(&["to-go", "west", "--context=admin@west"], &[&hub, &west]).await.expect(1);
    assert!(ended.errors.contains("is also the member east"), "{ended:?}");
    let slices: Vec<EndpointSlice> = all(&west).await;
    assert_eq!(slices[0].metadata.annotations, None);
    assert_eq!((all::<EndpointSliceExport>(&hub).await.len(), all::<MemberAgent>(&hub).await.len()), (2, 1));
}
