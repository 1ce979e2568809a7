//! Tests of a Service with many pods.

use super::ON;
use anyhow::ensure;
use futures::{StreamExt as _, TryStreamExt as _};
use harness::endpoints::{Cluster, Kind, PodSketch, Workload};
use harness::fleet::MEMBER_AGENT;
use harness::process::Ended;
use harness::run;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::{BTreeMap, BTreeSet};

/// Number of pods: they fill ten slices of 100 endpoints, and half of an eleventh.
const PODS: usize = 1_050;
/// Number of the pod that becomes not ready and then ready again.
const FLAPPING: usize = 777;
/// Number of pods that are created or removed in parallel.
const AT_ONCE: usize = 16;

/// Pods of the Service `web`. `generation` contains, for each pod, the number of times that the pod was created again.
struct Pods<'a> {
    workload: &'a Workload,
    generation: Vec<usize>,
}

impl<'a> Pods<'a> {
    async fn create(workload: &'a Workload) -> anyhow::Result<Self> {
        let pods = Self { workload, generation: vec![0; PODS] };
        pods.make(0..PODS).await?;
        Ok(pods)
    }

    fn sketch(&self, pod: usize) -> PodSketch {
        PodSketch::new(&format!("web-{pod}"), "web", &[&self.address(pod)])
    }

    /// Returns the address of a pod. The address changes each time the pod is created again.
    fn address(&self, pod: usize) -> String {
        format!("10.{}.{}.{}", self.generation[pod] + 1, pod / 200, pod % 200 + 1)
    }

    fn routes(&self) -> Vec<String> {
        (0..PODS).map(|pod| format!("{}:8080", self.address(pod))).collect()
    }

    async fn make(&self, pods: impl IntoIterator<Item = usize>) -> anyhow::Result<()> {
        let made = pods.into_iter().map(|pod| async move { self.workload.pod(&self.sketch(pod)).await.map(drop) });
        futures::stream::iter(made).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn remove(&self, pods: &[usize]) -> anyhow::Result<()> {
        let removed = pods.iter().map(|pod| async move { self.workload.remove_pod(&format!("web-{pod}")).await });
        futures::stream::iter(removed).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn recreate(&mut self, pods: &[usize]) -> anyhow::Result<()> {
        pods.iter().for_each(|pod| self.generation[*pod] += 1);
        self.make(pods.iter().copied()).await
    }

    /// Waits until the slices have exactly the pods except `without`. Returns the slices.
    async fn are_published_but(&self, without: &[usize]) -> anyhow::Result<Slices> {
        let expected: BTreeSet<String> =
            (0..PODS).filter(|pod| !without.contains(pod)).map(|pod| self.address(pod)).collect();
        let what = format!("{} endpoints", expected.len());
        let are_there = |objects: &BTreeMap<String, EndpointSlice>| {
            let addresses: Vec<&String> = objects.values().flat_map(addresses).collect();
            addresses.len() == expected.len() && addresses.into_iter().all(|address| expected.contains(address))
        };
        self.workload.sees_all("web", &what, are_there).await.map(Slices)
    }
}

fn addresses(slice: &EndpointSlice) -> impl Iterator<Item = &String> {
    slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses)
}

/// Slices of the Service `web`, by name.
struct Slices(BTreeMap<String, EndpointSlice>);

impl Slices {
    /// Returns the number of endpoints in each slice, largest first.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.0.values().map(|slice| addresses(slice).count()).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        lengths
    }

    /// Returns the numbers of the pods in each full slice.
    fn full(&self) -> Vec<Vec<usize>> {
        let pods = self.0.values().map(|slice| slice.endpoints.iter().flatten().filter_map(pod).collect());
        pods.filter(|pods: &Vec<usize>| pods.len() == 100).collect()
    }

    /// Returns the number of slices that differ from `before`.
    fn changed_since(&self, before: &Self) -> usize {
        let version = |slice: &EndpointSlice| slice.metadata.resource_version.clone();
        self.0.iter().filter(|(name, slice)| before.0.get(*name).map(version) != Some(version(slice))).count()
    }
}

/// Returns the number of the pod that an endpoint refers to; `None` if it refers to no pod.
fn pod(endpoint: &k8s_openapi::api::discovery::v1::Endpoint) -> Option<usize> {
    endpoint.target_ref.as_ref()?.name.as_deref()?.strip_prefix("web-")?.parse().ok()
}

/// Returns the expected numbers of endpoints: ten full slices, followed by others.
fn ten_full_and(others: &[usize]) -> Vec<usize> {
    [&[100; 10], others].concat()
}

#[test]
fn a_service_of_1050_pods_has_11_slices_and_a_change_costs_those_that_it_is_in() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutControllerManager, "large").await?;
        let workload = cluster.workload().await?;
        let mut pods = Pods::create(&workload).await?;
        workload.service("web").await?;
        let mark = cluster.mark().await?;
        let agent = cluster.serve(&[ON]).await?;
        let mut slices = pods.are_published_but(&[]).await?;
        assert_eq!(slices.lengths(), ten_full_and(&[50]));
        cluster.agent_wrote(mark, &[(11, "create endpointslices")]).await?;
        let (mut routes, all) = (workload.routes("web"), pods.routes());
        routes.are(&but(&all, &[])).await?;

        let mark = cluster.mark().await?;
        workload.report(&pods.sketch(FLAPPING).unready()).await?;
        routes.are(&but(&all, &[FLAPPING])).await?;
        workload.report(&pods.sketch(FLAPPING)).await?;
        routes.are(&but(&all, &[])).await?;
        let flapped = pods.are_published_but(&[]).await?;
        assert_eq!(flapped.changed_since(&slices), 1, "the slice that it is in");
        cluster.agent_wrote(mark, &[(2, "update endpointslices")]).await?;
        slices = flapped;

        // Remove 50 pods of one slice while the agent runs. No other slice contains these pods.
        let fifty = slices.full()[3][..50].to_vec();
        let mark = cluster.mark().await?;
        pods.remove(&fifty).await?;
        let without = pods.are_published_but(&fifty).await?;
        assert_eq!(without.lengths(), [&[100; 9][..], &[50, 50]].concat());
        pods.recreate(&fifty).await?;
        let new_slices = pods.are_published_but(&[]).await?;
        assert_eq!(
            new_slices.lengths(),
            ten_full_and(&[50]),
            "who has room for all takes them: the one that will be fullest"
        );
        assert!(new_slices.changed_since(&slices) <= 2, "where they went, where they came");
        let written = cluster.written_by(MEMBER_AGENT, mark).await?;
        ensure!(written.0.iter().all(|write| write.verb == "update" && write.status == 200), "{written}");
        let most = 3 * fifty.len();
        assert!((2..=most).contains(&written.count()), "one where a pod begins to go, is gone, comes:\n{written}");
        routes.always_had(&but(&all, &[&fifty[..], &[FLAPPING]].concat()))?;

        // Remove and create again five pods of each of ten slices while no agent runs.
        let fifty: Vec<usize> = new_slices.full().iter().flat_map(|slice| slice[40..45].to_vec()).collect();
        assert_eq!(agent.terminate().await?, Ended::Exited(0), "{}", agent.log().tail());
        pods.remove(&fifty).await?;
        pods.recreate(&fifty).await?;
        let mark = cluster.mark().await?;
        let agent = cluster.serve(&[ON]).await?;
        slices = pods.are_published_but(&[]).await?;
        assert_eq!(slices.lengths(), ten_full_and(&[50]), "slices that lose some are filled first");
        assert_eq!(slices.changed_since(&new_slices), 10);
        cluster.agent_wrote(mark, &[(10, "update endpointslices")]).await?;

        assert_eq!(agent.terminate().await?, Ended::Exited(0), "{}", agent.log().tail());
        let mark = cluster.mark().await?;
        let _agent = cluster.serve(&[ON]).await?;
        workload.settle("marker").await?;
        cluster.agent_wrote(mark, &[(1, "create endpointslices")]).await
    })
}

/// Returns the routes (addresses with ports) of all pods except these.
fn but<'a>(routes: &'a [String], without: &[usize]) -> Vec<&'a str> {
    let rest = routes.iter().enumerate().filter(|(pod, _)| !without.contains(pod));
    rest.map(|(_, route)| route.as_str()).collect()
}
