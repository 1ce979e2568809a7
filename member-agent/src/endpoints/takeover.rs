//! [`Takeover`]: whether this cluster's slices are ours to make (`--endpointslices=auto|on|off`).
//!
//! `auto` decides for the whole cluster. kube-controller-manager is at work if it renews its Lease, or if slices under the
//! manager's name change by another hand than ours. Who sees such a sign stops at once; who has seen none for
//! `--endpointslices-takeover-after` begins. Nothing is written for either: slices and manager's name are the same on both
//! sides, so that whoever goes on finds everything as it should be. While nobody acts, slices stay.
//!
//! When a sign came is judged by the own clock. Only a Lease that is seen for the first time is judged by the time that
//! stands in it, so that who starts anew long after kube-controller-manager is gone need not wait as long again; since
//! clocks differ, it must then stay as it is for as long as its holder may be silent.

use fleetnet_runtime::WatchState;
use fleetnet_runtime::clock::Timestamp;
use std::time::Duration;

/// Namespace of kube-controller-manager's Lease.
pub const LEASE_NAMESPACE: &str = "kube-system";
/// Its name.
pub const LEASE_NAME: &str = "kube-controller-manager";

/// A Lease that was just seen for the first time is watched for at least so long: the lease duration of
/// kube-controller-manager by default, within which it renews several times.
const SHORTEST_LOOK: Duration = Duration::from_secs(15);
/// And for at most so long, whatever stands in it.
const LONGEST_LOOK: Duration = Duration::from_secs(600);

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Serve while nobody else does.
    #[default]
    Auto,
    /// Serve.
    On,
    /// Do not serve.
    Off,
}

/// Whether to serve, and until when that is so if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether to serve.
    pub serves: bool,
    /// Why, for the log and the metrics.
    pub why: Why,
    /// When to ask again.
    pub again: Option<Timestamp>,
}

/// Why it is served or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was asked for.
    Asked,
    /// Not all is known that tells who else serves: it stays as it was.
    NotKnown,
    /// Leases cannot be read, so nobody can tell: grant get, list and watch on them, or say `on`.
    LeaseNotReadable,
    /// kube-controller-manager renews its Lease.
    LeaseRenewed,
    /// Others change slices.
    SlicesChanged,
    /// There has been no sign for not so long yet.
    Waiting,
    /// There is no sign of anybody else.
    Nobody,
    /// Another replica of this agent leads.
    Follows,
}

/// A Lease as it is of interest here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `spec.renewTime`; none where it was never held.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`; zero where there is none.
    pub duration: Duration,
}

/// What is known of who else makes slices.
#[derive(Clone, Debug)]
pub struct Takeover {
    mode: Mode,
    after: Duration,
    lease_view: WatchState,
    slices_view: WatchState,
    /// Since when both are known.
    known_since: Option<Timestamp>,
    lease: Option<LeaseSeen>,
    lease_renewed: Option<Timestamp>,
    /// When the Lease was first seen, and for how long it is looked at before its age is believed.
    look: Option<(Timestamp, Duration)>,
    slices_changed: Option<Timestamp>,
    serves: bool,
}

impl Takeover {
    /// Nothing known yet; `after` is how long there must be no sign of another.
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

    /// Whether kube-controller-manager's Lease is to be watched.
    #[must_use]
    pub const fn wants_lease(&self) -> bool {
        matches!(self.mode, Mode::Auto)
    }

    /// What the view of Leases is worth.
    pub fn lease_view(&mut self, state: WatchState, at: Timestamp) {
        self.lease_view = state;
        self.note_known(at);
    }

    /// What the view of slices is worth.
    pub fn slices_view(&mut self, state: WatchState, at: Timestamp) {
        self.slices_view = state;
        self.note_known(at);
    }

    /// The wall clock was set by so many microseconds: signs are as long ago as they were.
    pub fn clock_set(&mut self, microseconds: i64) {
        let signs = [&mut self.known_since, &mut self.lease_renewed, &mut self.slices_changed];
        let look = self.look.as_mut().map(|(since, _)| since);
        for sign in signs.into_iter().flatten().chain(look) {
            *sign = sign.set_by(microseconds);
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

    /// kube-controller-manager's Lease is there in this state.
    pub fn lease_seen(&mut self, lease: LeaseSeen, at: Timestamp) {
        match self.lease.replace(lease) {
            Some(before) if before.renewed == lease.renewed => {}
            // Who has seen it change knows by the own clock when that was: there is no age to believe.
            Some(_) => (self.lease_renewed, self.look) = (Some(at), None),
            None => {
                self.lease_renewed = lease.renewed.map(|renewed| renewed.min(at));
                self.look = Some((at, lease.duration.clamp(SHORTEST_LOOK, LONGEST_LOOK)));
            }
        }
    }

    /// kube-controller-manager's Lease was deleted: by whom, and what for, nobody knows.
    pub fn lease_gone(&mut self, at: Timestamp) {
        if self.lease.take().is_some() {
            self.lease_renewed = Some(at);
        }
    }

    /// From now on what is decided is done. Until now slices that changed were no sign, since it may have been the one that
    /// led: so where there is no Lease to tell, only looking from now on does.
    pub fn leads(&mut self, at: Timestamp) {
        if self.lease.is_none() {
            self.known_since = self.known_since.map(|_| at);
            self.serves = false;
        }
    }

    /// A slice under the manager's name changed by another hand than ours.
    pub fn slices_changed(&mut self, at: Timestamp) {
        self.slices_changed = Some(at);
    }

    /// Whether to serve.
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
        self.lease.map_or(Duration::ZERO, |lease| lease.duration).min(LONGEST_LOOK)
    }

    fn decide_by_signs(&mut self, now: Timestamp) -> Decision {
        if self.lease_view == WatchState::Absent {
            return Decision { serves: false, why: Why::LeaseNotReadable, again: None };
        }
        if !self.is_known() {
            return Decision { serves: self.serves, why: Why::NotKnown, again: None };
        }
        // A Lease tells how long nobody was there, also before anybody looked. Without one only looking tells.
        self.known_since = self.known_since.map(|since| since.min(now));
        let mut looked_since = self.known_since.filter(|_| self.lease.is_none() && !self.serves);
        let (mut look, wait) = (self.look.map(|(since, _)| since), self.look.map_or(Duration::ZERO, |(_, wait)| wait));
        // Who holds the Lease renews it within its duration: sooner, silence says nothing.
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

/// Until when a sign counts; one that is over is forgotten. One from ahead of now was seen before the clock went back, and
/// counts from now: so it makes nobody wait longer than once more, and one that is over does not come back.
fn ends(sign: &mut Option<Timestamp>, wait: Duration, now: Timestamp) -> Option<Timestamp> {
    *sign = sign.map(|sign| sign.min(now)).filter(|sign| *sign + wait > now);
    sign.map(|sign| sign + wait)
}

#[cfg(test)]
mod tests;
