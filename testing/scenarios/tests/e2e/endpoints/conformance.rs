//! Tests of the requirements in Kubernetes' conformance suite for an EndpointSlice controller.

use super::ON;
use anyhow::Context as _;
use harness::endpoints::{Cluster, Kind, Workload};
use harness::run;
use k8s_openapi::api::core::v1::Service;
use std::collections::BTreeMap;

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
