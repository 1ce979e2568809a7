//! HTTPS connections of the server: accept, handle requests, close.

use super::users::Users;
use crate::limits::{ACCEPT_PAUSE, CONNECTIONS, END_GRACE, HANDSHAKE, HEADER_BYTES, IDLE};
use crate::server::MemKube;
use crate::service::{BoxError, Reply};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

type Body = UnsyncBoxBody<Bytes, BoxError>;

/// State that all connections of a server share.
#[derive(Clone)]
pub(super) struct Connections {
    server: MemKube,
    users: Arc<Users>,
    tls: TlsAcceptor,
    /// True after the server has ended.
    ended: watch::Receiver<bool>,
}

impl Connections {
    pub(super) fn new(
        server: MemKube,
        users: Arc<Users>,
        tls: Arc<ServerConfig>,
        ended: watch::Receiver<bool>,
    ) -> Self {
        Self { server, users, tls: tls.into(), ended }
    }

    /// Accepts connections until the server ends, then waits until all connections are closed. Dropping this future
    /// closes all connections immediately.
    pub(super) async fn accept(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut running = JoinSet::new();
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = ended(self.ended.clone()) => break,
                Some(_) = running.join_next() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = self.clone().serve(stream);
                    running.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        while running.join_next().await.is_some() {}
    }

    /// Handles the requests of one connection until it closes. Errors are ignored, because the client notices them and
    /// connects again.
    async fn serve(self, stream: TcpStream) {
        // Send data immediately: responses are small, and clients wait for them.
        let _ = stream.set_nodelay(true);
        let handshake = timeout(HANDSHAKE, self.tls.accept(stream));
        let stream = tokio::select! {
            handshake = handshake => match handshake {
                Ok(Ok(stream)) => stream,
                _ => return,
            },
            () = ended(self.ended.clone()) => return,
        };
        let service = service_fn(|request| self.answer(request));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(HEADER_BYTES);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => {}
            () = ended(self.ended.clone()) => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(END_GRACE, connection).await;
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        let response = match self.users.authenticate(&request, &self.server) {
            Ok(user) => self.server.service(user).call(request).await?,
            Err(status) => Reply::from(&status).into_response(),
        };
        let ended = ended(self.ended.clone());
        Ok(response.map(|body| match body.size_hint().exact() {
            Some(_) => body.boxed_unsync(),
            // When the server ends, end the watch as after its timeout.
            None => StreamBody::new(BodyStream::new(body).take_until(Box::pin(ended))).boxed_unsync(),
        }))
    }
}

/// Completes when the server ends or is dropped.
async fn ended(mut state: watch::Receiver<bool>) {
    // An error means that the sender was dropped.
    let _ = state.wait_for(|ended| *ended).await;
}
