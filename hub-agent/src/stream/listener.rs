//! Connections of the slice stream: TLS, HTTP/2, gRPC health and reflection.

use super::service::Service;
use crate::limits::{CONNECTIONS_MAX, KEEPALIVE_EVERY, KEEPALIVE_TIMEOUT, REQUEST_BYTES_MAX, STREAMS_PER_CONNECTION};
use fleetnet_proto::{DESCRIPTORS, SliceStreamServer};
use fleetnet_runtime::admin::Certificates;
use fleetnet_runtime::admin::connections::{self, Accepted};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
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
pub(crate) async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Routes,
    accepted: Accepted,
) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(STREAMS_PER_CONNECTION);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(accepted.clone());
        routes.clone().oneshot(request)
    });
    let served = builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service)).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the slice stream ended");
    }
}

/// Accepts connections and serves them over TLS.
pub(crate) async fn listen(listener: TcpListener, certificates: Arc<Certificates>, routes: Routes) {
    connections::accept(listener, "the slice stream", CONNECTIONS_MAX, |stream, accepted| {
        let (certificates, routes) = (Arc::clone(&certificates), routes.clone());
        async move {
            if let Some(stream) = certificates.handshake(stream).await {
                serve(stream, routes, accepted).await;
            }
        }
    })
    .await;
}
