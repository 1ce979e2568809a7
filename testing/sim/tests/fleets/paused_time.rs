//! Tests that take too long on real servers: half an hour without a change, Leases that expire. Time is paused here:
//! when all tasks wait, the clock jumps to the next timer.

use crate::support::OnMemkube;
use anyhow::Context as _;
use diagnosis::latency::{Histogram, summary_of};
use fleetnet_api::crd::{MemberAgent, ServiceExport};
use fleetnet_core::member::latency::BUCKETS_MILLISECONDS;
use harness::audit::Ledger;
use harness::user::Consume;
use kube::Api;
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use sim::fleet::Place;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn env() -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
    env.export_and_import(&["10.1.0.1"]).await?;
    Ok(env)
}

#[test]
fn a_settled_fleet_writes_nothing_but_its_leases_and_heartbeats_for_half_an_hour() -> anyhow::Result<()> {
    const SECONDS: usize = 1800;
    sim::paused(async {
        let env = env().await?;
        let mark = env.backend.mark().await?;
        sleep(Duration::from_secs(u64::try_from(SECONDS)?)).await;
        let ledger = env.backend.since(&mark).await?;
        assert_eq!(ledger.objects().clusters().map(Ledger::count).sum::<usize>(), 0, "{ledger}");
        assert_eq!(ledger.clusters().map(|ledger| ledger.events().count()).sum::<usize>(), 0, "{ledger}");
        // Expected renewals: the hub agent has one Lease, and each of the two member agents has four Leases. Each agent
        // renews its first Lease every 0.5 s, and the others every 4 s.
        let renewals = ledger.clusters().map(|ledger| ledger.leases().count()).sum::<usize>();
        let expected = SECONDS * 2 * 3 + SECONDS / 4 * 6;
        assert!(renewals.abs_diff(expected) < expected / 100, "{renewals} renewals, not about {expected}");

        // Expected heartbeats: one write of each of the two members every 10 s. The hub agent writes nothing.
        let beats = ledger.clusters().map(|ledger| ledger.heartbeats().count()).sum::<usize>();
        let expected = SECONDS / 10 * 2;
        assert!(beats.abs_diff(expected) < expected / 100, "{beats} heartbeats, not about {expected}");

        // After half an hour without a change, the fleet still reacts to a change.
        env.user(0).set_endpoints("app-1", &["10.1.0.2"]).await?;
        let begun = Instant::now();
        env.user(1).sees("app", &["10.1.0.2"]).await?;
        assert_eq!(begun.elapsed(), Duration::ZERO, "nothing on the way of a change waits");
        Ok(())
    })
}

/// Also rules L6, T27.
#[test]
fn metrics_count_exports_and_imports_and_drop_a_cluster_that_no_longer_exports() -> anyhow::Result<()> {
    sim::paused(async {
        let env = env().await?;
        let count = async |member: usize, series: &str| {
            let metrics = env.backend.metrics(member).await?;
            let values = metrics.lines().filter_map(|line| line.strip_prefix(series)?.trim().parse::<u32>().ok());
            anyhow::Ok(values.collect::<Vec<_>>())
        };
        let of_service = "fleet_networking_service_export_duration_milliseconds_count{origin_cluster_id=\"member-1\"}";
        let of_slice = "fleet_networking_endpointslice_export_import_duration_milliseconds_count{\
                        destination_cluster_id=\"member-2\",is_first_import=\"true\",origin_cluster_id=\"member-1\"}";
        // With paused time, no time passes between the write in the first cluster and the write in the second one. The
        // measured latency is zero, so the sample is corrected (clamped).
        let samples = |metric: &str| {
            let labels = format!("clock=\"clamped\",metric=\"{metric}\",origin_cluster_id=\"member-1\"");
            format!("fleet_networking_latency_samples_total{{{labels}}}")
        };
        assert_eq!(count(0, of_service).await?, [1]);
        assert_eq!(count(0, &samples("service_export")).await?, [1]);
        assert_eq!(count(1, of_slice).await?, [1]);
        assert_eq!(count(1, &samples("endpointslice_export_import")).await?, [1]);

        env.user(0).delete::<ServiceExport>("app").await?;
        env.user(1).sees_no_slice("app").await?;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(count(1, of_slice).await?, Vec::<u32>::new());
        assert_eq!(count(1, &samples("endpointslice_export_import")).await?, Vec::<u32>::new());
        assert_eq!(count(0, &samples("service_export")).await?, [1], "this origin is the cluster itself");
        Ok(())
    })
}

/// Returns the cumulated bucket counts of an agent's latency histogram for one exporting member, without first imports.
fn histogram(metrics: &str, origin: &str) -> Vec<u64> {
    let name = "fleet_networking_endpointslice_export_import_duration_milliseconds_bucket";
    let wanted = [format!("origin_cluster_id=\"{origin}\""), "is_first_import=\"false\"".to_owned()];
    let lines = metrics.lines().filter(|line| line.starts_with(name) && wanted.iter().all(|it| line.contains(it)));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
}

/// Returns the bounds of the bucket that has this percentile, in milliseconds, from cumulated counts.
fn bucket(counts: &[u64], percentile: u64) -> RangeInclusive<f64> {
    let samples = counts.last().copied().unwrap_or(0);
    let found = counts.partition_point(|count| count * 100 < percentile * samples);
    let bound = |index: usize| BUCKETS_MILLISECONDS.get(index).copied().unwrap_or(f64::INFINITY);
    found.checked_sub(1).map_or(0.0, bound)..=bound(found)
}

/// Also rule L10.
#[test]
fn the_latency_summary_in_the_hub_has_the_samples_of_the_importers_histogram() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FleetSpec::of(3)).await?;
        // In paused time a change arrives at once. The clocks of the exporters are behind, so the samples are their
        // differences.
        for (member, behind) in [(1, 3_000), (2, 60_000)] {
            env.backend.0.stop(Place::Member(member)).await?;
            env.backend.0.set_own_clock(Place::Member(member), -behind);
            env.backend.0.start(Place::Member(member))?;
        }
        for (member, name, changes) in [(1, "one", 7), (2, "two", 4)] {
            env.user(member).export_new(name, &["10.1.0.1"]).await?;
            env.user(0).import(name, name, Consume::ClusterIp).await?;
            env.user(0).sees(name, &["10.1.0.1"]).await?;
            for change in 0..changes {
                let address = format!("10.1.1.{change}");
                env.user(member).set_endpoints(&format!("{name}-1"), &[&address]).await?;
                env.user(0).sees(name, &[&address]).await?;
            }
        }
        let agents: Api<MemberAgent> = env.hub(&env.members[0].hub_namespace);
        let mark = env.backend.mark().await?;
        sleep(Duration::from_secs(75)).await;
        let ledger = env.backend.since(&mark).await?;
        assert_eq!(ledger.objects().clusters().map(Ledger::count).sum::<usize>(), 0, "only heartbeats: {ledger}");

        let metrics = env.backend.0.agent(Place::Member(0)).context("it runs")?.metrics()?;
        let agent = agents.get(&env.members[0].cluster_id).await?;
        let shown = summary_of(&serde_json::to_value(&agent)?).context("a summary")?.map_err(anyhow::Error::msg)?;
        let summary = agent.spec.latency.context("a summary")?;
        let origins: Vec<&str> = summary.origins.iter().map(|origin| origin.cluster.as_str()).collect();
        assert_eq!(origins, [&*env.members[1].cluster_id, &*env.members[2].cluster_id]);
        for (origin, changes) in summary.origins.iter().zip([7, 4]) {
            assert_eq!((origin.count, origin.clamped, origin.first_imports), (changes, 0, 1), "{origin:?}");
            let mut sum = 0;
            let counts = (0..=summary.bounds_milliseconds.len()).map(|bucket| {
                sum += origin.buckets.get(bucket).map_or(0, |count| u64::try_from(count.0).unwrap());
                sum
            });
            let own = histogram(&metrics, &origin.cluster);
            assert_eq!(counts.collect::<Vec<_>>(), own, "{origin:?}");
            let shown =
                shown.origins.iter().find(|it| it.cluster == origin.cluster).context("the command line shows it")?;
            let shown = Histogram::new(&BUCKETS_MILLISECONDS, &shown.buckets).map_err(anyhow::Error::msg)?;
            for (quantile, percentile) in [(0.5, 50), (0.99, 99)] {
                let (bounds, value) = (bucket(&own, percentile), shown.quantile(quantile).context("it has samples")?);
                assert!(
                    bounds.contains(&value),
                    "{quantile} of {origin:?} is {value}, but {bounds:?} by the histogram"
                );
            }
        }
        assert_eq!(summary.bounds_milliseconds, BUCKETS_MILLISECONDS);

        sleep(Duration::from_secs(11 * 60)).await;
        let latency = agents.get(&env.members[0].cluster_id).await?.spec.latency;
        assert_eq!(latency, None, "the summary goes after ten minutes without a sample");
        Ok(())
    })
}

#[test]
fn a_container_that_starts_again_catches_up_at_once_and_another_pod_waits_until_the_leases_expire() -> anyhow::Result<()>
{
    sim::paused(async {
        let mut env = env().await?;
        for (replica, endpoint, seconds) in [(0, "10.1.0.2", 0..1), (1, "10.1.0.3", 3..4)] {
            env.backend.0.kill(Place::Member(1)).await;
            let mark = env.backend.mark().await?;
            env.user(0).set_endpoints("app-1", &[endpoint]).await?;

            env.backend.0.start_replica(Place::Member(1), replica)?;
            let begun = Instant::now();
            env.user(1).sees("app", &[endpoint]).await?;
            let waited = begun.elapsed();
            assert!(seconds.contains(&waited.as_secs()), "{replica}: {waited:?}");
            let ledger = env.backend.since(&mark).await?.objects();
            assert_eq!(ledger.clusters().map(Ledger::count).collect::<Vec<_>>(), [2, 0, 1], "{replica}: {ledger}");
        }
        Ok(())
    })
}
