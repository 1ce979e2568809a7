//! Disputes: objects that another writer changes back after each of the agent's repairs. The runtime counts the repairs
//! and finds the other writer. A condition on the user's object (such as a ServiceExport) shows the dispute while it
//! lasts.

use crate::conditions::{self, ConditionValue, DISPUTED, DesiredCondition};
use crate::limits::REPORTED_NAMES_MAX;
use crate::model::{Condition, Kind};
use crate::work;
use fleetnet_types::{ConditionStatus, ObjectName};
use std::collections::{BTreeMap, BTreeSet};

type Named = (Kind, ObjectName);

/// Disputes that last now. `K` is the key of a plan. It identifies the ServiceExport, MultiClusterService or exported
/// Service whose condition shows a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disputes<K> {
    messages: BTreeMap<K, BTreeMap<Named, String>>,
    /// Map from each disputed object to the key of the user's object (such as a ServiceExport) whose condition shows
    /// the dispute.
    about: BTreeMap<Named, K>,
}

// Not derived, because `derive(Default)` would require that `K` has a default.
impl<K> Default for Disputes<K> {
    fn default() -> Self {
        Self { messages: BTreeMap::new(), about: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Disputes<K> {
    /// Records that a dispute over the object `over` began or ended. `about` is the key of the user's object whose
    /// condition shows the dispute. `message` names the other writer. If `about` or `message` is `None`, the dispute
    /// ended. Returns the keys of the user's objects whose condition changes.
    pub(crate) fn note(&mut self, about: Option<K>, over: Named, message: Option<String>) -> BTreeSet<K> {
        let before = self.about.get(&over).cloned();
        let begun = about.zip(message);
        let concerned: BTreeSet<K> = before.iter().chain(begun.as_ref().map(|(about, _)| about)).cloned().collect();
        let texts: Vec<Option<String>> = concerned.iter().map(|about| self.text(about)).collect();
        if let Some(before) = before {
            self.end(&before, &over);
        }
        if let Some((about, message)) = begun {
            self.about.insert(over.clone(), about.clone());
            self.messages.entry(about).or_default().insert(over, message);
        }
        concerned
            .into_iter()
            .zip(texts)
            .filter(|(about, text)| self.text(about) != *text)
            .map(|(about, _)| about)
            .collect()
    }

    fn end(&mut self, about: &K, over: &Named) {
        self.about.remove(over);
        if let Some(messages) = self.messages.get_mut(about) {
            messages.remove(over);
            if messages.is_empty() {
                self.messages.remove(about);
            }
        }
    }

    /// Returns the message of the condition `Disputed`; `None` if there is no dispute. The message lists the first
    /// disputes, and has the number of further disputes. Its length is limited, because the API server rejects the
    /// whole status if one message is too long.
    fn text(&self, about: &K) -> Option<String> {
        work::step();
        let messages = self.messages.get(about)?;
        let named: Vec<&str> =
            messages.values().inspect(|_| work::step()).take(REPORTED_NAMES_MAX).map(String::as_str).collect();
        let more = match messages.len() - named.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!("{}{more}", named.join("; ")))
    }

    /// Returns the desired condition `Disputed` of a user's object. `None` if the object has no dispute, and its
    /// present conditions show no dispute. The condition has no Event here, because the runtime emits the Event of a
    /// dispute.
    pub(crate) fn condition(
        &self,
        about: &K,
        present: &[Condition],
        component: &'static str,
    ) -> Option<DesiredCondition> {
        let value = match self.text(about) {
            Some(text) => ConditionValue::writes_undone(text),
            None if is_disputed(present).is_some() => ConditionValue::writes_stand(),
            None => return None,
        };
        Some(DesiredCondition::new(DISPUTED, value, component).without_event())
    }
}

/// Returns the condition `Disputed` if its status is True, which means that the dispute still lasts.
pub(crate) fn is_disputed(conditions: &[Condition]) -> Option<&Condition> {
    conditions::find(conditions, DISPUTED).filter(|present| present.status == ConditionStatus::True)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also rule R15.
    #[test]
    fn nothing_is_left_of_a_dispute_that_ended() {
        let (mut disputes, over) = (Disputes::default(), (Kind::Service, ObjectName::new("work", "app")));
        assert_eq!(disputes.note(Some(1), over.clone(), Some("it is undone".to_owned())), [1].into());
        assert_eq!(disputes.note(None, over, None), [1].into());
        assert_eq!(disputes, Disputes::default());
    }
}
