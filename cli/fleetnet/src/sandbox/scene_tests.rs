//! Tests of whole runs of the sandbox, in one process on paused time.

use super::*;
use crate::args::Options;
use crate::limits::SETTLES;
use crate::sandbox::{Ending, run_scene};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;
use sim::server::FLEET_SYSTEM;
use tokio::sync::mpsc;
use tokio::time::advance;

fn options() -> Options {
    Options {
        members: Some(2),
        once: true,
        changes: 2,
        changes_per_second: None,
        json: false,
        kubeconfigs: None,
        port: None,
        real: false,
        packets: false,
        requests_per_second: 200,
        scenario: None,
        api: crate::args::Api::Fleet,
    }
}

/// Returns a sender of events, and the receiver of its events.
fn stage() -> (Stage, mpsc::UnboundedReceiver<Event>) {
    let (stage, mut recorded) = Stage::recorded();
    let (all, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = recorded.next().await {
            if all.send(event).is_err() {
                break;
            }
        }
    });
    (stage, events)
}

/// Runs a test on a fleet whose scene is set.
fn with_scene(
    options: Options,
    test: impl AsyncFnOnce(&Fleet, &Watches, &mut Scene<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    sim::paused(async {
        let (stage, _events) = stage();
        let fleet = Fleet::start(&options, &stage).await?;
        let watches = Watches::open(&fleet, &stage);
        let mut scene = Scene::new(&options, &fleet, &watches, &stage);
        assert_eq!(scene.set().await?, Vec::<String>::new());
        test(&fleet, &watches, &mut scene).await?;
        fleet.end().await
    })
}

#[test]
fn after_a_stop_of_the_whole_process_all_agents_lead_again_and_changes_arrive() -> anyhow::Result<()> {
    with_scene(options(), async |fleet, watches, scene| {
        // Simulates a process that was stopped and resumed (SIGSTOP, SIGCONT): when it runs again, the renew deadline
        // of every leader has passed.
        advance(Duration::from_secs(13)).await;

        let begun = Instant::now();
        let (_, _, address) = scene.begin_change().await?;
        assert_eq!(scene.all_as_expected(SET_UP).await, Vec::<String>::new());
        assert!(begun.elapsed() < Duration::from_secs(5), "the agents lead again: {:?}", begun.elapsed());
        assert_eq!(fleet.failures().all(), Vec::<String>::new());
        assert_eq!(watches.look(|world| world.arrived(&address)), 2);
        assert_eq!(scene.make_change().await?, None);
        Ok(())
    })
}

#[test]
fn each_change_reaches_the_members_with_a_slice_stream_by_the_stream_for_the_usual_writes() -> anyhow::Result<()> {
    with_scene(Options { members: Some(3), ..options() }, async |fleet, _, scene| {
        assert_eq!(scene.make_changes(4).await?, Vec::<String>::new());
        let metrics = fleet.hub_agent_metrics().await?;
        for (member, acknowledged) in [("member-1", Some("4")), ("member-2", Some("4")), ("member-3", None)] {
            let series = format!("fleetnet_slice_stream_delay_seconds_count{{member=\"{member}\"}} ");
            let count = metrics.lines().find_map(|line| line.strip_prefix(series.as_str()));
            assert_eq!(count, acknowledged, "previews of {member}");
        }
        assert_eq!((scene.counted, scene.cost.sums().total), (4, 4 * 7));
        Ok(())
    })
}

#[test]
fn after_an_interruption_of_the_hub_all_slice_streams_are_open_again() -> anyhow::Result<()> {
    with_scene(options(), async |fleet, _, scene| {
        fleet.cut_hub().await?;
        sleep(Duration::from_secs(30)).await;
        assert!(!fleet.are_streams_open().await?, "the hub agent ends streams that deliver nothing");
        fleet.mend_hub().await?;
        assert_eq!(scene.closed_streams(SET_UP).await?, None);
        assert_eq!(scene.make_change().await?, None);
        fleet.kill_agent(0).await;
        fleet.restart_agent(0).await?;
        assert_eq!(scene.closed_streams(SET_UP).await?, None);
        Ok(())
    })
}

#[test]
fn the_first_change_that_is_lost_is_the_last() -> anyhow::Result<()> {
    with_scene(options(), async |fleet, _, scene| {
        fleet.kill_agent(1).await;
        let begun = Instant::now();
        let wrong = scene.make_changes(600).await?;
        assert_eq!(wrong, ["change 1: 10.1.0.101 of member-1 is in 1 of 2 importers"]);
        assert!(begun.elapsed() < ARRIVAL + Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!((scene.counted, scene.lost, scene.cost.sums().total), (0, 1, 0), "it is no part of the average");
        Ok(())
    })
}

#[test]
fn a_run_with_once_ends_at_the_first_failure_of_an_agent() -> anyhow::Result<()> {
    sim::paused(async {
        let options = Options { changes: 10_000, ..options() };
        let (stage, mut events) = stage();
        let fleet = Fleet::start(&options, &stage).await?;
        let watches = Watches::open(&fleet, &stage);
        let mut scene = Scene::new(&options, &fleet, &watches, &stage);
        let mut keys = stage.keys();
        let run = run_scene(&options, &fleet, &mut scene, &mut keys);
        let fail = async {
            while !matches!(events.recv().await, Some(Event::Change { .. })) {}
            fleet.failures().note("hub-agent ended by itself: it panicked".to_owned());
        };
        let (ending, ()) = tokio::join!(run, fail);
        assert!(matches!(ending?, Ending::Failed));
        let mut changes = 1;
        loop {
            match events.recv().await {
                Some(Event::Change { .. }) => changes += 1,
                Some(Event::Verdict { wrong, .. }) => {
                    assert_eq!(wrong, ["hub-agent ended by itself: it panicked"]);
                    break;
                }
                Some(_) => {}
                None => panic!("no verdict"),
            }
        }
        assert!(changes < 9_999, "it ended after all its changes, and not because of the agent");
        fleet.end().await
    })
}

#[test]
fn what_is_missing_or_left_over_in_the_hub_and_beside_the_derived_services_is_reported() -> anyhow::Result<()> {
    with_scene(options(), async |fleet, _, scene| {
        assert_eq!(scene.hub_differences(SETTLES).await?, Vec::<String>::new());

        // Kill the agent, so that it does not repair the changes that the test makes from here on.
        fleet.kill_agent(0).await;
        fleet.kill_agent(1).await;
        let derived: Api<Service> = Api::namespaced(fleet.members[1].server.admin(), FLEET_SYSTEM);
        derived.delete("work-app", &DeleteParams::default()).await?;
        scene.expected.exports.remove(&(0, SERVICE.to_owned()));
        scene.expected.imports.remove(&(0, SERVICE.to_owned()));
        let found = scene.all_as_expected(Duration::from_secs(1)).await.join("\n");
        for part in [
            "export work/app of member-1 should not be there",
            "import work/app in member-1 should not be there",
            "fleet-system of member-1 has the EndpointSlice member-2-work-app-1-",
            "fleet-system of member-1 has the Service work-app, which should not be there",
            "fleet-system of member-2 has no Service work-app",
        ] {
            assert!(found.contains(part), "{part:?} is not in:\n{found}");
        }
        let found = scene.hub_differences(SETTLES).await?.join("\n");
        for part in [
            "the hub has the EndpointSliceExport fleet-member-member-1/member-1-work-app-1-",
            "the hub has the EndpointSliceImport fleet-member-member-1/member-2-work-app-1-",
            "the hub has the EndpointSliceImport fleet-member-member-2/member-1-work-app-2-",
            "the hub has the InternalServiceExport fleet-member-member-1/work-app, which should not be there",
            "the hub has the InternalServiceImport fleet-member-member-1/work-app, which should not be there",
            "ServiceImport work/app in the hub says \"http 80/TCP to 8080 of member-1, member-2\", not \"http 80/TCP to 8080 of member-2\"",
        ] {
            assert!(found.contains(part), "{part:?} is not in:\n{found}");
        }
        Ok(())
    })
}
