//! Slice streams of the sandbox. The last of several members has none, so each change shows its latency with a stream
//! and without one.

use sim::agent::Setup;
use sim::connection::Connection;
use sim::stream::Streams;
use std::time::Duration;

/// Metric of the hub agent with the number of open slice streams.
const OPEN: &str = "fleetnet_slice_streams";
/// Time for which objects lag behind the streams: long enough for a change to arrive by the stream first, and shorter
/// than the interval of changes with `--once`. So each change has the writes that it has without a stream.
const OBJECT_LAG: Duration = Duration::from_millis(20);

/// Slice streams of a fleet, as connections in memory. Clones share them.
#[derive(Clone)]
pub(super) struct SliceStreams {
    network: Streams,
    /// Connection that delivers nothing while the hub is interrupted.
    line: Connection,
    /// Number of members with a stream: the first ones.
    count: usize,
}

impl SliceStreams {
    /// Returns the slice streams of a fleet with this number of members.
    pub(super) fn of(members: usize) -> Self {
        Self { network: Streams::default(), line: Connection::default(), count: members.saturating_sub(1).max(1) }
    }

    /// True if the member has a stream.
    pub(super) fn has(&self, member: usize) -> bool {
        member < self.count
    }

    /// Adds the streams to the settings of the hub agent.
    pub(super) fn serve(&self, setup: Setup) -> Setup {
        Setup { streams: Some((self.network.clone(), self.line.clone())), object_lag: OBJECT_LAG, ..setup }
    }

    /// Adds the stream of a member to the settings of its agent, if it has one.
    pub(super) fn connect(&self, member: usize, setup: Setup) -> Setup {
        Setup { streams: self.has(member).then(|| (self.network.clone(), self.line.clone())), ..setup }
    }

    /// True if all streams are open. `metrics` are those of the hub agent.
    pub(super) fn are_open(&self, metrics: &str) -> bool {
        let values = metrics.lines().filter_map(|line| line.strip_prefix(OPEN)?.trim().parse::<usize>().ok());
        values.sum::<usize>() == self.count
    }

    /// Breaks the stream of a member whose agent was killed.
    pub(super) fn cut(&self, member: &str) {
        self.network.cut(member);
    }

    /// Interrupts all streams: they stay open, and deliver nothing.
    pub(super) fn hold(&self) {
        self.line.hold();
    }

    /// Ends the interruption by [`Self::hold`], if there is one.
    pub(super) fn release(&self) {
        self.line.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_members_has_no_stream() {
        for (members, with_stream) in [(1, 1), (2, 1), (3, 2), (50, 49)] {
            let streams = SliceStreams::of(members);
            assert_eq!((0..members).filter(|member| streams.has(*member)).count(), with_stream, "{members} members");
            assert!(streams.has(0), "{members} members");
        }
    }

    #[test]
    fn streams_are_open_if_the_hub_agent_counts_all() {
        let streams = SliceStreams::of(3);
        let metrics = |open: &str| format!("# TYPE {OPEN} gauge\n{OPEN}{open}\n{OPEN}_other 2\n");
        assert!(streams.are_open(&metrics(" 2")));
        assert!(!streams.are_open(&metrics(" 1")));
        assert!(!streams.are_open("fleetnet_slice_stream_messages_total 2\n"));
    }
}
