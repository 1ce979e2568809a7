//! Actions that the engine wants, in order. The loop of the engine carries them out.

use fleetnet_types::ObjectName;

use super::inquiries::Inquiry;
use super::logic::{Event, Logic};
use super::sent::Sent;

/// Write of an agent that was sent.
pub(crate) type SentOf<L> = Sent<<L as Logic>::Key, <L as Logic>::Source, <L as Logic>::Receipt>;
/// Inquiry about a fight of an agent.
pub(crate) type InquiryOf<L> = Inquiry<<L as Logic>::Key, <L as Logic>::Source>;

pub(crate) enum Action<L: Logic> {
    /// Send a write.
    Write(Box<SentOf<L>>),
    /// Find the name of the other writer in a fight with a GET.
    Inquire(InquiryOf<L>),
    /// Read an object that the view did not keep before and has room for now.
    Read(L::Source, ObjectName),
    /// Record a Kubernetes Event.
    Record(Event<L::Source>, Occasion),
}

/// Cause of an Event: a write that succeeded, a plan, or a write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A write succeeded, so each occurrence is a new change.
    Done,
    /// A plan requested the Event. Plans repeat, so equal Events are suppressed for a while.
    Planned,
    /// A write failed. Its retry may fail again, so equal Events are suppressed for a while.
    NotDone,
}
