//! Faults in memkube's reads and watches.

use memkube::Call;
use memkube::faults::{Fate, Fault, Faults, State, WatchFaults, WatchedEvent};
use memkube::store::ChangeKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchFault {
    /// Watches omit deletions.
    LosesDeletions,
    /// Watches omit the second event.
    LosesSecond,
    /// Watches deliver each event twice.
    RepeatsAll,
    /// Reads return the state before the last change.
    ReadsThePast,
    /// Watches break at their first event.
    Breaks,
}

/// Faults in reads and watches. Each entry has a description, the file in `table/` that should detect the fault, and
/// the fault.
pub(super) const ALL: [(&str, &str, WatchFault); 5] = [
    ("watches do not show deletions", "watches", WatchFault::LosesDeletions),
    ("watches lose an event", "watches", WatchFault::LosesSecond),
    ("watches show every event twice", "watches", WatchFault::RepeatsAll),
    ("reads are one change behind", "verbs", WatchFault::ReadsThePast),
    ("watches break", "watches", WatchFault::Breaks),
];

pub(super) struct FaultyWatches(pub(super) WatchFault);

impl Faults for FaultyWatches {
    fn request(&self, _: &Call) -> Fault {
        let state = if self.0 == WatchFault::ReadsThePast { State::Behind(1) } else { State::Newest };
        Fault { state, ..Fault::default() }
    }

    fn watch(&self, _: &Call) -> Option<Box<dyn WatchFaults>> {
        Some(Box::new(Watched { fault: self.0, events: 0 }))
    }
}

struct Watched {
    fault: WatchFault,
    events: usize,
}

impl WatchFaults for Watched {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        self.events += 1;
        match self.fault {
            WatchFault::LosesDeletions if event.kind == ChangeKind::Deleted => Fate::Lose,
            WatchFault::LosesSecond if self.events == 2 => Fate::Lose,
            WatchFault::RepeatsAll => Fate::Repeat(1),
            WatchFault::Breaks => Fate::Cut,
            _ => Fate::Deliver,
        }
    }
}
