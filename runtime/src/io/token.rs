//! Bearer tokens from a file. The file may appear after the start, and its content changes when the token rotates.
//! After the server rejects a token, the agent reads the file again.

pub mod claims;

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::client::Body;
use prometheus::IntGaugeVec;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, sync::Mutex, time::Instant};
use tower::{BoxError, Layer, Service};

use claims::Claims;

use crate::limits::{TOKEN_FILE_BYTES, TOKEN_READ_TIMEOUT, TOKEN_REREAD_AFTER};

/// Reason why no token is available. The request was not sent and may be retried.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The token file cannot be read, most often because it does not exist yet.
    #[error(
        "the bearer token file {path} cannot be read: {cause}. The agent retries the request. Check that the token is \
         mounted there",
        path = path.display()
    )]
    Unreadable { path: PathBuf, cause: io::Error },
    /// The content of the token file is not a token.
    #[error("the bearer token file {path} contains no token: {why}", path = path.display())]
    Malformed { path: PathBuf, why: &'static str },
}

/// Returns the path and the body of a request for a token of a service account (TokenRequest). Without an audience, the
/// token is for the API server.
pub(crate) fn token_request(namespace: &str, name: &str, audience: Option<&str>, life: Duration) -> (String, Value) {
    let mut spec = json!({"expirationSeconds": life.as_secs()});
    if let Some(audience) = audience {
        spec["audiences"] = json!([audience]);
    }
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    (format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"), body)
}

/// Start of the header `Authorization`, before the token.
const SCHEME: &[u8] = b"Bearer ";

/// Token from one file, shared by all requests to a cluster.
#[derive(Clone, Debug)]
pub(crate) struct TokenFile(Arc<Shared>);

/// Metrics of a token, without labels, in seconds. Both are 0 for a token that does not expire.
#[derive(Clone, Debug)]
pub struct TokenMetrics {
    /// Time at which the token expires, since 1970.
    pub expiry: IntGaugeVec,
    /// Time from issue to expiry.
    pub life: IntGaugeVec,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// Last token that was read. Locked while the file is read, so that many requests at once cost one read.
    cached: Mutex<Option<CachedToken>>,
    /// Metrics of the token. Without series until a token was read.
    metrics: OnceLock<TokenMetrics>,
}

#[derive(Clone, Debug)]
struct CachedToken {
    /// Header value `Bearer …`, marked sensitive so that it is never logged.
    header: HeaderValue,
    read_at: Instant,
}

impl TokenFile {
    /// Returns a token that is read from this file when first used. The file need not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(Arc::new(Shared { path, cached: Mutex::new(None), metrics: OnceLock::new() }))
    }

    /// Shows the token in these metrics, from the next read of the file on. Only the first call has an effect.
    pub(crate) fn show(&self, metrics: TokenMetrics) {
        // Fails at a second call, which has no effect.
        let _ = self.0.metrics.set(metrics);
    }

    /// Returns the content of the file as a header, with the time of this read.
    async fn read(&self) -> Result<CachedToken, TokenError> {
        let header = read_token(&self.0.path).await?;
        if let Some(metrics) = self.0.metrics.get() {
            let (expiry, life) = shown(&header);
            metrics.expiry.with_label_values::<&str>(&[]).set(expiry);
            metrics.life.with_label_values::<&str>(&[]).set(life);
        }
        Ok(CachedToken { header, read_at: Instant::now() })
    }

    /// Returns the `Authorization` header with the present token.
    async fn header(&self) -> Result<HeaderValue, TokenError> {
        let mut cached = self.0.cached.lock().await;
        match &*cached {
            Some(fresh) if fresh.read_at.elapsed() < TOKEN_REREAD_AFTER => Ok(fresh.header.clone()),
            Some(old) => {
                // While a token is being replaced, its file may be missing for a moment. The old token may still be
                // valid, so use it.
                let read = match self.read().await {
                    Ok(read) => read,
                    Err(error) => {
                        tracing::warn!(%error, "continuing with the token that was read before");
                        CachedToken { header: old.header.clone(), read_at: Instant::now() }
                    }
                };
                Ok(cached.insert(read).header.clone())
            }
            None => Ok(cached.insert(self.read().await?).header.clone()),
        }
    }

    /// Returns the header to retry with after the server rejected `rejected`. `None` if the file has no other token.
    async fn header_after(&self, rejected: &HeaderValue) -> Option<HeaderValue> {
        let mut cached = self.0.cached.lock().await;
        if let Some(current) = &*cached
            && current.header != rejected
        {
            // Another request has failed with the rejected token, and has already read the file again.
            return Some(current.header.clone());
        }
        match self.read().await {
            Ok(read) if read.header != rejected => Some(cached.insert(read).header.clone()),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "the server rejected the token, and the file has no newer one");
                None
            }
        }
    }
}

/// Returns expiry and life of the token in a header for the metrics, and 0 for what the token does not say. An expiry
/// before 1970 is shown as 1, because the token has expired as well.
fn shown(header: &HeaderValue) -> (i64, i64) {
    let token = header.as_bytes().strip_prefix(SCHEME).and_then(|token| std::str::from_utf8(token).ok());
    let claims = token.and_then(Claims::of);
    let expiry = claims.as_ref().and_then(|claims| claims.expires_at).map_or(0, |at| at.max(1));
    let life = claims.and_then(|claims| claims.life()).and_then(|life| i64::try_from(life.as_secs()).ok());
    (expiry, life.unwrap_or(0))
}

pub(crate) async fn read_token(path: &Path) -> Result<HeaderValue, TokenError> {
    let unreadable = |cause| TokenError::Unreadable { path: path.to_owned(), cause };
    let content = tokio::time::timeout(TOKEN_READ_TIMEOUT, read_bounded(path))
        .await
        .map_err(|_| unreadable(io::ErrorKind::TimedOut.into()))?
        .map_err(unreadable)?;
    parse_token(&content).map_err(|why| TokenError::Malformed { path: path.to_owned(), why })
}

async fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = tokio::fs::File::open(path).await?;
    let mut content = Vec::new();
    file.take(TOKEN_FILE_BYTES).read_to_end(&mut content).await?;
    Ok(content)
}

pub(crate) fn parse_token(content: &[u8]) -> Result<HeaderValue, &'static str> {
    let token = content.trim_ascii();
    if token.is_empty() {
        return Err("it is empty");
    }
    if u64::try_from(content.len()).is_ok_and(|length| length >= TOKEN_FILE_BYTES) {
        return Err("it is longer than 64 KiB");
    }
    let mut header = HeaderValue::from_bytes(&[SCHEME, token].concat())
        .map_err(|_| "it has characters that a token cannot have, such as a line break")?;
    header.set_sensitive(true);
    Ok(header)
}

/// Adds the token of a file to every request. After a 401, reads the file, and sends the request once more if the token
/// differs.
#[derive(Clone, Debug)]
pub(crate) struct TokenLayer(TokenFile);

impl TokenLayer {
    pub(crate) fn new(token: TokenFile) -> Self {
        Self(token)
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = TokenService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TokenService { inner, token: self.0.clone() }
    }
}

/// Service of [`TokenLayer`].
#[derive(Clone, Debug)]
pub(crate) struct TokenService<S> {
    inner: S,
    token: TokenFile,
}

impl<S, B> Service<Request<Body>> for TokenService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let replacement = self.inner.clone();
        // Send this request with the original service, because the original has been polled until ready and its clone
        // has not.
        let ready = std::mem::replace(&mut self.inner, replacement);
        Box::pin(send_with_token(ready, self.token.clone(), request))
    }
}

fn send_with_token<S, B>(
    mut service: S,
    token: TokenFile,
    mut request: Request<Body>,
) -> BoxFuture<'static, Result<Response<B>, BoxError>>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    Box::pin(async move {
        let header = token.header().await?;
        let copy = copy_of(&request);
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        let response = service.call(request).await.map_err(Into::into)?;
        let Some(mut copy) = copy.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(response);
        };
        let Some(newer) = token.header_after(&header).await else {
            return Ok(response);
        };
        copy.headers_mut().insert(AUTHORIZATION, newer);
        std::future::poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
        service.call(copy).await.map_err(Into::into)
    })
}

/// Returns a copy of a request, to send the request a second time. `None` if the body is a stream, which this crate
/// never sends.
fn copy_of(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
mod tests {
    use std::sync::Mutex as StdMutex;

    use kube::Client;
    use tempfile::TempDir;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    /// Test server that accepts only one token, and remembers the tokens and bodies it received.
    #[derive(Clone, Default)]
    struct Server(Arc<StdMutex<ServerState>>);

    #[derive(Default)]
    struct ServerState {
        accepted: String,
        shown: Vec<String>,
        bodies: Vec<String>,
    }

    impl Server {
        fn accepting(token: &str) -> Self {
            let server = Self::default();
            server.accept(token);
            server
        }

        fn accept(&self, token: &str) {
            self.0.lock().unwrap().accepted = format!("Bearer {token}");
        }

        fn shown(&self) -> Vec<String> {
            self.0.lock().unwrap().shown.clone()
        }

        fn client(&self, token: &TokenFile) -> Client {
            let state = self.0.clone();
            let service = service_fn(move |request: Request<Body>| {
                let state = state.clone();
                async move {
                    let shown = request.headers()[AUTHORIZATION].to_str().unwrap().to_owned();
                    let body = request.into_body().collect_bytes().await.unwrap();
                    let mut state = state.lock().unwrap();
                    let status = if shown == state.accepted { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
                    state.shown.push(shown);
                    state.bodies.push(String::from_utf8(body.to_vec()).unwrap());
                    Ok::<_, BoxError>(Response::builder().status(status).body(Body::empty()).unwrap())
                }
            });
            Client::new(TokenLayer::new(token.clone()).layer(service.map_err(BoxError::from)), "default")
        }
    }

    async fn post(client: &Client) -> Result<StatusCode, kube::Error> {
        let request = Request::post("/thing").body(Body::from(b"content".to_vec())).unwrap();
        client.send(request).await.map(|response| response.status())
    }

    fn write(folder: &TempDir, token: &str) -> PathBuf {
        let path = folder.path().join("token");
        std::fs::write(&path, token).unwrap();
        path
    }

    #[tokio::test]
    async fn a_token_that_comes_late_is_used_as_soon_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("first");
        let path = folder.path().join("token");
        let client = server.client(&TokenFile::new(path.clone()));

        let error = post(&client).await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(server.shown().is_empty(), "nothing is sent without a token");

        write(&folder, "first\n");
        assert_eq!(post(&client).await.unwrap(), StatusCode::OK);
        assert_eq!(server.shown(), ["Bearer first"]);
    }

    /// Rule K8: A bearer token is replaced in its file
    /// Then: The agent reads the file again after 10 s, and at once after a 401. While the file is missing, the agent
    /// uses the last token. `fleetnet_hub_token_expiry_timestamp_seconds` of the member agent shows when the token for
    /// the hub expires, and `fleetnet_hub_token_life_seconds` how long it is valid in all; 0 for a token that does not
    /// expire
    #[tokio::test(start_paused = true)]
    async fn a_rotated_token_is_read_again_after_ten_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("first");
        let client = server.client(&TokenFile::new(write(&folder, "first")));
        post(&client).await.unwrap();

        write(&folder, "second");
        tokio::time::advance(TOKEN_REREAD_AFTER - std::time::Duration::from_millis(1)).await;
        post(&client).await.unwrap();
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        server.accept("second");
        post(&client).await.unwrap();

        assert_eq!(server.shown(), ["Bearer first", "Bearer first", "Bearer second"]);
    }

    /// Also rule K8.
    #[tokio::test]
    async fn a_rejected_token_is_read_again_at_once_and_the_request_sent_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("first");
        let client = server.client(&TokenFile::new(write(&folder, "first")));
        post(&client).await.unwrap();

        write(&folder, "second");
        server.accept("second");

        assert_eq!(post(&client).await.unwrap(), StatusCode::OK);
        assert_eq!(server.shown(), ["Bearer first", "Bearer first", "Bearer second"]);
        assert_eq!(server.0.lock().unwrap().bodies, ["content", "content", "content"]);
    }

    #[tokio::test]
    async fn a_rejection_with_no_newer_token_is_returned_after_one_request() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("another");
        let client = server.client(&TokenFile::new(write(&folder, "first")));

        assert_eq!(post(&client).await.unwrap(), StatusCode::UNAUTHORIZED);
        assert_eq!(server.shown(), ["Bearer first"]);
    }

    #[tokio::test]
    async fn a_request_is_sent_twice_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("another");
        let client = server.client(&TokenFile::new(write(&folder, "first")));
        post(&client).await.unwrap();
        write(&folder, "second");

        assert_eq!(post(&client).await.unwrap(), StatusCode::UNAUTHORIZED);
        assert_eq!(server.shown(), ["Bearer first", "Bearer first", "Bearer second"]);
    }

    /// Also rule K8.
    #[tokio::test(start_paused = true)]
    async fn a_token_file_that_vanishes_leaves_the_last_token_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::accepting("first");
        let path = write(&folder, "first");
        let client = server.client(&TokenFile::new(path.clone()));
        post(&client).await.unwrap();

        std::fs::remove_file(path).unwrap();
        tokio::time::advance(TOKEN_REREAD_AFTER).await;

        assert_eq!(post(&client).await.unwrap(), StatusCode::OK);
    }

    #[test]
    fn the_shown_expiry_and_life_of_a_token_are_those_of_its_claims_and_0_for_none() {
        let service_account = r#"{"aud":["k"],"exp":1800000000,"iat":1797408000,"sub":"system:serviceaccount:a:b"}"#;
        let table = [
            (service_account, (1_800_000_000, 2_592_000)),
            (r#"{"exp":1800000000}"#, (1_800_000_000, 0)),
            (r#"{"exp":0}"#, (1, 0)),
            (r#"{"exp":100,"iat":200}"#, (100, 0)),
            (r#"{"exp":-9223372036854775808,"iat":1}"#, (1, 0)),
            (r#"{"sub":"system:serviceaccount:a:b"}"#, (0, 0)),
            (r#"{"exp":null}"#, (0, 0)),
            (r#"{"exp":"soon"}"#, (0, 0)),
            (r#"{"exp":1e999}"#, (0, 0)),
            ("{", (0, 0)),
            ("", (0, 0)),
        ];
        for (payload, expected) in table {
            let header = parse_token(claims::tests::token(payload).as_bytes()).unwrap();
            assert_eq!(shown(&header), expected, "{payload}");
        }
        let deep = claims::tests::token(&"[".repeat(40_000));
        for text in ["opaque", "a.b", "a.!!!.c", "a.\u{e9}.c", deep.as_str()] {
            assert_eq!(shown(&parse_token(text.as_bytes()).unwrap()), (0, 0), "{text:.20}");
        }
        assert_eq!(shown(&HeaderValue::from_bytes(b"Bearer a.\xff.c").unwrap()), (0, 0));
    }

    /// Also rule K8.
    #[tokio::test(start_paused = true)]
    async fn the_metrics_show_expiry_and_life_of_the_token_that_was_read_last() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::default();
        let token = TokenFile::new(folder.path().join("token"));
        let gauge = |name: &str| IntGaugeVec::new(prometheus::Opts::new(name, "Help."), &[]).unwrap();
        let metrics = TokenMetrics { expiry: gauge("expiry"), life: gauge("life") };
        token.show(metrics.clone());
        let shown = || {
            let mut families = prometheus::core::Collector::collect(&metrics.expiry);
            families.extend(prometheus::core::Collector::collect(&metrics.life));
            let samples = families.iter().flat_map(|family| family.get_metric());
            samples.map(|metric| metric.get_gauge().get_value()).collect::<Vec<_>>()
        };
        let client = server.client(&token);
        post(&client).await.unwrap_err();
        assert_eq!(shown(), [0.0; 0], "no token was read");
        for (content, expected) in [
            (claims::tests::token(r#"{"iat":1799996400,"exp":1800000000}"#), [1_800_000_000.0, 3_600.0]),
            (claims::tests::token(r#"{"exp":1900000000}"#), [1_900_000_000.0, 0.0]),
            ("opaque".to_owned(), [0.0, 0.0]),
        ] {
            write(&folder, &content);
            tokio::time::advance(TOKEN_REREAD_AFTER).await;
            post(&client).await.unwrap();
            assert_eq!(shown(), expected, "{content}");
        }
    }

    #[test]
    fn a_malformed_token_is_rejected_with_the_reason() {
        assert_eq!(parse_token(b" \n").unwrap_err(), "it is empty");
        assert_eq!(parse_token(&vec![b'a'; 65_536]).unwrap_err(), "it is longer than 64 KiB");
        assert_eq!(
            parse_token(b"one\ntwo").unwrap_err(),
            "it has characters that a token cannot have, such as a line break"
        );
        let header = parse_token(b"  token\n").unwrap();
        assert_eq!(header, "Bearer token");
        assert!(header.is_sensitive());
    }
}
