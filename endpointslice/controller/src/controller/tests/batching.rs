//! Tests of batching: how many changes of pods one write publishes, and when. Time is simulated.

use super::builders::{Build as _, BuildPod as _, pod, service};
use super::world::{MILLISECOND, NOON, SECOND, World};
use crate::Operation::Update;
use crate::{Operation, Timing};
use endpointslice::Config;
use endpointslice::model::Pod;
use std::time::Duration;

/// Returns a cluster with this batch period and a settled Service of ten pods.
fn world(batch_period: Duration) -> World {
    let mut world = World::with(Config::default(), Timing { batch_period, ..Timing::default() });
    world.set(service("web"));
    world.set_all((0..10).map(pod));
    world.advance(SECOND * 10);
    world.take_done();
    world
}

/// Calls `event` for the pods 0, 1 and 2, with a wait of `delays` milliseconds before each call. Checks the times of
/// the writes.
#[track_caller]
fn check(batch_period: Duration, event: impl Fn(&mut World, usize), delays: [u32; 3], expected_milliseconds: &[u128]) {
    let mut world = world(batch_period);
    let begin = world.now();
    for (number, delay) in delays.into_iter().enumerate() {
        world.advance(MILLISECOND * delay);
        event(&mut world, number);
    }
    world.advance(SECOND * 3);
    let done = world.done();
    let times: Vec<_> = done.iter().map(|done| done.at.since(begin).as_millis()).collect();
    assert_eq!(times, expected_milliseconds);
    assert!(done.iter().all(|done| done.operation == Update));
}

fn check_all(event: impl Fn(&mut World, usize)) {
    check(Duration::ZERO, &event, [200, 100, 100], &[200, 300, 400]);
    check(SECOND, &event, [200, 100, 100], &[1200]);
    check(SECOND, &event, [200, 100, 1000], &[1200, 2300]);
}

#[test]
fn pods_that_come_are_gathered_from_the_first_on() {
    check_all(|world, number| world.set(pod(20 + number)));
}

#[test]
fn pods_that_change_are_gathered_from_the_first_on() {
    check_all(|world, number| world.set(pod(number).with_ips(&[&format!("10.2.0.{number}")])));
}

#[test]
fn pods_that_go_are_gathered_from_the_first_on() {
    check_all(|world, number| world.remove_pod(&format!("pod{number}")));
}

#[test]
fn a_change_of_the_service_waits_for_no_batch_and_takes_the_waiting_pods_along() {
    let mut world = world(SECOND);
    world.set(pod(20));
    assert_eq!(world.done_now(), []);
    world.set(service("web").labelled([("team", "a")]));
    assert_eq!(world.done_now(), [Update]);
    assert_eq!(world.endpoints_of("web").len(), 11);
    assert_eq!(world.done_after(SECOND * 5), []);
}

#[test]
fn the_next_batch_begins_with_the_first_change_after_the_last() {
    let mut world = world(SECOND);
    let written = |world: &mut World| -> Vec<Operation> { world.take_done() };
    for round in 0..3 {
        world.set(pod(20 + round));
        world.advance(MILLISECOND * 999);
        assert_eq!(written(&mut world), [], "round {round}");
        world.advance(MILLISECOND);
        assert_eq!(written(&mut world), [Update], "round {round}");
        world.advance(MILLISECOND * 700);
    }
}

#[test]
fn pods_that_change_while_writes_are_under_way_are_gathered_as_well() {
    let mut world = world(SECOND);
    let flap = |world: &mut World, number: usize| world.set(pod(number).not_ready());
    flap(&mut world, 0);
    world.writes_are(|_| super::world::Fate::Slow);
    world.advance(SECOND);
    for number in 1..=5 {
        flap(&mut world, number);
        world.settle();
    }
    assert_eq!(world.take_done(), [], "one write is under way");
    world.writes_are(|_| super::world::Fate::Done);
    world.deliver_responses();
    assert_eq!(world.take_done(), [Update], "the rest has a time of its own");
    assert_eq!(world.done_after(SECOND * 5), [Update]);
}

/// Rule Y8: Pods change all the time, or `--endpointslice-updates-batch-period` is set
/// Then: Writes for one Service begin at least 15 ms apart. A batch period starts with the first change of a pod. A
/// change of the Service does not wait for the end of the batch period
#[test]
fn in_a_rollout_writes_begin_at_a_pace_and_a_change_that_comes_alone_waits_for_nothing() {
    let mut world = World::with(Config::default(), Timing::with_batch_period(Duration::ZERO));
    world.set(service("web"));
    world.set_all((0..30).map(pod));
    world.advance(SECOND * 10);
    world.take_done();
    let begin = world.now();
    for number in 0..30 {
        world.set(flapping(number));
        world.advance(MILLISECOND * 2);
    }
    world.advance(SECOND);
    let times: Vec<_> = world.done().iter().map(|done| done.at.since(begin).as_millis()).collect();
    assert_eq!(
        times,
        [0, 16, 32, 48, 63],
        "the first at once, then with the first change after 15 ms, and the last with all"
    );
    world.take_done();

    let alone = world.now();
    world.set_and_settle(pod(0));
    assert_eq!(world.done().iter().map(|done| done.at).collect::<Vec<_>>(), [alone]);
}

fn flapping(number: usize) -> Pod {
    pod(number).not_ready()
}

#[test]
fn a_clock_that_goes_back_makes_no_batch_last_longer_than_its_period() {
    let mut world = world(SECOND);
    world.set_and_settle(flapping(0));
    world.step_clock(-100_000_000_000);
    world.set(flapping(1));
    assert_eq!(world.done_after(SECOND), [Update]);
    assert!(world.now() < NOON);
}

#[test]
fn a_clock_that_goes_back_a_little_delays_a_batch_by_its_period_at_most() {
    let mut world = world(SECOND);
    world.set_and_settle(flapping(0));
    world.step_clock(-500);
    world.set(flapping(1));
    assert_eq!(world.done_after(SECOND), [Update]);
}

#[test]
fn a_clock_that_goes_far_ahead_ends_every_wait() {
    let mut world = world(SECOND);
    world.set_and_settle(flapping(0));
    world.step_clock(86_400_000);
    assert_eq!(world.done_after(SECOND), [Update]);
}
