//! Test of the harness's fleets: control planes that tests use one after the other.

use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use harness::eventually;
use harness::fleet::Fleet;
use harness::run;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

async fn make_leftovers(fleet: &Fleet, namespace: &str) -> anyhow::Result<()> {
    let client = fleet.members[0].control_plane.admin();
    let export: ServiceExport = serde_json::from_value(json!({
        "metadata": {"name": "left", "finalizers": ["networking.fleet.azure.com/svc-export-cleanup"]},
    }))?;
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &export).await?;
    let claim: MultiClusterService = serde_json::from_value(json!({
        "metadata": {"name": "left"}, "spec": {"serviceImport": {"name": "left"}},
    }))?;
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &claim).await?;
    let service: Service =
        serde_json::from_value(json!({"metadata": {"name": "left"}, "spec": {"ports": [{"port": 80}]}}))?;
    Api::namespaced(client, namespace).create(&PostParams::default(), &service).await?;
    Ok(())
}

#[test]
fn the_next_test_finds_nothing_of_the_one_before_but_the_same_control_planes() -> anyhow::Result<()> {
    run(async {
        let first = Fleet::take(1).await?;
        let namespace = first.namespace("work").await?;
        make_leftovers(&first, &namespace).await?;
        let (folder, cluster_id) = (first.hub.folder().to_path_buf(), first.members[0].cluster_id.clone());
        drop(first);

        let second = Fleet::take(2).await?;
        assert_eq!(second.hub.folder(), folder);
        assert_ne!(second.members[0].cluster_id, cluster_id);
        let client = second.members[0].control_plane.admin();
        let exports: Api<ServiceExport> = Api::namespaced(client.clone(), &namespace);
        eventually::gone(&exports, "left").await?;
        let claims = Api::<MultiClusterService>::all(client.clone()).list(&ListParams::default()).await?;
        assert_eq!(claims.items.len(), 0);
        let services = Api::<Service>::all(client).list(&ListParams::default()).await?;
        let names: Vec<_> = services.items.iter().filter_map(|service| service.metadata.name.as_deref()).collect();
        assert_eq!(names, ["kubernetes"]);
        Ok(())
    })
}
