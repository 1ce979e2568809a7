//! Messages between the streams and the engine.

use fleetnet_agent::mailbox::Mailbox;
use fleetnet_core::model::{HubSliceSpec, SliceStreamOffer};
use fleetnet_types::{MemberNamespace, Text, Traceparent};
use std::sync::Arc;
use std::time::Duration;

/// Previews that wait for the stream of one member. Each stream has one, which also identifies the stream.
pub(crate) type Outbox = Mailbox<Shown>;

/// Preview of a distributed slice.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) spec: HubSliceSpec,
    pub(crate) traceparent: Option<Traceparent>,
}

/// Message to the engine.
#[derive(Debug)]
pub enum Message {
    FromStream(FromStream),
    /// The slice stream is offered to the members.
    Offer(SliceStreamOffer),
}

/// Message of a stream.
#[derive(Debug)]
pub struct FromStream {
    /// Member namespace of the importer.
    pub(super) importer: MemberNamespace,
    pub(super) outbox: Arc<Outbox>,
    pub(super) event: StreamEvent,
}

#[derive(Debug)]
pub(super) enum StreamEvent {
    Began,
    /// The importer has imported the preview of this slice with this generation of the source slice.
    Acknowledged {
        slice: Text,
        generation: i64,
    },
    /// The stream has ended. The last message of the member came this long ago.
    Ended(Duration),
}
