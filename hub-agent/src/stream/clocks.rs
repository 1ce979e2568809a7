//! Clocks of the members with a stream. Each is that of the member's newest stream.

use super::message::Outbox;
use fleetnet_core::clocks::{Clock, Probe, Samples};
use fleetnet_runtime::clock::Clock as WallClock;
use fleetnet_types::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Clock that nobody can set: the time since the start of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyClock(Instant);

impl SteadyClock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Timestamp {
        Timestamp(i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Returns the wall clock compared with this clock.
    pub(super) fn compared_with_wall(self, wall: &WallClock) -> Clock {
        Clock { offset_micros: wall.now().0.saturating_sub(self.now().0), uncertainty_micros: 0 }
    }
}

/// Clocks, by the ids of the members, each with the stream that it belongs to.
#[derive(Debug, Default)]
pub(crate) struct Clocks(Mutex<BTreeMap<String, (Arc<Outbox>, Samples)>>);

impl Clocks {
    /// Records that a stream of a member began. Its clock is not known yet.
    pub(super) fn begin(&self, cluster: &str, stream: &Arc<Outbox>) {
        self.0.lock().insert(cluster.to_owned(), (Arc::clone(stream), Samples::default()));
    }

    /// Forgets the clock of a stream that ended. Returns false if the member has a newer stream.
    pub(super) fn end(&self, cluster: &str, stream: &Arc<Outbox>) -> bool {
        let mut clocks = self.0.lock();
        let is_newest = clocks.get(cluster).is_some_and(|(newest, _)| Arc::ptr_eq(newest, stream));
        if is_newest {
            clocks.remove(cluster);
        }
        is_newest
    }

    /// Adds a probe. Returns the clock of the member; `None` if the member has a newer stream, or its clock is not
    /// known.
    pub(super) fn observe(&self, cluster: &str, stream: &Arc<Outbox>, probe: Probe) -> Option<Clock> {
        let mut clocks = self.0.lock();
        let (_, samples) = clocks.get_mut(cluster).filter(|(newest, _)| Arc::ptr_eq(newest, stream))?;
        samples.observe(probe);
        samples.clock(probe.arrived)
    }

    /// Returns the clock of one member compared with that of another; `None` while one of them is not known.
    pub(super) fn compared(&self, cluster: &str, other: &str, now: Timestamp) -> Option<Clock> {
        let clocks = self.0.lock();
        let clock = |cluster| clocks.get(cluster)?.1.clock(now);
        Some(clock(cluster)?.compared_with(clock(other)?))
    }

    /// Returns the number of slices with a preview that waits, for each member.
    pub(super) fn waiting(&self) -> Vec<(String, usize)> {
        self.0.lock().iter().map(|(cluster, (stream, _))| (cluster.clone(), stream.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn probe(at: i64, offset: i64) -> Probe {
        let member = Timestamp(at + offset);
        Probe { sent: Timestamp(at), received: member, replied: member, arrived: Timestamp(at) }
    }

    /// Also rule J13.
    #[test]
    fn clocks_of_members_are_compared_with_each_other() {
        let (clocks, one, two) = (Clocks::default(), Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        clocks.begin("a", &one);
        clocks.begin("b", &two);
        assert_eq!(clocks.compared("a", "b", Timestamp(0)), None, "no probe has returned");
        clocks.observe("a", &one, probe(0, 5_000_000));
        clocks.observe("b", &two, probe(0, -1_000_000));
        let compared = Clock { offset_micros: 6_000_000, uncertainty_micros: 2 };
        assert_eq!(clocks.compared("a", "b", Timestamp(0)), Some(compared));
    }

    /// Also rule J13.
    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_changes_only_its_comparison_with_the_steady_clock() {
        let (wall, steady) = (WallClock::virtual_at(Timestamp::from_seconds(1_000)), SteadyClock::start());
        tokio::time::advance(Duration::from_secs(5)).await;
        wall.set_by(-3_600_000_000);
        assert_eq!(steady.now(), Timestamp::from_seconds(5));
        assert_eq!(steady.compared_with_wall(&wall).offset_micros, -2_600_000_000);
    }

    #[test]
    fn the_clock_of_a_member_is_that_of_its_newest_stream() {
        let (clocks, old, new) = (Clocks::default(), Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        clocks.begin("a", &old);
        clocks.begin("a", &new);
        assert_eq!(clocks.observe("a", &old, probe(0, 7)), None);
        assert!(clocks.observe("a", &new, probe(0, 7)).is_some());
        assert!(!clocks.end("a", &old));
        assert!(clocks.compared("a", "a", Timestamp(0)).is_some());
        assert!(clocks.end("a", &new));
        assert_eq!(clocks.compared("a", "a", Timestamp(0)), None);
    }
}
