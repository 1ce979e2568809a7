//! Tests of bad responses to agents' writes: conflicts, 4xx, 5xx and lost responses. The server either does not execute
//! the write, or executes the write and then sends an error or no response.

use super::faults::{ServerFaults, assert_backs_off, is_about_objects, is_heartbeat};
use super::trial::{AFTER, BEFORE, LONGEST_BACK_OFF, SOON, Trial, run};
use anyhow::{Context as _, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use memkube::faults::{Answer, Fault};
use memkube::status::{FieldError, Named};
use memkube::{Call, Status, Verb};
use sim::fleet::{Place, hub_user};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Duration of the faults in these tests.
const SHORT_FAULT: Duration = Duration::from_secs(180);
const HOUR: Duration = Duration::from_secs(3600);
/// Duration that is longer than the wait of 10 minutes before a rejected write is retried.
const REJECTED: Duration = Duration::from_secs(620);

fn is_write(call: &Call) -> bool {
    call.verb.writes() && is_about_objects(call)
}

/// Applies this fault to all agents' writes of objects, on all servers.
fn every_write(trial: &Trial, fault: impl Fn(&Call) -> Fault + Clone + Send + Sync + 'static) {
    for faults in everywhere(trial) {
        let fault = fault.clone();
        faults.requests(move |call| if is_write(call) { fault(call) } else { Fault::default() });
    }
}

fn everywhere(trial: &Trial) -> [&ServerFaults; 3] {
    [&trial.hub, &trial.exporter, &trial.importer]
}

/// Fails all writes of agents from now on, and changes the endpoints of the exporter. Asserts that agents write only
/// the changed object and their heartbeats, that they do not retry too often, and that the importer keeps the earlier
/// endpoints.
async fn writes_fail_for_a_while(
    trial: &mut Trial,
    fault: impl Fn(&Call) -> Fault + Clone + Send + Sync + 'static,
    in_the_first_minute: usize,
) -> anyhow::Result<()> {
    trial.settle().await?;
    every_write(trial, fault);
    let begun = Instant::now();
    trial.change().await?;
    sleep(SHORT_FAULT).await;
    // The change needs one write: the exporter's agent must update the EndpointSliceExport. So all requests are about
    // this object, except the heartbeats of the two member agents.
    let requested = trial.hub.objects_requested(begun, is_write);
    let resources: Vec<&str> = requested.iter().map(|(resource, _)| resource.as_str()).collect();
    ensure!(resources == ["endpointsliceexports", "memberagents", "memberagents"], "{requested:?}");
    for (_, name) in &requested {
        let of_object = |call: &Call| is_write(call) && *call.target.name == **name;
        assert_backs_off(&trial.hub.requests_by_minute(begun, of_object), in_the_first_minute, 6)?;
    }
    ensure!(trial.exporter.request_times(begun, is_write).is_empty(), "nothing is to be written there");
    let metrics = trial.fleet().agent(Place::Member(0)).context("the exporter's agent runs")?.metrics()?;
    let oldest = metrics.lines().find_map(|line| {
        line.strip_prefix("fleetnet_oldest_unfinished_change_seconds{controller=\"fleet\",side=\"hub\"} ")?
            .parse::<f64>()
            .ok()
    });
    let expected = SHORT_FAULT.as_secs_f64()..SHORT_FAULT.as_secs_f64() + 1.0;
    ensure!(oldest.is_some_and(|age| expected.contains(&age)), "the change is stuck, and its age is {oldest:?}");
    trial.nothing_is_lost(&BEFORE).await
}

async fn recovers_after_faults(trial: &Trial, within: Duration) -> anyhow::Result<()> {
    for faults in everywhere(trial) {
        faults.end();
    }
    trial.recovers(within).await?;
    trial.nothing_is_lost(&AFTER).await
}

/// Runs a first export, import and change. The server executes every write of agents, but its response has this fault.
/// Asserts that agents repeat no write.
async fn no_write_is_repeated(trial: &mut Trial, fault: Fault, within: Duration) -> anyhow::Result<()> {
    every_write(trial, move |_| fault.clone());
    let begun = Instant::now();
    trial.create_objects().await?;
    trial.start_agents().await?;
    trial.recovers(within).await?;
    // If the servers executed exactly as many writes as without the fault ([`WRITES`]), agents repeated no write.
    let ledger = trial.env.backend.ledger().await.objects();
    let beats = trial.hub.request_times(begun, |call| is_heartbeat(call) && call.verb.writes()).len();
    // Maximum number of heartbeat requests: each of the two members sends one at its start and one more in each period
    // of 10 s. The hub agent may answer each of them with a status. So there are 2 * 2 requests at the start, and 2 * 2
    // in each period.
    let expected = 4 + 4 * usize::try_from(begun.elapsed().as_secs().div_ceil(10))?;
    ensure!((4..=expected).contains(&beats), "{beats} heartbeats in {:?}", begun.elapsed());
    let written = ledger.clusters().map(|ledger| ledger.of_agents().count()).collect::<Vec<_>>();
    ensure!(written == WRITES, "{written:?} writes, not {WRITES:?}:\n{ledger}");
    ensure!(ledger.clusters().flat_map(|ledger| ledger.of_agents().0).all(|entry| entry.status < 300), "{ledger}");
    Ok(())
}

/// Number of agents' writes for the first export and import of one slice, without heartbeats: in the hub, in the
/// exporter and in the importer. The sum is 24, as in the ledger of docs/contributors/architecture.md (19 + 5 for each
/// slice).
const WRITES: [usize; 3] = [13, 3, 8];

#[test]
fn a_write_that_took_effect_is_not_repeated_whatever_the_answer() -> anyhow::Result<()> {
    let answered_500 = Answer::Replaced(Box::new(Status::internal("lost")));
    for (answer, within) in [(answered_500, SOON), (Answer::Never, 5 * SOON), (Answer::Cut, SOON)] {
        let what = format!("{answer:?}");
        run(async |trial| no_write_is_repeated(trial, Fault { answer, ..Fault::default() }, within).await)
            .context(what)?;
    }
    Ok(())
}

#[test]
fn writes_to_a_server_that_answers_500_back_off() -> anyhow::Result<()> {
    run(async |trial| {
        let refuse = Some(Status::internal("etcdserver: request timed out"));
        let broken = Fault { refuse, ..Fault::default() };
        writes_fail_for_a_while(trial, move |_| broken.clone(), 14).await?;
        trial.log.has(&["WARN", "a write failed; the agent retries", "etcdserver: request timed out"])?;
        let failed =
            "fleetnet_writes_total{kind=\"EndpointSliceExport\",result=\"failed\",side=\"hub\",verb=\"patch\"}";
        ensure!(trial.metric(Place::Member(0), failed)? > 5.0, "the metric counts no failure");
        recovers_after_faults(trial, SOON).await
    })
}

#[test]
fn writes_to_a_server_that_never_answers_back_off() -> anyhow::Result<()> {
    run(async |trial| {
        writes_fail_for_a_while(trial, |_| Fault { delay_before: HOUR, ..Fault::default() }, 6).await?;
        trial.log.has(&["WARN", "a write failed; the agent retries", "no answer within 10s"])?;
        recovers_after_faults(trial, SOON).await
    })
}

#[test]
fn writes_that_get_an_unexplained_conflict_back_off() -> anyhow::Result<()> {
    run(async |trial| {
        let conflict = |call: &Call| {
            let target = &call.target;
            let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
            Fault { refuse: Some(Status::modified(named)), ..Fault::default() }
        };
        writes_fail_for_a_while(trial, conflict, 14).await?;
        let conflicts =
            "fleetnet_writes_total{kind=\"EndpointSliceExport\",result=\"conflict\",side=\"hub\",verb=\"patch\"}";
        ensure!(trial.metric(Place::Member(0), conflicts)? > 5.0, "the metric counts no conflict");
        recovers_after_faults(trial, SOON).await
    })
}

#[test]
fn a_server_that_asks_for_half_a_minute_is_left_alone_for_half_a_minute_except_by_heartbeats() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let busy = Fault { refuse: Some(Status::too_many_requests(30)), ..Fault::default() };
        every_write(trial, move |_| busy.clone());
        let begun = Instant::now();
        trial.change().await?;
        sleep(SHORT_FAULT).await;
        let exporter = hub_user(&trial.env.members[0].hub_namespace);
        let is_heartbeat = |call: &Call| &*call.target.resource == "memberagents";
        let by_exporter = |call: &Call| is_write(call) && *call.user.name == *exporter;
        let others = trial.hub.request_times(begun, |call| by_exporter(call) && !is_heartbeat(call));
        // Each answer to a heartbeat asks for another half a minute.
        ensure!(others.len() == 1, "requests after {others:?}");
        // The answer to a heartbeat holds the next one back for 15 s at most, so that the member does not become
        // silent.
        let heartbeats = trial.hub.request_times(begun, |call| by_exporter(call) && is_heartbeat(call));
        let pauses = heartbeats.windows(2).map(|pair| pair[1] - pair[0]);
        let is_right = |pause: Duration| (Duration::from_secs(15)..Duration::from_secs(20)).contains(&pause);
        ensure!(heartbeats.len() > 8 && pauses.skip(1).all(is_right), "heartbeats after {heartbeats:?}");
        trial.log.has(&["WARN", "a write failed; the agent retries", "Too many requests"])?;
        trial.nothing_is_lost(&BEFORE).await?;
        recovers_after_faults(trial, SOON).await
    })
}

/// Also rule R11.
#[test]
fn exporter_and_importer_get_one_event_for_a_rejected_write() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        // First reject the exported slice in the hub, and later the imported slice in the importer.
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
        // Agents retry a rejected write after at most 10 minutes.
        sleep(REJECTED).await;
        let events = trial.env.user(0).sees_event("ServiceExport", "WriteRefused", "not on a Sunday").await?;
        let tries =
            trial.hub.request_times(begun, |call| is_write(call) && &*call.target.resource == "endpointsliceexports");
        ensure!(events == 1 && (2..=4).contains(&tries.len()), "{events} Events, tried after {tries:?}");
        trial.log.has(&["ERROR", "a write was rejected for its content", "not on a Sunday", "EndpointSliceExport"])?;
        trial.nothing_is_lost(&BEFORE).await?;

        trial.importer.requests(rejected("endpointslices"));
        trial.hub.end();
        sleep(2 * REJECTED).await;
        let events = trial.env.user(1).sees_event("MultiClusterService", "WriteRefused", "not on a Sunday").await?;
        ensure!(events == 1, "{events} Events");
        recovers_after_faults(trial, REJECTED).await
    })
}

#[test]
fn a_quota_that_denies_a_slice_is_named_and_the_imported_slices_stay() -> anyhow::Result<()> {
    run(async |trial| {
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
        sleep(2 * SHORT_FAULT).await;

        let creates = |call: &Call| call.verb == Verb::Create && is_about_objects(call);
        assert_backs_off(&trial.importer.requests_by_minute(begun, creates), 10, 3)?;
        trial.log.has(&["WARN", "a write was denied", "exceeded quota: fleet", "EndpointSlice"])?;
        let events =
            trial.env.user(1).sees_event("MultiClusterService", "WriteDenied", "exceeded quota: fleet").await?;
        ensure!(events == 1, "{events} Events");
        trial.nothing_is_lost(&BEFORE).await?;
        // The quota denies only creates. So a change of an existing slice still arrives.
        exporter.set_endpoints("app-1", &["10.1.0.9"]).await?;
        trial.env.user(1).sees("app", &["10.1.0.9"]).await?;

        trial.importer.end();
        sleep(LONGEST_BACK_OFF).await;
        trial.env.user(1).sees("app", &["10.1.0.2", "10.1.0.3", "10.1.0.9"]).await?;
        exporter.delete::<EndpointSlice>("app-2").await?;
        trial.change().await?;
        trial.recovers(SOON).await
    })
}
