//! Clocks of the members, compared with the clock of the hub agent. A probe travels to the member and back:
//!
//! ```text
//!  hub agent   sent ─┐             ┌─► arrived
//!  member            └─► received ─┘ replied
//! ```
//!
//! Both ways took at least no time, so the offset is known up to half of the round trip. Of the last probes, the one
//! with the shortest round trip counts. The hub agent compares the clocks of two members with each other, so its own
//! clock does not matter. For that, it uses a clock that nobody can set.

use crate::limits::{CLOCK_DRIFT_PARTS_PER_MILLION, CLOCK_SAMPLES};
use fleetnet_types::Timestamp;
use std::collections::VecDeque;

/// Clock of a member, compared with another clock: that of the hub agent, or of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Time on the member's clock minus time on the other clock, in microseconds.
    pub offset_micros: i64,
    /// Maximum error of the offset, in microseconds.
    pub uncertainty_micros: i64,
}

/// Times of one probe. `sent` and `arrived` are on a clock of the hub agent, `received` and `replied` on the member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub sent: Timestamp,
    pub received: Timestamp,
    pub replied: Timestamp,
    pub arrived: Timestamp,
}

impl Probe {
    /// Returns the clock that this probe shows. `None` if a clock was set back during the probe.
    fn clock(self) -> Option<Clock> {
        let there = self.received.0.checked_sub(self.sent.0)?;
        let back = self.replied.0.checked_sub(self.arrived.0)?;
        let round_trip = self.arrived.0.checked_sub(self.sent.0)?;
        let pause = self.replied.0.checked_sub(self.received.0)?;
        if pause < 0 || round_trip < pause {
            return None;
        }
        let offset_micros = i64::try_from((i128::from(there) + i128::from(back)) / 2).ok()?;
        // Rounded up, because half of a microsecond would be lost otherwise.
        Some(Clock { offset_micros, uncertainty_micros: (round_trip - pause) / 2 + 1 })
    }
}

impl Clock {
    /// Returns this clock compared with another one. Both must be compared with the same third clock.
    #[must_use]
    pub fn compared_with(self, other: Self) -> Self {
        Self {
            offset_micros: self.offset_micros.saturating_sub(other.offset_micros),
            uncertainty_micros: self.uncertainty_micros.saturating_add(other.uncertainty_micros),
        }
    }

    /// Returns a time of this clock on the clock that this clock is compared with.
    #[must_use]
    pub fn on_other(self, time: Timestamp) -> Timestamp {
        Timestamp(time.0.saturating_sub(self.offset_micros))
    }

    /// Returns this clock after the clock that it is compared with was set by this duration.
    #[must_use]
    pub fn after_other_was_set(self, micros: i64) -> Self {
        Self { offset_micros: self.offset_micros.saturating_sub(micros), ..self }
    }

    /// True if both can be the same clock.
    fn agrees(self, other: Self) -> bool {
        let difference = self.offset_micros.abs_diff(other.offset_micros);
        difference <= self.uncertainty_micros.unsigned_abs().saturating_add(other.uncertainty_micros.unsigned_abs())
    }

    /// Returns this clock after a time without a probe. Both clocks may have drifted since.
    fn after(self, micros: i64) -> Self {
        let drift = micros.max(0).saturating_mul(CLOCK_DRIFT_PARTS_PER_MILLION) / 1_000_000;
        Self { uncertainty_micros: self.uncertainty_micros.saturating_add(drift), ..self }
    }
}

/// Last probes of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(VecDeque<(Timestamp, Clock)>);

impl Samples {
    /// Adds a probe.
    pub fn observe(&mut self, probe: Probe) {
        let Some(clock) = probe.clock() else { return };
        // A probe that contradicts an earlier one shows that one of the clocks was set. Earlier probes then count no
        // more.
        self.0.retain(|(at, earlier)| clock.agrees(earlier.after(probe.arrived.0.saturating_sub(at.0))));
        if self.0.len() >= CLOCK_SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((probe.arrived, clock));
    }

    /// Returns the clock of the member; `None` before its first probe.
    #[must_use]
    pub fn clock(&self, now: Timestamp) -> Option<Clock> {
        let clocks = self.0.iter().map(|(at, clock)| clock.after(now.0.saturating_sub(at.0)));
        clocks.min_by_key(|clock| clock.uncertainty_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use property::{cases, for_any};
    use proptest::prelude::any;

    /// Returns the probe of a member whose clock is ahead by `offset`, with these times for both ways and the reply.
    fn probe(sent: i64, offset: i64, there: i64, pause: i64, back: i64) -> Probe {
        let received = sent + there;
        let replied = received + pause;
        Probe {
            sent: Timestamp(sent),
            received: Timestamp(received + offset),
            replied: Timestamp(replied + offset),
            arrived: Timestamp(replied + back),
        }
    }

    /// Also rule J13.
    #[test]
    fn the_true_offset_is_within_the_uncertainty_whatever_the_ways_take() {
        let seconds = -5_000_000..5_000_000_i64;
        let ways = (0..500_000_i64, 0..500_000_i64, 0..1_000_000_i64);
        let input = (seconds, proptest::collection::vec(ways, 1..12));
        for_any(cases(500), 20, &input, |(offset, ways)| {
            let (mut samples, mut now) = (Samples::default(), 0);
            for (there, back, pause) in &ways {
                samples.observe(probe(now, offset, *there, *pause, *back));
                now += 10_000_000;
            }
            let clock = samples.clock(Timestamp(now)).expect("a sample");
            assert!(
                clock.offset_micros.abs_diff(offset) <= clock.uncertainty_micros.unsigned_abs(),
                "{clock:?} {offset}"
            );
            let best = ways.iter().rev().take(CLOCK_SAMPLES).map(|(there, back, _)| (there + back) / 2 + 1).min();
            let drift = i64::try_from(CLOCK_SAMPLES).expect("small") * 10 * CLOCK_DRIFT_PARTS_PER_MILLION;
            assert!(clock.uncertainty_micros <= best.expect("a sample") + drift);
            [(ways.len() > CLOCK_SAMPLES, "more probes than count"), (offset < 0, "behind")]
        });
    }

    /// Also rule J13.
    #[test]
    fn a_latency_on_two_skewed_clocks_is_within_the_stated_uncertainty() {
        let skew = -5_000_000..5_000_000_i64;
        let ways = (0..50_000_i64, 0..50_000_i64);
        for_any(cases(500), 50, &(skew.clone(), skew, ways.clone(), ways, any::<bool>()), |(of, to, one, two, _)| {
            let clock = |offset, (there, back)| {
                let mut samples = Samples::default();
                samples.observe(probe(0, offset, there, 100, back));
                samples.clock(Timestamp(1_000_000)).expect("a sample")
            };
            let (exporter, importer) = (clock(of, one), clock(to, two));
            let (exported, imported, latency) = (Timestamp(7_000_000 + of), 7_020_000 + to, 20_000);
            let clock = exporter.compared_with(importer);
            let measured = imported - clock.on_other(exported).0;
            assert!(measured.abs_diff(latency) <= clock.uncertainty_micros.unsigned_abs());
            [((of - to).abs() > 1_000_000, "the clocks differ by more than a second")]
        });
    }

    /// Also rule J13.
    #[test]
    fn a_clock_that_is_set_is_followed_with_the_next_probe() {
        let mut samples = Samples::default();
        for number in 0..5 {
            samples.observe(probe(number * 10_000_000, 0, 1_000, 0, 1_000));
        }
        samples.observe(probe(50_000_000, 3_600_000_000, 40_000, 0, 40_000));
        let clock = samples.clock(Timestamp(50_080_000)).expect("a sample");
        assert_eq!(clock, Clock { offset_micros: 3_600_000_000, uncertainty_micros: 40_001 });
    }

    /// Also rule J13.
    #[test]
    fn clocks_agree_as_far_as_they_are_uncertain() {
        for (offset, expected) in [(2, 0), (3, 3)] {
            let mut samples = Samples::default();
            samples.observe(probe(0, 0, 0, 0, 0));
            samples.observe(probe(0, offset, 0, 0, 0));
            let clock = samples.clock(Timestamp(0)).expect("a sample");
            assert_eq!(clock, Clock { offset_micros: expected, uncertainty_micros: 1 }, "{offset}");
        }
    }

    /// Also rule J13.
    #[test]
    fn only_the_last_probes_count() {
        let mut samples = Samples::default();
        samples.observe(probe(0, 0, 0, 0, 0));
        for _ in 1..CLOCK_SAMPLES {
            samples.observe(probe(0, 0, 1_000, 0, 1_000));
            assert_eq!(samples.clock(Timestamp(0)).expect("a sample").uncertainty_micros, 1);
        }
        samples.observe(probe(0, 0, 1_000, 0, 1_000));
        assert_eq!(samples.clock(Timestamp(0)).expect("a sample").uncertainty_micros, 1_001);
    }

    /// Also rule J13.
    #[test]
    fn a_probe_during_which_a_clock_was_set_does_not_count() {
        let good = probe(0, 0, 1_000, 500, 1_000);
        for odd in [
            Probe { arrived: Timestamp(-3_600_000_000), ..good },
            Probe { replied: Timestamp(-3_600_000_000), ..good },
            Probe { replied: Timestamp(3_600_000_000), ..good },
            Probe { sent: Timestamp(i64::MIN), received: Timestamp(i64::MAX), ..good },
        ] {
            let mut samples = Samples::default();
            samples.observe(odd);
            assert_eq!(samples.clock(Timestamp(0)), None, "{odd:?}");
        }
    }

    /// Also rule J13.
    #[test]
    fn the_uncertainty_grows_by_the_drift_of_both_clocks() {
        let mut samples = Samples::default();
        samples.observe(probe(0, 7, 0, 0, 0));
        assert_eq!(samples.clock(Timestamp(0)), Some(Clock { offset_micros: 7, uncertainty_micros: 1 }));
        let clock = samples.clock(Timestamp(10_000_000)).expect("a sample");
        assert_eq!(clock.uncertainty_micros, 1 + 10 * CLOCK_DRIFT_PARTS_PER_MILLION);
        assert_eq!(samples.clock(Timestamp(-10_000_000)), samples.clock(Timestamp(0)), "this clock was set back");
    }
}
