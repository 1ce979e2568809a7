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
        let choices = selection.choices(at);
        let is_changed = before.as_ref().is_none_or(|before| before.choices(at) != choices);
        // Another list of results is no failover.
        let mut active = before.filter(|it| it.results == selection.results).map(|it| it.active).unwrap_or_default();
        for (served, choice) in choices.into_iter().filter(|(_, choice)| !choice.clusters.is_empty()) {
            let last = active.insert(served.clone(), choice.active);
            self.selections.switches.extend(choice.switch_from(last, of, served));
        }
        selection.active = active;
        self.selections.of.insert(of.clone(), selection);
        is_changed
    }

    /// Removes and returns the switches since the last call.
    pub fn switches(&mut self) -> Vec<Switch> {
        std::mem::take(&mut self.selections.switches)
    }
}

impl Choice {
    /// Returns the change from the result that was active before.
    fn switch_from(self, last: Option<usize>, of: &Selected, served: &Served) -> Option<Switch> {
        let direction = match self.active.cmp(&last?) {
            Ordering::Greater => Direction::Failover,
            Ordering::Less => Direction::Failback,
            Ordering::Equal => return None,
        };
        let (Selected { namespace, service }, port) = (of.clone(), served.port.clone());
        Some(Switch { namespace, service, port, direction, clusters: self.clusters })
    }
}
