//! Responses to the writes of one agent, shown to another agent of the same process ([`ResponseSink`]).
//!
//! Both agents watch the kind. The second agent sees a change of the first agent as soon as the server has answered the
//! write, before its own watch shows the change. This is a shortcut: a response that is dropped is seen by the watch
//! later.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::decoder::Decoder;
use crate::clock::{Clock, ProcessorTime};
use crate::engine::message::{WatchEvent, WatchMessage};
use fleetnet_types::{ObjectName, Uid};

/// Receiver of the responses to the writes of another agent. Clones share the receiver.
#[derive(Clone)]
pub struct ResponseSink(Arc<dyn Fn(Response<'_>) + Send + Sync>);

/// State of an object in the response to a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Response<'a> {
    /// JSON of the object.
    Object(&'a [u8]),
    /// The object no longer exists.
    Gone { name: &'a ObjectName, uid: &'a Uid },
}

impl ResponseSink {
    /// Returns a sink that sends the responses to the agent that watches this source.
    pub(crate) fn new<S: Copy + Send + Sync + 'static, O: Send + 'static>(
        source: S,
        decode: Decoder<O>,
        messages: mpsc::WeakSender<WatchMessage<S, O>>,
        clock: Clock,
    ) -> Self {
        Self(Arc::new(move |response| {
            // The other agent has ended, and this agent will end soon.
            let Some(messages) = messages.upgrade() else { return };
            let working = ProcessorTime::now();
            let (event, decoding) = match response {
                Response::Gone { name, uid } => {
                    (WatchEvent::Gone { name: name.clone(), uid: uid.clone() }, Duration::ZERO)
                }
                Response::Object(json) => match decode(json) {
                    Ok(observed) => (WatchEvent::Response(observed), working.elapsed()),
                    // The watch shows the object too, and then the agent reports that it is undecodable.
                    Err(_) => return,
                },
            };
            // If the channel is full, the agent sees the change with its watch.
            let _ = messages.try_send(WatchMessage { source, at: clock.now(), decoding, event });
        }))
    }

    pub(crate) fn show(&self, response: Response<'_>) {
        (self.0)(response);
    }
}
