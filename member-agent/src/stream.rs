//! Client of the slice stream: gets previews of distributed slices from the hub agent before it writes the objects.
//!
//! ```text
//!  hub agent ──► Client ── FromStream: began, preview, ended ──► engine (Member)
//!      ▲            │                                                        │
//!      └────────────┴──◄── Acknowledgements ◄── generations of imported previews
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`client`] | one stream after another, with back-off |
//! | [`connection`] | connections over TLS |
//! | [`session`] | an open stream |
//! | [`state`] | the stream as the engine sees it |

mod client;
mod connection;
mod session;
pub(crate) mod state;

pub use connection::{Authorities, Dialer, Dialers, Io};

use crate::Member;
use fleetnet_agent::mailbox::Mailbox;
use fleetnet_core::clocks::Clock;
use fleetnet_core::member::{SliceStreamUse, StreamEnd};
use fleetnet_core::model::HubSliceSpec;
use fleetnet_runtime::FlowId;
use fleetnet_runtime::backoff::Jitter;
use fleetnet_runtime::clock::Clock as WallClock;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::run::Runner;
use fleetnet_types::{ClusterId, Text, Traceparent};
use futures::future::{BoxFuture, FutureExt as _};
use prometheus::Registry;
use std::sync::Arc;
use tokio::sync::watch;

/// Generations of the source slices whose previews this member has imported, by the name of the slice. Each stream has
/// one, which also identifies the stream.
pub(crate) type Acknowledgements = Mailbox<i64>;

/// If and where a member agent connects to the slice stream.
#[derive(Clone, Debug, Default)]
pub enum Use {
    #[default]
    Off,
    /// At the address that the hub agent offers, once it offers one.
    Offered(Dialers),
    /// With this dialer.
    Fixed(Dialer),
}

impl Use {
    /// Returns the value as the rules need it.
    pub(crate) fn rule(&self) -> SliceStreamUse {
        match self {
            Self::Off => SliceStreamUse::Off,
            Self::Offered(_) => SliceStreamUse::Offered,
            Self::Fixed(_) => SliceStreamUse::Fixed,
        }
    }
}

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
    stream: Arc<Acknowledgements>,
    news: News,
}

#[derive(Debug)]
enum News {
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

/// Returns a task that keeps a slice stream open while this process leads. `dialer` is [`Member::dialer`], and `hub`
/// issues the tokens.
///
/// # Errors
/// If the registry has a metric of the stream already.
pub fn task(
    runner: &Runner<Member>,
    cluster: ClusterId,
    dialer: watch::Receiver<Option<Dialer>>,
    hub: kube::Client,
    clock: WallClock,
    registry: &Registry,
) -> prometheus::Result<impl FnOnce(watch::Receiver<Leadership>) -> BoxFuture<'static, ()> + Send + use<>> {
    let metrics = client::Metrics::new(registry)?;
    // Another seed for each member, so that members do not connect at the same time after a restart of the hub agent.
    let jitter = Jitter::new(FlowId::of(&cluster).0);
    let inbox = runner.inbox();
    Ok(move |leadership| {
        client::Client { cluster, leadership, dialer, hub, clock, inbox, metrics, jitter }.run().boxed()
    })
}
