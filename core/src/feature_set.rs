//! Feature set of a peer: the features that the peer announces ([`crate::handshake`]), or without an announcement the
//! features that the agent assumes.
//!
//! | CRD of MemberAgent in the hub | announcement of the peer | feature set of the peer |
//! |---|---|---|
//! | not listed yet | not known | not known: the agent writes nothing for the peer |
//! | exists | exists | the announced features |
//! | exists | its MemberAgent was deleted | the announced features for 60 s, then the Go form |
//! | exists | none since the CRD exists | the Go form, assumed for 6 min, then certain |
//! | was removed | existed | the announced features for 60 s, then the Go form, assumed |
//! | was removed, or never existed | none | the Go form, assumed |
//!
//! While the agent only assumes the Go form, it writes changes in the Go form. It does not rewrite existing objects
//! that already have more than the Go form. It neither removes nor changes objects that the Go form cannot represent.

use crate::features::{self, Feature, Features};
use crate::limits::{ANNOUNCEMENT_GRACE_MICROS, FIRST_ANNOUNCEMENT_MICROS};
use crate::model::{ImportStatus, SessionAffinity, SliceContent};
use fleetnet_types::{Timestamp, WatchState};
use std::borrow::Cow;

/// Last announcement that this process saw from a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Announced {
    /// The peer has announced nothing since this process started.
    #[default]
    Never,
    Features(Features),
    /// The peer's MemberAgent was deleted at the time `at`, and there is no new announcement. The peer had announced
    /// `features`.
    Lost {
        features: Features,
        at: Timestamp,
    },
}

impl Announced {
    /// Records the present announcement of a peer; `None` if there is none. Returns true if the peer's feature set may
    /// have changed.
    pub(crate) fn record(&mut self, announced: Option<Features>, at: Timestamp) -> bool {
        let before = *self;
        match (announced, before) {
            (Some(features), _) => *self = Self::Features(features),
            (None, Self::Features(features)) => *self = Self::Lost { features, at },
            (None, _) => {}
        }
        *self != before
    }

    /// Returns the last announced features.
    pub(crate) fn features(self) -> Option<Features> {
        match self {
            Self::Never => None,
            Self::Features(features) | Self::Lost { features, .. } => Some(features),
        }
    }

    /// True if the last announcement has this feature.
    pub(crate) fn has(self, feature: Feature) -> bool {
        match self {
            Self::Never => false,
            Self::Features(features) | Self::Lost { features, .. } => features.has(feature),
        }
    }

    /// True if the peer has no valid announcement: there never was one, or its MemberAgent was deleted more than 60 s
    /// ago.
    pub(crate) fn is_over(self, now: Timestamp) -> bool {
        match self {
            Self::Never => true,
            Self::Features(_) => false,
            Self::Lost { at, .. } => now >= at.plus_micros(ANNOUNCEMENT_GRACE_MICROS),
        }
    }

    /// Moves the stored time by `micros`, after the wall clock was set forward or back by this duration.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        if let Self::Lost { at, .. } = self {
            *at = at.plus_micros(micros);
        }
    }

    fn is_lost_before(self, since: Timestamp) -> bool {
        matches!(self, Self::Lost { at, .. } if at <= since)
    }
}

/// Feature set of a peer at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeatureSet {
    features: Features,
    is_assumed: bool,
    until: Option<Timestamp>,
}

impl FeatureSet {
    /// Returns a peer's feature set at the time `now`, by the table at the top of this file. `state` is the state of
    /// the watch of MemberAgents, and `since` is the time at which this state began.
    pub(crate) fn at(now: Timestamp, announced: Announced, state: WatchState, since: Timestamp) -> Self {
        let is_served = state == WatchState::Complete;
        if is_served && let Announced::Features(features) = announced {
            return Self { features, is_assumed: false, until: None };
        }
        if is_served && (announced == Announced::Never || announced.is_lost_before(since)) {
            // Until this time, the agent only assumes that the peer supports no feature. A peer checks only every 5
            // minutes if the CRD of MemberAgent exists. So its first announcement may come minutes after the CRD.
            let until = since.plus_micros(FIRST_ANNOUNCEMENT_MICROS);
            let is_assumed = now < until;
            return Self { features: Features::NONE, is_assumed, until: is_assumed.then_some(until) };
        }
        let (features, lost) = match announced {
            Announced::Lost { features, at } => (features, at),
            Announced::Features(features) => (features, since),
            Announced::Never => return Self { features: Features::NONE, is_assumed: true, until: None },
        };
        let end = lost.plus_micros(ANNOUNCEMENT_GRACE_MICROS);
        if state != WatchState::Absent && now < end {
            return Self { features, is_assumed: false, until: Some(end) };
        }
        Self { features: Features::NONE, is_assumed: !is_served, until: None }
    }

    /// True if the agent only assumes the Go form, so that the peer may support more features.
    pub(crate) fn is_assumed(self) -> bool {
        self.is_assumed
    }

    pub(crate) fn has(self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Returns the time at which this feature set changes without an event, so that the key must be planned again.
    /// `None` if it does not change. `kept` is an object that the plan keeps only because the peer's features are
    /// assumed. Without such an object, the end of an assumption changes nothing.
    pub(crate) fn again<K>(self, kept: Option<K>) -> Option<Timestamp> {
        self.until.filter(|_| kept.is_some() || !self.is_assumed)
    }

    /// Returns the slice reduced to the peer's features; `None` if the peer does not support such slices.
    pub(crate) fn slice(self, source: &SliceContent) -> Option<Cow<'_, SliceContent>> {
        features::slice_for(self.features, source)
    }

    /// True if the peer's existing copy of a slice must stay although the agent may write only the Go form, which
    /// cannot represent the slice. This is so while the Go form is only assumed, because the peer may support the
    /// slice.
    pub(crate) fn keeps(self, source: &SliceContent) -> bool {
        self.is_assumed && features::slice_for(Features::ALL, source).is_some()
    }

    /// True if the peer's copy of a slice (`written`) needs no update to carry the content `source`. While the Go form
    /// is only assumed, a copy with more features than the Go form needs no update either.
    pub(crate) fn is_carried(self, written: &SliceContent, source: &SliceContent) -> bool {
        self.slice(source).is_some_and(|content| *content == *written)
            || self.is_assumed && features::is_form_of(written, source)
    }

    /// Returns the ServiceImport's status reduced to the peer's features.
    pub(crate) fn import(self, status: &ImportStatus) -> ImportStatus {
        features::import_for(self.features, status)
    }

    /// Returns a Service's session affinity reduced to the peer's features.
    pub(crate) fn affinity(self, affinity: SessionAffinity) -> SessionAffinity {
        features::affinity_for(self.features, affinity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WatchState::{Absent, Complete, Incomplete, Unknown};

    const SECOND: i64 = 1_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp(second * SECOND)
    }

    fn certain(features: Features, until: Option<i64>) -> FeatureSet {
        FeatureSet { features, is_assumed: false, until: until.map(at) }
    }

    fn go_form_assumed(until: Option<i64>) -> FeatureSet {
        FeatureSet { features: Features::NONE, is_assumed: true, until: until.map(at) }
    }

    /// Also rule A13.
    #[test]
    fn what_was_announced_holds_until_it_is_taken_back_or_its_loss_has_lasted() {
        let mut announced = Announced::default();
        assert!(announced.record(Some(Features::ALL), at(0)));
        assert!(!announced.record(Some(Features::ALL), at(0)), "said again");
        assert!(announced.record(None, at(1)));
        assert!(!announced.record(None, at(2)), "its time runs from the first");
        assert_eq!(announced, Announced::Lost { features: Features::ALL, at: at(1) });
        assert!(announced.has(Feature::IPv6) && !Announced::Never.has(Feature::IPv6));
        for by in [-3_600, 3_600] {
            let mut announced = announced;
            announced.clock_set(by * SECOND);
            assert_eq!(announced, Announced::Lost { features: Features::ALL, at: at(1 + by) }, "set by {by}");
        }
        assert!(announced.record(Some(Features::NONE), at(3)), "taken back: at once");
        assert!(
            announced.record(None, at(4)) && announced.is_over(at(64)),
            "its MemberAgent is gone, and is forgotten"
        );
    }

    /// Rule U14: The CRD of MemberAgent is installed, and a peer has announced no features since the installation
    /// Then: The agents act as in rule U13 for 6 min. A peer detects the new CRD within 6 min. After the 6 min, the
    /// agents use the Go form (as Go agents write objects) for this peer
    ///
    /// Also rule U12.
    #[test]
    fn a_feature_set_follows_from_the_announcement_the_state_of_the_kind_and_its_time() {
        let (never, announced) = (Announced::Never, Announced::Features(Features::ALL));
        let lost = |second| Announced::Lost { features: Features::ALL, at: at(second) };
        let all = |until| certain(Features::ALL, until);
        let go_form = certain(Features::NONE, None);
        // Each row: (last announcement, state of the watch, since, now), the expected feature set, and a name.
        let table = [
            ((announced, Complete, 100, 900), all(None), "announced"),
            ((Announced::Features(Features::NONE), Complete, 100, 101), go_form, "announced that there are none"),
            ((lost(200), Complete, 100, 259), all(Some(260)), "deleted while the kind is served"),
            ((lost(200), Complete, 100, 260), go_form, "and not created again"),
            ((never, Complete, 100, 459), go_form_assumed(Some(460)), "may not have had the time"),
            ((never, Complete, 100, 460), go_form, "had the time"),
            ((lost(90), Complete, 100, 101), go_form_assumed(Some(460)), "vanished with the kind, which is back"),
            ((lost(100), Complete, 100, 459), go_form_assumed(Some(460)), "is missing in the first list"),
            ((lost(90), Complete, 100, 460), go_form, "and does not come back"),
            ((announced, Unknown, 100, 159), all(Some(160)), "the kind has vanished"),
            ((announced, Unknown, 100, 160), go_form_assumed(None), "and stays away"),
            ((lost(90), Unknown, 100, 149), all(Some(150)), "its object went first"),
            ((lost(90), Unknown, 100, 150), go_form_assumed(None), "and the kind stays away"),
            ((never, Unknown, 100, 101), go_form_assumed(None), "nothing was announced"),
            ((never, Absent, 100, 900), go_form_assumed(None), "the kind was never served"),
            ((never, Incomplete, 0, 900), go_form_assumed(None), "nothing is listed yet"),
        ];
        for ((announced, state, since, now), expected, why) in table {
            assert_eq!(FeatureSet::at(at(now), announced, state, at(since)), expected, "{why}");
        }
    }

    #[test]
    fn only_what_ends_is_waited_for_and_an_assumption_only_by_who_keeps_something() {
        assert_eq!(certain(Features::ALL, Some(9)).again(None::<()>), Some(at(9)));
        assert_eq!(go_form_assumed(Some(9)).again(None::<()>), None);
        assert_eq!(go_form_assumed(Some(9)).again(Some(())), Some(at(9)));
    }
}
