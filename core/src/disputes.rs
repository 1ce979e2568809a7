//! Disputes: objects that another writer changes back whenever we repair them. The runtime counts the repairs and names the
//! writer; the object whose user should act says so in a condition for as long as that lasts.

use crate::conditions::{self, DISPUTED, Verdict, Wanted};
use crate::ids::ObjectName;
use crate::model::{Condition, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// An object by its kind and name.
type Named = (Kind, ObjectName);

/// What is disputed at present, by the object whose user should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disputes(BTreeMap<ObjectName, BTreeMap<Named, String>>);

impl Disputes {
    /// A dispute over an object has begun (with a message that names the other writer), or is over. Returns the names of those
    /// whose condition may change.
    pub(crate) fn note(
        &mut self,
        about: Option<ObjectName>,
        over: Named,
        message: Option<String>,
    ) -> BTreeSet<ObjectName> {
        let mut concerned: BTreeSet<ObjectName> = self.0.keys().cloned().collect();
        self.0.values_mut().for_each(|disputed| drop(disputed.remove(&over)));
        self.0.retain(|_, disputed| !disputed.is_empty());
        if let (Some(about), Some(message)) = (about, message) {
            self.0.entry(about.clone()).or_default().insert(over, message);
            concerned.insert(about);
        }
        concerned
    }

    /// What the condition `Disputed` of an object is to say; `None` if it stays as it is. The Event is the runtime's business.
    pub(crate) fn condition(&self, about: &ObjectName, held: &[Condition], component: &'static str) -> Option<Wanted> {
        let messages = self.0.get(about).map(|disputed| disputed.values().map(String::as_str).collect::<Vec<_>>());
        let verdict = match messages {
            Some(messages) => Verdict::writes_undone(messages.join("; ")),
            None if is_disputed(held).is_some() => Verdict::writes_stand(),
            None => return None,
        };
        Some(Wanted::new(DISPUTED, verdict, component).silent())
    }
}

/// The condition that says that something is disputed.
pub(crate) fn is_disputed(conditions: &[Condition]) -> Option<&Condition> {
    conditions::find(conditions, DISPUTED).filter(|held| &*held.status == "True")
}
