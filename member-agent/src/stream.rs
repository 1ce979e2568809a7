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
//! | [`message`] | messages between the stream and the engine |
//! | [`session`] | an open stream |
//! | [`state`] | the stream as the engine sees it |

mod client;
mod connection;
mod message;
mod session;
pub(crate) mod state;

pub use connection::{Authorities, Dialer, Dialers, Io, Use};
pub use message::{FromStream, Message};

use crate::Member;
use fleetnet_runtime::FlowId;
use fleetnet_runtime::backoff::Jitter;
use fleetnet_runtime::clock::Clock as WallClock;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::run::Runner;
use fleetnet_types::ClusterId;
use futures::future::{BoxFuture, FutureExt as _};
use prometheus::Registry;
use tokio::sync::watch;

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
