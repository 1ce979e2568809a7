//! Tests of slice streams between the real agents, on simulated API servers with paused time.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use harness::user::Consume;
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use scenarios::handover::recreated_slices_leave_no_moment_without_endpoints;
use sim::fleet::Place;
use sim::stream::Condition;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const FLEET: FleetSpec = FleetSpec::of(3).with_slice_streams();
/// Time in which a change arrives over a stream. Simulated servers answer at once, so this is only a bound.
const SOON: Duration = Duration::from_millis(100);

/// Returns a fleet in which member-1 exports a Service to the others, and all members have streams.
async fn streaming() -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::<OnMemkube>::create(FLEET).await?;
    import_everywhere(&env).await?;
    connected(&env, 3.0).await?;
    // The writes of the first import end.
    sleep(Duration::from_secs(10)).await;
    Ok(env)
}

/// Exports a Service of member-1 and imports it in the other members.
async fn import_everywhere(env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    env.export(&["10.1.0.1"]).await?;
    for importer in 1..3 {
        env.user(importer).import("app", "app", Consume::ClusterIp).await?;
        env.user(importer).sees("app", &["10.1.0.1"]).await?;
    }
    Ok(())
}

async fn connected(env: &Environment<OnMemkube>, streams: f64) -> anyhow::Result<()> {
    let connected = async {
        while env.backend.0.metric(Place::Hub, "fleetnet_slice_streams")? < streams {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(Duration::from_secs(60), connected).await.context("members open their streams")?
}

/// Changes the exported slice, and waits until all importers see it. Returns the time that this took.
async fn change(env: &Environment<OnMemkube>, address: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    env.user(0).set_endpoints("app-1", &[address]).await?;
    for importer in 1..3 {
        env.user(importer).sees("app", &[address]).await?;
    }
    Ok(begun.elapsed())
}

/// Returns the number of previews that members have acknowledged.
fn acknowledged(env: &Environment<OnMemkube>) -> anyhow::Result<f64> {
    env.backend.0.metric(Place::Hub, "fleetnet_slice_stream_delay_seconds_count")
}

/// Returns the number of writes of distributed slices in the hub since a mark.
async fn object_writes(env: &Environment<OnMemkube>, mark: &harness::audit::FleetMark) -> anyhow::Result<usize> {
    let ledger = env.backend.since(mark).await?;
    Ok(ledger.hub.filter(|entry| entry.verb == "patch" && entry.resource == "endpointsliceimports").count())
}

#[test]
fn changes_arrive_over_streams_and_objects_follow_after_the_lag() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming().await?;
        let mark = env.backend.mark().await?;
        for number in 1..=100 {
            let took = change(&env, &format!("10.1.1.{number}")).await?;
            ensure!(took < SOON, "change {number} took {took:?}");
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_secs(10)).await;
        let writes = object_writes(&env, &mark).await?;
        ensure!((2..=6).contains(&writes), "{writes} writes of objects for 100 changes and two importers");
        let previews = acknowledged(&env)?;
        ensure!(previews == 200.0, "{previews} previews were acknowledged");
        Ok(())
    })
}

#[test]
fn a_stream_that_is_stuck_or_cut_costs_at_most_a_second() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming().await?;
        let streams = env.backend.0.streams.clone();
        streams.set("member-2", Condition { is_stuck: true, ..Condition::default() });
        let took = change(&env, "10.1.1.1").await?;
        ensure!((1_000..1_000 + 100).contains(&took.as_millis()), "the object follows after a second: {took:?}");
        streams.cut("member-2");
        streams.set("member-2", Condition::default());
        let took = change(&env, "10.1.1.2").await?;
        ensure!(took < SOON, "without a stream, objects are written at once: {took:?}");
        connected(&env, 3.0).await?;
        let before = acknowledged(&env)?;
        let took = change(&env, "10.1.1.3").await?;
        ensure!(took < SOON && acknowledged(&env)? == before + 2.0, "the stream is back");
        // A slow network delays a stream, but not the objects.
        streams.set("member-2", Condition { delay: Duration::from_secs(3), ..Condition::default() });
        let took = change(&env, "10.1.1.4").await?;
        ensure!((1_000..1_000 + 100).contains(&took.as_millis()), "{took:?}");
        Ok(())
    })
}

/// Also rule J15.
#[test]
fn a_silent_member_loses_its_stream_and_gets_a_new_one() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming().await?;
        let streams = env.backend.0.streams.clone();
        streams.set("member-3", Condition { is_stuck: true, ..Condition::default() });
        sleep(Duration::from_secs(60)).await;
        let open = env.backend.0.metric(Place::Hub, "fleetnet_slice_streams")?;
        ensure!(open == 2.0, "{open} streams are open");
        let took = change(&env, "10.1.1.1").await?;
        ensure!(took < SOON, "{took:?}");
        streams.cut("member-3");
        streams.set("member-3", Condition::default());
        connected(&env, 3.0).await
    })
}

#[test]
fn a_new_hub_agent_takes_the_streams_over() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming().await?;
        for number in 1..=3 {
            env.user(0).set_endpoints("app-1", &[&format!("10.1.1.{number}")]).await?;
            sleep(Duration::from_millis(20)).await;
            // It has sent a preview, and has not written the objects.
            env.backend.0.kill(Place::Hub).await;
            env.backend.0.start(Place::Hub)?;
            env.backend.0.ready().await?;
            connected(&env, 3.0).await?;
            let took = change(&env, &format!("10.1.2.{number}")).await?;
            ensure!(took < SOON, "{took:?}");
        }
        sleep(Duration::from_secs(10)).await;
        env.hub_has_no_slices(1).await.err().map(drop).context("the hub distributes the slices")?;
        Ok(())
    })
}

/// Also rule J8.
#[test]
fn a_stop_of_the_hub_agent_writes_what_its_streams_delivered() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming().await?;
        let mark = env.backend.mark().await?;
        change(&env, "10.1.1.1").await?;
        let before = object_writes(&env, &mark).await?;
        env.backend.0.stop(Place::Hub).await?;
        let writes = object_writes(&env, &mark).await?;
        ensure!((before, writes) == (0, 2), "{before} objects were written before the stop, and {writes} in all");
        Ok(())
    })
}

/// Also rule J8.
#[test]
fn without_a_hub_agent_what_its_streams_delivered_stays() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming().await?;
        let mark = env.backend.mark().await?;
        env.backend.0.start_replica(Place::Member(2), 1)?;
        change(&env, "10.1.1.1").await?;
        env.backend.0.kill(Place::Hub).await;
        sleep(Duration::from_secs(90)).await;
        // Another process does not know what the stream delivered.
        env.backend.0.start(Place::Member(1))?;
        env.backend.0.kill(Place::Member(2)).await;
        sleep(Duration::from_secs(600)).await;
        ensure!(object_writes(&env, &mark).await? == 0, "no object has the change");
        for importer in 1..3 {
            env.user(importer).sees("app", &["10.1.1.1"]).await?;
        }
        env.backend.0.start(Place::Hub)?;
        connected(&env, 3.0).await?;
        sleep(Duration::from_secs(120)).await;
        for importer in 1..3 {
            env.user(importer).sees("app", &["10.1.1.1"]).await?;
        }
        let writes = object_writes(&env, &mark).await?;
        ensure!(writes == 2, "{writes} writes of objects");
        Ok(())
    })
}

#[test]
fn a_restarted_member_shows_no_older_state() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming().await?;
        let routes = env.user(1).routes("app");
        change(&env, "10.1.1.1").await?;
        let mark = env.backend.mark().await?;
        change(&env, "10.1.1.2").await?;
        env.backend.0.kill(Place::Member(1)).await;
        env.backend.0.start(Place::Member(1))?;
        env.backend.0.ready().await?;
        sleep(Duration::from_secs(120)).await;
        let ledger = env.backend.since(&mark).await?;
        let writes = ledger.members[1].filter(|entry| entry.resource == "endpointslices").count();
        ensure!(writes == 1, "{writes} writes of the imported slice: the restart costs none");
        drop(routes);
        env.user(1).sees("app", &["10.1.1.2"]).await.map(drop)
    })
}

#[test]
fn recreated_slices_leave_no_moment_without_endpoints_over_streams() -> anyhow::Result<()> {
    sim::paused(async {
        let env = Environment::<OnMemkube>::create(FleetSpec::of(2).with_slice_streams()).await?;
        recreated_slices_leave_no_moment_without_endpoints(env).await
    })
}

/// Also rule J13.
#[test]
fn latencies_are_corrected_by_the_clocks_of_both_members() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FLEET).await?;
        env.backend.0.stop_agents().await?;
        env.backend.0.set_own_clock(Place::Member(0), 5_000_000);
        env.backend.0.set_own_clock(Place::Member(1), -5_000_000);
        env.backend.0.start_agents().await?;
        import_everywhere(&env).await?;
        connected(&env, 3.0).await?;
        for member in ["member-1", "member-2", "member-3"] {
            env.backend.0.streams.set(member, Condition { delay: Duration::from_millis(10), ..Condition::default() });
        }
        // Two probes of each member: the second one shows the member its own clock.
        sleep(Duration::from_secs(30)).await;
        let sums = |env: &Environment<OnMemkube>| -> anyhow::Result<(f64, f64)> {
            let name = "fleet_networking_endpointslice_export_import_duration_milliseconds";
            let of = |suffix| env.backend.0.metric(Place::Member(1), &format!("{name}_{suffix}"));
            Ok((of("sum")?, of("count")?))
        };
        change(&env, "10.1.1.1").await?; // it shows the clock of the exporter
        let before = sums(&env)?;
        for number in 2..=11 {
            change(&env, &format!("10.1.1.{number}")).await?;
            sleep(Duration::from_millis(100)).await;
        }
        let after = sums(&env)?;
        let (milliseconds, samples) = (after.0 - before.0, after.1 - before.1);
        ensure!(samples == 10.0, "{samples} samples");
        // The uncertainty of both clocks is half of the round trip (10 ms), and their drift since the last probe (2 ms
        // in 10 s).
        let mean = milliseconds / samples;
        ensure!((10.0 - mean).abs() <= 2.0 * 12.1, "{mean} ms in the mean, with clocks that differ by 10 s");
        let text = env.backend.0.agent(Place::Member(1)).context("it runs")?.metrics()?;
        ensure!(text.contains(r#"clock="corrected",metric="endpointslice_export_import""#), "{text}");
        let offset = env.backend.0.agent(Place::Hub).context("it runs")?.metrics()?;
        let offset = offset
            .lines()
            .find(|line| line.starts_with("fleetnet_slice_stream_clock_offset_seconds{member=\"member-1\"}"));
        let offset: f64 = offset.and_then(|line| line.rsplit(' ').next()?.parse().ok()).context("an offset")?;
        ensure!((offset - 5.0).abs() < 0.1, "{offset}");
        Ok(())
    })
}
