//! Tests of the engine's rules, with exact numbers of requests. Time is virtual.

use fleetnet_types::ObjectName;
use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::engine::invariants::tests::IN_PRODUCTION;
use crate::engine::leadership::Leadership;
use crate::engine::logic::{Undecodable, WatchState, WriteEnd};
use crate::engine::message::WatchEvent;
use crate::engine::versions::Mark;
use crate::limits::IN_FLIGHT_PER_CLUSTER;
use crate::process::logging::captured::Captured;
use crate::run::engine_loop::{Finished, Stop};
use crate::test_kit::{Fault, LEADING, START, Server, Source, Thing, WRITTEN_TWICE, World, failure, path_of};

const TEN_MINUTES: u64 = 600_000;
const FOLLOWING: Leadership = Leadership::Waiting { holder: None };

/// Rule K6: A replica does not lead
/// Then: The replica watches and plans, but writes nothing. The replica remembers the keys for which the leader has not
/// made all writes. The replica plans these keys again when the replica becomes leader
#[tokio::test(start_paused = true)]
async fn who_does_not_lead_keeps_its_view_warm_and_writes_nothing() {
    let mut world = World::following().await;
    world.claim("a", "1").await;
    world.claim_and_pass("a", "2", TEN_MINUTES).await;
    assert!(world.hub.log().is_empty());

    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 2"]);
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn a_leader_writes_nothing_after_its_deadline_even_if_nobody_has_told_it_yet() {
    let until = Some(tokio::time::Instant::now() + Duration::from_secs(10));
    let mut world = World::start(Leadership::Leading { until });
    world.complete().await;
    world.claim_and_pass("a", "1", 9_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.claim_and_pass("a", "2", 1_001).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2"]);
    world.claim_and_pass("a", "3", TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2"]);
}

/// Returns the current lengths of the queues with these names, read from the metric.
fn queues<const N: usize>(world: &World, names: [&str; N]) -> [f64; N] {
    let families = world.metrics.gather();
    let family = families.iter().find(|family| family.name() == "fleetnet_queue_depth").expect("it is registered");
    names.map(|name| {
        let of = |metric: &&prometheus::proto::Metric| metric.get_label()[1].value() == name;
        family.get_metric().iter().find(of).expect("the queue is told of").get_gauge().get_value()
    })
}

/// Also rule K6.
#[tokio::test(start_paused = true)]
async fn who_does_not_lead_remembers_only_what_the_leader_has_not_done() {
    let mut world = World::following().await;
    world.claim("a", "1").await;
    world.claim_and_pass("b", "1", 1).await;
    assert_eq!(queues(&world, ["dirty", "left_to_leader"]), [0.0, 2.0]);
    world.hub.put(Source::Copy, "a", "1");
    world.bring_events_and_pass(1).await;
    assert_eq!(queues(&world, ["dirty", "left_to_leader"]), [0.0, 1.0]);

    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    world.bring_events_and_pass(1).await;
    assert_eq!(world.hub.log(), ["POST copies/b = 1"]);
    assert_eq!(queues(&world, ["dirty", "left_to_leader"]), [0.0, 0.0]);
    assert_eq!(observed(&world, "reaction"), (0, 0.0), "the news were the other's to react to");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_is_notified_once_before_any_plan_is_executed() {
    let mut world = World::following().await;
    world.claim_and_pass("a", "1", 1).await;
    assert!(world.record().led_after_plans.is_empty());
    world.record().to_plan_when_it_leads = Some("led".to_owned());
    let plans = world.record().plans.len();
    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    world.claim_and_pass("b", "1", 1).await;
    assert_eq!(world.record().led_after_plans, [plans]);
    assert!(world.record().plans.contains(&"led".to_owned()), "what it then asks for is planned");
}

/// Returns the number of a histogram's observations and their sum in seconds.
fn observed(world: &World, name: &str) -> (u64, f64) {
    let families = world.metrics.gather();
    let family = families.iter().find(|family| family.name() == format!("fleetnet_{name}_duration_seconds"));
    let histogram = family.expect("it is registered").get_metric()[0].get_histogram();
    (histogram.get_sample_count(), histogram.get_sample_sum())
}

#[tokio::test(start_paused = true)]
async fn a_reaction_ends_with_the_write_and_an_echo_is_none() {
    let mut world = World::new().await;
    world.claim_and_pass("a", "1", 1_000).await;
    world.bring_events_and_pass(1_000).await;
    assert_eq!(observed(&world, "reaction"), (1, 0.0), "at once");
    let (changes, processor_seconds) = observed(&world, "own_share");
    assert!(changes == 1 && processor_seconds > 0.0, "{changes} in {processor_seconds} s");
}

#[tokio::test(start_paused = true)]
async fn messages_of_other_parts_of_the_process_are_handled_in_order_and_requeue_keys() {
    let mut world = World::with_copy_of_a().await;
    let plans = world.plans();
    for key in ["a", "b", "a"] {
        world.inbox.send(key.to_owned()).await.expect("the engine runs");
    }
    world.pass(1).await;
    assert_eq!(world.record().received, ["a", "b", "a"]);
    assert_eq!(world.plans(), plans + 2, "one plan for each key");
    let silent = std::mem::replace(&mut world.inbox, tokio::sync::mpsc::channel(1).0);
    drop(silent);
    world.claim_and_pass("a", "2", 1).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2"], "the other part may end");
}

/// Rule V15: A view has room for an object that it did not keep before
/// Then: The engine reads the object with a GET and passes it to the view, though its version is known. One GET runs at
/// a time. After a failure, the agent waits 5 s before the next one, and the view asks again after its next change
#[tokio::test(start_paused = true)]
async fn an_object_that_the_view_did_not_keep_is_read_once_more_when_there_is_room() {
    let world = World::new().await;
    for name in ["a", "b"] {
        world.hub.put(Source::Namespace, name, "1");
    }
    world.bring_events_and_pass(1).await;
    world.hub.forget_log();
    world.record().applied.clear();
    let wants = |names: &[&'static str]| {
        let names = names.iter().map(|name| (Source::Namespace, ObjectName::new("ns", *name)));
        world.record().wanted_again.extend(names);
    };
    wants(&["a", "gone", "undecodable", "b"]);
    let broken = Fault::failure(500, "InternalError", "the server broke", ("", ""));
    world.hub.fault(Method::GET, "namespaces/a", 1, broken);
    world.hub.fault(Method::GET, "namespaces/undecodable", 1, Fault::Answer(200, &[], json!({"spec": 1})));
    world.hub.put(Source::Namespace, "c", "1");
    world.bring_events_and_pass(4_000).await;
    assert_eq!(world.hub.log(), ["GET namespaces/a"], "one after the other");
    assert_eq!(world.record().applied, ["c"]);
    world.pass(4_000).await;
    let gets = ["a", "gone", "undecodable", "b"].map(|name| format!("GET namespaces/{name}"));
    assert_eq!(world.hub.log(), gets, "an object that the server does not show holds back no other");
    assert_eq!(world.record().applied, ["c", "b"], "a version reaches the view, though it is known");
    assert_eq!(world.record().undecodable, ["undecodable"]);
    // While a GET waits, a newer state comes from the watch. The GET shows it again.
    wants(&["a"]);
    world.hub.put(Source::Namespace, "a", "2");
    world.bring_events_and_pass(1).await;
    assert_eq!(world.record().applied, ["c", "b", "a", "a"]);
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_settled_world_costs_no_writes_and_no_plans() {
    let world = World::with_copy_of_a().await;
    world.bring_events_and_pass(1).await;
    let plans = world.plans();
    assert_eq!(plans, 2, "one for the claim and one for the outcome, none for the echo");
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    assert_eq!(world.plans(), plans);
}

/// Rule A15: Because of a bug, a plan has two writes to one object, or a delete without a UID
/// Then: The agent's engine executes no write of this plan, logs an error with the object and counts the plan in
/// `fleetnet_broken_invariants_total{invariant}`. The engine plans the key again after 30 s. Other keys are not delayed
#[tokio::test(start_paused = true)]
async fn a_plan_that_breaks_an_invariant_is_dropped_logged_counted_and_made_again_later() {
    let log = Captured::at(0, &["fleetnet_runtime"]);
    IN_PRODUCTION.set(true);
    let mut world = World::new().await;
    let broken = |world: &World| {
        let families = world.metrics.gather();
        let family = families.iter().find(|family| family.name() == "fleetnet_broken_invariants_total")?;
        let metric = &family.get_metric()[0];
        Some((metric.get_label()[0].value().to_owned(), metric.get_counter().get_value()))
    };
    assert_eq!(broken(&world), None);
    world.claim("a", WRITTEN_TWICE).await;
    world.claim_and_pass("b", "1", 1_000).await;
    assert_eq!(world.hub.log(), ["POST copies/b = 1"], "other keys go on");
    assert_eq!(broken(&world), Some(("one_write_to_an_object".to_owned(), 1.0)));
    let lines = log.take();
    let line = lines.iter().find(|line| line.starts_with("ERROR")).expect("the error is logged");
    assert!(line.contains("two writes to Copy ns/a") && line.contains("Report this line"), "{line}");
    world.pass(30_000).await;
    assert_eq!(broken(&world).map(|(_, times)| times), Some(2.0), "planned again after half a minute");

    world.claim_and_pass("a", "2", 1_000).await;
    assert_eq!(world.hub.log(), ["POST copies/b = 1", "POST copies/a = 2"]);
    IN_PRODUCTION.set(false);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_a_settled_world_costs_no_writes() {
    let (hub, member) = {
        let mut world = World::new().await;
        for name in ["a", "b", "c"] {
            world.claim(name, "1").await;
        }
        world.pass(1).await;
        (world.hub.clone(), world.member.clone())
    };
    hub.forget_log();
    let mut world = World::start_on(hub, member, LEADING);
    for source in Source::ALL {
        world.send(source, WatchEvent::LIST_STARTED).await;
    }
    world.bring_events().await;
    for name in ["a", "b", "c"] {
        world.claim(name, "1").await;
    }
    for source in Source::ALL {
        world.send(source, WatchEvent::ListEnded { resource_version: 1_000 }).await;
    }
    world.pass(TEN_MINUTES).await;
    assert!(world.hub.log().is_empty());
    assert!(world.plans() >= 3);
}

/// Rule Q8: A write to an object is in flight
/// Then: The agent starts no second write to this object. While a create is in flight, the agent does not plan the key
/// whose plan contains the create
#[tokio::test(start_paused = true)]
async fn one_write_is_in_flight_per_target_and_churn_behind_it_becomes_one_write() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(2)));
    world.claim_and_pass("a", "1", 100).await;
    for value in ["2", "3", "4"] {
        world.claim_and_pass("a", value, 100).await;
    }
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.pass(3_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 4"]);
}

/// Also rule Q8.
#[tokio::test(start_paused = true)]
async fn two_keys_that_want_one_target_take_turns() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/shared", 1, Fault::Late(Duration::from_secs(1)));
    let claim = |name: &str| Thing { into: Some("shared".to_owned()), ..Thing::claim(name, "same") };
    world.claim_thing(claim("a")).await;
    world.claim_thing(claim("b")).await;
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/shared = same"]);
}

/// Also rule Q8.
#[tokio::test(start_paused = true)]
async fn a_key_is_not_planned_while_it_is_making_an_object() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(5)));
    let claim = |value| Thing { local: true, ..Thing::claim("a", value) };
    world.claim_thing(claim("1")).await;
    world.pass(1).await;
    world.claim_thing(claim("2")).await;
    world.pass(1).await;
    assert_eq!(world.member.log(), ["POST locals/a = 1"], "what the hub makes of the first plan is not known yet");
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.pass(5_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2"]);
    assert_eq!(world.member.log(), ["POST locals/a = 1", "PATCH locals/a@101 = 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_in_one_cluster_does_not_delay_the_same_keys_writes_to_another() {
    let mut world = World::new().await;
    let claim = |value| Thing { local: true, ..Thing::claim("a", value) };
    world.claim_thing(claim("1")).await;
    world.pass(100).await;
    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::Late(Duration::from_secs(5)));
    world.claim_thing(claim("2")).await;
    world.pass(1).await;
    world.claim_thing(claim("3")).await;
    world.pass(1).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2"]);
    assert_eq!(world.member.log(), ["POST locals/a = 1", "PATCH locals/a@101 = 2", "PATCH locals/a@102 = 3"]);
    world.pass(5_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2", "PATCH copies/a@102 = 3"]);
    assert_eq!(world.member.log().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_down_never_starves_writes_to_the_other() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies", usize::MAX, Fault::Hang);
    world.hub.fault(Method::GET, "copies", usize::MAX, Fault::Hang);
    for number in 0..100 {
        world.claim_thing(Thing { local: true, ..Thing::claim(&format!("w-{number}"), "1") }).await;
    }
    world.pass(100).await;
    assert_eq!(world.hub.log().len(), IN_FLIGHT_PER_CLUSTER);
    assert_eq!(world.member.log().len(), 100);
    world.claim_thing(Thing { local: true, ..Thing::claim("late", "1") }).await;
    world.pass(1).await;
    assert_eq!(world.member.log().len(), 101);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_found_its_cluster_full_goes_on_when_a_slot_is_free() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies", IN_FLIGHT_PER_CLUSTER, Fault::Late(Duration::from_secs(1)));
    for number in 0..100 {
        world.claim(&format!("w-{number}"), "1").await;
    }
    world.pass(500).await;
    assert_eq!(world.hub.log().len(), IN_FLIGHT_PER_CLUSTER);
    world.pass(600).await;
    assert_eq!(world.hub.log().len(), 100);
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_its_key_needs_no_more_goes_to_the_next_at_once() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/w-0", 1, Fault::Late(Duration::from_secs(1)));
    world.hub.fault(Method::POST, "copies/w-", IN_FLIGHT_PER_CLUSTER - 1, Fault::Hang);
    for number in 0..IN_FLIGHT_PER_CLUSTER {
        world.claim(&format!("w-{number}"), "1").await;
    }
    world.pass(1).await;
    world.claim("x-given-up", "1").await;
    world.claim_and_pass("x-next", "1", 1).await;
    world.unclaim_and_pass("x-given-up", 1_100).await;
    assert_eq!(world.hub.log()[IN_FLIGHT_PER_CLUSTER..], ["POST copies/x-next = 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_its_key_cannot_use_while_it_makes_an_object_elsewhere_goes_to_the_next_at_once() {
    let mut world = World::new().await;
    let claim = |name: &str| Thing { local: true, ..Thing::claim(name, "1") };
    world.member.fault(Method::POST, "locals/w-0", 1, Fault::Late(Duration::from_secs(1)));
    world.member.fault(Method::POST, "locals/w-", IN_FLIGHT_PER_CLUSTER - 1, Fault::Hang);
    for number in 0..IN_FLIGHT_PER_CLUSTER {
        world.claim_thing(claim(&format!("w-{number}"))).await;
    }
    world.pass(1).await;
    world.hub.fault(Method::POST, "copies/x-busy", 1, Fault::Late(Duration::from_secs(8)));
    world.claim_thing(claim("x-busy")).await;
    world.pass(1).await;
    world.claim_thing(claim("x-next")).await;
    world.pass(1_100).await;
    assert_eq!(world.member.log()[IN_FLIGHT_PER_CLUSTER..], ["POST locals/x-next = 1"]);
    world.pass(8_000).await;
    assert_eq!(world.member.log()[IN_FLIGHT_PER_CLUSTER + 1..], ["POST locals/x-busy = 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_a_target_is_requeued_by_a_failure_too() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/shared", 1, Fault::Hang);
    let claim = |name: &str| Thing { into: Some("shared".to_owned()), ..Thing::claim(name, "same") };
    world.claim_thing(claim("a")).await;
    world.claim_thing(claim("b")).await;
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/shared = same", "GET copies/shared", "POST copies/shared = same"]);
    let times = world.hub.times();
    assert!(times[2] - times[1] <= 1, "the other key has no failure to wait for: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_noisy_flow_does_not_starve_another_where_slots_are_short() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies", usize::MAX, Fault::Late(Duration::from_millis(100)));
    for number in 0..500 {
        world.claim(&format!("noisy-{number}"), "1").await;
    }
    world.pass(50).await;
    world.claim_and_pass("quiet-1", "1", 100).await;
    let log = world.hub.log();
    assert_eq!(log.len(), 2 * IN_FLIGHT_PER_CLUSTER);
    assert!(log.contains(&"POST copies/quiet-1 = 1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_seen_before_the_watch_shows_them() {
    let mut world = World::with_copy_of_a().await;
    world.claim_and_pass("a", "2", 1).await;
    world.unclaim_and_pass("a", TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "PATCH copies/a@101 = 2", "DELETE copies/a uid-1"]);
    assert_eq!(world.receipts(), ["a=1", "a=2"]);
}

#[tokio::test(start_paused = true)]
async fn an_own_delete_is_final_whatever_the_watch_still_brings() {
    let mut world = World::with_copy_of_a().await;
    world.hub.put(Source::Copy, "a", "1 again");
    world.unclaim_and_pass("a", 1).await;
    // Deliver the watch events only now, after the delete. The first two events show the object, the third shows its
    // deletion.
    world.bring_events_and_pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "DELETE copies/a uid-1"]);
    assert_eq!(world.record().removed, ["claim-a", "uid-1"]);

    world.claim_and_pass("a", "2", 1).await;
    assert_eq!(world.hub.log()[2..], ["POST copies/a = 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_a_finalizer_delays_is_not_repeated() {
    let mut world = World::with_copy_of_a().await;
    world.hub.fault(Method::DELETE, "copies/a", 1, Fault::Linger);
    world.unclaim_and_pass("a", TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "DELETE copies/a uid-1"]);

    world.claim_and_pass("a", "2", TEN_MINUTES).await;
    assert_eq!(world.hub.log().len(), 2, "the name is taken until the finalizer is gone");
    world.hub.delete(Source::Copy, "a");
    world.bring_events_and_pass(1).await;
    assert_eq!(world.hub.log()[2..], ["POST copies/a = 2"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_made_again_by_others_is_not_taken_for_the_old_one() {
    let mut world = World::with_copy_of_a().await;
    world.hub.delete(Source::Copy, "a");
    world.hub.put(Source::Copy, "a", "stranger");
    world.unclaim_and_pass("a", 1).await;
    // The first DELETE has the UID of an object that no longer exists, so it fails. The second DELETE has the UID of
    // the object that exists now.
    assert_eq!(
        world.hub.log(),
        ["POST copies/a = 1", "DELETE copies/a uid-1", "GET copies/a", "DELETE copies/a uid-2"]
    );
    assert_eq!(world.record().removed, ["claim-a", "uid-1", "uid-2"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_later_list_does_not_have_is_made_again() {
    let world = World::with_copy_of_a().await;
    world.hub.delete(Source::Copy, "a");
    let _missed = world.hub.take_events();
    world.send(Source::Copy, WatchEvent::LIST_STARTED).await;
    world.send(Source::Copy, WatchEvent::ListEnded { resource_version: world.hub.revision() }).await;
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/a = 1"]);
}

/// Rule Q10: The server prunes a field of an object that the agent writes
/// Then: The agent does not repeat the write until the object in the server changes, or the agent has other content to
/// write
#[tokio::test(start_paused = true)]
async fn a_write_that_the_server_pruned_is_not_repeated_until_its_inputs_change() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Prune);
    world.hub.fault(Method::PATCH, "copies/a", usize::MAX, Fault::Prune);
    world.claim_and_pass("a", "1", TEN_MINUTES).await;
    let first = ["POST copies/a = 1", "PATCH copies/a@101 = 1"];
    assert_eq!(world.hub.log(), first, "the patch is another write than the create, and is tried once");

    world.bring_events_and_pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), first, "the echo is no new input");

    world.claim_and_pass("a", "2", TEN_MINUTES).await;
    assert_eq!(world.hub.log()[2..], ["PATCH copies/a@101 = 2"]);

    world.hub.put(Source::Copy, "a", "other");
    world.bring_events_and_pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log()[3..], ["PATCH copies/a@102 = 2"]);
    assert!(world.counter("fleetnet_writes_suppressed_total") > 0);
}

/// Also rule A8.
#[tokio::test(start_paused = true)]
async fn failures_back_off_per_key_and_a_success_resets() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 6, Fault::Refuse);
    world.claim_and_pass("a", "1", 100).await;
    world.claim_and_pass("b", "1", 1).await;
    assert!(world.hub.log().contains(&"POST copies/b = 1".to_owned()), "the failures of one key do not slow another");
    world.pass(TEN_MINUTES).await;
    let times: Vec<u128> = of(&world.hub, "POST copies/a = 1");
    assert_eq!(times.len(), 7);
    for (failures, wait) in times.windows(2).map(|pair| pair[1] - pair[0]).enumerate() {
        let longest = 20_u128 << failures;
        assert!(wait >= longest * 3 / 4 && wait <= longest + 2, "wait {failures} was {wait} ms");
    }

    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::Refuse);
    world.claim_and_pass("a", "2", TEN_MINUTES).await;
    let times = of(&world.hub, "PATCH copies/a@102 = 2");
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] <= 21, "{times:?}");
}

/// Also rule A8.
#[tokio::test(start_paused = true)]
async fn a_success_resets_the_back_off_also_where_the_next_write_follows_at_once() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 6, Fault::Refuse);
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(5)));
    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::Refuse);
    world.claim_and_pass("a", "1", 3_000).await;
    world.claim_and_pass("a", "2", TEN_MINUTES).await;
    let times = of(&world.hub, "PATCH copies/a@101 = 2");
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] <= 21, "{times:?}");
}

/// Returns the times at which the server received this request, in milliseconds since the start.
fn of(server: &Server, line: &str) -> Vec<u128> {
    server.timed_log().into_iter().filter(|(_, asked)| asked == line).map(|(at, _)| at).collect()
}

/// Also rules A8, Q7.
#[tokio::test(start_paused = true)]
async fn b19_requests_to_a_server_that_stays_down_slow_to_one_in_30_seconds() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", usize::MAX, Fault::Refuse);
    world.claim_and_pass("a", "1", TEN_MINUTES).await;
    let times = world.hub.times();
    assert_eq!(of(&world.hub, "POST copies/a = 1"), times, "a refused connection needs no GET");
    let last_waits: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).skip(11).collect();
    assert!(last_waits.len() >= 18, "{last_waits:?}");
    assert!(last_waits.iter().all(|wait| (22_500..=30_001).contains(wait)), "{last_waits:?}");
}

#[tokio::test(start_paused = true)]
async fn views_that_change_do_not_shorten_a_back_off() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", usize::MAX, Fault::Refuse);
    world.claim_and_pass("a", "1", 20_000).await;
    let before = world.hub.log().len();
    for number in 0..50 {
        world
            .claim_thing(Thing { again: Some(START + Duration::from_secs(10_000 + number)), ..Thing::claim("a", "1") })
            .await;
        world.pass(10).await;
    }
    assert_eq!(world.hub.log().len(), before);
}

/// Also rule Q5.
#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed_by_the_whole_cluster_and_by_no_other() {
    for (headers, seconds_in_body) in [(&[("retry-after", "3")][..], 0), (&[][..], 3)] {
        let mut world = World::new().await;
        let (status, mut body) = failure(429, "TooManyRequests", "slow down", ("", ""));
        body["details"]["retryAfterSeconds"] = json!(seconds_in_body);
        world.hub.fault(Method::POST, "copies/a", 1, Fault::Answer(status, headers, body));
        world.claim_and_pass("a", "1", 1).await;
        world.claim_thing(Thing { local: true, ..Thing::claim("b", "1") }).await;
        world.pass(2_990).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
        assert_eq!(world.member.log(), ["POST locals/b = 1"]);
        world.pass(400).await;
        assert_eq!(world.hub.log().len(), 3);
        world.pass(TEN_MINUTES).await;
        assert_eq!(world.hub.log().len(), 3);
    }
}

/// Returns a response with the status 429 and these headers.
fn slow_down(headers: &'static [(&'static str, &'static str)]) -> Fault {
    let (status, body) = failure(429, "TooManyRequests", "slow down", ("", ""));
    Fault::Answer(status, headers, body)
}

#[tokio::test(start_paused = true)]
async fn a_429_with_a_retry_after_of_zero_or_without_one_backs_off() {
    let table: [&[(&str, &str)]; 2] = [&[("retry-after", "0")], &[]];
    for headers in table {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/a", usize::MAX, slow_down(headers));
        world.claim_and_pass("a", "1", 150).await;
        // The back-off doubles: waits of 20, 40 and 80 ms, each shortened by up to a quarter, so four attempts fit into
        // 150 ms. The test accepts one attempt more or less.
        assert!((3..=5).contains(&world.hub.log().len()), "{:?}", world.hub.timed_log());
    }
}

/// Also rule Q5.
#[tokio::test(start_paused = true)]
async fn a_server_that_requests_an_hour_gets_a_write_after_six_minutes() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, slow_down(&[("retry-after", "3600")]));
    world.claim_and_pass("a", "1", 290_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.pass(70_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/a = 1"]);
}

/// Rule Q13: A response of the server contains `Retry-After`, and a heartbeat is due
/// Then: The heartbeat is sent, unless its own last answer has `Retry-After`. Then it waits for this time, but for 15 s
/// at most
#[tokio::test(start_paused = true)]
async fn a_retry_after_never_holds_back_a_heartbeat_for_longer_than_15_seconds() {
    let mut world = World::new().await;
    for name in ["copies/a", "copies/heartbeat"] {
        world.hub.fault(Method::POST, name, 1, slow_down(&[("retry-after", "3600")]));
    }
    world.claim_and_pass("a", "1", 10).await;
    world.claim("b", "1").await;
    world.claim_and_pass("heartbeat", "1", 14_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/heartbeat = 1"]);
    world.pass(6_000).await;
    assert_eq!(world.hub.log()[2..], ["POST copies/heartbeat = 1"]);
    world.claim_and_pass("heartbeat", "2", 10).await;
    assert!(world.hub.log()[3].starts_with("PATCH copies/heartbeat@"), "{:?}", world.hub.log());
    world.pass(400_000).await;
    assert_eq!(world.hub.log()[4..].len(), 2, "the others wait for five minutes");
}

#[tokio::test(start_paused = true)]
async fn plans_that_fight_each_other_are_limited_by_the_ceiling() {
    let mut world = World::new().await;
    let claim = |name: &str, value: &str| Thing { into: Some("shared".to_owned()), ..Thing::claim(name, value) };
    world.claim_thing(claim("a", "1")).await;
    world.claim_thing(claim("b", "2")).await;
    world.pass(3_000).await;
    let writes = world.hub.log().len();
    assert!((7_900..=8_100).contains(&writes), "a second's worth at once and three more: {writes}");
}

/// Simulates another writer that undoes each write within 10 ms, for this many seconds. Returns the times of the
/// agent's writes, in seconds.
async fn fight(world: &mut World, seconds: u64, undo: impl Fn(&Server)) -> Vec<u128> {
    world.hub.forget_log();
    let mut written = 0;
    for _ in 0..seconds * 100 {
        world.pass(10).await;
        let writes = writes(&world.hub).len();
        if writes > written {
            written = writes;
            undo(&world.hub);
            world.bring_events().await;
        }
    }
    writes(&world.hub).into_iter().map(|at| at / 1_000).collect()
}

/// Returns the times of the agent's writes to this server, in milliseconds.
fn writes(hub: &Server) -> Vec<u128> {
    hub.timed_log().into_iter().filter(|(_, line)| !line.starts_with("GET")).map(|(at, _)| at).collect()
}

/// Also rule A12.
#[tokio::test(start_paused = true)]
async fn a_fight_over_an_object_costs_a_write_a_minute_after_ten_repairs() {
    type Undo = fn(&Server);
    let changes: Undo = |hub| {
        hub.put(Source::Copy, "a", "theirs");
    };
    let deletes: Undo = |hub| hub.delete(Source::Copy, "a");
    let unnamed = "a writer that metadata.managedFields does not name";
    let table = [
        ("changed", false, changes, unnamed),
        ("changed", true, changes, unnamed),
        ("deleted", true, deletes, "a writer that deletes it"),
    ];
    for (how, stamped, undo, by) in table {
        let mut world = World::new().await;
        world.claim_thing(Thing { stamped, ..Thing::claim("a", "1") }).await;
        let times = fight(&mut world, 300, undo).await;
        // Twelve writes if the object was changed: the create, the first patch, and ten repairs. The first patch is no
        // repair, because the agent has not patched this object before. Eleven writes if the object was deleted: the
        // create and ten repairs.
        let at_once = times.iter().filter(|second| **second < 50).count();
        assert!((11..=12).contains(&at_once), "{how}: {times:?}");
        assert_eq!(times[at_once..], [60, 120, 180, 240], "{how}: {times:?}");
        assert_eq!(world.record().fights, [format!("a: hub Copy ns/a with {by}")], "{how}");
        assert_eq!(world.hub.log().len(), times.len() + 1, "one look at who it is: {how}");

        // The other writer still undoes each write. A write with new content is sent at once all the same.
        let before = world.hub.log().len();
        world.claim_thing(Thing { stamped, ..Thing::claim("a", "2") }).await;
        world.pass(10).await;
        assert_eq!(world.hub.log().len(), before + 1, "{how}");
    }
}

/// Simulates another writer that undoes the agent's writes to this many objects, every second, for this many seconds.
async fn fight_over(world: &mut World, claims: usize, seconds: u64) {
    for number in 0..claims {
        world.claim(&format!("a{number:03}"), "1").await;
    }
    for _ in 0..seconds {
        world.pass(1_000).await;
        for number in 0..claims {
            world.hub.put(Source::Copy, &format!("a{number:03}"), "theirs");
        }
        world.bring_events().await;
    }
}

fn gets(world: &World) -> Vec<String> {
    let mut gets: Vec<String> = world.hub.log().into_iter().filter(|line| line.starts_with("GET")).collect();
    gets.sort();
    gets
}

#[tokio::test(start_paused = true)]
async fn of_two_hundred_fights_four_send_their_get_at_once_and_all_in_the_end() {
    let mut world = World::new().await;
    world.hub.fault(Method::GET, "copies/", usize::MAX, Fault::Late(Duration::from_millis(100)));
    fight_over(&mut world, 200, 30).await;
    let each: Vec<String> = (0..200).map(|number| format!("GET copies/a{number:03}")).collect();
    assert_eq!(gets(&world), each, "one GET for each fight");
    assert_eq!(world.hub.most_gets(), 4);
    assert_eq!(world.record().fights.len(), 200, "each is told");
}

#[tokio::test(start_paused = true)]
async fn a_fight_that_is_over_before_its_get_is_not_reported() {
    let mut world = World::new().await;
    // Each GET that looks up the other writer hangs until its timeout of 10 s, and only four run at once. Most fights
    // end before their GET begins.
    world.hub.fault(Method::GET, "copies/", usize::MAX, Fault::Hang);
    fight_over(&mut world, 200, 12).await;
    world.pass(150_000).await;
    let asked = world.hub.log().iter().filter(|line| line.starts_with("GET")).count();
    assert!((40..=80).contains(&asked), "four every 10 s until the repairs stand: {asked}");
    let fights = world.record().fights.clone();
    let is_over = |fight: &&String| fight.ends_with("is over");
    assert_eq!(fights.iter().filter(is_over).count(), asked, "{fights:?}");
    assert_eq!(fights.len(), 2 * asked);
    assert_eq!(gets(&world).len(), asked, "nobody else is asked about any more");
}

#[tokio::test(start_paused = true)]
async fn sources_that_change_often_beside_other_writers_are_no_fight() {
    let mut world = World::new().await;
    for round in 0..1_200 {
        // The `Claim` changes its value in each pass of this loop. After each write of the agent, another client also
        // writes to the copy.
        let value = if round % 2 == 0 { "1" } else { "2" };
        world.claim_and_pass("a", value, 25).await;
        world.hub.put(Source::Copy, "a", value);
        world.bring_events_and_pass(25).await;
    }
    assert_eq!(world.hub.log().len(), 1_200, "each change is written");
    assert!(world.record().fights.is_empty());
}

/// Also rule A12.
#[tokio::test(start_paused = true)]
async fn renewals_are_no_repairs_after_writes_of_others() {
    let mut world = World::new().await;
    world.claim_thing(Thing { stamped: true, ..Thing::claim("beat", "1") }).await;
    world.hub.forget_log();
    for _ in 0..100 {
        world.hub.put(Source::Copy, "beat", "theirs");
        world.bring_events_and_pass(1_000).await;
    }
    assert_eq!(writes(&world.hub).len(), 100);
    assert!(world.record().fights.is_empty());
}

/// Also rule A12.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_creates_its_object_again_is_a_repair() {
    let mut world = World::new().await;
    world.claim_thing(Thing { stamped: true, ..Thing::claim("beat", "1") }).await;
    let times = fight(&mut world, 50, |hub| hub.delete(Source::Copy, "beat")).await;
    assert_eq!(times.len(), 11, "{times:?}");
}

/// Also rule Q3.
#[tokio::test(start_paused = true)]
async fn what_is_rejected_is_tried_again_every_ten_minutes_and_once_its_content_differs() {
    for code in [400, 413, 415, 422] {
        let mut world = World::new().await;
        world.hub.fault(
            Method::POST,
            "copies/a",
            usize::MAX,
            Fault::of_copy_a(code, "Invalid", "spec.value: must be short"),
        );
        world.claim_and_pass("a", "1", TEN_MINUTES - 151_000).await;
        world.claim_thing(Thing { again: Some(START), ..Thing::claim("a", "1") }).await;
        world.pass(1_000).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1"], "{code}");
        assert_eq!(world.member.log(), [format!("POST event CopyRefused: {code} spec.value: must be short")]);
        assert_eq!(world.record().rejected, [format!("a: {code} Invalid")]);
        world.pass(150_000).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/a = 1"], "{code}");
        assert_eq!(world.record().rejected.len(), 1, "its user knows");

        world.claim_and_pass("a", "2", 100).await;
        assert_eq!(world.hub.log()[2..], ["POST copies/a = 2"], "{code}");
        assert_eq!(world.record().rejected.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_rejected_once_is_written_ten_minutes_later() {
    for method in [Method::POST, Method::PATCH] {
        let mut world = World::new().await;
        if method == Method::PATCH {
            world.claim_and_pass("a", "0", 1).await;
        }
        world.hub.fault(method.clone(), "copies/a", 1, Fault::of_copy_a(422, "Invalid", "denied by a policy"));
        world.claim_and_pass("a", "1", TEN_MINUTES).await;
        let times = world.hub.times();
        let waits: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let wait = waits.last().expect("it was tried again");
        assert!((450_000..=600_002).contains(wait), "{method}: {waits:?}");
        assert_eq!(world.hub.value(&path_of(Source::Copy, "a")).as_deref(), Some("1"));
    }
}

/// Also rule Q3.
#[tokio::test(start_paused = true)]
async fn a_rejected_body_that_differs_by_the_time_only_is_the_same() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", usize::MAX, Fault::of_copy_a(422, "Invalid", "no"));
    let claim = |value: &str| Thing { stamped: true, ..Thing::claim("a", value) };
    world.claim_thing(claim("1")).await;
    for _ in 0..400 {
        world.pass(1_000).await;
        world.claim_thing(Thing { again: Some(START), ..claim("1") }).await;
        world.claim_thing(claim("1")).await;
    }
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.claim_thing(claim("2")).await;
    world.pass(100).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/a = 2"], "what was wrong may be repaired");
}

/// Returns pairs of a name and a fault of the server. With each fault, a write fails after one millisecond.
fn failures() -> Vec<(&'static str, Fault)> {
    let about = |code, reason, of| Fault::failure(code, reason, "no", of);
    let faults = vec![
        ("connection refused", Fault::Refuse),
        ("connection reset", Fault::Cut),
        ("400", about(400, "BadRequest", ("copies", "a"))),
        ("401", about(401, "Unauthorized", ("", ""))),
        ("403", about(403, "Forbidden", ("copies", "a"))),
        ("404 of the namespace", about(404, "NotFound", ("namespaces", "ns"))),
        ("404 of the object", about(404, "NotFound", ("copies", "a"))),
        ("409", about(409, "Conflict", ("copies", "a"))),
        ("422", about(422, "Invalid", ("copies", "a"))),
        ("429", about(429, "TooManyRequests", ("", ""))),
        ("500", about(500, "InternalError", ("", ""))),
    ];
    let later = |fault| Fault::After(Duration::from_millis(1), Box::new(fault));
    faults.into_iter().map(|(name, fault)| (name, later(fault))).collect()
}

/// Rule A8: A write fails again and again
/// Then: The agent retries the write after 20 ms, and doubles the wait up to 30 s. Each object has its own back-off,
/// which does not depend on the content of the write. A success resets the back-off (bug B19)
#[tokio::test(start_paused = true)]
async fn a_write_that_contains_the_time_and_fails_is_made_fewer_than_40_times_in_ten_minutes() {
    for method in [Method::POST, Method::PATCH] {
        for (name, fault) in failures() {
            let mut world = World::new().await;
            let claim = |value: &str| Thing { stamped: true, ..Thing::claim("a", value) };
            if method == Method::PATCH {
                world.claim_thing(claim("0")).await;
                world.pass(10).await;
            }
            world.hub.forget_log();
            // A 404 to a patch means that the object is gone, so the next plan creates the object. This create must
            // fail too.
            world.hub.fault(Method::POST, "copies/a", usize::MAX, fault.clone());
            world.hub.fault(method.clone(), "copies/a", usize::MAX, fault);
            world.claim_thing(claim("1")).await;
            world.pass(TEN_MINUTES).await;
            let log = world.hub.log();
            let writes = log.iter().filter(|line| !line.starts_with("GET")).count();
            assert!((2..40).contains(&writes), "{method}, {name}: {writes} writes in ten minutes");
            let follow_each_other = |pair: &[String]| pair.iter().all(|line| line.starts_with("GET"));
            assert!(!log.windows(2).any(follow_each_other), "{method}, {name}: one GET for a write at most: {log:?}");
        }
    }
}

/// Also rule Q11.
#[tokio::test(start_paused = true)]
async fn each_failed_try_is_reported_to_the_agent_and_the_first_in_a_row_to_users() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 3, Fault::of_copy_a(500, "InternalError", "no space left"));
    world.claim_and_pass("a", "1", TEN_MINUTES).await;
    assert_eq!(world.record().not_done, ["a create: 0", "a create: 0", "a create: 0"]);
    assert_eq!(world.record().failed, ["a create: 0"]);
    world.hub.put(Source::Copy, "a", "meddled");
    world.claim_and_pass("a", "2", 1).await;
    assert_eq!(world.record().not_done[3..], ["a patch: 409"], "a conflict is no failure for users");
    assert_eq!(world.record().failed.len(), 1);
}

/// At each verbosity, the log has the lines that the help text of `--v` describes.
#[tokio::test(start_paused = true)]
async fn levels_of_the_log_add_writes_and_then_watches_queues_and_plans() {
    let mut found = Vec::new();
    for verbosity in [1, 2, 4] {
        let mut world = World::new().await;
        let log = Captured::at(verbosity, &[]);
        world.claim_and_pass("a", "1", 1).await;
        found.push(log.take());
    }
    let written = r#"DEBUG written side="hub" kind="Copy" namespace="ns" name="a" verb="create""#;
    let none: [&str; 0] = [];
    assert_eq!(found[0], none);
    assert_eq!(found[1], [written]);
    assert_eq!(
        found[2],
        [
            r#"TRACE read from a watch source=Claim read="present" namespace="ns" name="a""#,
            r#"TRACE queued key="a""#,
            r#"TRACE planning key="a""#,
            r#"TRACE planned key="a" writes=1 took=0ns"#,
            written,
            r#"TRACE queued key="a""#,
            r#"TRACE planning key="a""#,
            r#"TRACE planned key="a" writes=0 took=0ns"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_rejected_for_one_version_of_its_target_is_tried_on_the_next() {
    let mut world = World::with_copy_of_a().await;
    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::of_copy_a(422, "Invalid", "immutable while locked"));
    world.claim_and_pass("a", "2", 400_000).await;
    assert_eq!(world.hub.log()[1..], ["PATCH copies/a@101 = 2"]);
    world.hub.put(Source::Copy, "a", "unlocked");
    world.bring_events_and_pass(100).await;
    assert_eq!(world.hub.log()[2..], ["PATCH copies/a@102 = 2"]);
}

/// Also rule Q1.
#[tokio::test(start_paused = true)]
async fn forbidden_and_missing_namespaces_back_off_slowly() {
    for (code, reason, about) in [(403, "Forbidden", ("copies", "a")), (404, "NotFound", ("namespaces", "ns"))] {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/a", usize::MAX, Fault::failure(code, reason, "no", about));
        world.claim_and_pass("a", "1", TEN_MINUTES).await;
        let times = world.hub.times();
        let waits: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Nine waits of 1, 2, 4, … and 256 s last 383 to 511 s in all, because jitter shortens each wait by up to a
        // quarter. The tenth wait lasts 225 to 300 s, so it ends near or after the end of the ten minutes.
        assert!((9..=10).contains(&waits.len()), "{waits:?}");
        assert_eq!(world.record().failed, [format!("a create: {code}")], "the agent may tell its users of the first");
        for (failures, wait) in waits.iter().enumerate() {
            let longest = (1_000_u128 << failures).min(300_000);
            assert!(*wait >= longest * 3 / 4 && *wait <= longest + 2, "wait {failures} was {wait} ms");
        }
    }
}

/// Returns the age of the oldest unfinished write to the hub and to the member, in seconds. `None` if there is no
/// series.
fn oldest_unfinished(world: &World) -> [Option<f64>; 2] {
    let families = world.metrics.gather();
    let family = families.iter().find(|family| family.name() == "fleetnet_oldest_unfinished_change_seconds");
    ["hub", "member"].map(|side| {
        let of = |metric: &&prometheus::proto::Metric| metric.get_label()[1].value() == side;
        Some(family?.get_metric().iter().find(of)?.get_gauge().get_value())
    })
}

/// Also rule A17.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_carried_out_has_an_age_whatever_keeps_it_from_it() {
    for fault in [Fault::of_copy_a(422, "Invalid", "no"), Fault::of_copy_a(403, "Forbidden", "no"), Fault::Hang] {
        let mut world = World::new().await;
        world.pass(1).await;
        assert_eq!(oldest_unfinished(&world), [Some(0.0), Some(0.0)]);
        world.hub.fault(Method::POST, "copies/a", usize::MAX, fault);
        world.hub.fault(Method::GET, "copies/a", usize::MAX, Fault::Hang);
        world.claim_and_pass("a", "1", 300_000).await;
        world.claim("a", "2").await;
        world.claim_and_pass("b", "1", 300_000).await;
        let [hub, member] = oldest_unfinished(&world);
        assert!(hub.is_some_and(|age| (600.0..600.1).contains(&age)), "{hub:?}");
        assert_eq!(member, Some(0.0));
        world.hub.heal();
        world.pass(TEN_MINUTES).await;
        assert_eq!(oldest_unfinished(&world), [Some(0.0), Some(0.0)]);
    }
}

/// Also rule A17.
#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_a_time_and_a_replica_that_does_not_lead_have_no_unfinished_write() {
    let mut world = World::following().await;
    world.claim_and_pass("a", "1", 60_000).await;
    assert_eq!(oldest_unfinished(&world), [None, None]);
    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    let later = START + Duration::from_secs(3_600);
    world.claim_thing(Thing { again: Some(later), ..Thing::claim("a", "1") }).await;
    world.pass(60_000).await;
    assert_eq!(oldest_unfinished(&world), [Some(0.0), Some(0.0)]);
}

/// Also rule Q2.
#[tokio::test(start_paused = true)]
async fn a_created_namespace_requeues_what_waits_for_it() {
    let mut world = World::new().await;
    world.hub.fault(
        Method::POST,
        "copies/a",
        usize::MAX,
        Fault::failure(404, "NotFound", "namespaces \"ns\" not found", ("namespaces", "ns")),
    );
    world.claim_and_pass("a", "1", 100_000).await;
    let before = world.hub.log().len();
    world.hub.heal();
    world.hub.put(Source::Namespace, "ns", "");
    world.bring_events_and_pass(1).await;
    assert_eq!(world.hub.log().len(), before + 1);
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log().len(), before + 1);
}

/// Also rule Q7.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_carried_out_is_settled_by_one_get() {
    for (fault, milliseconds) in [(Fault::DoAndHang, 10_010), (Fault::DoAndCut, 1), (Fault::DoAndFail, 1)] {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/a", 1, fault);
        world.claim_and_pass("a", "1", milliseconds).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1", "GET copies/a"]);
        assert_eq!(world.receipts(), ["a=1"]);
        world.pass(TEN_MINUTES).await;
        assert_eq!(world.hub.log().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_not_carried_out_is_tried_again() {
    for (fault, milliseconds) in [(Fault::Hang, 10_000), (Fault::Cut, 0)] {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/a", 1, fault);
        world.claim_and_pass("a", "1", TEN_MINUTES).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1", "GET copies/a", "POST copies/a = 1"]);
        assert_eq!(world.receipts(), ["a=1"]);
        let times = world.hub.times();
        assert!((milliseconds..=milliseconds + 1).contains(&(times[1] - times[0])), "{times:?}");
        assert!((15..=21).contains(&(times[2] - times[1])), "{times:?}");
    }
}

/// Also rule Q7.
#[tokio::test(start_paused = true)]
async fn an_unknown_patch_and_an_unknown_delete_are_settled_by_one_get_each() {
    let mut world = World::with_copy_of_a().await;
    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::DoAndCut);
    world.hub.fault(Method::DELETE, "copies/a", 1, Fault::DoAndCut);
    world.claim_and_pass("a", "2", 1).await;
    world.unclaim_and_pass("a", TEN_MINUTES).await;
    assert_eq!(
        world.hub.log()[1..],
        ["PATCH copies/a@101 = 2", "GET copies/a", "DELETE copies/a uid-1", "GET copies/a"]
    );
    assert_eq!(world.receipts(), ["a=1", "a=2"]);
    assert_eq!(world.record().removed, ["claim-a", "uid-1"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_there_is_one_get_and_then_a_plan_at_once() {
    let mut world = World::with_copy_of_a().await;
    world.hub.put(Source::Copy, "a", "other");
    world.claim_and_pass("a", "2", 1).await;
    assert_eq!(
        world.hub.log(),
        ["POST copies/a = 1", "PATCH copies/a@101 = 2", "GET copies/a", "PATCH copies/a@102 = 2"]
    );
    world.bring_events_and_pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_agent_is_notified_when_a_write_is_sent_and_of_its_result_once_the_view_has_the_answer() {
    let mut world = World::with_copy_of_a().await;
    let made = WriteEnd::Done { version: Some(101) };
    assert_eq!(world.record().ended, [("create a".to_owned(), made, 2)], "the claim and its copy had been told");

    world.hub.put(Source::Copy, "a", "meddled");
    world.claim_and_pass("a", "2", 1).await;
    let changed = WriteEnd::Done { version: Some(103) };
    let ends = |world: &World| world.record().ended[1..].iter().map(|(_, end, _)| *end).collect::<Vec<_>>();
    assert_eq!(ends(&world), [WriteEnd::Conflict, changed], "the first met what another had made of it");

    world.hub.fault(Method::PATCH, "copies/a", 1, Fault::Refuse);
    world.claim_and_pass("a", "3", 1).await;
    assert_eq!(ends(&world)[2], WriteEnd::Unknown);
    world.pass(TEN_MINUTES).await;
    world.unclaim_and_pass("a", 1).await;
    assert_eq!(ends(&world).last(), Some(&WriteEnd::Done { version: None }));
    let ended: Vec<String> = world.record().ended.iter().map(|(write, _, _)| write.clone()).collect();
    assert_eq!(world.record().begun, ended, "each that had left");
}

/// Also rule Q4.
#[tokio::test(start_paused = true)]
async fn a_conflict_that_nothing_explains_backs_off() {
    let mut world = World::with_copy_of_a().await;
    world.hub.fault(Method::PATCH, "copies/a", usize::MAX, Fault::of_copy_a(409, "Conflict", "always"));
    world.claim_and_pass("a", "2", 10).await;
    let patches = of(&world.hub, "PATCH copies/a@101 = 2").len();
    assert_eq!(patches, 1, "the GET showed nothing new, so the first retry waits too");
    world.pass(140).await;
    // Waits of 20, 40 and 80 ms, each shortened by up to a quarter, so four attempts fit into 150 ms. The test accepts
    // one attempt more or less. Each failed attempt is followed by a GET.
    let patches = of(&world.hub, "PATCH copies/a@101 = 2").len();
    assert!((3..=5).contains(&patches), "{patches}");
    assert_eq!(of(&world.hub, "GET copies/a").len(), patches);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_planned_again_at_the_time_that_its_last_plan_named() {
    let mut world = World::new().await;
    let at = |seconds| Some(START + Duration::from_secs(seconds));
    world.claim_thing(Thing { again: at(100), ..Thing::claim("a", "1") }).await;
    world.pass(1).await;
    world.claim_thing(Thing { again: at(60), ..Thing::claim("a", "1") }).await;
    world.pass(50_000).await;
    let plans = world.plans();
    world.pass(9_999).await;
    assert_eq!(world.plans(), plans + 1, "at 60 s: the newer claim replaces the older");
}

/// Rule A13: Somebody sets the wall clock
/// Then: No timer of an agent becomes longer or shorter
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_moves_no_timer_and_is_reported_once() {
    const HOUR: i64 = 3_600_000_000;
    for by in [HOUR, -HOUR] {
        let mut world = World::new().await;
        world.claim_thing(Thing { again: Some(START + Duration::from_secs(40)), ..Thing::claim("a", "1") }).await;
        world.pass(10_000).await;
        let plans = world.plans();
        world.clock.set_by(by);
        world.pass(29_000).await;
        assert_eq!(world.plans(), plans, "{by}: not before its time");
        world.pass(1_500).await;
        assert!(world.plans() > plans, "{by}: in its time");
        assert_eq!(world.record().clock_set, [by]);
    }
}

#[tokio::test(start_paused = true)]
async fn writes_and_their_failures_go_on_as_ever_while_the_wall_clock_is_set() {
    for by in [3_600_000_000, -3_600_000_000] {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/a", 8, Fault::Refuse);
        world.claim_thing(Thing { stamped: true, ..Thing::claim("a", "1") }).await;
        for _ in 0..5 {
            world.pass(1_000).await;
            world.clock.set_by(by);
        }
        world.pass(1_000).await;
        assert_eq!(world.hub.log().len(), 9, "{by}: eight failures take 5.1 s at most");
        assert_eq!(world.receipts(), ["a=1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_time_is_not_planned() {
    let mut world = World::new().await;
    world.claim_thing(Thing { again: Some(START + Duration::from_secs(60)), ..Thing::claim("a", "1") }).await;
    world.pass(1).await;
    world.claim_and_pass("a", "1", 1).await;
    let plans = world.plans();
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.plans(), plans);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_has_passed_does_not_spin() {
    let mut world = World::new().await;
    world.claim_thing(Thing { again: Some(START), ..Thing::claim("a", "1") }).await;
    world.pass(1_000).await;
    assert!(world.plans() <= 202, "{}", world.plans());
    assert!(world.plans() >= 160, "{}", world.plans());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_makes_its_last_plan_after_all_other_writes() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(3)));
    world.claim_and_pass("a", "1", 1).await;
    world.record().last_word = Some("goodbye");
    world.trigger.request();
    world.pass(10_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/last = goodbye"]);
    assert_eq!(world.receipts(), ["a=1"], "of the last word nobody is left to hear");
    assert_eq!(world.engine.await.expect("no panic"), Finished { stop: Stop::Requested, drained: true });
}

#[tokio::test(start_paused = true)]
async fn a_last_plan_that_fails_does_not_delay_the_stop() {
    let world = World::new().await;
    world.record().last_word = Some("goodbye");
    world.hub.fault(Method::POST, "copies/last", 1, Fault::Late(Duration::from_secs(60)));
    world.trigger.request();
    world.pass(1_900).await;
    assert!(!world.engine.is_finished());
    world.pass(200).await;
    assert_eq!(world.engine.await.expect("no panic"), Finished { stop: Stop::Requested, drained: true });
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_lead_any_more_makes_no_last_plan() {
    let world = World::new().await;
    world.record().last_word = Some("goodbye");
    world.leadership.send_replace(FOLLOWING);
    world.pass(3_000).await;
    world.trigger.request();
    world.pass(3_000).await;
    assert_eq!(world.hub.log(), [""; 0]);
    assert_eq!(world.engine.await.expect("no panic"), Finished { stop: Stop::Requested, drained: true });
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn a_graceful_stop_plans_nothing_more_and_drains_what_is_in_flight() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(8)));
    world.claim_and_pass("a", "1", 1).await;
    world.trigger.request();
    world.claim("a", "2").await;
    world.claim_and_pass("b", "1", 7_000).await;
    assert!(!world.engine.is_finished());
    world.pass(2_000).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    assert_eq!(world.receipts(), ["a=1"]);
    assert_eq!(world.engine.await.expect("no panic"), Finished { stop: Stop::Requested, drained: true });
}

/// Also rule K5.
#[tokio::test(start_paused = true)]
async fn a_graceful_stop_waits_ten_seconds_at_most() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Hang);
    world.hub.fault(Method::GET, "copies/a", 1, Fault::Hang);
    world.claim_and_pass("a", "1", 5_000).await;
    world.trigger.request();
    world.pass(9_990).await;
    assert!(!world.engine.is_finished());
    world.pass(20).await;
    assert!(world.engine.is_finished());
    assert_eq!(world.engine.await.expect("no panic"), Finished { stop: Stop::Requested, drained: false });
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn who_loses_leadership_writes_nothing_more_until_it_leads_again() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Late(Duration::from_secs(2)));
    world.hub.fault(Method::POST, "copies/b", 1, Fault::Answer(500, &[], json!({})));
    world.claim("a", "1").await;
    world.claim_and_pass("b", "1", 1).await;
    world.leadership.send_replace(FOLLOWING);
    world.claim("a", "2").await;
    world.claim_and_pass("c", "1", TEN_MINUTES).await;
    assert_eq!(world.record().followed, 1);
    assert_eq!(world.hub.log(), ["POST copies/a = 1", "POST copies/b = 1", "GET copies/b"]);
    assert_eq!(world.receipts(), ["a=1"], "what was in flight has ended");

    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    assert_eq!(world.record().led_after_plans.len(), 2);
    let mut later = world.hub.log().split_off(3);
    later.sort();
    assert_eq!(later, ["PATCH copies/a@101 = 2", "POST copies/b = 1", "POST copies/c = 1"]);
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn what_another_leader_has_written_meanwhile_is_not_written_again() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 1, Fault::Answer(500, &[], json!({})));
    world.claim_and_pass("a", "1", 1).await;
    world.leadership.send_replace(FOLLOWING);
    world.pass(1).await;
    world.hub.put(Source::Copy, "a", "1");
    world.bring_events_and_pass(1_000).await;
    let before = world.hub.log();
    world.leadership.send_replace(LEADING);
    world.pass(TEN_MINUTES).await;
    assert_eq!(world.hub.log(), before);
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn who_loses_leadership_has_no_unfinished_writes_any_more() {
    let mut world = World::new().await;
    world.hub.fault(Method::POST, "copies/a", 100, Fault::Answer(500, &[], json!({})));
    world.claim_and_pass("a", "1", 60_000).await;
    let ages = |world: &World| {
        let families = world.metrics.gather();
        let family = families.iter().find(|family| family.name() == "fleetnet_oldest_unfinished_change_seconds");
        family.map_or(Vec::new(), |family| family.get_metric().iter().map(|it| it.get_gauge().get_value()).collect())
    };
    assert!(ages(&world).iter().any(|age| *age > 0.0), "{:?}", ages(&world));
    world.leadership.send_replace(FOLLOWING);
    world.pass(60_000).await;
    assert_eq!(ages(&world), [0.0; 0]);
    world.hub.put(Source::Copy, "a", "1");
    world.bring_events().await;
    world.leadership.send_replace(LEADING);
    world.pass(1).await;
    assert!(ages(&world).iter().all(|age| *age == 0.0), "{:?}", ages(&world));
}

#[tokio::test(start_paused = true)]
async fn an_election_that_died_ends_the_agent() {
    let world = World::new().await;
    drop(world.leadership);
    assert_eq!(world.engine.await.expect("no panic").stop, Stop::ElectionEnded);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_from_the_view_before_its_list_is_complete() {
    let world = World::start(LEADING);
    world.hub.put(Source::Copy, "a", "1");
    world.send(Source::Copy, WatchEvent::LIST_STARTED).await;
    world.bring_events().await;
    world.send(Source::Copy, WatchEvent::ListEnded { resource_version: 200 }).await;
    world.send(Source::Claim, WatchEvent::LIST_STARTED).await;
    world.pass(TEN_MINUTES).await;
    assert!(world.plans() > 0);
    assert!(world.hub.log().is_empty());

    world.send(Source::Claim, WatchEvent::ListEnded { resource_version: 1 }).await;
    world.pass(1).await;
    assert_eq!(world.hub.log(), ["DELETE copies/a uid-1"]);
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_reported_before_its_list_is_complete_and_again_once_it_is_gone() {
    let world = World::start(LEADING);
    let undecodable = Undecodable {
        name: ObjectName::new("ns", "a"),
        uid: "uid-1".into(),
        resource_version: 3,
        why: "nonsense".to_owned(),
    };
    world.send(Source::Claim, WatchEvent::LIST_STARTED).await;
    world.send(Source::Claim, WatchEvent::Undecodable(undecodable)).await;
    world.pass(1).await;
    assert_eq!(world.record().undecodable, ["a"]);
    world.send(Source::Claim, WatchEvent::ListEnded { resource_version: 5 }).await;
    world.pass(1).await;
    assert_eq!(world.record().removed, [""; 0]);
    world.send(Source::Claim, WatchEvent::LIST_STARTED).await;
    world.send(Source::Claim, WatchEvent::ListEnded { resource_version: 9 }).await;
    world.pass(1).await;
    assert_eq!(world.record().removed, ["uid-1"]);
}

/// Also rule V5.
#[tokio::test(start_paused = true)]
async fn a_right_that_is_lost_makes_a_view_unknown_where_it_is_to_freeze_and_leaves_it_otherwise() {
    for (source, expected) in [(Source::Local, WatchState::Unknown), (Source::Copy, WatchState::Complete)] {
        let world = World::new().await;
        world.send(source, WatchEvent::NotServed { status: 403, message: "no".to_owned() }).await;
        world.pass(1).await;
        let last = world.record().states.iter().rfind(|(of, _)| *of == source).map(|(_, state)| *state);
        assert_eq!(last, Some(expected), "{source:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_loses_contact_and_regains_it_is_reported_each_time() {
    let world = World::new().await;
    let failed = || WatchEvent::Failed { message: "cut".to_owned() };
    world.send(Source::Copy, failed()).await;
    world.send(Source::Copy, failed()).await;
    world.send(Source::Copy, WatchEvent::Resumed).await;
    world.send(Source::Copy, WatchEvent::Resumed).await;
    world.send(Source::Copy, WatchEvent::NotServed { status: 403, message: "no".to_owned() }).await;
    world.send(Source::Copy, WatchEvent::LIST_STARTED).await;
    world.send(Source::Copy, WatchEvent::ListEnded { resource_version: 7 }).await;
    world.pass(1).await;
    assert_eq!(world.record().connected, [false, true, false, true].map(|in_touch| (Source::Copy, in_touch)));
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn after_a_restore_each_kind_of_the_server_is_unknown_until_it_is_listed_again() {
    let world = World::new().await;
    let list = async |source: Source, restores: u64| {
        world.send(source, WatchEvent::ListStarted { requested: Mark::default(), restores }).await;
        world.pass(1).await;
        let begun = std::mem::take(&mut world.record().states);
        world.send(source, WatchEvent::ListEnded { resource_version: 2 }).await;
        world.pass(1).await;
        (begun, std::mem::take(&mut world.record().states))
    };
    world.record().states.clear();
    let (begun, ended) = list(Source::Copy, 1).await;
    assert_eq!(begun, [(Source::Copy, WatchState::Unknown), (Source::Namespace, WatchState::Unknown)]);
    assert_eq!(ended, [(Source::Copy, WatchState::Complete)]);
    assert_eq!(list(Source::Namespace, 0).await, (vec![], vec![]), "this list was requested before the restore");
    assert_eq!(list(Source::Namespace, 1).await, (vec![], vec![(Source::Namespace, WatchState::Complete)]));
    assert_eq!(list(Source::Copy, 1).await, (vec![], vec![]), "a later list changes nothing");
}

/// Also rule V4.
#[tokio::test(start_paused = true)]
async fn only_a_list_after_a_restore_replaces_content_in_a_version_that_is_known() {
    for (restores, expected) in [(0, &[][..]), (1, &["PATCH copies/a@101 = 2"])] {
        let world = World::new().await;
        let claim = |value: &str| WatchEvent::Applied(Thing { version: 7, ..Thing::claim("a", value) }.observed());
        world.send(Source::Claim, claim("1")).await;
        world.pass(1).await;
        assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
        world.send(Source::Claim, WatchEvent::ListStarted { requested: Mark::default(), restores }).await;
        world.send(Source::Claim, claim("2")).await;
        world.send(Source::Claim, WatchEvent::ListEnded { resource_version: 7 }).await;
        world.pass(1).await;
        assert_eq!(world.hub.log()[1..], *expected, "restores: {restores}");
    }
}

#[tokio::test(start_paused = true)]
async fn states_of_watches_are_reported_once_for_each_change() {
    let world = World::start(LEADING);
    let not_served = |status| WatchEvent::NotServed { status, message: "no".to_owned() };
    let ended = |resource_version| WatchEvent::ListEnded { resource_version };
    world.send(Source::Namespace, not_served(403)).await;
    world.send(Source::Namespace, not_served(403)).await;
    world.send(Source::Claim, not_served(404)).await;
    world.send(Source::Copy, WatchEvent::LIST_STARTED).await;
    world.send(Source::Copy, ended(1)).await;
    world.send(Source::Copy, WatchEvent::Failed { message: "cut".to_owned() }).await;
    world.send(Source::Copy, not_served(403)).await;
    world.send(Source::Copy, not_served(404)).await;
    world.send(Source::Copy, WatchEvent::LIST_STARTED).await;
    world.send(Source::Copy, ended(2)).await;
    world.send(Source::Namespace, WatchEvent::LIST_STARTED).await;
    world.send(Source::Namespace, ended(2)).await;
    world.pass(1).await;
    assert_eq!(
        world.record().states,
        [
            (Source::Namespace, WatchState::Absent),
            (Source::Copy, WatchState::Complete),
            (Source::Copy, WatchState::Unknown),
            (Source::Copy, WatchState::Complete),
            (Source::Namespace, WatchState::Complete),
        ]
    );
    let status = world.status.borrow().clone();
    let states: Vec<WatchState> = status.iter().map(|status| status.state).collect();
    assert_eq!(states, [WatchState::Incomplete, WatchState::Complete, WatchState::Incomplete, WatchState::Complete]);
    assert!(!status[0].is_settled());
}

#[tokio::test(start_paused = true)]
async fn equal_inputs_in_equal_order_give_equal_requests_at_equal_times() {
    let history = async || {
        let mut world = World::new().await;
        world.hub.fault(Method::POST, "copies/w-1", 5, Fault::Refuse);
        world.hub.fault(Method::PATCH, "copies", 20, Fault::Cut);
        for round in 0..5 {
            for number in 0..60 {
                world
                    .claim_thing(Thing {
                        local: number % 3 == 0,
                        ..Thing::claim(&format!("w-{number}"), &format!("{round}"))
                    })
                    .await;
            }
            world.pass(round * 7).await;
            world.bring_events().await;
        }
        world.pass(TEN_MINUTES).await;
        (world.hub.timed_log(), world.member.timed_log())
    };
    let first = history().await;
    assert!(first.0.len() > 200, "{}", first.0.len());
    assert_eq!(first, history().await);
}

/// Also rule V11.
#[tokio::test(start_paused = true)]
async fn a_response_to_another_agent_is_in_the_view_before_the_watch_shows_it_and_once() {
    let world = World::new().await;
    let claim = |version, value: &str| Thing { version, ..Thing::claim("a", value) }.observed();
    world.send(Source::Claim, WatchEvent::Response(claim(7, "1"))).await;
    world.pass(1).await;
    assert_eq!(world.hub.log(), ["POST copies/a = 1"]);
    world.send(Source::Claim, WatchEvent::Applied(claim(6, "0"))).await;
    world.send(Source::Claim, WatchEvent::Applied(claim(7, "1"))).await;
    world.pass(1).await;
    assert_eq!(world.record().applied.iter().filter(|name| *name == "a").count(), 1 + 1, "the claim and its copy");
    assert_eq!(world.hub.log().len(), 1, "an older state is no news");

    world.bring_events().await;
    let (name, uid) = (ObjectName::new("ns", "a"), "claim-a".into());
    world.send(Source::Claim, WatchEvent::Gone { name, uid }).await;
    world.pass(1).await;
    assert_eq!(world.hub.log()[1..], ["DELETE copies/a uid-1"]);
}
