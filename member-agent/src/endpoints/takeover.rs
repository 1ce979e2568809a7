//! Decision whether this agent makes the slices of this cluster (`--endpointslices=auto|on|off`): [`Takeover`].
//!
//! `auto` decides for the whole cluster. Two observations show that kube-controller-manager is active: it renews its Lease, or
//! foreign writes change slices of this manager. One observation stops this agent at once. It starts after
//! `--endpointslices-takeover-after` without any.
//!
//! Neither start nor stop writes anything. Both controllers use the same slices and manager name, so the next one continues
//! where the last one stopped. While none is active, slices stay as they are.
//!
//! The own clock gives the time of an observation. Only the first state of a Lease is judged by the time in the Lease. So an
//! agent that starts long after kube-controller-manager has stopped need not wait the full time again. Because clocks differ,
//! that Lease must then stay unchanged for its lease duration.

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
    /// Serve while no other controller is active.
    #[default]
    Auto,
    /// Serve always.
    On,
    /// Serve never.
    Off,
}

/// Decision whether this agent serves. Valid until `again` if nothing new is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if this agent serves.
    pub serves: bool,
    /// Reason of the decision, for the log and the metrics.
    pub why: Why,
    /// Time to decide again.
    pub again: Option<Timestamp>,
}

/// Reason of a decision to serve or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The mode is `on` or `off`, so nothing needs to be observed.
    Asked,
    /// The Lease or the slices are not fully listed yet: the decision stays as it was.
    NotKnown,
    /// The agent may not read kube-controller-manager's Lease, so it cannot see whether that controller is active. Grant get,
    /// list and watch of Leases, or set the mode to `on`.
    LeaseNotReadable,
    /// kube-controller-manager renews its Lease.
    LeaseRenewed,
    /// Foreign writes change the slices of this manager.
    SlicesChanged,
    /// Another controller was active less than the required time ago.
    Waiting,
    /// No other controller is active.
    Nobody,
    /// Another replica of this agent leads.
    Follows,
}

/// Fields of kube-controller-manager's Lease that the decision reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `spec.renewTime`; `None` if the Lease was never held.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`; zero if the Lease has none.
    pub duration: Duration,
}

/// Observations that show whether another controller makes slices, and the last decision.
#[derive(Clone, Debug)]
pub struct Takeover {
    mode: Mode,
    after: Duration,
    lease_view: WatchState,
    slices_view: WatchState,
    /// Time since which the watches of Leases and of slices are both complete.
    known_since: Option<Timestamp>,
    lease: Option<LeaseSeen>,
    lease_renewed: Option<Timestamp>,
    /// Time at which the Lease was first seen, and how long it must be watched before its own renewTime counts.
    look: Option<(Timestamp, Duration)>,
    slices_changed: Option<Timestamp>,
    serves: bool,
}

impl Takeover {
    /// Returns a state without observations. `after` is the required time without activity of another controller.
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

    /// True if the agent needs a watch of kube-controller-manager's Lease.
    #[must_use]
    pub const fn wants_lease(&self) -> bool {
        matches!(self.mode, Mode::Auto)
    }

    /// Records the new watch state of Leases.
    pub fn lease_view(&mut self, state: WatchState, at: Timestamp) {
        self.lease_view = state;
        self.note_known(at);
    }

    /// Records the new watch state of slices.
    pub fn slices_view(&mut self, state: WatchState, at: Timestamp) {
        self.slices_view = state;
        self.note_known(at);
    }

    /// Moves stored times by a step of the wall clock, in microseconds, so that their age stays the same.
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

    /// Records the present content of kube-controller-manager's Lease.
    pub fn lease_seen(&mut self, lease: LeaseSeen, at: Timestamp) {
        match self.lease.replace(lease) {
            Some(before) if before.renewed == lease.renewed => {}
            // The agent has seen the Lease change, so its own clock gives the time of the renewal. The renewTime in the Lease
            // does not matter.
            Some(_) => (self.lease_renewed, self.look) = (Some(at), None),
            None => {
                self.lease_renewed = lease.renewed.map(|renewed| renewed.min(at));
                self.look = Some((at, lease.duration.clamp(LEASE_LOOK_MIN, LEASE_LOOK_MAX)));
            }
        }
    }

    /// Records that kube-controller-manager's Lease was deleted. The agent cannot tell who deleted it and why, so it counts as
    /// a renewal.
    pub fn lease_gone(&mut self, at: Timestamp) {
        if self.lease.take().is_some() {
            // fault Y1.4: self.lease_renewed = Some(at) ~>
            self.lease_renewed = Some(at);
        }
    }

    /// Records that this replica leads. Foreign writes did not count before, because the previous leader may have made them. So
    /// without a Lease the time without activity starts now.
    pub fn leads(&mut self, at: Timestamp) {
        if self.lease.is_none() {
            // fault Y4.1: |_| at ~> |since| since
            self.known_since = self.known_since.map(|_| at);
            self.serves = false;
        }
    }

    /// Records a foreign write to a slice of this manager.
    pub fn slices_changed(&mut self, at: Timestamp) {
        self.slices_changed = Some(at);
    }

    /// Decides whether this agent serves.
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
        // fault Y3.1: self.lease_view == WatchState::Absent ~> false
        if self.lease_view == WatchState::Absent {
            return Decision { serves: false, why: Why::LeaseNotReadable, again: None };
        }
        if !self.is_known() {
            // fault Y3.2: self.serves ~> false
            return Decision { serves: self.serves, why: Why::NotKnown, again: None };
        }
        // An old renewTime in the Lease proves inactivity from before this process started. Without a Lease, only the time that
        // this process watched counts.
        self.known_since = self.known_since.map(|since| since.min(now));
        let mut looked_since = self.known_since.filter(|_| self.lease.is_none() && !self.serves);
        let (mut look, wait) = (self.look.map(|(since, _)| since), self.look.map_or(Duration::ZERO, |(_, wait)| wait));
        // The Lease's holder may wait its whole lease duration until it renews. A shorter silence does not prove that it
        // stopped.
        // fault Y1.1: .max(self.lease_duration()) ~>
        let silence = self.after.max(self.lease_duration());
        let waits = [
            // fault Y1.2: silence ~> Duration::ZERO
            (ends(&mut self.lease_renewed, silence, now), Why::LeaseRenewed),
            // fault Y2.1: self.after ~> Duration::ZERO
            (ends(&mut self.slices_changed, self.after, now), Why::SlicesChanged),
            (ends(&mut looked_since, self.after, now), Why::Waiting),
            // fault Y1.3: wait ~> Duration::ZERO
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

/// Returns the time until which an observation counts, or `None` once it has expired. An observation in the future dates from
/// before the clock was set back. It is moved to now, so that the wait restarts at most once.
fn ends(sign: &mut Option<Timestamp>, wait: Duration, now: Timestamp) -> Option<Timestamp> {
    *sign = sign.map(|sign| sign.min(now)).filter(|sign| *sign + wait > now);
    sign.map(|sign| sign + wait)
}

#[cfg(test)]
mod tests;
