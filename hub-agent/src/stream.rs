//! Server of the slice stream. Each member agent holds one stream, over which it gets previews of its distributed
//! slices.
//!
//! ```text
//!  engine (Hub) ── previews ──► Outbox ──► Session ──► member agent
//!       ▲                                     │
//!       └──── FromStream: began, acknowledged, ended
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`clocks`] | clocks of the members |
//! | [`listener`] | connections, TLS, gRPC health and reflection |
//! | [`service`] | a new stream: who may open it |
//! | [`message`] | messages between the streams and the engine |
//! | [`session`] | an open stream |
//! | [`unacknowledged`] | its previews without an acknowledgement |
//! | [`shared`] | state that all streams share |
//! | [`state`] | streams as the engine sees them |

mod clocks;
pub(crate) mod listener;
mod message;
mod metrics;
pub(crate) mod service;
mod session;
mod shared;
pub(crate) mod state;
mod unacknowledged;

pub use message::{FromStream, Message};

use crate::Hub;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::process::access::Guard;
use fleetnet_runtime::process::admin::Certificates;
use fleetnet_runtime::process::admin::connections::Peer;
use fleetnet_runtime::run::Runner;
use futures::future::{BoxFuture, FutureExt as _};
use prometheus::Registry;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::Routes;

/// Server of the slice stream.
#[derive(Clone)]
pub struct Server(Routes);

impl Server {
    /// Returns a server for the streams of a hub agent, and a task that must run beside the agent. `leads` is
    /// [`Hub::leads`], and `client` is a client of the hub.
    ///
    /// # Errors
    /// If the registry has a metric of the server already.
    pub fn new(
        runner: &Runner<Hub>,
        leads: watch::Receiver<bool>,
        client: kube::Client,
        clock: Clock,
        registry: &Registry,
    ) -> anyhow::Result<(Self, BoxFuture<'static, ()>)> {
        let clocks = Arc::default();
        let metrics = metrics::Metrics::new(&clocks, registry)?;
        let guard = Guard::of_each_access(client);
        let service = service::Service::new(runner.inbox(), guard, leads, clock, clocks, metrics);
        let (routes, health) = listener::routes(service)?;
        Ok((Self(routes), health.run().boxed()))
    }

    /// Serves one connection from this address until it ends.
    pub async fn serve(self, address: IpAddr, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        listener::serve(io, self.0, Peer::new(address)).await;
    }

    /// Returns a task that accepts connections over TLS.
    #[must_use]
    pub(crate) fn listen(self, listener: TcpListener, certificates: Arc<Certificates>) -> BoxFuture<'static, ()> {
        listener::listen(listener, certificates, self.0).boxed()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Server")
    }
}
