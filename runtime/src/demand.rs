//! Subscriptions to sources (a kind in a cluster): the engine starts and stops each watch as the agent needs it.
//!
//! Without a subscription, the source is not watched, and the view has none of its objects. The watch of a source runs in rounds.
//! A round is one run of the watch, which begins with a new list. A new subscription starts a round, and so does a forced relist,
//! which keeps the view. The engine ignores events of an earlier round that arrive late.

use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::{Engine, Source};
use crate::logic::{Logic, SourceSpec};
use crate::versions::Versions;

/// Number of a round of a source's watch, counted from 1. A round is one run of the watch, which begins with a new list. A new
/// subscription or a forced relist starts a new round.
pub(crate) type Round = u64;

/// Subscription as the watch task sees it: the number of the current round, or `None` while the source is not subscribed.
pub(crate) type Wanted = watch::Receiver<Option<Round>>;

/// Subscription as the engine sees it: the engine can change the subscription and start a new round of the watch.
#[derive(Debug)]
pub(crate) struct Demand {
    rounds: Round,
    round: watch::Sender<Option<Round>>,
}

impl Demand {
    pub(crate) fn new(is_wanted: bool) -> Self {
        let mut demand = Self { rounds: 0, round: watch::Sender::new(None) };
        demand.set(is_wanted);
        demand
    }

    pub(crate) fn subscribe(&self) -> Wanted {
        self.round.subscribe()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.round.borrow().is_some()
    }

    /// True if `round` is the current run of the watch. The engine ignores messages of an earlier run that arrive late.
    pub(crate) fn is_current(&self, round: Round) -> bool {
        *self.round.borrow() == Some(round)
    }

    /// Subscribes to the source or unsubscribes from it. Returns true if this is a change.
    pub(crate) fn set(&mut self, is_wanted: bool) -> bool {
        if self.is_wanted() == is_wanted {
            return false;
        }
        self.rounds += u64::from(is_wanted);
        self.round.send_replace(is_wanted.then_some(self.rounds));
        true
    }

    /// Starts a new run of the watch, so that the watch lists the source again. Does nothing if the source is not subscribed.
    fn renew(&mut self) {
        if self.is_wanted() {
            self.rounds += 1;
            self.round.send_replace(Some(self.rounds));
        }
    }
}

/// Waits until this round (run of the watch) is no longer the current round. Returns false if the engine has ended.
pub(crate) async fn ended(wanted: &mut Wanted, round: Round) -> bool {
    wanted.wait_for(|now| *now != Some(round)).await.is_ok()
}

impl<L: Logic> Engine<L> {
    /// Returns each source that needs a watch task, with its subscription.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (Arc<SourceSpec<L>>, Wanted)> {
        self.sources.values().map(|source| (Arc::clone(&source.spec), source.demand.subscribe()))
    }

    /// Subscribes to and unsubscribes from sources, as the agent now requests in [`Logic::wants`]. Relists sources, as the agent
    /// now requests in [`Logic::reading`].
    ///
    /// Returns true if anything changed. The caller then calls again, because the agent may react to the change with other
    /// requests.
    pub(crate) fn follow_demand(&mut self) -> bool {
        let is_turned = self.turn();
        self.follow_reading() || is_turned
    }

    fn follow_reading(&mut self) -> bool {
        let mut is_any = false;
        for (id, source) in &mut self.sources {
            let reading = self.logic.reading(*id);
            if std::mem::replace(&mut source.reading, reading) != reading {
                source.is_relisted = true;
                source.versions.report_again();
                source.demand.renew();
                is_any = true;
            }
        }
        is_any
    }

    fn turn(&mut self) -> bool {
        let logic = &self.logic;
        let turned = self.sources.iter().filter(|(id, source)| logic.wants(**id) != source.is_wanted());
        let turned: Vec<L::Source> = turned.map(|(id, _)| *id).collect();
        for id in &turned {
            let Some(source) = self.sources.get_mut(id) else { continue };
            let wanted = !source.is_wanted();
            source.demand.set(wanted);
            source.versions = Versions::default();
            source.was_complete = false;
            let at = self.clock.now();
            self.change_state(*id, Source::<L>::first_state(wanted), at);
        }
        !turned.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_that_a_source_is_wanted_is_a_round_of_its_own() {
        let mut demand = Demand::new(true);
        assert!(demand.is_wanted() && demand.is_current(1));
        assert!(!demand.set(true) && demand.is_current(1), "no change");
        assert!(demand.set(false) && !demand.is_wanted() && !demand.is_current(1));
        assert!(demand.set(true) && demand.is_current(2) && !demand.is_current(1));
    }

    #[test]
    fn what_is_not_wanted_from_the_start_begins_with_round_1() {
        let mut demand = Demand::new(false);
        assert!(!demand.is_wanted() && !demand.is_current(0));
        assert!(demand.set(true) && demand.is_current(1));
    }

    #[test]
    fn a_relist_starts_a_round_if_the_source_is_wanted() {
        let mut demand = Demand::new(true);
        demand.renew();
        assert!(demand.is_current(2) && !demand.is_current(1));
        demand.set(false);
        demand.renew();
        assert!(!demand.is_wanted());
    }
}
