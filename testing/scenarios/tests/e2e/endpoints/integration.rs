//! Test of a requirement in upstream's integration tests (`test/integration/endpointslice`) that needs
//! kube-controller-manager's mirroring controller. The tests of the library `endpointslice` and of the member agent
//! cover the other requirements.

use super::ON;
use harness::endpoints::{Cluster, Kind, MANAGER, MIRRORING, Workload};
use harness::run;
use k8s_openapi::api::core::v1::Endpoints;
use serde_json::{Value, json};

async fn endpoints(workload: &Workload, name: &str, labels: Value) -> anyhow::Result<()> {
    let made = workload.user.create::<Endpoints>(json!({
        "metadata": {"name": name, "labels": labels},
        "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"name": "http", "port": 8080}]}],
    }));
    made.await.map(drop)
}

/// Returns the managers of a Service's slices, from the label `endpointslice.kubernetes.io/managed-by`.
async fn managers(workload: &Workload, service: &str) -> anyhow::Result<Vec<String>> {
    let slices = workload.slices(service).await?.into_iter();
    let labels = slices.map(|slice| slice.metadata.labels.unwrap_or_default());
    Ok(labels.map(|labels| labels["endpointslice.kubernetes.io/managed-by"].clone()).collect())
}

#[test]
fn mirrored_slices_and_services_without_selector_are_left_alone() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "mirrored").await?;
        let workload = cluster.workload().await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        let (plain, headless) = (json!({"selector": null}), json!({"selector": null, "clusterIP": "None"}));
        workload.service("selecting").await?;
        for (name, spec) in [("by-hand", &plain), ("by-hand-headless", &headless), ("skipped", &plain)] {
            workload.service_with(name, spec.clone()).await?;
        }
        workload.service_with("empty", plain).await?;
        endpoints(&workload, "by-hand", json!({})).await?;
        endpoints(&workload, "by-hand-headless", json!({})).await?;
        endpoints(&workload, "skipped", json!({"endpointslice.kubernetes.io/skip-mirror": "true"})).await?;
        endpoints(&workload, "of-no-service", json!({})).await?;
        let ours = "of-a-service-without-selector";
        workload.service_with(ours, json!({"selector": null})).await?;
        workload.user.create_slice(ours, ours, &["10.9.0.2"]).await?;
        let take_over = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": MANAGER}}});
        workload.user.merge::<k8s_openapi::api::discovery::v1::EndpointSlice>(ours, take_over).await?;

        let there = |slices: &std::collections::BTreeMap<_, _>| slices.len() == 1;
        workload.sees_all("selecting", "a slice", there).await?;
        workload.sees_all("by-hand", "a mirrored slice", there).await?;
        workload.sees_all("by-hand-headless", "a mirrored slice", there).await?;
        workload.settle("marker").await?;
        for (service, expected) in [
            ("selecting", &[MANAGER][..]),
            ("by-hand", &[MIRRORING]),
            ("by-hand-headless", &[MIRRORING]),
            ("skipped", &[]),
            ("empty", &[]),
            ("of-no-service", &[]),
            (ours, &[MANAGER]),
        ] {
            assert_eq!(managers(&workload, service).await?, expected, "{service}");
        }
        cluster.agent_wrote(mark, &[(2, "create endpointslices")]).await
    })
}
