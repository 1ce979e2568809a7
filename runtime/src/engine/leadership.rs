//! Leadership of a process, as the engine and the writer ask for it.

use tokio::time::Instant;

/// Leadership state of this process. Only a leader writes to clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    Waiting {
        /// Present holder of a Lease that this process waits for. `None` before the first read and while the server
        /// does not respond.
        holder: Option<Holder>,
    },
    Leading {
        /// Time at which leadership ends if the Leases are not renewed before. `None` for a process without Leases.
        until: Option<Instant>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub lease: String,
    pub identity: String,
}

impl Leadership {
    /// True if this process may write at this moment.
    #[must_use]
    pub fn may_write(&self) -> bool {
        match self {
            Self::Leading { until } => until.is_none_or(|until| Instant::now() < until),
            Self::Waiting { .. } => false,
        }
    }
}
