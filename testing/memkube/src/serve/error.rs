//! Reason why the listener cannot start.

use std::io;

/// Reason why the listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener has no address.
    #[error("cannot tell the address of the listener: {0}")]
    Address(#[from] io::Error),
    /// The certificates cannot be made.
    #[error("cannot make the certificate of the server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS rejects the certificates.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}
