//! Tests of watches that are silent or delayed, or whose resourceVersion is too old to continue.

use super::faults::{OpenWatches, assert_backs_off};
use super::trial::{AFTER, BEFORE, SOON, run};
use anyhow::ensure;
use memkube::faults::{Fate, Fault};
use memkube::{Call, Status, Verb};
use parking_lot::Mutex;
use sim::fleet::Place;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn is_watch_or_list(call: &Call) -> bool {
    matches!(call.verb, Verb::Watch | Verb::List)
}

fn too_old() -> Status {
    Status::expired("too old resource version: 7 (9)")
}

#[test]
fn a_silent_watch_is_restarted_and_catches_up_with_what_it_missed() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        trial.hub.watches(OpenWatches::Silent("agent"));
        let begun = Instant::now();
        trial.change().await?;
        trial.nothing_is_lost(&BEFORE).await?;
        // End the fault for new watches. The watches that are already open stay silent.
        trial.hub.end();
        sleep(SOON).await;
        trial.env.user(1).sees("app", &AFTER).await?;
        // The agent asks the server to end each watch after at most 60 s, and restarts a watch that does not end 5 s
        // later. The change must pass two watches, and both are silent, but the agents wait for both at the same time.
        ensure!(begun.elapsed() <= Duration::from_secs(65), "it took {:?}", begun.elapsed());
        trial.log.has(&["WARN", "a watch failed; the agent retries", "the server did not end the watch after the"])?;
        let silent = "fleetnet_watch_restarts_total{kind=\"EndpointSliceImport\",reason=\"silent\",side=\"hub\"}";
        ensure!(trial.metric(Place::Member(1), silent)? == 1.0, "the metric counts no silent watch");
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_watch_whose_version_is_too_old_lists_again_and_loses_nothing() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        // Make the change while the server accepts no watch. Later the server drops its history of events, so that new
        // watches cannot continue from the old resourceVersion.
        let refuse = Some(Status::internal("not now"));
        trial.hub.requests(move |call| {
            let refuse = refuse.clone().filter(|_| is_watch_or_list(call));
            Fault { refuse, ..Fault::default() }
        });
        trial.hub.watches(OpenWatches::Cut("agent"));
        trial.change().await?;
        sleep(SOON).await;
        trial.env.backend.0.hub.memkube().compact();
        trial.hub.end();

        trial.recovers(SOON).await?;
        trial.log.has(&["INFO", "the server no longer has the version of the watch: listing again"])?;
        let expired = "fleetnet_watch_restarts_total{kind=\"EndpointSliceImport\",reason=\"expired\",side=\"hub\"}";
        ensure!(trial.metric(Place::Member(1), expired)? == 1.0, "the metric counts no watch that was too old");
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn watches_of_a_server_that_always_answers_410_back_off() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        trial.hub.requests(|call| Fault { refuse: is_watch_or_list(call).then(too_old), ..Fault::default() });
        trial.hub.watches(OpenWatches::Cut("agent"));
        let begun = Instant::now();
        trial.change().await?;
        sleep(3 * SOON).await;
        assert_backs_off(&trial.hub.requests_by_minute(begun, is_watch_or_list), 280, 70)?;
        trial.nothing_is_lost(&BEFORE).await?;
        trial.hub.end();
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_watch_that_gets_410_in_place_of_an_event_lists_again_and_loses_nothing() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let answered = Mutex::new(BTreeSet::new());
        trial.hub.events(move |call, _| {
            let first = answered.lock().insert((call.user.name.clone(), call.target.resource.clone()));
            if first { Fate::Fail(Box::new(too_old())) } else { Fate::Deliver }
        });
        let begun = Instant::now();
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;
        sleep(SOON).await;
        assert_backs_off(&trial.hub.requests_by_minute(begun, is_watch_or_list), 60, 40)?;
        trial.log.has(&["INFO", "the server no longer has the version of the watch: listing again"])?;
        trial.nothing_is_lost(&AFTER).await?;
        trial.hub.end();
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn late_and_repeated_events_do_not_change_the_result() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        trial.hub.events(|_, event| match event.revision % 3 {
            0 => Fate::Repeat(2),
            1 => Fate::Hold(Duration::from_secs(7)),
            _ => Fate::Deliver,
        });
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;
        trial.nothing_is_lost(&AFTER).await?;
        trial.recovers(SOON).await
    })
}
