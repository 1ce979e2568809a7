//! Faults in what reads and watches show.

use memkube::Call;
use memkube::faults::{Fate, Fault, Faults, State, WatchFaults, WatchedEvent};
use memkube::store::ChangeKind;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
    /// Watches omit deletions.
    LosesDeletions,
    /// Watches omit the second event.
    LosesSecond,
    /// Watches deliver each event twice.
    RepeatsAll,
    /// Reads do not see the last change.
    ReadsThePast,
    /// Watches break at their first event.
    Breaks,
}

/// Faults, each with the theme that should detect it.
pub(super) const ALL: [(&str, &str, Slip); 5] = [
    ("watches do not tell of deletions", "watches", Slip::LosesDeletions),
    ("watches lose an event", "watches", Slip::LosesSecond),
    ("watches tell all twice", "watches", Slip::RepeatsAll),
    ("reads are one change behind", "verbs", Slip::ReadsThePast),
    ("watches break", "watches", Slip::Breaks),
];

pub(super) struct Slipping(pub(super) Slip);

impl Faults for Slipping {
    fn request(&self, _: &Call) -> Fault {
        let state = if self.0 == Slip::ReadsThePast { State::Behind(1) } else { State::Newest };
        Fault { state, ..Fault::default() }
    }

    fn watch(&self, _: &Call) -> Option<Box<dyn WatchFaults>> {
        Some(Box::new(Watched { slip: self.0, told: 0 }))
    }
}

struct Watched {
    slip: Slip,
    told: usize,
}

impl WatchFaults for Watched {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        self.told += 1;
        match self.slip {
            Slip::LosesDeletions if event.kind == ChangeKind::Deleted => Fate::Lose,
            Slip::LosesSecond if self.told == 2 => Fate::Lose,
            Slip::RepeatsAll => Fate::Repeat(1),
            Slip::Breaks => Fate::Cut,
            _ => Fate::Deliver,
        }
    }
}
