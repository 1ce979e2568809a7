//! Tests of the decision about which controller is active, when kube-controller-manager or this agent starts or stops.
//! Time is simulated.

use super::*;

const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
const AFTER: Duration = Duration::from_secs(180);
const SECOND: Duration = Duration::from_secs(1);

fn lease(renewed: Timestamp) -> LeaseSeen {
    LeaseSeen { renewed: Some(renewed), duration: SECOND * 15 }
}

fn auto() -> Takeover {
    Takeover::new(Mode::Auto, AFTER)
}

/// Records that the watches of the Lease and of slices are complete.
fn known(mut takeover: Takeover) -> Takeover {
    takeover.lease_view(WatchState::Complete);
    takeover.slices_view(WatchState::Complete);
    takeover
}

/// Returns a state that has seen this Lease at noon.
fn seeing(lease: LeaseSeen) -> Takeover {
    let mut takeover = auto();
    takeover.lease_seen(lease, NOON);
    known(takeover)
}

/// Returns a state at noon, in which the holder of the Lease stopped long ago, and the first look at the Lease is over.
fn forsaken() -> Takeover {
    let mut takeover = auto();
    takeover.lease_seen(lease(NOON - SECOND * 3_600), NOON - SECOND * 15);
    let mut takeover = known(takeover);
    assert!(takeover.decide(NOON).serves);
    takeover
}

/// Simulates that kube-controller-manager renews its Lease every 2 s for this number of seconds. Returns the state
/// after the last renewal, and the time of the end.
fn beside_another(seconds: u64) -> (Takeover, Timestamp) {
    let mut takeover = seeing(lease(NOON));
    for second in (0..=seconds).step_by(2) {
        let now = NOON + SECOND * u32::try_from(second).unwrap();
        takeover.lease_seen(lease(now), now);
        assert!(!takeover.decide(now).serves, "at {second} s");
    }
    (takeover, NOON + SECOND * u32::try_from(seconds).unwrap())
}

#[test]
fn on_and_off_ask_nobody() {
    for (mode, serves) in [(Mode::On, true), (Mode::Off, false)] {
        let mut takeover = known(Takeover::new(mode, AFTER));
        takeover.lease_seen(lease(NOON), NOON);
        takeover.slices_changed(NOON);
        assert_eq!(takeover.decide(NOON), Decision { serves, why: Why::Configured, again: None });
    }
}

/// Rule Y1: `--endpointslices=auto` is set, and kube-controller-manager has a Lease, or has none
/// Then: The member agent's EndpointSlice controller is inactive while kube-controller-manager renews the Lease. The
/// controller becomes active when the last renewal is longer ago than `--endpointslices-takeover-after` and than the
/// lease duration in the Lease. After a start, the agent first watches the Lease for its lease duration. Without a
/// Lease, the controller is inactive, because nobody can tell whether another controller works
#[test]
fn kube_controller_manager_stops_and_is_replaced_after_the_configured_time() {
    let (mut takeover, gone) = beside_another(60);
    assert!(!takeover.decide(gone + AFTER - Duration::from_micros(1)).serves);
    let decision = takeover.decide(gone + AFTER);
    assert_eq!(decision, Decision { serves: true, why: Why::Nobody, again: None });
}

#[test]
fn kube_controller_manager_comes_back_and_has_the_slices_at_once() {
    let (mut takeover, gone) = beside_another(60);
    let back = gone + SECOND * 1_000;
    assert!(takeover.decide(back).serves);
    takeover.lease_seen(lease(back), back);
    let decision = takeover.decide(back);
    assert_eq!(decision, Decision { serves: false, why: Why::LeaseRenewed, again: Some(back + AFTER) });
    assert!(takeover.decide(back + AFTER).serves, "it was there for a moment only");
}

/// Rule Y2: `--endpointslices=auto` is set, and another writer changes a slice whose label
/// `endpointslice.kubernetes.io/managed-by` is `endpointslice-controller.k8s.io`
/// Then: The member agent's EndpointSlice controller becomes inactive for the time in
/// `--endpointslices-takeover-after`. The agent's own writes do not count as changes by another writer, in whatever
/// order the watch delivers these writes. A deletion of a slice does not count as a change
#[test]
fn who_changes_slices_without_a_lease_of_its_own_has_them() {
    let mut takeover = forsaken();
    takeover.slices_changed(NOON + SECOND * 100);
    let until = NOON + SECOND * 100 + AFTER;
    let decision = takeover.decide(NOON + AFTER);
    assert_eq!(decision, Decision { serves: false, why: Why::SlicesChanged, again: Some(until) });
    assert!(takeover.decide(until).serves);
    takeover.slices_changed(until + SECOND);
    assert!(!takeover.decide(until + SECOND).serves, "at once");
}

/// Also rule Y1.
#[test]
fn a_start_long_after_the_other_is_gone_waits_for_one_lease_duration_only() {
    let mut takeover = seeing(lease(NOON - SECOND * 3_600));
    let look = SECOND * 15;
    assert_eq!(takeover.decide(NOON), Decision { serves: false, why: Why::Waiting, again: Some(NOON + look) });
    assert!(takeover.decide(NOON + look).serves);
}

/// Also rule Y1.
#[test]
fn a_first_look_lasts_as_long_as_the_holder_may_be_silent_whatever_time_is_configured() {
    let silent = |duration: Duration, after: Duration| {
        let mut takeover = Takeover::new(Mode::Auto, after);
        takeover.lease_seen(LeaseSeen { renewed: Some(NOON - SECOND * 86_400), duration }, NOON);
        let mut takeover = known(takeover);
        let seconds = (0..=1_000).find(|second| takeover.decide(NOON + SECOND * *second).serves);
        let stays = (0..1_000).all(|second| takeover.decide(NOON + SECOND * (1_000 + second)).serves);
        assert!(stays, "once it serves, it goes on");
        seconds
    };
    assert_eq!(silent(SECOND * 15, SECOND * 5), Some(15), "shorter than a look");
    assert_eq!(silent(SECOND * 300, AFTER), Some(300), "a patient holder");
    assert_eq!(silent(Duration::ZERO, AFTER), Some(15), "a Lease that says nothing");
    assert_eq!(silent(SECOND * 2_000_000_000, AFTER), Some(600), "one that says nonsense");
}

/// Also rule Y1.
#[test]
fn a_renewal_that_was_seen_ends_the_first_look() {
    let mut takeover = Takeover::new(Mode::Auto, SECOND * 5);
    takeover.lease_seen(lease(NOON), NOON);
    let mut takeover = known(takeover);
    takeover.lease_seen(lease(NOON + SECOND), NOON + SECOND);
    assert!(!takeover.decide(NOON + SECOND * 15).serves, "who holds the Lease need not renew it sooner");
    assert!(takeover.decide(NOON + SECOND * 16).serves);
}

#[test]
fn a_lease_that_cannot_be_decoded_any_more_is_no_silence() {
    let (mut takeover, now) = beside_another(60);
    takeover.lease_view(WatchState::Unknown);
    let decision = takeover.decide(now + AFTER * 10);
    assert_eq!(decision, Decision { serves: false, why: Why::NotKnown, again: None });
}

#[test]
fn our_clock_that_goes_back_during_the_first_look_makes_it_last_no_longer_than_once_more() {
    let mut takeover = seeing(lease(NOON - SECOND * 86_400));
    let earlier = NOON - SECOND * 40_000;
    assert_eq!(takeover.decide(earlier).again, Some(earlier + SECOND * 15));
    assert!(takeover.decide(earlier + SECOND * 15).serves);
}

#[test]
fn a_clock_far_behind_ours_does_not_make_a_lease_look_forsaken() {
    let skew = SECOND * 3_600;
    let mut takeover = seeing(lease(NOON - skew));
    for second in (0..600).step_by(2) {
        let now = NOON + SECOND * second;
        takeover.lease_seen(lease(now - skew), now);
        assert!(!takeover.decide(now).serves, "at {second} s");
    }
}

#[test]
fn a_clock_far_ahead_of_ours_does_not_make_a_lease_last() {
    let mut takeover = seeing(lease(NOON + SECOND * 86_400));
    assert!(takeover.decide(NOON + AFTER).serves);
}

#[test]
fn a_holder_whose_clock_is_behind_the_one_before_is_evidence_as_well() {
    let (mut takeover, now) = beside_another(60);
    takeover.lease_seen(lease(NOON - SECOND * 3_600), now + AFTER);
    assert!(!takeover.decide(now + AFTER).serves);
}

#[test]
fn our_clock_that_goes_back_makes_nobody_wait_longer_than_once_more() {
    let (mut takeover, now) = beside_another(60);
    let earlier = now - SECOND * 86_400;
    assert_eq!(takeover.decide(earlier).again, Some(earlier + AFTER));
    assert!(!takeover.decide(earlier + AFTER - SECOND).serves);
    assert!(takeover.decide(earlier + AFTER).serves);
}

#[test]
fn our_clock_that_is_set_makes_nobody_wait_longer_or_less() {
    for by in [-3_600_000_000, 3_600_000_000] {
        let (mut takeover, now) = beside_another(60);
        takeover.clock_set(by);
        let now = now.plus_micros(by);
        assert_eq!(takeover.decide(now).again, Some(now + AFTER));
        assert!(!takeover.decide(now + AFTER - SECOND).serves);
        assert!(takeover.decide(now + AFTER).serves);

        let mut first_look = seeing(lease(NOON - SECOND * 86_400));
        first_look.clock_set(by);
        let now = NOON.plus_micros(by);
        assert_eq!(first_look.decide(now).again, Some(now + SECOND * 15));
    }
}

#[test]
fn our_clock_that_goes_back_ends_nothing_that_was_begun() {
    let (mut takeover, gone) = beside_another(60);
    assert!(takeover.decide(gone + AFTER).serves);
    assert!(takeover.decide(gone - SECOND * 86_400).serves);
    let mut takeover = forsaken();
    takeover.slices_changed(NOON);
    assert!(takeover.decide(NOON + AFTER).serves);
    assert!(takeover.decide(NOON - SECOND * 86_400).serves);
}

/// Also rule Y3.
#[test]
fn nothing_is_begun_or_ended_while_it_is_not_known_who_is_there() {
    let mut takeover = auto();
    takeover.slices_view(WatchState::Complete);
    let decision = takeover.decide(NOON + AFTER * 2);
    assert_eq!(decision, Decision { serves: false, why: Why::NotKnown, again: None });
    let mut takeover = forsaken();
    takeover.lease_view(WatchState::Unknown);
    assert!(takeover.decide(NOON + AFTER).serves, "it goes on");
}

/// Rule Y3: The agent has no right to read kube-controller-manager's Lease, or the agent does not know yet which
/// controller is active: its own or kube-controller-manager's
/// Then: Without the right to read the Lease, the member agent's controller is inactive, and the agent reports why.
/// While the agent does not know which controller is active, the last decision applies
#[test]
fn where_leases_may_not_be_read_nothing_is_served_and_the_reason_is_reported() {
    let mut takeover = auto();
    takeover.slices_view(WatchState::Complete);
    takeover.lease_view(WatchState::Absent);
    let decision = takeover.decide(NOON + AFTER * 2);
    assert_eq!(decision, Decision { serves: false, why: Why::LeaseNotReadable, again: None });
}

/// Also rule Y1.
#[test]
fn without_a_lease_nothing_is_served_however_long_slices_stay_as_they_are() {
    let no_lease = Decision { serves: false, why: Why::NoLease, again: None };
    let mut takeover = known(auto());
    assert_eq!([NOON, NOON + AFTER * 100].map(|now| takeover.decide(now)), [no_lease; 2]);
    let mut takeover = forsaken();
    takeover.lease_gone();
    assert_eq!(takeover.decide(NOON + AFTER * 100), no_lease, "somebody has deleted it");
    let mut takeover = forsaken();
    takeover.begin_run();
    takeover.lease_view(WatchState::Complete);
    assert_eq!(takeover.decide(NOON), no_lease, "somebody has deleted it between two runs");
    let again = NOON + AFTER * 101;
    takeover.lease_seen(lease(again), again);
    assert_eq!(takeover.decide(again).why, Why::LeaseRenewed);
    assert!(takeover.decide(again + AFTER).serves);
}
