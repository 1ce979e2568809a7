//! Rule about each change, and the change that it sees.

use fleetnet_core::model::{Kind, Object};
use fleetnet_types::Timestamp;
use sim::fleet::Place;
use std::fmt::Debug;
use std::time::Duration;

/// Change of an object that agents watch.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub at: Timestamp,
    /// Time without a fault since the start of the run.
    pub calm: Duration,
    /// Calm time after which nothing stale may be left.
    pub freshness: Duration,
    /// False while nobody has changed anything for long, so that agents have no reason to withdraw endpoints.
    pub may_withdraw: bool,
    pub server: Place,
    /// Agent that made the change; `None` for users and for controllers of Kubernetes.
    pub agent: Option<Place>,
    /// Replica of the agent that made the change.
    pub replica: Option<usize>,
    /// Replica that holds the agent's Lease, and since when.
    pub leader: Option<(usize, Timestamp)>,
    /// True if requests that were held back arrive now.
    pub is_late: bool,
    pub kind: Kind,
    pub before: Option<&'a Object>,
    /// `None` if the object was deleted.
    pub after: Option<&'a Object>,
    /// JSON of the newest state of the object, for rules that must not rely on the agents' decoders.
    pub json: &'a [u8],
    /// JSON of the state before.
    pub json_before: Option<&'a [u8]>,
}

impl<'a> Seen<'a> {
    /// Returns the newest state of the object.
    #[must_use]
    pub fn newest(&self) -> Option<&'a Object> {
        self.after.or(self.before)
    }
}

/// Rule about each change.
pub trait Oracle: Debug + Send {
    /// Checks a change. Returns false if the rule says nothing about it.
    ///
    /// # Errors
    /// If the change breaks the rule. The text says what is wrong.
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String>;

    /// Checks the fleet about once a second. `calm` and `freshness` are as in [`Seen`].
    ///
    /// # Errors
    /// If something that must change with time has not changed. The text says what is wrong.
    fn passed(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        let _ = (calm, freshness);
        Ok(())
    }

    /// Forgets the objects of the hub, because the hub was restored from a backup.
    fn restored(&mut self) {}
}
