//! Connections of the slice stream: TLS, HTTP/2, gRPC health and reflection.

use super::service::Service;
use crate::limits::{
    CALL_TIMEOUT, CALLS_PER_CONNECTION, CONNECTION_WINDOW, CONNECTIONS_MAX, HEADER_BYTES_MAX, KEEPALIVE_EVERY,
    KEEPALIVE_TIMEOUT, REQUEST_BYTES_MAX, SEND_BUFFER, STREAMS_PER_CONNECTION, UNUSED_CONNECTION_LIFETIME,
};
use fleetnet_proto::{DESCRIPTORS, SliceStreamServer};
use fleetnet_runtime::process::admin::Certificates;
use fleetnet_runtime::process::admin::connections::{self, Peer};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tonic::Status;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::{ServiceExt as _, service_fn};

/// Returns the services of a connection, and what reports their health.
///
/// # Errors
/// If the descriptor of the protocol is damaged. Only a bug can cause this.
pub(crate) fn routes(service: Service) -> Result<(Routes, Health), tonic_reflection::server::Error> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let leads = service.leads();
    let stream = SliceStreamServer::new(service).max_decoding_message_size(REQUEST_BYTES_MAX);
    let health = health.max_decoding_message_size(REQUEST_BYTES_MAX);
    let reflection = reflection.max_decoding_message_size(REQUEST_BYTES_MAX);
    let routes = Routes::new(stream).add_service(health).add_service(reflection).prepare();
    Ok((routes, Health { reporter, leads }))
}

/// Reports the health of the slice stream: it serves while this replica leads.
pub(crate) struct Health {
    reporter: HealthReporter,
    leads: watch::Receiver<bool>,
}

impl Health {
    /// Reports each change of leadership, until the engine has ended.
    pub(crate) async fn run(mut self) {
        loop {
            let leads = *self.leads.borrow_and_update();
            let status = if leads { ServingStatus::Serving } else { ServingStatus::NotServing };
            self.reporter.set_service_status("", status).await;
            self.reporter.set_service_status("fleetnet.v1.SliceStream", status).await;
            if self.leads.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, routes: Routes, peer: Peer) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(CONNECTION_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_send_buf_size(SEND_BUFFER);
    let (calls, of_peer) = (Arc::new(Calls::default()), peer.clone());
    let counted = Arc::clone(&calls);
    let service = service_fn(move |mut request: Request<Incoming>| {
        counted.begin();
        request.extensions_mut().insert(of_peer.clone());
        let call = timeout(CALL_TIMEOUT, routes.clone().oneshot(request));
        async move {
            let late = |_| Status::deadline_exceeded(format!("no request within {CALL_TIMEOUT:?}")).into_http();
            call.await.unwrap_or_else(|elapsed| Ok(late(elapsed)))
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service)));
    let served = async {
        tokio::select! {
            served = connection.as_mut() => return served,
            () = calls.used_up() => {}
        }
        // The calls of the connection end as they do, but it accepts no further ones.
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    tokio::select! {
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a connection of the slice stream ended");
        },
        () = unused(&peer) => tracing::debug!("a connection without a slice stream was closed"),
    }
}

/// Calls of one connection.
#[derive(Debug, Default)]
struct Calls {
    number: AtomicUsize,
    used_up: Notify,
}

impl Calls {
    fn begin(&self) {
        if self.number.fetch_add(1, Ordering::Relaxed) + 1 == CALLS_PER_CONNECTION {
            self.used_up.notify_one();
        }
    }

    /// Waits until the connection has had all its calls.
    async fn used_up(&self) {
        self.used_up.notified().await;
    }
}

/// Waits until a connection has no open slice stream after its lifetime.
async fn unused(peer: &Peer) {
    loop {
        sleep(UNUSED_CONNECTION_LIFETIME).await;
        if !peer.is_accepted() {
            return;
        }
    }
}

/// Accepts connections and serves them over TLS.
pub(crate) async fn listen(listener: TcpListener, certificates: Arc<Certificates>, routes: Routes) {
    connections::accept(listener, "the slice stream", CONNECTIONS_MAX, |stream, peer| {
        let (certificates, routes) = (Arc::clone(&certificates), routes.clone());
        async move {
            if let Some(stream) = certificates.handshake(stream, peer.address).await {
                serve(stream, routes, peer).await;
            }
        }
    })
    .await;
}
