//! Tests of Deployments and pods in the members of a sandbox, with the files of docs/start/sandbox.md.

use super::{Running, names};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use programs::docs::run_by;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Documentation with the files of a user.
const PAGE: &str = include_str!("../../../../docs/start/sandbox.md");
const WORK: &str = "work";
const SYSTEM: &str = "fleet-system";

/// Returns the YAML files on the page.
fn files() -> impl Iterator<Item = String> {
    run_by(PAGE, "pods::a_deployment_ends_in_endpoints_in_the_other_member_by_kubectl_alone", "yaml")
}

/// Returns the objects of all YAML files on the page: a Deployment, a Service, a ServiceExport and a
/// MultiClusterService.
fn objects() -> Vec<Value> {
    let files: Vec<String> = files().collect();
    let documents = files.iter().flat_map(|file| file.split("---\n"));
    documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Returns a client of a context in the merged kubeconfigs of a folder, as kubectl with `KUBECONFIG` and `--context`
/// does.
pub(super) async fn client(folder: &Path, context: &str) -> Client {
    let mut merged = Kubeconfig::default();
    for name in names(folder) {
        merged = merged.merge(Kubeconfig::read_from(folder.join(name)).unwrap()).unwrap();
    }
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    Client::try_from(Config::from_custom_kubeconfig(merged, &options).await.unwrap()).unwrap()
}

async fn create(client: &Client, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), WORK, &resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits until the endpoints that a member imports from pods meet a condition. Returns for each address if it is ready.
async fn imported(client: &Client, so: impl Fn(&BTreeMap<String, bool>) -> bool) -> BTreeMap<String, bool> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), SYSTEM);
    let parameters = WatchParams::default().labels("kubernetes.io/service-name=work-web").initial_events();
    let mut known: BTreeMap<String, EndpointSlice> = BTreeMap::new();
    loop {
        let mut events = slices.watch(&parameters, "").await.unwrap().boxed();
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(slice) | WatchEvent::Modified(slice) => _ = known.insert(slice.name_any(), slice),
                WatchEvent::Deleted(slice) => _ = known.remove(&slice.name_any()),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("{error:?}"),
            }
            let endpoints = known.values().flat_map(|slice| slice.endpoints.iter().flatten());
            let endpoints: BTreeMap<String, bool> = endpoints
                .flat_map(|endpoint| {
                    let ready = endpoint.conditions.as_ref().and_then(|it| it.ready).unwrap_or(true);
                    endpoint.addresses.iter().map(move |address| (address.clone(), ready))
                })
                .collect();
            if so(&endpoints) {
                return endpoints;
            }
        }
    }
}

fn ready(endpoints: &BTreeMap<String, bool>) -> usize {
    endpoints.values().filter(|ready| **ready).count()
}

/// Runs a sandbox with kubeconfigs and few changes of its own, and calls `work` with clients of both members.
fn in_a_sandbox(work: impl AsyncFnOnce(&mut Running, &Path, Client, Client)) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("kc");
    let arguments = ["--json", "--changes-per-second", "0.1", "--kubeconfigs", folder.to_str().unwrap()];
    let mut running = Running::start(&arguments);
    running.until("\"event\":\"commands\"");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [one, other] = ["kubectl@member-1", "kubectl@member-2"].map(|context| client(&folder, context));
        let (one, other) = (one.await, other.await);
        work(&mut running, &folder, one, other).await;
    });
    assert_eq!(running.end(Signal::INT), (Some(0), String::new()));
}

async fn patch<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn a_deployment_ends_in_endpoints_in_the_other_member() {
    in_a_sandbox(async |_, _, exporter, importer| {
        let objects = objects();
        assert_eq!(objects.len(), 4);
        for object in &objects {
            let client = if object["kind"] == "MultiClusterService" { &importer } else { &exporter };
            create(client, object).await;
        }
        let two = imported(&importer, |endpoints| ready(endpoints) == 2).await;
        assert!(two.keys().all(|address| address.starts_with("10.244.1.")), "{two:?}");

        let deployments: Api<Deployment> = Api::namespaced(exporter.clone(), WORK);
        let mut scale = deployments.get_scale("web").await.unwrap();
        scale.spec.as_mut().unwrap().replicas = Some(3);
        deployments.replace_scale("web", &PostParams::default(), &scale).await.unwrap();
        let before = imported(&importer, |endpoints| ready(endpoints) == 3).await;
        let pods: Api<Pod> = Api::namespaced(exporter.clone(), WORK);
        let pod = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
        patch(&pods, &pod, json!({"metadata": {"annotations": {"sandbox.fleetnet/ready": "false"}}})).await;
        imported(&importer, |endpoints| ready(endpoints) == 2).await;

        let containers = json!([{"name": "web", "image": "web:2", "ports": [{"name": "http", "containerPort": 8080}]}]);
        patch(&deployments, "web", json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
        let is_replaced = |endpoints: &BTreeMap<String, bool>| {
            ready(endpoints) == 3 && endpoints.keys().all(|address| !before.contains_key(address))
        };
        imported(&importer, is_replaced).await;
        deployments.delete("web", &DeleteParams::default()).await.unwrap();
        imported(&importer, BTreeMap::is_empty).await;
    });
}

#[test]
fn each_member_has_the_service_of_its_api_server() {
    in_a_sandbox(async |_, _, one, other| {
        for client in [one, other] {
            let services: Api<Service> = Api::namespaced(client.clone(), "default");
            assert!(services.get("kubernetes").await.unwrap().spec.unwrap().cluster_ip.is_some());
            let slices: Api<EndpointSlice> = Api::namespaced(client, "default");
            assert_eq!(slices.get("kubernetes").await.unwrap().endpoints.iter().flatten().count(), 1);
        }
    });
}

/// Needs a kubectl, which builds with this feature have.
#[cfg(feature = "real")]
#[test]
fn a_deployment_ends_in_endpoints_in_the_other_member_by_kubectl_alone() {
    use programs::control_plane::{Program, locate};
    let kubectl = locate(Program::Kubectl).unwrap();
    in_a_sandbox(async |_, folder, _, importer| {
        // kubectl writes its cache to the home, which is not the folder of the kubeconfigs.
        let scratch = tempfile::tempdir().unwrap();
        let run = |arguments: &str| {
            let paths: Vec<_> = names(folder).iter().map(|name| folder.join(name)).collect();
            let mut command = std::process::Command::new(&kubectl.file);
            command.args(kubectl.first_argument).args(arguments.split_whitespace()).current_dir(folder);
            command.env("KUBECONFIG", std::env::join_paths(paths).unwrap()).env("HOME", scratch.path());
            let output = command.output().unwrap();
            (output.status.success(), [output.stdout, output.stderr].concat())
        };
        let passes = |arguments: &str| {
            let (passed, shown) = run(arguments);
            assert!(passed, "{arguments}: {}", String::from_utf8_lossy(&shown));
            String::from_utf8(shown).unwrap()
        };
        for (name, file) in ["web.yaml", "import.yaml"].iter().zip(files()) {
            std::fs::write(scratch.path().join(name), file).unwrap();
        }
        let file = |name: &str| scratch.path().join(name).display().to_string();
        passes(&format!("--context kubectl@member-1 -n work apply -f {}", file("web.yaml")));
        passes(&format!("--context kubectl@member-2 -n work apply -f {}", file("import.yaml")));
        imported(&importer, |endpoints| ready(endpoints) == 2).await;
        passes("--context kubectl@member-1 -n work scale deployment/web --replicas=3");
        imported(&importer, |endpoints| ready(endpoints) == 3).await;
        passes("--context kubectl@member-1 -n work set image deployment/web web=web:2");
        passes("--context kubectl@member-1 -n work rollout status deployment/web --timeout=60s");

        // A List, and a kind that does not exist.
        let list = passes("--context kubectl@member-1 -n work get service,deployment -o yaml");
        std::fs::write(scratch.path().join("list.yaml"), list).unwrap();
        passes(&format!("--context kubectl@member-1 apply -f {}", file("list.yaml")));
        let mixed = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\n";
        std::fs::write(scratch.path().join("mixed.yaml"), mixed).unwrap();
        let (passed, shown) = run(&format!("--context kubectl@member-1 -n work apply -f {}", file("mixed.yaml")));
        let shown = String::from_utf8(shown).unwrap();
        assert!(!passed && shown.contains("configmap/it created") && shown.contains("\"StatefulSet\""), "{shown}");

        passes("--context kubectl@member-1 -n work delete deployment web");
        imported(&importer, BTreeMap::is_empty).await;
    });
}
