//! Measurement of single changes: one pod more, then one pod less.

use super::report::{Allowed, Row};
use super::{Connections, PreStop, Scenario, Size, setup};
use crate::quantiles::Quantiles;
use anyhow::{Context as _, ensure};
use packets::image::result::Totals;
use packets::kubelet::{PodTimes, Times};
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::time::Duration;

/// Servers before a change. With one, each client sends half of its requests to the new pod.
const FEW: Servers<'static> =
    Servers { name: "changes", replicas: 1, pre_stop: Some(PRE_STOP), probe_delay: PROBE_DELAY };
const MANY: Servers<'static> = Servers { replicas: 2, ..FEW };
/// Seconds of the preStop hook. A deleted pod must still answer when the last request arrives.
const PRE_STOP: u32 = 3;

/// Seconds until the first probe of a pod. In its own cluster, kube-proxy also sees the endpoint of a pod that is not
/// ready yet, and then waits for a second before its next change. Without this delay, the baseline includes this wait.
const PROBE_DELAY: u32 = 2;

/// Measured times of the local client and of the importer.
type Samples = [Vec<Duration>; 2];

/// Adds and removes one pod, again and again.
pub(super) async fn measure(pair: &Pair, size: &Size, times: u32) -> anyhow::Result<Vec<Row>> {
    let traffic = setup::serve(pair, FEW, size.rate, Connections::New).await?;
    let (mut ready, mut deleted) = (Samples::default(), Samples::default());
    for number in 1..=times {
        eprintln!("change {number} of {times}");
        let before = pods(pair);
        MANY.scale(&pair.exporter).await?;
        let (pod, at) = changed(&before, &pods(pair), |times| times.ready)?;
        let totals = traffic.has_answers_of(&pod).await?;
        add(&mut ready, &totals, |totals| totals.servers.get(&pod).map(|server| server.first), at)?;
        // kube-proxy delays a change that follows another one within a second.
        tokio::time::sleep(SETTLED).await;

        let before = pods(pair);
        FEW.scale(&pair.exporter).await?;
        let (pod, at) = changed(&before, &pods(pair), |times| times.deleted)?;
        let totals = traffic.totals().await?;
        add(&mut deleted, &totals, |totals| totals.servers.get(&pod).map(|server| server.last), at)?;
        tokio::time::sleep(SETTLED).await;
    }
    let counts = traffic.stop().await?;
    setup::end(pair, FEW).await?;
    let mut rows = Vec::new();
    for (scenario, samples) in [(Scenario::Ready, ready), (Scenario::Deleted, deleted)] {
        let row = |((client, counts), samples)| Row {
            scenario,
            pre_stop: PreStop(FEW.pre_stop),
            detail: String::new(),
            allowed: Allowed::Baseline,
            client,
            counts,
            time: Some(Quantiles::of(samples)),
        };
        if size.scenario.contains(&scenario) {
            rows.extend(counts.clone().into_iter().zip(samples).map(row));
        }
    }
    Ok(rows)
}

fn pods(pair: &Pair) -> Times {
    pair.fleet.members[0].pod_times()
}

/// Returns the only pod that has got a time since `before`, with this time.
fn changed(before: &Times, after: &Times, time: fn(&PodTimes) -> Option<i64>) -> anyhow::Result<(String, i64)> {
    let had = |pod: &String| before.get(pod).and_then(time).is_some();
    let changed = after.iter().filter(|(pod, _)| !had(pod));
    let changed: Vec<(&String, i64)> = changed.filter_map(|(pod, times)| Some((pod, time(times)?))).collect();
    ensure!(changed.len() == 1, "not one pod has changed: {changed:?}");
    changed.first().map(|(pod, time)| ((*pod).clone(), *time)).context("one pod has changed")
}

/// Adds the time from `since` until `until` for each client.
fn add(
    samples: &mut Samples,
    totals: &[Totals],
    until: impl Fn(&Totals) -> Option<i64>,
    since: i64,
) -> anyhow::Result<()> {
    for (samples, totals) in samples.iter_mut().zip(totals) {
        let until = until(totals).context("a client has no answer of the pod")?;
        // No request to a deleted pod counts as no time.
        samples.push(Duration::from_micros(u64::try_from(until - since).unwrap_or_default()));
    }
    Ok(())
}
