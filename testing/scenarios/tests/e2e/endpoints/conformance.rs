//! Tests of the requirements in Kubernetes' conformance suite for an EndpointSlice controller.

use super::ON;
use anyhow::{Context as _, ensure};
use harness::endpoints::{Cluster, Kind, PodSketch, Workload};
use harness::run;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

async fn take(namespace: &str) -> anyhow::Result<(Cluster, Workload)> {
    let cluster = Cluster::take(Kind::WithoutItsController, namespace).await?;
    let workload = cluster.workload().await?;
    Ok((cluster, workload))
}

#[test]
fn a_service_that_selects_no_pods_has_an_empty_slice_and_the_garbage_collector_removes_it() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("nobody").await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        let service = workload.service("web").await?;
        workload.sees("web", &["IPv4 no ports: nobody"]).await?;
        let slice = workload.slice("web").await?;
        let labels = slice.metadata.labels.unwrap_or_default();
        assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslice-controller.k8s.io");
        let owners = slice.metadata.owner_references.unwrap_or_default();
        let [owner] = &owners[..] else { panic!("one owner, not {owners:?}") };
        assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("Service", service.metadata.uid.as_ref()));
        assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));

        workload.user.delete::<Service>("web").await?;
        workload.sees_all("web", "no slice left", BTreeMap::is_empty).await?;
        workload.settle("marker").await?;
        cluster.agent_wrote(mark, &[(2, "create endpointslices")]).await
    })
}

const BY_NUMBER: [&str; 1] = ["IPv4 example 3000/TCP: 10.1.0.1 published pod-1, 10.1.0.2 published pod-2"];
const BY_NAME: [&str; 2] = [
    "IPv4 http 3000/TCP, https 3001/TCP: 10.1.0.1 published pod-1",
    "IPv4 http 3001/TCP, https 3000/TCP: 10.1.0.2 published pod-2",
];

/// Waits until two Services have slices with exactly their pods.
async fn are_published(workload: &Workload) -> anyhow::Result<()> {
    workload.sees("by-number", &BY_NUMBER).await?;
    workload.sees("by-name", &BY_NAME).await?;
    Ok(())
}

#[test]
fn pods_are_found_by_number_and_name_of_a_port_and_slices_deleted_by_hand_come_back() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("ports").await?;
        let agent = cluster.serve(&[ON]).await?;
        let port = |name, port, target| json!({"name": name, "port": port, "targetPort": target});
        let spec = |ports| json!({"selector": {"app": "both"}, "ports": ports, "publishNotReadyAddresses": true});
        workload.service_with("by-number", spec(json!([port("example", 80, json!(3000))]))).await?;
        let named = json!([port("http", 80, json!("example-name")), port("https", 443, json!("other-name"))]);
        workload.service_with("by-name", spec(named)).await?;
        let one = PodSketch::new("pod-1", "both", &["10.1.0.1"]).unready();
        let other = PodSketch::new("pod-2", "both", &["10.1.0.2"]).unready();
        workload.pod(&one.port("example-name", 3000).port("other-name", 3001)).await?;
        workload.pod(&other.port("example-name", 3001).port("other-name", 3000)).await?;
        are_published(&workload).await?;
        let slices = workload.slices("by-name").await?;
        let targets = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        let targets: BTreeSet<String> = targets.filter_map(|endpoint| endpoint.target_ref.clone()?.uid).collect();
        let mut pods = BTreeSet::new();
        for name in ["pod-1", "pod-2"] {
            pods.extend(workload.user.api::<Pod>().get(name).await?.metadata.uid);
        }
        assert_eq!(targets, pods);

        workload.delete_slices().await?;
        are_published(&workload).await.context("while the agent runs")?;

        ensure!(agent.terminate().await? == harness::process::Ended::Exited(0), "{}", agent.log().tail());
        workload.delete_slices().await?;
        let _agent = cluster.serve(&[ON]).await?;
        are_published(&workload).await.context("deleted while no agent ran")
    })
}

#[test]
fn slices_deleted_by_hand_right_after_a_restart_that_wrote_nothing_come_back() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("restart").await?;
        let flags = [ON, ("--max-endpoints-per-slice", "2")];
        let agent = cluster.serve(&flags).await?;
        // Create the pods before the Service, so that the controller sees all pods at once. Otherwise the time of each
        // pod would decide which slice contains the pod.
        workload.pods("web", &["10.1.0.1", "10.1.0.2", "10.1.0.3"]).await?;
        workload.service("web").await?;
        let published = [
            "IPv4 http 8080/TCP: 10.1.0.1 ready web-0, 10.1.0.2 ready web-1",
            "IPv4 http 8080/TCP: 10.1.0.3 ready web-2",
        ];
        workload.sees("web", &published).await?;
        agent.terminate().await?;

        let mark = cluster.mark().await?;
        let _agent = cluster.serve(&flags).await?;
        workload.settle("marker").await?;
        cluster
            .agent_wrote(mark, &[(1, "create endpointslices")])
            .await
            .context("the marker's slice, at the restart")?;
        workload.delete_slices().await?;
        workload.sees("web", &published).await.map(drop)
    })
}
