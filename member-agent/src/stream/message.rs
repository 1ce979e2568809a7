//! Messages between the stream and the engine.

use fleetnet_agent::mailbox::Mailbox;
use fleetnet_core::clocks::Clock;
use fleetnet_core::member::StreamEnd;
use fleetnet_core::model::HubSliceSpec;
use fleetnet_types::{Text, Traceparent};
use std::sync::Arc;

/// Generations of the source slices whose previews this member has imported, by the name of the slice. Each stream has
/// one, which also identifies the stream.
pub(crate) type Acknowledgements = Mailbox<i64>;

/// Message to the engine.
#[derive(Debug)]
pub enum Message {
    FromStream(FromStream),
    /// No stream is open. The reason is in CamelCase.
    NotConnected {
        reason: &'static str,
        message: String,
    },
}

/// Message of a stream.
#[derive(Debug)]
pub struct FromStream {
    pub(super) stream: Arc<Acknowledgements>,
    pub(super) event: StreamEvent,
}

#[derive(Debug)]
pub(super) enum StreamEvent {
    Began,
    Preview {
        slice: Text,
        spec: HubSliceSpec,
        /// Clock of the exporting member, compared with that of this member.
        exporter: Option<Clock>,
        /// Context of the exporter's span, if the change is sampled.
        traceparent: Option<Box<Traceparent>>,
    },
    Ended(StreamEnd),
}
