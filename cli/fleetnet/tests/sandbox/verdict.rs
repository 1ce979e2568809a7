//! Tests of verdicts that fail because a user changed the clusters.

use super::Running;
use super::pods::client;
use fleetnet_api::crd::MultiClusterService;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Returns a slice in the namespace `fleet-system` that no agent created. A faulty agent could leave such a slice
/// behind.
fn foreign_slice(service: &str) -> EndpointSlice {
    let slice = serde_json::json!({
        "metadata": {"name": "foreign", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"]}],
    });
    serde_json::from_value(slice).unwrap()
}

/// Runs a sandbox until its verdict, which must fail. Returns the differences.
fn fails(mut running: Running) -> Vec<String> {
    let verdict: Value = serde_json::from_str(&running.until("\"event\":\"verdict\"")).unwrap();
    assert_eq!(verdict["passed"], false, "{verdict}");
    assert_eq!(running.child.wait().unwrap().code(), Some(1));
    serde_json::from_value(verdict["wrong"].clone()).unwrap()
}

#[test]
fn what_is_imported_wrongly_or_left_over_is_reported_and_ends_it_with_1() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    // The 100 changes take 20 s. The test makes its writes during these changes, and needs far less than 20 s for them.
    let slowly = ["--once", "--json", "--changes", "100", "--changes-per-second", "5", "--kubeconfigs", folder];
    let mut running = Running::start(&slowly);
    running.until("\"event\":\"change\"");
    block_on(async {
        for (member, service) in [("kubectl@member-1", "work-gone"), ("kubectl@member-2", "work-app")] {
            let slices = Api::namespaced(client(scratch.path(), member).await, "fleet-system");
            slices.create(&PostParams::default(), &foreign_slice(service)).await.unwrap();
        }
        let multi_cluster_services: Api<MultiClusterService> =
            Api::namespaced(client(scratch.path(), "kubectl@member-2").await, "work");
        let spec = serde_json::json!({"serviceImport": {"name": "zzz"}, "type": "ClusterIP"});
        let request = serde_json::json!({"metadata": {"name": "zzz"}, "spec": spec});
        multi_cluster_services.create(&PostParams::default(), &serde_json::from_value(request).unwrap()).await.unwrap();
    });
    assert_eq!(
        fails(running),
        [
            "fleet-system of member-1 has the EndpointSlice foreign, which should not be there",
            "import work/zzz in member-2 should not be there",
            "fleet-system of member-2 has the EndpointSlice foreign, which should not be there",
            "the hub has the InternalServiceImport fleet-member-member-2/work-zzz, which should not be there",
        ]
    );
}
