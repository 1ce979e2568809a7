//! Decision whether the EndpointSlice controller of this agent is active (`--endpointslices=auto|on|off`):
//! [`Takeover`].
//!
//! `auto` decides for the whole cluster. Two observations show that another controller is active:
//! kube-controller-manager renews its Lease, or foreign writes change slices with this controller's name. One such
//! observation makes this controller inactive at once. After `--endpointslices-takeover-after` without such an
//! observation, this controller becomes active. Without a Lease, a silent controller cannot be distinguished from one
//! that has nothing to do, so this controller stays inactive. Some distributions, such as k3s with one server, run
//! kube-controller-manager without a Lease.
//!
//! A change of the decision writes nothing. Both controllers use the same slices and the same manager name, so one
//! controller continues with the slices of the other. While no controller is active, slices stay as they are.
//!
//! The time of an observation is the time on this agent's clock. The exception is the first observed state of the
//! Lease: the agent uses the `renewTime` in the Lease. So an agent that starts long after kube-controller-manager has
//! stopped does not wait the full time again. Because clocks differ, the Lease must then also stay unchanged for its
//! lease duration.

use crate::limits::{LEASE_LOOK_MAX, LEASE_LOOK_MIN};
use fleetnet_runtime::WatchState;
use fleetnet_types::Timestamp;
use std::time::Duration;

/// Value of `--endpointslices`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Active while kube-controller-manager does not renew its Lease, and nobody else changes slices. Inactive without
    /// a Lease.
    #[default]
    Auto,
    /// Always active.
    On,
    /// Never active.
    Off,
}

/// Decision whether this controller is active. Valid until `again`, unless there is a new observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// True if this controller is active.
    pub serves: bool,
    /// Reason of the decision, for the log.
    pub why: Why,
    /// Time of the next decision. `None` if only a new observation can change the decision.
    pub again: Option<Timestamp>,
}

/// Reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The mode is `on` or `off`, so no observation is necessary.
    Configured,
    /// The Lease or the slices are not completely listed yet, so the decision does not change.
    NotKnown,
    /// The agent has no permission to read kube-controller-manager's Lease, so it cannot observe whether that
    /// controller is active. Grant get, list and watch of Leases, or set the mode to `on`.
    LeaseNotReadable,
    /// The cluster has no Lease of kube-controller-manager, so the agent cannot observe whether that controller is
    /// active.
    NoLease,
    /// kube-controller-manager renews its Lease.
    LeaseRenewed,
    /// Foreign writes change slices that carry this controller's name.
    SlicesChanged,
    /// Another controller was active less than `--endpointslices-takeover-after` ago.
    Waiting,
    /// No other controller is active.
    Nobody,
    /// Another replica of this agent leads.
    Follows,
}

/// Fields of kube-controller-manager's Lease that the decision reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `spec.renewTime`; `None` if the Lease never had a holder.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`; zero if the Lease has none.
    pub duration: Duration,
}

/// Observations of other controllers, and the last decision.
#[derive(Clone, Debug)]
pub(crate) struct Takeover {
    mode: Mode,
    after: Duration,
    lease_view: WatchState,
    /// True once this run has seen the Lease.
    is_lease_seen: bool,
    slices_view: WatchState,
    lease: Option<LeaseSeen>,
    lease_renewed: Option<Timestamp>,
    /// First element: the time at which this agent first observed the Lease. Second element: the duration of the
    /// observation after which the `renewTime` in the Lease counts.
    look: Option<(Timestamp, Duration)>,
    slices_changed: Option<Timestamp>,
    serves: bool,
}

impl Takeover {
    /// Returns a state without observations. `after` is the required time without activity of another controller.
    #[must_use]
    pub(crate) const fn new(mode: Mode, after: Duration) -> Self {
        Self {
            mode,
            after,
            lease_view: WatchState::Incomplete,
            is_lease_seen: false,
            slices_view: WatchState::Incomplete,
            lease: None,
            lease_renewed: None,
            look: None,
            slices_changed: None,
            serves: false,
        }
    }

    /// Begins a run, whose watches begin with a list.
    pub(crate) const fn begin_run(&mut self) {
        self.is_lease_seen = false;
    }

    /// Records the new watch state of kube-controller-manager's Lease.
    pub(crate) fn lease_view(&mut self, state: WatchState) {
        self.lease_view = state;
        // No watch reports that the Lease was deleted between two runs.
        if state == WatchState::Complete && !self.is_lease_seen {
            self.lease_gone();
        }
    }

    /// Records the new watch state of EndpointSlices.
    pub(crate) fn slices_view(&mut self, state: WatchState) {
        self.slices_view = state;
    }

    /// Moves stored times by a step of the wall clock, in microseconds, so that their age stays the same.
    pub(crate) fn clock_set(&mut self, microseconds: i64) {
        let evidence = [&mut self.lease_renewed, &mut self.slices_changed];
        let look = self.look.as_mut().map(|(since, _)| since);
        for seen_at in evidence.into_iter().flatten().chain(look) {
            *seen_at = seen_at.plus_micros(microseconds);
        }
    }

    fn is_known(&self) -> bool {
        self.lease_view == WatchState::Complete && self.slices_view == WatchState::Complete
    }

    /// Records the current content of kube-controller-manager's Lease.
    pub(crate) fn lease_seen(&mut self, lease: LeaseSeen, at: Timestamp) {
        self.is_lease_seen = true;
        match self.lease.replace(lease) {
            Some(before) if before.renewed == lease.renewed => {}
            // The agent has observed a change of the Lease, so the agent's clock gives the time of the renewal. The
            // `renewTime` in the Lease is not used.
            Some(_) => (self.lease_renewed, self.look) = (Some(at), None),
            None => {
                self.lease_renewed = lease.renewed.map(|renewed| renewed.min(at));
                self.look = Some((at, lease.duration.clamp(LEASE_LOOK_MIN, LEASE_LOOK_MAX)));
            }
        }
    }

    /// Records that kube-controller-manager's Lease was deleted.
    pub(crate) const fn lease_gone(&mut self) {
        self.lease = None;
    }

    /// Records a foreign write to a slice that carries this controller's name.
    pub(crate) fn slices_changed(&mut self, at: Timestamp) {
        self.slices_changed = Some(at);
    }

    /// Decides whether this controller is active.
    pub(crate) fn decide(&mut self, now: Timestamp) -> Decision {
        let decision = match self.mode {
            Mode::On => Decision { serves: true, why: Why::Configured, again: None },
            Mode::Off => Decision { serves: false, why: Why::Configured, again: None },
            Mode::Auto => self.decide_by_evidence(now),
        };
        self.serves = decision.serves;
        decision
    }

    fn decide_by_evidence(&mut self, now: Timestamp) -> Decision {
        if self.lease_view == WatchState::Absent {
            return Decision { serves: false, why: Why::LeaseNotReadable, again: None };
        }
        if !self.is_known() {
            return Decision { serves: self.serves, why: Why::NotKnown, again: None };
        }
        let Some(lease) = self.lease else {
            return Decision { serves: false, why: Why::NoLease, again: None };
        };
        let (mut look, wait) = (self.look.map(|(since, _)| since), self.look.map_or(Duration::ZERO, |(_, wait)| wait));
        // Wait at least one lease duration. The holder of the Lease may renew as late as the end of the lease duration,
        // so a shorter time without renewal does not prove that the holder has stopped.
        let silence = self.after.max(lease.duration.min(LEASE_LOOK_MAX));
        let waits = [
            (ends(&mut self.lease_renewed, silence, now), Why::LeaseRenewed),
            (ends(&mut self.slices_changed, self.after, now), Why::SlicesChanged),
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

/// Returns the time until which an observation counts. `seen_at` is the time of the observation, which shows that
/// another controller is active, and `wait` is the duration for which it counts. `None` if it no longer counts. If the
/// clock was set back, `seen_at` may be in the future. Then `seen_at` is set to now, so that the wait restarts at most
/// once.
fn ends(seen_at: &mut Option<Timestamp>, wait: Duration, now: Timestamp) -> Option<Timestamp> {
    *seen_at = seen_at.map(|seen_at| seen_at.min(now)).filter(|seen_at| *seen_at + wait > now);
    seen_at.map(|seen_at| seen_at + wait)
}

#[cfg(test)]
mod tests;
