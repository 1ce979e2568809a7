//! Connections of the slice stream: TLS, HTTP/2, gRPC health and reflection.

use super::service::Service;
use crate::limits::{
    CALL_TIMEOUT, CONNECTION_WINDOW, CONNECTIONS_MAX, HEADER_BYTES_MAX, KEEPALIVE_EVERY, KEEPALIVE_TIMEOUT,
    REQUEST_BYTES_MAX, SEND_BUFFER, STREAMS_PER_CONNECTION,
};
use fleetnet_proto::{DESCRIPTORS, SliceStreamServer};
use fleetnet_runtime::admin::Certificates;
use fleetnet_runtime::admin::connections::{self, Peer};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
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
    // fault J14.5 (stream_requests_on_memkube::calls_of_health_and_reflection_are_as_limited_as_streams): health.max_decoding_message_size(REQUEST_BYTES_MAX) ~> health
    let health = health.max_decoding_message_size(REQUEST_BYTES_MAX);
    // fault J14.6 (stream_requests_on_memkube::calls_of_health_and_reflection_are_as_limited_as_streams): reflection.max_decoding_message_size(REQUEST_BYTES_MAX) ~> reflection
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
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let call = timeout(CALL_TIMEOUT, routes.clone().oneshot(request));
        async move {
            let late = |_| Status::deadline_exceeded(format!("no request within {CALL_TIMEOUT:?}")).into_http();
            call.await.unwrap_or_else(|elapsed| Ok(late(elapsed)))
        }
    });
    let served = builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service)).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the slice stream ended");
    }
}

/// Accepts connections and serves them over TLS.
pub(crate) async fn listen(listener: TcpListener, certificates: Arc<Certificates>, routes: Routes) {
    connections::accept(listener, "the slice stream", CONNECTIONS_MAX, |stream, peer| {
        let (certificates, routes) = (Arc::clone(&certificates), routes.clone());
        async move {
            if let Some(stream) = certificates.handshake(stream).await {
                serve(stream, routes, peer).await;
            }
        }
    })
    .await;
}
