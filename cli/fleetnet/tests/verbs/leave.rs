//! Tests of `fleetnet leave`.

use crate::fleet::Fleet;
use crate::hub::{Cluster, admit, folder, heard, hub_and_west, hub_secret};
use crate::program::{Ended, run, run_with};
use fleetnet_api::crd::{
    EndpointSliceImport, InternalServiceExport, MemberAgent, MultiClusterService, ServiceExport, mcs,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;

const NAMESPACE: &str = "fleet-member-west";
const OURS: &str = "networking.fleet.azure.com/cleanup";

async fn namespace(cluster: &Cluster, name: &str) -> Option<Namespace> {
    Api::<Namespace>::all(cluster.client()).get_opt(name).await.unwrap()
}

/// Creates a member that no agent serves: its access, an export with a finalizer, a distributed slice with two
/// finalizers, and a MemberAgent.
async fn gone_member(hub: &Cluster) {
    admit(hub, "west").await;
    let reference = json!({"clusterId": "west", "kind": "Service", "namespace": "work", "name": "app", "resourceVersion": "1",
                           "generation": 1, "uid": "1", "namespacedName": "work/app"});
    hub.create::<InternalServiceExport>(
        NAMESPACE,
        json!({
            "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "InternalServiceExport",
            "metadata": {"name": "work-app", "finalizers": [OURS]},
            "spec": {"ports": [], "serviceReference": reference},
        }),
    )
    .await;
    heard(hub, "west", "the-uid-of-west").await;
}

async fn hub_of_a_gone_member() -> (TempDir, Cluster) {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    gone_member(&hub).await;
    (folder, hub)
}

async fn leave(clusters: &[&Cluster], more: &[&str]) -> Ended {
    let flags: Vec<String> = clusters.iter().map(|cluster| cluster.flag()).collect();
    run_with(&["leave", "west", "--yes"], &flags, more).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_a_real_fleet_leaves_and_nothing_is_left_behind() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let leave = |more: &[&str]| {
        // The clusters of the sandbox have no Secret that names the member.
        let named = ["leave", "member-2", "--yes", "--context", "kubectl@member-2"];
        let arguments: Vec<String> = named.iter().chain(more).map(|it| (*it).to_owned()).collect();
        run(arguments.into_iter().chain(flags.clone()))
    };
    let planned = leave(&["--dry-run", "-o", "json"]).await.expect(0).json("Leave");
    let (hub, member) = (fleet.client("hub").await, fleet.client("member-2").await);
    assert_eq!(planned["dryRun"], true);
    let exports: Api<ServiceExport> = Api::all(member.clone());
    assert_eq!(exports.list(&ListParams::default()).await.unwrap().items.len(), 1, "a dry run deletes nothing");

    let done = leave(&["-o", "json"]).await.expect(0).json("Leave");
    let kinds: Vec<&str> = done["objects"].as_array().unwrap().iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(kinds.starts_with(&["ServiceExport", "MultiClusterService"]) && kinds.ends_with(&["Namespace"]), "{done}");
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    assert!(namespaces.get_opt("fleet-member-member-2").await.unwrap().is_none());
    assert!(namespaces.get_opt("fleet-member-member-1").await.unwrap().is_some());
    let derived: Api<Service> = Api::namespaced(member, "fleet-system");
    assert_eq!(derived.list(&ListParams::default()).await.unwrap().items.len(), 0);
    let distributed_slices: Api<EndpointSliceImport> = Api::namespaced(hub, "fleet-member-member-1");
    for distributed in distributed_slices.list(&ListParams::default()).await.unwrap().items {
        assert_eq!(distributed.spec.slice.endpoint_slice_reference.cluster_id, "member-1");
    }
    let others: Api<MultiClusterService> = Api::all(fleet.client("member-1").await);
    assert_eq!(others.list(&ListParams::default()).await.unwrap().items.len(), 1, "another member keeps its import");

    let again = leave(&["-o", "name"]).await.expect(0);
    assert_eq!(again.output, "Namespace/fleet-member-member-2\n");
    assert!(again.errors.contains("the hub has no member member-2: its members are member-1"), "{again:?}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_uses_the_mcs_api_leaves_and_nothing_is_left_behind() {
    let fleet = Fleet::start_with(2, "multicluster").await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let leave = async |more: &[&str]| {
        // The clusters of the sandbox have no Secret that names the member.
        let named = ["leave", "member-2", "--yes", "--context", "kubectl@member-2"];
        let arguments: Vec<String> = named.iter().chain(more).map(|it| (*it).to_owned()).collect();
        let left = run(arguments.into_iter().chain(flags.clone())).await.expect(0).json("Leave");
        let objects = left["objects"].as_array().unwrap().iter();
        objects.map(|it| format!("{} {} {}", it["action"], it["kind"], it["name"]).replace('"', "")).collect::<Vec<_>>()
    };
    let begin = ["deleted ServiceExport app", "updated Namespace work", "deleted Secret fleetnet-hub"];
    let planned = leave(&["--dry-run", "-o", "json"]).await;
    assert_eq!(planned[..2], begin[..2], "{planned:?}");
    let (hub, member) = (fleet.client("hub").await, fleet.client("member-2").await);
    let labels = |namespace: Namespace| namespace.metadata.labels.unwrap_or_default();
    let work = Api::<Namespace>::all(member.clone()).get("work").await.unwrap();
    assert_eq!(labels(work).get("fleetnet/import").map(String::as_str), Some("true"), "a dry run changes nothing");

    let done = leave(&["-o", "json"]).await;
    assert_eq!(done[..2], begin[..2], "{done:?}");
    assert!(Api::<Namespace>::all(hub).get_opt("fleet-member-member-2").await.unwrap().is_none());
    let imports: Api<mcs::ServiceImport> = Api::all(member.clone());
    assert_eq!(imports.list(&ListParams::default()).await.unwrap().items.len(), 0);
    let services: Api<Service> = Api::namespaced(member.clone(), "work");
    let services = services.list(&ListParams::default()).await.unwrap().items;
    assert!(services.iter().all(|service| service.metadata.name.as_deref() == Some("app")), "{services:?}");
    let slices: Api<EndpointSlice> = Api::namespaced(member, "work");
    assert_eq!(slices.list(&ListParams::default()).await.unwrap().items.len(), 2, "those of app");
    let import: Api<mcs::ServiceImport> = Api::namespaced(fleet.client("member-1").await, "work");
    let clusters = import.get("app").await.unwrap().status.unwrap().clusters.unwrap();
    assert_eq!(clusters.iter().map(|it| it.cluster.as_str()).collect::<Vec<_>>(), ["member-1"]);
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_force_a_member_of_a_real_fleet_leaves_by_the_hub_alone() {
    let fleet = Fleet::start(2).await;
    let arguments = ["leave", "member-2", "--force", "--yes", "-o", "json"].map(str::to_owned);
    let done = run(arguments.into_iter().chain(fleet.flags(&["hub"]))).await.expect(0).json("Leave");
    let released = done["objects"].as_array().unwrap().iter().filter(|it| it["action"] == "released").count();
    assert_eq!(released, 0, "the hub agent removes its finalizers itself: {done}");
    let hub = fleet.client("hub").await;
    assert!(Api::<Namespace>::all(hub.clone()).get_opt("fleet-member-member-2").await.unwrap().is_none());
    let distributed_slices: Api<EndpointSliceImport> = Api::namespaced(hub, "fleet-member-member-1");
    for distributed in distributed_slices.list(&ListParams::default()).await.unwrap().items {
        assert_eq!(distributed.spec.slice.endpoint_slice_reference.cluster_id, "member-1");
    }
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_force_finalizers_of_fleetnet_are_removed_after_the_hub_agent_had_its_chance() {
    let (_folder, hub) = hub_of_a_gone_member().await;
    let planned = leave(&[&hub], &["--force", "--dry-run"]).await.expect(0);
    assert!(planned.errors.contains("dry run") && namespace(&hub, NAMESPACE).await.is_some(), "{planned:?}");
    let done = leave(&[&hub], &["--force", "--wait=1s", "-o", "json"]).await.expect(0).json("Leave");
    let objects = done["objects"].as_array().unwrap();
    let actions = |kind: &str| -> Vec<&str> {
        objects.iter().filter(|it| it["kind"] == kind).filter_map(|it| it["action"].as_str()).collect()
    };
    assert_eq!(objects[0]["kind"], "RoleBinding", "the access ends first: {done}");
    assert_eq!(actions("InternalServiceExport"), ["deleted", "released"]);
    assert_eq!((actions("MemberAgent"), actions("Namespace")), (vec!["deleted"], vec!["deleted"]));
    assert!(namespace(&hub, NAMESPACE).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_objects_keep_the_namespace_and_are_named_in_each_format() {
    let (_folder, hub) = hub_of_a_gone_member().await;
    hub.create::<ConfigMap>(NAMESPACE, json!({"metadata": {"name": "notes"}})).await;
    for format in ["table", "wide", "json", "yaml", "name"] {
        let ended = leave(&[&hub], &["--force", "--wait=1s", "-o", format]).await.expect(0);
        let named = "it has objects that are not fleetnet's: ConfigMap/fleet-member-west/notes";
        assert!(format == "name" || ended.output.contains(named), "{ended:?}");
    }
    assert!(namespace(&hub, NAMESPACE).await.is_some());
    assert_eq!(Api::<MemberAgent>::all(hub.client()).list(&ListParams::default()).await.unwrap().items.len(), 0);
    assert_eq!(
        Api::<InternalServiceExport>::all(hub.client()).list(&ListParams::default()).await.unwrap().items.len(),
        0
    );
    assert_eq!(
        Api::<ConfigMap>::namespaced(hub.client(), NAMESPACE).list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_finalizers_stay_and_end_the_wait_with_a_timeout() {
    let (_folder, hub) = hub_of_a_gone_member().await;
    hub.create::<ConfigMap>(
        NAMESPACE,
        json!({"metadata": {"name": "kube-root-ca.crt", "finalizers": ["example.com/keep"]}}),
    )
    .await;
    let ended = leave(&[&hub], &["--force", "--wait=500ms"]).await.expect(4);
    assert!(
        ended.errors.contains("namespace fleet-member-west is not gone yet") && ended.output.contains("released"),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_than_the_members_is_refused() {
    let folder = folder();
    let (hub, east) = (Cluster::https(folder.path(), "hub").await, Cluster::https(folder.path(), "east").await);
    gone_member(&hub).await;
    let ended = leave(&[&hub, &east], &["--context", "admin@east"]).await.expect(2);
    assert!(ended.errors.contains("admin@east is not the cluster of the member west"), "{ended:?}");
    let ended = leave(&[&hub, &east], &[]).await.expect(2);
    assert!(
        ended.errors.contains("no context leads to the member's cluster") && ended.errors.contains("--force"),
        "{ended:?}"
    );
    assert!(namespace(&hub, NAMESPACE).await.is_some());
}

/// Creates an export and an import of a user.
async fn used(cluster: &Cluster) {
    cluster.server.make_namespace("work").await.unwrap();
    let export = json!({
        "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "ServiceExport", "metadata": {"name": "app"},
    });
    cluster.create::<ServiceExport>("work", export).await;
    let import = json!({
        "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "MultiClusterService", "metadata": {"name": "app"},
        "spec": {"serviceImport": {"name": "app"}},
    });
    cluster.create::<MultiClusterService>("work", import).await;
}

async fn is_used(cluster: &Cluster) -> bool {
    let exports: Api<ServiceExport> = Api::all(cluster.client());
    let imports: Api<MultiClusterService> = Api::all(cluster.client());
    let (exports, imports) = (exports.list(&ListParams::default()).await, imports.list(&ListParams::default()).await);
    (exports.unwrap().items.len(), imports.unwrap().items.len()) == (1, 1)
}

/// Rule O26: A user runs `fleetnet leave`, `rotate` or `migrate to-go`. The MemberAgent of the member has the UID of
/// another member's cluster, or one cluster has two ids
/// Then: The command changes a cluster only if its UID is the one in the MemberAgent, and if the cluster itself names
/// the member, or the user names the context. If another member has the same UID, the user must name the context, and
/// `leave` removes only what the member has in the hub
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_names_the_cluster_of_another_takes_nothing_of_it_along() {
    let folder = folder();
    let [hub, west, east] = [
        Cluster::https(folder.path(), "hub").await,
        Cluster::https(folder.path(), "west").await,
        Cluster::https(folder.path(), "east").await,
    ];
    let of_east = east.uid().await;
    admit(&hub, "west").await;
    heard(&hub, "west", &of_east).await;
    for (cluster, member) in [(&west, "west"), (&east, "east")] {
        hub_secret(cluster, member).await;
        used(cluster).await;
    }
    let clusters = [&hub, &west, &east];
    // East has no MemberAgent, as a member with Go agents.
    let ended = leave(&clusters, &[]).await.expect(2);
    assert!(ended.errors.contains("context admin@east leads to the member east"), "{ended:?}");
    admit(&hub, "east").await;
    heard(&hub, "east", &of_east).await;
    for context in [&[][..], &["--context", "admin@east"]] {
        let ended = leave(&clusters, context).await.expect(2);
        assert!(ended.errors.contains("context admin@east leads to the member east"), "{ended:?}");
    }
    // The right context does not have the UID in the hub, and the message does not lead to another cluster.
    let ended = leave(&clusters, &["--context", "admin@west"]).await.expect(2);
    assert!(
        ended.errors.contains("The member itself writes this UID") && ended.errors.contains("--force"),
        "{ended:?}"
    );
    // The command looks for east, and another member has the same UID.
    let flags = clusters.map(|cluster| cluster.flag());
    let ended = run(["leave", "east", "--yes"].map(str::to_owned).into_iter().chain(flags)).await.expect(2);
    assert!(ended.errors.contains("for east and for west: name the context of east with --context"), "{ended:?}");
    assert!(is_used(&east).await && is_used(&west).await);

    leave(&clusters, &["--force", "--wait=1s"]).await.expect(0);
    assert!(namespace(&hub, NAMESPACE).await.is_none());
    assert!(is_used(&east).await && namespace(&hub, "fleet-member-east").await.is_some());
}

/// Also rule O26.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_ids_of_a_cluster_leaves_and_the_other_keeps_its_exports() {
    let folder = folder();
    let (hub, east) = (Cluster::https(folder.path(), "hub").await, Cluster::https(folder.path(), "east").await);
    let of_east = east.uid().await;
    for member in ["west", "east"] {
        admit(&hub, member).await;
        heard(&hub, member, &of_east).await;
    }
    used(&east).await;
    let clusters = [&hub, &east];
    // The Secret of the cluster is that of the id that stays.
    hub_secret(&east, "east").await;
    let ended = leave(&clusters, &["--context", "admin@east"]).await.expect(2);
    assert!(ended.errors.contains("leads to the member east") && ended.errors.contains("--force"), "{ended:?}");
    // It is that of the id that leaves.
    hub_secret(&east, "west").await;
    let ended = leave(&clusters, &["--context", "admin@east", "--wait=1s", "-o", "json"]).await.expect(0);
    assert!(ended.errors.contains("is also the member east"), "{ended:?}");
    let done = ended.json("Leave");
    let kinds: Vec<&str> = done["objects"].as_array().unwrap().iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(!kinds.contains(&"ServiceExport") && !kinds.contains(&"MultiClusterService"), "{done}");
    assert!(is_used(&east).await && east.secret("fleet-system", "fleetnet-hub").await.is_none());
    assert!(namespace(&hub, NAMESPACE).await.is_none() && namespace(&hub, "fleet-member-east").await.is_some());
}

/// Also rule O26.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_say_which_member_it_is_must_be_named() {
    let folder = folder();
    let (hub, west) = joined(folder.path()).await;
    heard(&hub, "west", &west.uid().await).await;
    let ended = leave(&[&hub, &west], &["--wait=1s"]).await.expect(2);
    assert!(ended.errors.contains("nor a Deployment in fleet-system says that it is west"), "{ended:?}");
    leave(&[&hub, &west], &["--wait=10s", "--context", "admin@west"]).await.expect(0);
    assert!(namespace(&hub, NAMESPACE).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nothing_is_deleted_unless_the_user_agrees_before() {
    let (_folder, hub) = hub_of_a_gone_member().await;
    let kubeconfig = hub.kubeconfig.to_str().unwrap();
    for more in [&[][..], &["--force"]] {
        let arguments = ["leave", "west", "--kubeconfig", kubeconfig];
        let ended = run(arguments.iter().chain(more)).await.expect(2);
        assert!(ended.errors.contains("standard input is no terminal: use --yes, or --dry-run"), "{ended:?}");
    }
    assert!(namespace(&hub, NAMESPACE).await.is_some());
    run(["leave", "west", "--kubeconfig", kubeconfig, "--force", "--dry-run"]).await.expect(0);
}

/// Returns a hub and its member west, which has the namespace `work`. No agent runs.
async fn joined(folder: &Path) -> (Cluster, Cluster) {
    let (hub, west) = hub_and_west(folder).await;
    let flags = [&hub, &west].map(|cluster| cluster.flag());
    run(["join", "west", "--apply"].map(str::to_owned).into_iter().chain(flags)).await.expect(0);
    west.server.make_namespace("work").await.unwrap();
    (hub, west)
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_by_the_mcs_api_that_the_agent_does_not_manage_any_more_are_named_at_once() {
    let folder = folder();
    let (hub, west) = joined(folder.path()).await;
    let labels = json!({
        "app.kubernetes.io/managed-by": "fleetnet-member-agent", "multicluster.kubernetes.io/service-name": "app",
    });
    west.create::<Service>(
        "work",
        json!({"metadata": {"name": "derived-x", "labels": labels}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    // A Service of another writer.
    west.create::<Service>("work", json!({"metadata": {"name": "app"}, "spec": {"ports": [{"port": 80}]}})).await;
    let ended = leave(&[&hub, &west], &["--context", "admin@west"]).await.expect(1);
    let expected =
        "the agent runs without the standard API, so it does not remove 1 derived Services of multicluster.x-k8s.io";
    assert!(ended.errors.contains(expected) && ended.errors.contains("--multicluster-api"), "{ended:?}");
    assert!(namespace(&hub, NAMESPACE).await.is_some(), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_no_agent_removes_end_the_wait_with_a_timeout() {
    let folder = folder();
    let (hub, west) = joined(folder.path()).await;
    west.create::<ServiceExport>(
        "work",
        json!({
            "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "ServiceExport",
            "metadata": {"name": "app", "finalizers": [OURS]},
        }),
    )
    .await;
    let ended = leave(&[&hub, &west], &["--context", "admin@west", "--wait=500ms"]).await.expect(4);
    assert!(ended.errors.contains("the agent has not removed 1 ServiceExports"), "{ended:?}");
    assert!(ended.output.contains("ServiceExport/work/app") && namespace(&hub, NAMESPACE).await.is_some(), "{ended:?}");
}
