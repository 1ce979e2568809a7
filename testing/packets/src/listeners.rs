//! Ports of the machine that reach a bed: [`pass`], [`take`], [`forward`].
//!
//! A socket keeps the network namespace that it was made in. So a program listens before it starts itself again
//! ([`crate::again`]), and the process inside accepts the connections.

use anyhow::Context as _;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::env;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};

/// Environment variable with the numbers of the listeners' descriptors, separated by commas.
const VARIABLE: &str = "FLEETNET_PACKETS_LISTENERS";

/// Lets the program that `command` starts inherit these listeners. They must exist until it has started.
pub fn pass<'l>(command: &mut Command, listeners: impl Iterator<Item = &'l TcpListener>) -> anyhow::Result<()> {
    let mut numbers = Vec::new();
    for listener in listeners {
        fcntl_setfd(listener, FdFlags::empty())?;
        numbers.push(listener.as_raw_fd().to_string());
    }
    command.env(VARIABLE, numbers.join(","));
    Ok(())
}

/// Returns the listeners that this process has inherited, in their order.
///
/// # Errors
/// If a descriptor is no socket that listens.
pub fn take() -> anyhow::Result<Vec<TcpListener>> {
    let numbers = env::var(VARIABLE).unwrap_or_default();
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let numbers = numbers.split(',').filter(|number| !number.is_empty());
    let listeners = numbers.map(|number| {
        // A copy, because only unsafe code can own the descriptor itself.
        let copy = pidfd_getfd(&own, number.parse()?, PidfdGetfdFlags::empty());
        let listener = TcpListener::from(copy.with_context(|| format!("there is no descriptor {number}"))?);
        listener.local_addr().with_context(|| format!("descriptor {number} does not listen"))?;
        Ok(listener)
    });
    listeners.collect()
}

/// Running forwarding of connections. It ends with its connections when this value is dropped.
#[derive(Debug)]
pub struct Forwarding(JoinHandle<()>);

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects each connection of a listener with this address.
pub fn forward(listener: TcpListener, to: SocketAddr) -> anyhow::Result<Forwarding> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(Forwarding(tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(connect(stream, to));
                },
                Some(_) = connections.join_next() => {}
            }
        }
    })))
}

/// Copies the bytes of a connection to this address and back. An error ends the connection, as its two ends see.
async fn connect(mut stream: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    for end in [&stream, &server] {
        end.set_nodelay(true)?;
    }
    copy_bidirectional(&mut stream, &mut server).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::forward;
    use std::net::TcpListener;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn bytes_pass_in_both_directions_until_the_end() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address");
        let forwarding = forward(listener, server.local_addr().expect("an address")).expect("a forwarding");
        let mut client = TcpStream::connect(port).await.expect("a connection");
        client.write_all(b"question").await.expect("written");
        client.shutdown().await.expect("ended");
        let (mut accepted, _) = server.accept().await.expect("a connection");
        let mut text = String::new();
        accepted.read_to_string(&mut text).await.expect("read");
        accepted.write_all(format!("{text}: answer").as_bytes()).await.expect("written");
        drop(accepted);
        let mut text = String::new();
        client.read_to_string(&mut text).await.expect("read");
        assert_eq!(text, "question: answer");
        drop(forwarding);
        while TcpStream::connect(port).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
