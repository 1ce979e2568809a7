//! Steps of the comparison, run in both clusters: start with existing pods, changes of single pods, rollouts, and a
//! restart. Then changes of single pods again, with many pods in each cluster.

use super::Size;
use super::cluster::{Cluster, Pod, pods_of};
use super::contender::Running;
use super::report::{Figures, Report};
use crate::quantiles::Quantiles;
use anyhow::Context as _;
use futures::future::try_join_all;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause between the changes of two pods in a rollout.
const STEP: Duration = Duration::from_millis(2);
/// Pause between two single changes, long enough for a controller to observe its own write.
const PAUSE: Duration = Duration::from_millis(25);
/// Pause after a rollout and after a restart, longer than the retry delay of a controller with a stale cache.
const SETTLE: Duration = Duration::from_millis(1_300);
/// Time limit for the start of a controller.
const START: Duration = Duration::from_secs(120);

/// One cluster of the comparison, with its controller and the controller's results so far.
pub struct Controller {
    cluster: Cluster,
    running: Option<Running>,
    unready: BTreeSet<Pod>,
    figures: Figures,
}

/// Runs all steps of the comparison. Each step runs for both controllers before the next step starts. Returns the
/// report.
pub async fn both(controllers: &mut [Controller], size: Size) -> anyhow::Result<Report> {
    for each in &mut *controllers {
        each.start(size.services, size.pods).await?;
    }
    let flaps = flap_all(controllers, size.services, size).await?;
    let rollouts = roll_out_all(controllers, size).await?;
    for (index, each) in controllers.iter_mut().enumerate() {
        each.figures.flap = Quantiles::of(flaps[index].clone());
        each.figures.rollout = Quantiles::of(rollouts[index].iter().map(|(made, _)| *made).collect());
        each.figures.rollout_asked = Quantiles::of(rollouts[index].iter().map(|(_, requested)| *requested).collect());
        each.take_stock()?;
        each.restart(size).await?;
    }
    let services = (size.many_pods / size.pods).max(size.services);
    for each in &mut *controllers {
        each.grow(size.services..services, size.pods).await?;
    }
    let flaps = flap_all(controllers, services, size).await?;
    for (index, each) in controllers.iter_mut().enumerate() {
        each.figures.many.flap = Quantiles::of(flaps[index].clone());
        each.take_stock_of_many().await?;
    }
    Ok(Report::new(size, controllers.iter().map(|each| (each.cluster.contender, each.figures.clone())).collect()))
}

async fn flap_all(controllers: &mut [Controller], services: usize, size: Size) -> anyhow::Result<Vec<Vec<Duration>>> {
    let mut samples = vec![Vec::new(); controllers.len()];
    for flap in 0..size.flaps {
        let service = flap % services;
        let index = (flap / services) % size.pods;
        let pod = Pod { service, index, number: service * size.pods + index };
        for turn in 0..controllers.len() {
            // Each controller makes the first of two changes equally often, so that the order favours neither.
            let each = (turn + flap) % controllers.len();
            samples[each].push(controllers[each].flap(pod).await?);
            sleep(PAUSE).await;
        }
    }
    Ok(samples)
}

async fn roll_out_all(controllers: &mut [Controller], size: Size) -> anyhow::Result<Vec<Vec<(Duration, Duration)>>> {
    let mut samples = vec![Vec::new(); controllers.len()];
    let mut marks = Vec::new();
    for each in &*controllers {
        marks.push(each.cluster.control_plane.audit().mark().await?);
    }
    for rollout in 0..size.rollouts {
        for turn in 0..controllers.len() {
            let each = (turn + rollout) % controllers.len();
            samples[each].push(controllers[each].roll_out(rollout % size.services, size).await?);
        }
        sleep(SETTLE).await;
    }
    for (each, mark) in controllers.iter_mut().zip(marks) {
        each.figures.rollout_writes = each.cluster.slice_writes_since(mark).await?;
    }
    Ok(samples)
}

impl Controller {
    /// Returns a cluster whose controller does not run yet.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, running: None, unready: BTreeSet::new(), figures: Figures::default() }
    }

    fn running(&self) -> anyhow::Result<&Running> {
        self.running.as_ref().context("nobody runs")
    }

    async fn start(&mut self, services: usize, pods_each: usize) -> anyhow::Result<()> {
        let mark = self.cluster.control_plane.audit().mark().await?;
        let pods = (0..services).flat_map(|service| pods_of(service, pods_each));
        let all = self.cluster.seen.expect(pods.map(|pod| (pod.address(), true)).collect());
        let begun = Instant::now();
        self.running = Some(self.cluster.contender.start(&self.cluster.control_plane).await?);
        let shown = all.shown_within(START).await;
        let shown = shown.with_context(|| self.running.as_ref().map(Running::tail).unwrap_or_default())?;
        self.figures.start_milliseconds = crate::quantiles::milliseconds(shown - begun);
        sleep(SETTLE).await;
        self.figures.start_writes = self.cluster.slice_writes_since(mark).await?;
        Ok(())
    }

    /// Changes a pod's readiness. Returns the time from the patch of the pod's status until the pod's slice shows the
    /// change.
    async fn flap(&mut self, pod: Pod) -> anyhow::Result<Duration> {
        let becomes_ready = self.toggle(pod);
        let expected = self.cluster.seen.expect(vec![(pod.address(), becomes_ready)]);
        let change = self.cluster.set_ready(pod, becomes_ready).await?;
        Ok(expected.shown().await? - change.requested)
    }

    /// Changes many pods of a Service. Returns two durations until slices show all changes: from the server's response
    /// to the last patch, and from sending the last patch.
    async fn roll_out(&mut self, service: usize, size: Size) -> anyhow::Result<(Duration, Duration)> {
        let pods: Vec<Pod> = pods_of(service, size.pods).take(size.rollout_pods).collect();
        let becomes: Vec<bool> = pods.iter().map(|pod| self.toggle(*pod)).collect();
        let wanted = pods.iter().zip(&becomes).map(|(pod, ready)| (pod.address(), *ready)).collect();
        let expected = self.cluster.seen.expect(wanted);
        let begun = Instant::now();
        let cluster = &self.cluster;
        let changes = pods.iter().zip(&becomes).zip(0_u32..).map(|((pod, ready), step)| async move {
            tokio::time::sleep_until(begun + STEP * step).await;
            cluster.set_ready(*pod, *ready).await
        });
        let changes = try_join_all(changes).await?;
        let requested = changes.iter().map(|change| change.requested).max().context("a rollout has pods")?;
        let made = changes.iter().map(|change| change.made).max().context("a rollout has pods")?;
        let shown = expected.shown().await?;
        Ok((shown.saturating_duration_since(made), shown.saturating_duration_since(requested)))
    }

    fn toggle(&mut self, pod: Pod) -> bool {
        let becomes_ready = self.unready.remove(&pod);
        if !becomes_ready {
            self.unready.insert(pod);
        }
        becomes_ready
    }

    fn take_stock(&mut self) -> anyhow::Result<()> {
        self.figures.memory = self.running()?.memory()?;
        self.figures.processor_seconds = self.running()?.processor_time()?.as_secs_f64();
        Ok(())
    }

    /// Restarts the controller, and changes one pod to see when the controller works. Counts all slice writes except
    /// the write for this pod.
    async fn restart(&mut self, size: Size) -> anyhow::Result<()> {
        self.running.take().context("nobody runs")?.stop().await?;
        let mark = self.cluster.control_plane.audit().mark().await?;
        self.running = Some(self.cluster.contender.start(&self.cluster.control_plane).await?);
        let pod = Pod { service: 0, index: size.pods - 1, number: size.pods - 1 };
        let begun = Instant::now();
        self.flap(pod).await.with_context(|| self.running.as_ref().map(Running::tail).unwrap_or_default())?;
        self.figures.restart_milliseconds = crate::quantiles::milliseconds(begun.elapsed());
        sleep(SETTLE * 2).await;
        self.figures.restart_writes = self.cluster.slice_writes_since(mark).await?.saturating_sub(1);
        Ok(())
    }

    async fn grow(&mut self, services: std::ops::Range<usize>, pods_each: usize) -> anyhow::Result<()> {
        let pods = services.clone().flat_map(|service| pods_of(service, pods_each));
        let all = self.cluster.seen.expect(pods.map(|pod| (pod.address(), true)).collect());
        self.cluster.populate(services, pods_each).await?;
        all.shown_within(START).await?;
        Ok(())
    }

    async fn take_stock_of_many(&mut self) -> anyhow::Result<()> {
        self.figures.many.memory = self.running()?.memory()?;
        self.figures.many.processor_seconds = self.running()?.processor_time()?.as_secs_f64();
        self.running.take().context("nobody runs")?.stop().await
    }
}
