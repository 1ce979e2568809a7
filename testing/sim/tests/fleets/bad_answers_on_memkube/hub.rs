//! Tests of hubs that are down, forbidden, slow or silent, and of hubs without CRDs or namespaces.

use super::faults::{OpenWatches, assert_backs_off, is_about_objects};
use super::trial::{AFTER, BEFORE, FAULT_DURATION, LONGEST_BACK_OFF, SOON, run, run_with};
use anyhow::ensure;
use fleetnet_api::crd::ServiceImport;
use fleetnet_api::crds::{self, Form};
use fleetnet_runtime::limits::LeaseTimes;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use memkube::faults::{Answer, Fault};
use memkube::status::Named;
use memkube::{Call, Status};
use scenarios::environment::Backend as _;
use sim::fleet::Place;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns a fault: the server does nothing and closes the connection.
fn unreachable(_: &Call) -> Fault {
    Fault { refuse: Some(Status::internal("never seen")), answer: Answer::Cut, ..Fault::default() }
}

/// True for a request of a member agent.
fn is_of_member(call: &Call) -> bool {
    call.user.name.starts_with("system:serviceaccount:fleet-member-")
}

fn forbidden(call: &Call) -> Fault {
    let target = &call.target;
    let why = format!("User {:?} cannot {} resource {:?}", call.user.name, call.verb.name(), target.resource);
    let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
    Fault { refuse: Some(Status::forbidden(named, &why)), ..Fault::default() }
}

#[test]
fn a_hub_that_is_down_at_start_is_waited_for() -> anyhow::Result<()> {
    run(async |trial| {
        trial.hub.requests(unreachable);
        trial.create_objects().await?;
        let begun = Instant::now();
        trial.launch_agents()?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_about_objects), 300, 70)?;
        trial.log.has(&["WARN", "a watch failed; the agent retries", "side=\"hub\"", "EndpointSliceImport"])?;
        let incomplete =
            "fleetnet_watch_state{controller=\"fleet\",kind=\"EndpointSliceImport\",side=\"hub\",state=\"incomplete\"}";
        ensure!(trial.metric(Place::Member(1), incomplete)? == 1.0, "the metric says that all is well");
        trial.env.user(0).sees_export("app", "Conflict", "Unknown", "ServicePendingConflictResolution").await?;

        trial.hub.end();
        trial.recovers(SOON).await
    })
}

#[test]
fn an_outage_of_the_hub_removes_nothing_and_the_fleet_catches_up() -> anyhow::Result<()> {
    run_with(LeaseTimes::default(), async |trial| {
        trial.settle().await?;
        trial.hub.requests(unreachable);
        trial.hub.watches(OpenWatches::Cut("agent"));
        let begun = Instant::now();
        trial.change().await?;
        // The hub agent cannot renew its Lease. It stops leading, and does not end.
        sleep(LeaseTimes::default().duration).await;
        let leads = trial.metric(Place::Hub, "fleetnet_leader{lease=\"2bf2b407.hub.networking.fleet.azure.com\"}")?;
        ensure!(leads == 0.0, "the hub agent leads without its Lease");
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_of_member), 250, 60)?;
        trial.log.has(&["WARN", "a watch failed; the agent retries", "side=\"hub\"", "EndpointSliceExport"])?;
        trial.log.has(&["WARN", "a write failed; the agent retries", "EndpointSliceExport"])?;
        trial.nothing_is_lost(&BEFORE).await?;

        trial.hub.end();
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn requests_to_a_hub_that_forbids_everything_back_off_and_nothing_is_removed() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        trial.hub.requests(|call| if is_about_objects(call) { forbidden(call) } else { Fault::default() });
        trial.hub.watches(OpenWatches::Cut("agent"));
        let begun = Instant::now();
        trial.change().await?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_about_objects), 230, 40)?;
        trial.log.has(&["WARN", "cannot watch", "grant this agent get, list and watch on endpointsliceimports"])?;
        trial.log.has(&[
            "WARN",
            "a write was denied; check the agent's role",
            "EndpointSliceExport",
            "is forbidden",
        ])?;
        let events = trial.env.user(0).sees_event("ServiceExport", "WriteDenied", "cannot patch resource").await?;
        ensure!(events == 1, "{events} Events");
        trial.nothing_is_lost(&BEFORE).await?;

        trial.hub.end();
        trial.recovers(LONGEST_BACK_OFF).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_hub_that_denies_everybody_at_start_is_waited_for() -> anyhow::Result<()> {
    run(async |trial| {
        trial.hub.requests(|call| if is_about_objects(call) { forbidden(call) } else { Fault::default() });
        trial.create_objects().await?;
        let begun = Instant::now();
        trial.launch_agents()?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_about_objects), 180, 30)?;
        trial.log.has(&["WARN", "cannot watch", "grant this agent get, list and watch on internalserviceexports"])?;

        trial.hub.end();
        trial.recovers(LONGEST_BACK_OFF).await
    })
}

#[test]
fn a_hub_that_answers_after_two_seconds_is_used_like_a_fast_one() -> anyhow::Result<()> {
    run(async |trial| {
        let slow = |_: &Call| Fault { delay_after: Duration::from_secs(2), ..Fault::default() };
        trial.hub.requests(slow);
        trial.settle().await?;
        let (mark, begun) = (trial.env.backend.mark().await?, Instant::now());
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;
        // The change does not wait for the delayed responses, because a watch shows a written object before the
        // response to the write.
        ensure!(begun.elapsed() < Duration::from_secs(5), "a change took {:?}", begun.elapsed());
        let ledger = trial.env.backend.since(&mark).await?;
        let [hub, exporter, importer] =
            [&ledger.hub, &ledger.members[0], &ledger.members[1]].map(|it| it.objects().count());
        // Writes for one change. In the hub: one by the exporter and one by the hub agent. In the exporter: the user's
        // write. In the importer: one by the importer.
        ensure!([hub, exporter, importer] == [2, 1, 1], "{ledger}");
        ensure!(ledger.hub.0.iter().all(|entry| entry.status < 300), "{ledger}");

        trial.recovers(SOON).await?;
        trial.hub.end();
        trial.is_quiet().await
    })
}

#[test]
fn a_hub_whose_definitions_come_later_is_waited_for() -> anyhow::Result<()> {
    run(async |trial| {
        let definitions: Api<CustomResourceDefinition> = Api::all(trial.env.backend.hub());
        for definition in crds::all(Form::Full) {
            definitions.delete(&definition.name_any(), &DeleteParams::default()).await?;
        }
        trial.create_objects().await?;
        let begun = Instant::now();
        trial.launch_agents()?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_about_objects), 180, 30)?;
        let remedy = "install the CRD of EndpointSliceImport (networking.fleet.azure.com/v1alpha1)";
        trial.log.has(&["WARN", "cannot watch", remedy])?;

        for definition in crds::all(Form::Full) {
            definitions.create(&PostParams::default(), &definition).await?;
        }
        trial.recovers(LONGEST_BACK_OFF).await
    })
}

#[test]
fn a_kind_that_is_no_longer_served_freezes_what_depends_on_it() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let concerned = |call: &Call| is_of_member(call) && &*call.target.resource == "endpointsliceimports";
        let gone = Some(Status::no_such_resource());
        trial.hub.requests(move |call| Fault { refuse: gone.clone().filter(|_| concerned(call)), ..Fault::default() });
        trial.hub.watches(OpenWatches::Cut("fleet-member"));
        let begun = Instant::now();
        sleep(SOON).await;
        trial.change().await?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, concerned), 20, 4)?;
        trial.log.has(&["the view of a kind changed its state", "endpointsliceimports", "unknown"])?;
        let unknown =
            "fleetnet_watch_state{controller=\"fleet\",kind=\"EndpointSliceImport\",side=\"hub\",state=\"unknown\"}";
        ensure!(trial.metric(Place::Member(1), unknown)? == 1.0, "the metric says that all is well");
        trial.nothing_is_lost(&BEFORE).await?;

        trial.hub.end();
        trial.recovers(LONGEST_BACK_OFF).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

/// Also rule U12.
#[test]
fn changes_flow_while_memberagents_are_no_longer_served() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let concerned = |call: &Call| &*call.target.resource == "memberagents";
        let gone = Some(Status::no_such_resource());
        trial.hub.requests(move |call| Fault { refuse: gone.clone().filter(|_| concerned(call)), ..Fault::default() });
        trial.hub.watches(OpenWatches::Cut("agent"));
        sleep(SOON / 60).await;
        trial.hub.watches(OpenWatches::Healthy); // new watches work, except of MemberAgents
        sleep(SOON / 2).await;
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;
        trial.log.has(&["the view of a kind changed its state", "memberagents", "unknown"])?;
        sleep(FAULT_DURATION).await;
        trial.nothing_is_lost(&AFTER).await?;
        trial.env.user(0).set_endpoints("app-1", &BEFORE).await?;
        trial.env.user(1).sees("app", &BEFORE).await?;
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;

        trial.hub.end();
        trial.recovers(LONGEST_BACK_OFF).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_hub_that_falls_silent_times_out_and_is_used_again_later() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let silent = |call: &Call| if is_of_member(call) { HOUR } else { Duration::ZERO };
        trial.hub.requests(move |call| Fault { delay_before: silent(call), ..Fault::default() });
        trial.hub.watches(OpenWatches::Silent("fleet-member"));
        let begun = Instant::now();
        trial.change().await?;
        sleep(FAULT_DURATION).await;

        assert_backs_off(&trial.hub.requests_by_minute(begun, is_of_member), 75, 75)?;
        trial.log.has(&["WARN", "a watch failed; the agent retries", "the server did not end the watch after the"])?;
        trial.log.has(&["WARN", "a watch failed; the agent retries", "no answer within 20s"])?;
        trial.log.has(&["WARN", "a write failed; the agent retries", "no answer within 10s"])?;
        trial.nothing_is_lost(&BEFORE).await?;

        trial.hub.end();
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_users_namespace_that_is_missing_on_the_hub_is_waited_for_and_used_at_once() -> anyhow::Result<()> {
    run(async |trial| {
        let namespaces: Api<Namespace> = Api::all(trial.env.backend.hub());
        namespaces.delete(&trial.env.namespace, &DeleteParams::default()).await?;
        trial.create_objects().await?;
        let begun = Instant::now();
        trial.start_agents().await?;
        sleep(FAULT_DURATION).await;

        let of_imports = |call: &Call| call.verb.writes() && &*call.target.resource == "serviceimports";
        assert_backs_off(&trial.hub.requests_by_minute(begun, of_imports), 10, 3)?;
        trial.log.has(&[
            "WARN",
            "a write was denied",
            "that the namespace and the CRD exist",
            "ServiceImport",
            "work",
        ])?;
        trial.env.user(0).sees_export("app", "Conflict", "Unknown", "ServicePendingConflictResolution").await?;

        let server = trial.env.backend.0.hub.clone();
        server.make_namespace(&trial.env.namespace).await?;
        let begun = Instant::now();
        trial.env.user(1).sees("app", &AFTER).await?;
        ensure!(begun.elapsed() < Duration::from_secs(1), "the namespace was made {:?} before", begun.elapsed());
        trial.recovers(SOON).await
    })
}

#[test]
fn a_users_namespace_that_is_deleted_on_the_hub_later_removes_nothing() -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        let namespace = trial.env.namespace.clone();
        let imports: Api<ServiceImport> = trial.env.hub(&namespace);
        let namespaces: Api<Namespace> = Api::all(trial.env.backend.hub());
        imports.delete("app", &DeleteParams::default()).await?;
        namespaces.delete(&namespace, &DeleteParams::default()).await?;
        sleep(FAULT_DURATION).await;
        trial.nothing_is_lost(&BEFORE).await?;
        trial.change().await?;
        sleep(SOON).await;

        trial.env.backend.0.hub.clone().make_namespace(&namespace).await?;
        trial.recovers(SOON).await?;
        trial.nothing_is_lost(&AFTER).await
    })
}

#[test]
fn a_members_namespace_that_is_missing_on_the_hub_is_waited_for() -> anyhow::Result<()> {
    run(async |trial| {
        let hub_namespace = trial.env.members[0].hub_namespace.clone();
        let namespaces: Api<Namespace> = Api::all(trial.env.backend.hub());
        namespaces.delete(&hub_namespace, &DeleteParams::default()).await?;
        trial.create_objects().await?;
        let begun = Instant::now();
        trial.start_agents().await?;
        sleep(FAULT_DURATION).await;

        let writes = |call: &Call| call.verb.writes() && *call.target.namespace == *hub_namespace;
        assert_backs_off(&trial.hub.requests_by_minute(begun, writes), 20, 4)?;
        trial.log.has(&["WARN", "a write was denied", "that the namespace and the CRD exist", &hub_namespace])?;
        let events = trial.env.user(0).sees_event("ServiceExport", "WriteDenied", &hub_namespace).await?;
        ensure!(events == 1, "{events} Events");

        let server = trial.env.backend.0.hub.clone();
        server.make_namespace(&hub_namespace).await?;
        trial.recovers(LONGEST_BACK_OFF).await
    })
}
