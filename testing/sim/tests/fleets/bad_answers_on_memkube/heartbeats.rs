//! Tests of heartbeats that the hub rejects for a long time, and of heartbeats while the wall clock is set.

use super::faults::{assert_backs_off, is_heartbeat};
use super::trial::{AFTER, LONGEST_BACK_OFF, SOON, Trial, run};
use anyhow::ensure;
use fleetnet_api::crd::ServiceExport;
use memkube::faults::Fault;
use memkube::status::Named;
use memkube::{Call, Status, Verb};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const TEN_MINUTES: Duration = Duration::from_secs(600);
/// One hour in microseconds, by which the clock is set.
const HOUR: i64 = 3_600_000_000;

/// True for a heartbeat: a member agent's write to its own MemberAgent. The hub agent writes only the status of
/// MemberAgents.
fn is_renewal(call: &Call) -> bool {
    is_heartbeat(call) && call.verb == Verb::Patch && call.user.name.contains("fleet-member")
}

fn is_of(trial: &Trial, member: usize) -> impl Fn(&Call) -> bool + use<> {
    let name = trial.env.backend.0.members[member].name.clone();
    move |call| is_renewal(call) && *call.target.name == *name
}

/// Rejects every heartbeat for ten minutes. Asserts that changes still arrive, and that each member backs off.
async fn rejects_heartbeats(
    trial: &mut Trial,
    answer: impl Fn(Named<'_>) -> Status + Send + Sync + 'static,
) -> anyhow::Result<()> {
    trial.settle().await?;
    trial.hub.requests(move |call| {
        let target = &call.target;
        let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
        Fault { refuse: is_renewal(call).then(|| answer(named)), ..Fault::default() }
    });
    let begun = Instant::now();
    sleep(SOON).await;
    trial.change().await?;
    trial.env.user(1).sees("app", &AFTER).await?;
    sleep(TEN_MINUTES - SOON).await;
    for member in [0, 1] {
        let requests = trial.hub.requests_by_minute(begun, is_of(trial, member));
        ensure!(requests.iter().sum::<usize>() < 40, "member {member} by minute: {requests:?}");
        assert_backs_off(&requests, 14, 4)?;
    }
    Ok(())
}

#[test]
fn heartbeats_that_a_hub_rejects_back_off() -> anyhow::Result<()> {
    let answers: [fn(Named<'_>) -> Status; 5] = [
        |named| Status::forbidden(named, "no"),
        |named| Status::modified(named),
        |_| Status::internal("etcdserver: request timed out"),
        |_| Status::too_many_requests(0),
        |_| Status::no_such_resource(),
    ];
    for answer in answers {
        run(async |trial| {
            rejects_heartbeats(trial, answer).await?;
            trial.hub.end();
            let begun = Instant::now();
            sleep(LONGEST_BACK_OFF).await;
            for member in [0, 1] {
                let renewals = trial.hub.request_times(begun, is_of(trial, member)).len();
                ensure!(renewals >= 1, "member {member} is silent");
            }
            trial.is_quiet().await
        })?;
    }
    Ok(())
}

#[test]
fn heartbeats_and_grace_periods_do_not_depend_on_the_wall_clock() -> anyhow::Result<()> {
    for hour in [HOUR, -HOUR] {
        run(async |trial| {
            trial.settle().await?;
            let clock = trial.env.backend.0.clock().clone();
            for _ in 0..3 {
                clock.set_by(hour);
                let begun = Instant::now();
                sleep(SOON).await;
                for member in [0, 1] {
                    let renewals = trial.hub.request_times(begun, is_of(trial, member)).len();
                    ensure!((5..=7).contains(&renewals), "member {member} renewed {renewals} times in a minute");
                }
            }
            // After the deletion of its last export, the derived Service must stay for 30 s, although the clock is set
            // in this time.
            trial.env.user(0).delete::<ServiceExport>("app").await?;
            trial.env.user(1).sees_no_slice("app").await?;
            let begun = Instant::now();
            sleep(Duration::from_secs(10)).await;
            clock.set_by(hour);
            sleep(Duration::from_secs(18)).await;
            trial.env.user(1).derived_service("app").await?;
            trial.env.user(1).no_derived_service("app").await?;
            let grace = begun.elapsed();
            ensure!((28..=33).contains(&grace.as_secs()), "it went after {grace:?}");
            trial.is_quiet().await
        })?;
    }
    Ok(())
}
