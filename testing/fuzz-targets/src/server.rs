//! Server whose answers are the input of a target.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

/// Body of an answer.
pub(crate) type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// Returns a body that arrives in these pieces.
pub(crate) fn body(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// Returns a client whose requests get these answers.
pub(crate) fn client(answer: impl Fn(&Request<Body>) -> Response<Answer> + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let response = answer(&request);
        std::future::ready(Ok::<_, io::Error>(response))
    });
    Client::new(service, "default")
}

/// Returns a response that arrives in these pieces, as the client of an agent returns it.
pub(crate) async fn received(status: u16, retry_after: Option<&str>, pieces: Vec<Bytes>) -> Option<Response<Body>> {
    let mut head = Response::builder().status(status);
    if let Some(retry_after) = retry_after {
        head = head.header(http::header::RETRY_AFTER, retry_after);
    }
    let head = head.body(()).ok()?;
    let answer = move |_: &Request<Body>| {
        let (parts, ()) = head.clone().into_parts();
        Response::from_parts(parts, body(stream::iter(pieces.clone())))
    };
    client(answer).send(Request::new(Body::empty())).await.ok()
}

/// Runs a future to its end on paused time, so that no wait takes real time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime without I/O needs no resources").block_on(future)
}
