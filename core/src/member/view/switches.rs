//! Stores the selections of imported Services, and notes failovers and failbacks.

use super::View;
use super::selections::{Direction, Selected, Selection, Switch};
use super::serving::Served;
use crate::member::selection::Choice;
use fleetnet_types::Timestamp;
use std::cmp::Ordering;

impl View {
    /// Stores the selection of a Service. Returns true if other clusters are chosen.
    pub(in crate::member) fn store_selection(
        &mut self,
        of: &Selected,
        selection: Option<Selection>,
        at: Timestamp,
    ) -> bool {
        let before = self.selections.of.remove(of);
        let Some(mut selection) = selection else { return before.is_some() };
        selection.continue_from(before.as_ref(), at);
        let choices = [before.as_ref(), Some(&selection)].map(|it| it.map(|it| it.choices(at)));
        let [Some(choices_before), Some(choices)] = &choices else {
            self.selections.of.insert(of.clone(), selection);
            return true;
        };
        let is_changed = choices_before != choices;
        let switches =
            choices.iter().filter_map(|(served, choice)| choice.switch(choices_before.get(served)?, of, served));
        self.selections.switches.extend(switches);
        self.selections.of.insert(of.clone(), selection);
        is_changed
    }

    /// Removes and returns the switches since the last call.
    pub fn switches(&mut self) -> Vec<Switch> {
        std::mem::take(&mut self.selections.switches)
    }
}

impl Choice {
    /// Returns the change of the active result since an earlier choice, unless one of them has no clusters.
    fn switch(&self, before: &Self, of: &Selected, served: &Served) -> Option<Switch> {
        let direction = match self.active.cmp(&before.active) {
            Ordering::Greater => Direction::Failover,
            Ordering::Less => Direction::Failback,
            Ordering::Equal => return None,
        };
        let (Selected { namespace, service }, port) = (of.clone(), served.port.clone());
        let is_served = !self.clusters.is_empty() && !before.clusters.is_empty();
        is_served.then(|| Switch { namespace, service, port, direction, clusters: self.clusters.clone() })
    }
}
