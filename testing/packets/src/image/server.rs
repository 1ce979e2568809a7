//! HTTP server of the images: [`serve`].

use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Time that open connections have after the stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until `stop` ends. Then no connection is accepted any more, and open ones end after their present answer.
pub(super) async fn serve<F>(
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let (stopped, _) = tokio::sync::watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_one(stream, stopped.subscribe(), answer.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stopped.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    // Connections that are still open after this time are reset.
    let _ = tokio::time::timeout(DRAIN, ended).await;
}

async fn serve_one<F>(
    stream: TcpStream,
    mut stopped: tokio::sync::watch::Receiver<bool>,
    answer: impl Fn(Request<Incoming>) -> F,
) where
    F: Future<Output = Response<Full<Bytes>>>,
{
    let is_stopped = stopped.clone();
    let service = service_fn(|request| {
        let (answer, is_stopped) = (answer(request), is_stopped.clone());
        async move {
            let mut answer = answer.await;
            // The client sends no further request on this connection, so none is lost when it ends.
            if *is_stopped.borrow() {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = std::pin::pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // The client sees errors too, and counts them.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => {}
    }
    // A connection that nobody uses ends later.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(DRAIN / 2) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Empty;
    use tokio::sync::oneshot;

    /// Time limit of the test.
    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_kept_connection_ends_with_an_answer_that_says_so() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving =
            tokio::spawn(serve(listener, async { drop(stopped.await) }, async |_| Response::new(Full::default())));
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let client = tokio::spawn(connection);
        let mut send = async || {
            let request = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
            sender.ready().await.unwrap();
            sender.send_request(request).await.expect("each request has an answer")
        };
        assert!(!send().await.headers().contains_key(header::CONNECTION));
        stop.send(()).unwrap();
        let last = async { while !send().await.headers().contains_key(header::CONNECTION) {} };
        tokio::time::timeout(LIMIT, last).await.expect("an answer that ends the connection");
        tokio::time::timeout(LIMIT, client).await.expect("the end of the connection").unwrap().unwrap();
        serving.await.unwrap();
    }
}
