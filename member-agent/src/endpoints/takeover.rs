//! [`Takeover`]: decides if this agent makes the slices of this cluster (`--endpointslices=auto|on|off`).
//!
//! `auto` decides for the whole cluster. Two observations show that kube-controller-manager is active: it renews its
//! Lease, or foreign writes change slices of this manager. One observation stops this agent at once. It starts after
//! `--endpointslices-takeover-after` without any.
//!
//! Neither start nor stop writes anything. Both controllers use the same slices and manager name, so the next one
//! continues where the last one stopped. While none is active, slices stay as they are.
//!
//! The own clock gives the time of an observation. Only the first state of a Lease is judged by the time in the Lease.
//! So an agent that starts long after kube-controller-manager has stopped need not wait the full time again. Because
//! clocks differ, that Lease must then stay unchanged for its lease duration.

use crate::limits::{LEASE_LOOK_MAX, LEASE_LOOK_MIN};
use fleetnet_runtime::WatchState;
use fleetnet_types::Timestamp;
use std::time::Duration;

/// Namespace of kube-controller-manager's Lease.
pub const LEASE_NAMESPACE: &str = "kube-system";
/// Name of kube-controller-manager's Lease.
pub const LEASE_NAME: &str = "kube-controller-manager";

/// Value of `--endpointslices`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Serve while no other controller does.
    #[default]
    Auto,
    /// Serve.
    On,
    /// Do not serve.
    Off,
}

/// Decision if this agent serves, valid until `again` if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if this agent serves.
    pub serves: bool,
    /// Reason, for the log and the metrics.
    pub why: Why,
    /// Time to decide again.
    pub again: Option<Timestamp>,
}

/// Reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The mode is `on` or `off`.
    Asked,
    /// The Lease or the slices are not fully listed yet: the decision stays as it was.
    NotKnown,
    /// Leases are not readable, so the activity of others is unknown. Grant get, list and watch on them, or set the
    /// mode to `on`.
    LeaseNotReadable,
    /// kube-controller-manager renews its Lease.
    LeaseRenewed,
    /// Foreign writes change slices.
    SlicesChanged,
    /// The time without activity is not long enough yet.
    Waiting,
    /// No other controller is active.
    Nobody,
    /// Another replica of this agent leads.
    Follows,
}

/// Fields of a Lease that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `spec.renewTime`; `None` if it was never held.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`; zero if absent.
    pub duration: Duration,
}

/// Observations of other controllers that make slices.
#[derive(Clone, Debug)]
pub struct Takeover {
    mode: Mode,
    after: Duration,
    lease_view: WatchState,
    slices_view: WatchState,
    /// Time since which both watches are complete.
    known_since: Option<Timestamp>,
    lease: Option<LeaseSeen>,
    lease_renewed: Option<Timestamp>,
    /// Time at which the Lease was first seen, and how long it is watched before its age counts.
    look: Option<(Timestamp, Duration)>,
    slices_changed: Option<Timestamp>,
    serves: bool,
}

impl Takeover {
    /// Creates a state without observations. `after` is the required time without activity of another controller.
    #[must_use]
    pub const fn new(mode: Mode, after: Duration) -> Self {
        Self {
            mode,
            after,
            lease_view: WatchState::Incomplete,
            slices_view: WatchState::Incomplete,
            known_since: None,
            lease: None,
            lease_renewed: None,
            look: None,
            slices_changed: None,
            serves: false,
        }
    }

    /// True if kube-controller-manager's Lease is watched.
    #[must_use]
    pub const fn wants_lease(&self) -> bool {
        matches!(self.mode, Mode::Auto)
    }

    /// Notes a new watch state of Leases.
    pub fn lease_view(&mut self, state: WatchState, at: Timestamp) {
        self.lease_view = state;
        self.note_known(at);
    }

    /// Notes a new watch state of slices.
    pub fn slices_view(&mut self, state: WatchState, at: Timestamp) {
        self.slices_view = state;
        self.note_known(at);
    }

    /// Shifts stored times after the wall clock was set by so many microseconds, so that their age stays the same.
    pub fn clock_set(&mut self, microseconds: i64) {
        let signs = [&mut self.known_since, &mut self.lease_renewed, &mut self.slices_changed];
        let look = self.look.as_mut().map(|(since, _)| since);
        for sign in signs.into_iter().flatten().chain(look) {
            *sign = sign.plus_micros(microseconds);
        }
    }

    fn note_known(&mut self, at: Timestamp) {
        if self.is_known() && self.known_since.is_none() {
            self.known_since = Some(at);
        }
    }

    fn is_known(&self) -> bool {
        self.lease_view == WatchState::Complete && self.slices_view == WatchState::Complete
    }

    /// Notes the state of kube-controller-manager's Lease.
    pub fn lease_seen(&mut self, lease: LeaseSeen, at: Timestamp) {
        match self.lease.replace(lease) {
            Some(before) if before.renewed == lease.renewed => {}
            // The change was seen, so the own clock gives its time and the age in the Lease does not matter.
            Some(_) => (self.lease_renewed, self.look) = (Some(at), None),
            None => {
                self.lease_renewed = lease.renewed.map(|renewed| renewed.min(at));
                self.look = Some((at, lease.duration.clamp(LEASE_LOOK_MIN, LEASE_LOOK_MAX)));
            }
        }
    }

    /// Notes that kube-controller-manager's Lease was deleted. Nobody knows by whom or why, so it counts as a renewal.
    pub fn lease_gone(&mut self, at: Timestamp) {
        if self.lease.take().is_some() {
            self.lease_renewed = Some(at);
        }
    }

    /// Notes that this replica leads. Foreign writes did not count before, because the previous leader may have made
    /// them. So without a Lease the time without activity starts now.
    pub fn leads(&mut self, at: Timestamp) {
        if self.lease.is_none() {
            self.known_since = self.known_since.map(|_| at);
            self.serves = false;
        }
    }

    /// Notes a foreign write to a slice of this manager.
    pub fn slices_changed(&mut self, at: Timestamp) {
        self.slices_changed = Some(at);
    }

    /// Decides if this agent serves.
    pub fn decide(&mut self, now: Timestamp) -> Decision {
        let decision = match self.mode {
            Mode::On => Decision { serves: true, why: Why::Asked, again: None },
            Mode::Off => Decision { serves: false, why: Why::Asked, again: None },
            Mode::Auto => self.decide_by_signs(now),
        };
        self.serves = decision.serves;
        decision
    }

    fn lease_duration(&self) -> Duration {
        self.lease.map_or(Duration::ZERO, |lease| lease.duration).min(LEASE_LOOK_MAX)
    }

    fn decide_by_signs(&mut self, now: Timestamp) -> Decision {
        if self.lease_view == WatchState::Absent {
            return Decision { serves: false, why: Why::LeaseNotReadable, again: None };
        }
        if !self.is_known() {
            return Decision { serves: self.serves, why: Why::NotKnown, again: None };
        }
        // A Lease shows inactivity also from before this process started. Without one, only the time that was watched
        // counts.
        self.known_since = self.known_since.map(|since| since.min(now));
        let mut looked_since = self.known_since.filter(|_| self.lease.is_none() && !self.serves);
        let (mut look, wait) = (self.look.map(|(since, _)| since), self.look.map_or(Duration::ZERO, |(_, wait)| wait));
        // A holder may take its whole lease duration to renew. A shorter silence proves nothing.
        let silence = self.after.max(self.lease_duration());
        let waits = [
            (ends(&mut self.lease_renewed, silence, now), Why::LeaseRenewed),
            (ends(&mut self.slices_changed, self.after, now), Why::SlicesChanged),
            (ends(&mut looked_since, self.after, now), Why::Waiting),
            (ends(&mut look, wait, now), Why::Waiting),
        ];
        self.look = look.map(|since| (since, wait));
        let last = waits.into_iter().filter_map(|(until, why)| Some((until?, why))).max_by_key(|(until, _)| *until);
        match last {
            Some((until, why)) => Decision { serves: false, why, again: Some(until) },
            None => Decision { serves: true, why: Why::Nobody, again: None },
        }
    }
}

/// Returns the deadline of an observation, or `None` once it has expired. A time in the future dates from before the
/// clock went back. It is set to now, so the wait restarts once at most, and an expired observation does not return.
fn ends(sign: &mut Option<Timestamp>, wait: Duration, now: Timestamp) -> Option<Timestamp> {
    *sign = sign.map(|sign| sign.min(now)).filter(|sign| *sign + wait > now);
    sign.map(|sign| sign + wait)
}

#[cfg(test)]
mod tests;
