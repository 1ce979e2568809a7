//! HTTPS listener of the server (HTTP/1.1), for kubectl and for agents in other processes.
//!
//! Each server has a separate certificate authority, which signs the server's certificate. Each user has a bearer
//! token.
//!
//! ```text
//! listener ─> accept loop ─> connection (TLS, HTTP/1.1) ─> Users (token -> user) ─> Service of that user
//! ```

mod authority;
mod connection;
mod error;
pub mod kubeconfig;
mod secrets;
mod users;

pub use error::Error;

use crate::auth::User;
use crate::server::MemKube;
use authority::Authority;
use connection::Connections;
use secrets::Secrets;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use users::Users;

/// Options of the HTTPS listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cluster name in kubeconfigs, for example `hub`.
    pub name: String,
    /// Source of all keys and tokens, together with [`Options::name`] and the names of the users.
    ///
    /// The same seed results in the same certificates and kubeconfigs. Anybody who knows the seed can act as every
    /// user. So the seed must be random if others can reach the listener.
    pub seed: [u8; 32],
    /// Users who get a token.
    pub users: Vec<User>,
}

/// HTTPS listener of a server.
///
/// Dropping this value closes all connections immediately, like a crash. [`Https::end`] closes them gracefully. The
/// [`MemKube`] continues to exist and can get a new listener.
#[derive(Debug)]
pub struct Https {
    name: String,
    url: String,
    authority_pem: String,
    users: Arc<Users>,
    ending: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Https {
    /// Starts to accept connections on a listener. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If the certificates cannot be made from the seed, or the listener has no address.
    pub fn start(server: &MemKube, listener: TcpListener, options: Options) -> Result<Self, Error> {
        let address = reachable(listener.local_addr()?);
        let secrets = Secrets::new(&options.name, options.seed);
        let authority = Authority::new(&options.name, &secrets)?;
        let tls = authority.server(&secrets, address.ip())?;
        let users = Arc::new(Users::new(&secrets, options.users));
        let (ending, ended) = watch::channel(false);
        let connections = Connections::new(server.clone(), Arc::clone(&users), tls, ended);
        Ok(Self {
            name: options.name,
            url: format!("https://{address}"),
            authority_pem: authority.pem(),
            users,
            ending,
            accepting: tokio::spawn(connections.accept(listener)),
        })
    }

    /// URL of the server: `https://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Certificate of the authority that signed the server's certificate, as PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// Bearer token of a user, or `None` if the user has no token.
    #[must_use]
    pub fn token(&self, user: &str) -> Option<&str> {
        self.users.token(user)
    }

    /// Content of a kubeconfig file for a user, or `None` if the user has no token.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        let token = self.token(user)?;
        Some(kubeconfig::text(&self.name, &self.url, &self.authority_pem, user, token))
    }

    /// Stops accepting connections, ends watches, and returns when all connections are closed.
    ///
    /// Running requests get [`crate::limits::END_GRACE`] to complete.
    pub async fn end(mut self) {
        self.ending.send_replace(true);
        // An error means that the accept loop panicked. In this case all connections are already closed.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Returns the address that clients on this machine can use: the loopback address for an unspecified address
/// (`0.0.0.0`, `::`).
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests;
