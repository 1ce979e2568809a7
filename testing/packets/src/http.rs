//! Smallest HTTP client: one GET or POST on a connection of its own.

use crate::limits::ANSWER_BYTES;
use anyhow::{Context as _, ensure};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends a request without a body. Returns the status and the body of the answer.
///
/// # Errors
/// If there is no complete answer within `limit`.
pub async fn call(method: &str, at: SocketAddr, path: &str, limit: Duration) -> anyhow::Result<(u16, String)> {
    let answer = tokio::time::timeout(limit, exchange(method, at, path)).await;
    answer
        .with_context(|| format!("http://{at}{path} has not answered in {limit:?}"))?
        .with_context(|| format!("{method} http://{at}{path}"))
}

async fn exchange(method: &str, at: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(at).await?;
    // With HTTP/1.0, the server closes the connection at the end of the answer.
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(u64::try_from(ANSWER_BYTES)?).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    Ok((status(head)?, body.to_owned()))
}

/// Returns the status in the head of an answer.
pub(crate) fn status(head: &str) -> anyhow::Result<u16> {
    let mut words = head.split(' ');
    ensure!(words.next().is_some_and(|version| version.starts_with("HTTP/1.")), "not HTTP: {head}");
    words.next().and_then(|status| status.get(..3)?.parse().ok()).context("the answer has no status")
}
