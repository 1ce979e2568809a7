//! The server over HTTPS, for kubectl and for agents in processes of their own: HTTP/1.1 with a certificate of an
//! authority of its own and a bearer token for each user.
//!
//! ```text
//! listener ─> accept loop ─> connection (TLS, HTTP/1.1) ─> Users (token -> user) ─> Service of that user
//! ```

mod authority;
mod connection;
mod kubeconfig;
mod secrets;
mod users;

use crate::auth::User;
use crate::server::MemKube;
use authority::Authority;
use connection::Connections;
use secrets::Secrets;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use users::Users;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// What kubeconfigs call the cluster: `hub`.
    pub name: String,
    /// All keys and tokens come from these bytes and from [`Options::name`] and the users' names: the same bytes give
    /// the same certificates and kubeconfigs. Whoever knows them is every user, so where others can reach the listener
    /// they have to be random.
    pub seed: [u8; 32],
    /// Who gets a token.
    pub users: Vec<User>,
}

/// Why a server cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener does not say its address.
    #[error("cannot tell the address of the listener: {0}")]
    Address(#[from] io::Error),
    /// The certificates cannot be made.
    #[error("cannot make the certificate of the server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS does not take the certificates.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server that is reached over HTTPS. Dropping this cuts all connections at once, as a crash does; [`Https::end`]
/// ends them in order. The server itself stays, and may be served again.
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
    /// Begins to serve on a listener. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where certificates cannot be made from the seed, or the listener has no address.
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

    /// `https://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The authority that signed the server's certificate.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The bearer token of a user; none where there is no such user.
    #[must_use]
    pub fn token(&self, user: &str) -> Option<&str> {
        self.users.token(user)
    }

    /// The text of a kubeconfig file of a user; none where there is no such user.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        let token = self.token(user)?;
        Some(kubeconfig::text(&self.name, &self.url, &self.authority_pem, user, token))
    }

    /// Takes no more connections, ends watches, lets requests that run be answered for [`crate::limits::END_GRACE`],
    /// and is ready when all connections are closed.
    pub async fn end(mut self) {
        self.ending.send_replace(true);
        // It fails only where the loop panicked, and then its connections are gone too.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Where clients on this machine find a listener that listens everywhere.
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
