//! Answers to writes: conflicts, 4xx, 5xx and lost answers, before and after the write took effect.

use crate::trial::{AFTER, AT_LAST, BEFORE, SOON, Trial, play};
use crate::weather::{Weather, ever_more_seldom, is_about_objects, is_heartbeat};
use anyhow::ensure;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use memkube::faults::{Answer, Fault};
use memkube::status::{FieldError, Named};
use memkube::{Call, Status, Verb};
use sim::fleet::{Place, hub_user};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time that the faults last.
const RAIN: Duration = Duration::from_secs(180);
const HOUR: Duration = Duration::from_secs(3600);
/// Longer than the 10 minutes after which a rejected write is tried again.
const REJECTED: Duration = Duration::from_secs(620);

fn is_write(call: &Call) -> bool {
    call.verb.writes() && is_about_objects(call)
}

/// Applies this fault to every write of agents to objects, on all servers.
fn every_write(trial: &Trial, fault: impl Fn(&Call) -> Fault + Clone + Send + Sync + 'static) {
    for weather in everywhere(trial) {
        let fault = fault.clone();
        weather.requests(move |call| if is_write(call) { fault(call) } else { Fault::default() });
    }
}

fn everywhere(trial: &Trial) -> [&Weather; 3] {
    [&trial.hub, &trial.exporter, &trial.importer]
}

/// Fails every write while a change is made. Asserts that nobody asks too often, and that nothing is lost.
async fn refused_for_a_while(
    trial: &mut Trial,
    fault: impl Fn(&Call) -> Fault + Clone + Send + Sync + 'static,
    in_the_first_minute: usize,
) -> anyhow::Result<()> {
    trial.settle().await?;
    every_write(trial, fault);
    let begun = Instant::now();
    trial.change().await?;
    sleep(RAIN).await;
    // The exporter's agent has one write to make and requests one write; each member agent requests one heartbeat.
    let asked_for = trial.hub.objects_asked_for(begun, is_write);
    let resources: Vec<&str> = asked_for.iter().map(|(resource, _)| resource.as_str()).collect();
    ensure!(resources == ["endpointsliceexports", "memberagents", "memberagents"], "{asked_for:?}");
    for (_, name) in &asked_for {
        let of_object = |call: &Call| is_write(call) && *call.target.name == **name;
        ever_more_seldom(&trial.hub.asked_by_minute(begun, of_object), in_the_first_minute, 6)?;
    }
    ensure!(trial.exporter.asked_after(begun, is_write).is_empty(), "nothing is to be written there");
    trial.nothing_is_lost(&BEFORE).await
}

async fn clears(trial: &Trial, within: Duration) -> anyhow::Result<()> {
    for weather in everywhere(trial) {
        weather.clears();
    }
    trial.ends_right(within).await?;
    trial.nothing_is_lost(&AFTER).await
}

/// Plays a first export, import and change while every write of agents takes effect and gets this fault as its answer.
async fn carried_out_all_the_same(trial: &mut Trial, fault: Fault, within: Duration) -> anyhow::Result<()> {
    every_write(trial, move |_| fault.clone());
    let begun = Instant::now();
    trial.wish().await?;
    trial.start_agents().await?;
    trial.ends_right(within).await?;
    // Each write was made once: as many as where every answer arrives.
    let told = trial.env.backend.ledger().await.objects();
    let beats = trial.hub.asked_after(begun, |call| is_heartbeat(call) && call.verb.writes()).len();
    // Members make two, each answered once; then each renews every ten seconds.
    let expected = 4 + 4 * usize::try_from(begun.elapsed().as_secs().div_ceil(10))?;
    ensure!((4..=expected).contains(&beats), "{beats} heartbeats in {:?}", begun.elapsed());
    let written = told.clusters().map(|ledger| ledger.of_agents().count()).collect::<Vec<_>>();
    ensure!(written == WRITES, "{written:?} writes, not {WRITES:?}:\n{told}");
    ensure!(told.clusters().flat_map(|ledger| ledger.of_agents().0).all(|entry| entry.status < 300), "{told}");
    Ok(())
}

/// Writes of agents for a first export and import, in the hub, the exporter and the importer.
const WRITES: [usize; 3] = [13, 3, 8];

#[test]
fn every_write_is_made_once_where_all_is_well() -> anyhow::Result<()> {
    play(async |trial| carried_out_all_the_same(trial, Fault::default(), SOON).await)
}

#[test]
fn a_write_that_was_carried_out_and_answered_500_is_not_repeated() -> anyhow::Result<()> {
    let answer = Answer::Replaced(Box::new(Status::internal("lost")));
    play(async |trial| carried_out_all_the_same(trial, Fault { answer, ..Fault::default() }, SOON).await)
}

#[test]
fn a_write_that_was_carried_out_and_never_answered_is_not_repeated() -> anyhow::Result<()> {
    let answer = Answer::Never;
    play(async |trial| carried_out_all_the_same(trial, Fault { answer, ..Fault::default() }, 5 * SOON).await)
}

#[test]
fn a_write_that_was_carried_out_and_whose_connection_broke_is_not_repeated() -> anyhow::Result<()> {
    let answer = Answer::Cut;
    play(async |trial| carried_out_all_the_same(trial, Fault { answer, ..Fault::default() }, SOON).await)
}

#[test]
fn a_server_that_answers_500_and_does_nothing_is_asked_ever_more_seldom() -> anyhow::Result<()> {
    play(async |trial| {
        let refuse = Some(Status::internal("etcdserver: request timed out"));
        let broken = Fault { refuse, ..Fault::default() };
        refused_for_a_while(trial, move |_| broken.clone(), 14).await?;
        trial.log.says(&["WARN", "a write failed and will be tried again", "etcdserver: request timed out"])?;
        let failed =
            "fleetnet_writes_total{cluster=\"hub\",kind=\"EndpointSliceExport\",result=\"failed\",verb=\"patch\"}";
        ensure!(trial.metric(Place::Member(0), failed)? > 5.0, "the metric counts no failure");
        clears(trial, SOON).await
    })
}

#[test]
fn a_server_that_never_answers_and_does_nothing_is_asked_ever_more_seldom() -> anyhow::Result<()> {
    play(async |trial| {
        refused_for_a_while(trial, |_| Fault { delay_before: HOUR, ..Fault::default() }, 6).await?;
        trial.log.says(&["WARN", "a write failed and will be tried again", "no answer within 10s"])?;
        clears(trial, SOON).await
    })
}

#[test]
fn a_conflict_that_nothing_explains_is_met_ever_more_seldom() -> anyhow::Result<()> {
    play(async |trial| {
        let conflict = |call: &Call| {
            let target = &call.target;
            let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
            Fault { refuse: Some(Status::modified(named)), ..Fault::default() }
        };
        refused_for_a_while(trial, conflict, 14).await?;
        let conflicts =
            "fleetnet_writes_total{cluster=\"hub\",kind=\"EndpointSliceExport\",result=\"conflict\",verb=\"patch\"}";
        ensure!(trial.metric(Place::Member(0), conflicts)? > 5.0, "the metric counts no conflict");
        clears(trial, SOON).await
    })
}

#[test]
fn a_server_that_asks_for_half_a_minute_is_left_alone_for_half_a_minute() -> anyhow::Result<()> {
    play(async |trial| {
        trial.settle().await?;
        let busy = Fault { refuse: Some(Status::too_many_requests(30)), ..Fault::default() };
        every_write(trial, move |_| busy.clone());
        let begun = Instant::now();
        trial.change().await?;
        sleep(RAIN).await;
        // Its slice and its heartbeat together: the answer to one delays both.
        let exporter = hub_user(&trial.env.members[0].hub_namespace);
        let asked = trial.hub.asked_after(begun, |call| is_write(call) && *call.user.name == *exporter);
        println!("asked after {asked:?}");
        ensure!(asked.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(30)), "asked after {asked:?}");
        ensure!((4..=7).contains(&asked.len()), "asked after {asked:?}");
        trial.log.says(&["WARN", "a write failed and will be tried again", "Too many requests"])?;
        trial.nothing_is_lost(&BEFORE).await?;
        clears(trial, SOON).await
    })
}

#[test]
fn who_exports_and_who_imports_is_told_once_of_what_is_rejected() -> anyhow::Result<()> {
    play(async |trial| {
        trial.settle().await?;
        // The exporter's slice in the hub first, then the imported one.
        let rejected = |resource: &'static str| {
            move |call: &Call| {
                let target = &call.target;
                let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
                let error = FieldError::forbidden("endpoints", "not on a Sunday");
                let is_meant = is_write(call) && &*target.resource == resource;
                Fault { refuse: is_meant.then(|| Status::invalid(named, &[error])), ..Fault::default() }
            }
        };
        trial.hub.requests(rejected("endpointsliceexports"));
        let begun = Instant::now();
        trial.change().await?;
        // The next attempt comes after 10 minutes at most.
        sleep(REJECTED).await;
        let told = trial.env.user(0).sees_event("ServiceExport", "WriteRefused", "not on a Sunday").await?;
        let tries =
            trial.hub.asked_after(begun, |call| is_write(call) && &*call.target.resource == "endpointsliceexports");
        ensure!(told == 1 && (2..=4).contains(&tries.len()), "told {told} times, tried after {tries:?}");
        trial.log.says(&["ERROR", "a write was refused for its content", "not on a Sunday", "EndpointSliceExport"])?;
        trial.nothing_is_lost(&BEFORE).await?;

        trial.importer.requests(rejected("endpointslices"));
        trial.hub.clears();
        sleep(2 * REJECTED).await;
        let told = trial.env.user(1).sees_event("MultiClusterService", "WriteRefused", "not on a Sunday").await?;
        ensure!(told == 1, "told {told} times");
        clears(trial, REJECTED).await
    })
}

#[test]
fn a_quota_that_refuses_a_slice_is_named_and_keeps_what_was_imported() -> anyhow::Result<()> {
    play(async |trial| {
        trial.settle().await?;
        let exceeded = |call: &Call| {
            let target = &call.target;
            let named = Named { group: &target.group, kind: &target.resource, name: "" };
            let why = "exceeded quota: fleet, requested: count/endpointslices.discovery.k8s.io=1, used: \
                       count/endpointslices.discovery.k8s.io=1, limited: count/endpointslices.discovery.k8s.io=1";
            let creates = call.verb == Verb::Create && &*target.resource == "endpointslices";
            Fault { refuse: creates.then(|| Status::forbidden(named, why)), ..Fault::default() }
        };
        trial.importer.requests(exceeded);
        let begun = Instant::now();
        let exporter = trial.env.user(0);
        exporter.create_slice("app", "app-2", &AFTER).await?;
        sleep(2 * RAIN).await;

        let creates = |call: &Call| call.verb == Verb::Create && is_about_objects(call);
        ever_more_seldom(&trial.importer.asked_by_minute(begun, creates), 10, 3)?;
        trial.log.says(&["WARN", "a write was denied", "exceeded quota: fleet", "EndpointSlice"])?;
        let told = trial.env.user(1).sees_event("MultiClusterService", "WriteDenied", "exceeded quota: fleet").await?;
        ensure!(told == 1, "told {told} times");
        trial.nothing_is_lost(&BEFORE).await?;
        // Changes that need no new object still arrive.
        exporter.set_endpoints("app-1", &["10.1.0.9"]).await?;
        trial.env.user(1).sees("app", &["10.1.0.9"]).await?;

        trial.importer.clears();
        sleep(AT_LAST).await;
        trial.env.user(1).sees("app", &["10.1.0.2", "10.1.0.3", "10.1.0.9"]).await?;
        exporter.delete::<EndpointSlice>("app-2").await?;
        trial.change().await?;
        trial.ends_right(SOON).await
    })
}
