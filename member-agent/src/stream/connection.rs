//! Connections of the slice stream: TCP and TLS to the address of the hub agent.

use fleetnet_agent::host_port::HostPort;
use fleetnet_core::member::SliceStreamUse;
use fleetnet_core::model::SliceStreamOffer;
use fleetnet_types::Text;
use futures::future::BoxFuture;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Connection of any kind.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

type Dial = dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Io>>> + Send + Sync;

/// Opens connections to the hub agent.
#[derive(Clone)]
pub struct Dialer {
    /// Address, for messages.
    pub(super) address: String,
    dial: Arc<Dial>,
}

impl Dialer {
    /// Returns a dialer that opens connections with this function.
    pub fn new<F: Future<Output = io::Result<Box<dyn Io>>> + Send + 'static>(
        address: String,
        dial: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self { address, dial: Arc::new(move || Box::pin(dial())) }
    }

    /// Returns a dialer for an address `host:port`. The certificate of the hub agent must be valid for the host, and
    /// signed by one of the authorities.
    ///
    /// # Errors
    /// If the address is malformed.
    pub fn tls(address: &str, authorities: Authorities) -> Result<Self, String> {
        let HostPort { host, port } = address.parse()?;
        let name = ServerName::try_from(host.clone()).map_err(|error| format!("{address:?}: {error}"))?;
        Ok(Self::new(address.to_owned(), move || {
            let (host, name, authorities) = (host.clone(), name.clone(), authorities.clone());
            async move {
                let connector = TlsConnector::from(Arc::new(authorities.config().await?));
                let stream = TcpStream::connect((host.as_str(), port)).await?;
                // Disable Nagle's algorithm, which can delay a message by 40 ms.
                stream.set_nodelay(true)?;
                let stream: Box<dyn Io> = Box::new(connector.connect(name, stream).await?);
                Ok(stream)
            }
        }))
    }

    /// Opens a connection.
    pub fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        (self.dial)()
    }
}

/// Makes the dialers for the offers of the hub agent.
#[derive(Clone)]
pub struct Dialers(Arc<MakeDialer>);

type MakeDialer = dyn Fn(&SliceStreamOffer) -> Result<Dialer, String> + Send + Sync;

impl Dialers {
    /// Returns a maker of dialers that is this function. It fails with the reason if an offer is malformed.
    pub fn new(make: impl Fn(&SliceStreamOffer) -> Result<Dialer, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Returns a maker of dialers with TLS. It makes dialers only for offers with one of these hosts; for all offers,
    /// if there are no hosts.
    #[must_use]
    pub fn to_hosts(hosts: Vec<String>) -> Self {
        Self::new(move |offer| {
            let HostPort { host, .. } = offer.address.parse()?;
            if hosts.is_empty() || hosts.contains(&host) {
                return Dialer::tls(&offer.address, Authorities::Offered(offer.ca_bundle.clone()));
            }
            Err(format!("{host:?} is not in --slice-stream-hosts"))
        })
    }

    pub(super) fn dialer(&self, offer: &SliceStreamOffer) -> Result<Dialer, String> {
        (self.0)(offer)
    }
}

/// Dialers with TLS to any host.
impl Default for Dialers {
    fn default() -> Self {
        Self::to_hosts(Vec::new())
    }
}

impl std::fmt::Debug for Dialers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Dialers")
    }
}

/// Authorities that may sign the certificate of the hub agent, in PEM.
#[derive(Clone, Debug)]
pub enum Authorities {
    /// Read again for each connection, so that authorities can be replaced.
    File(PathBuf),
    /// From the offer of the hub agent.
    Offered(Text),
}

impl Authorities {
    async fn config(&self) -> io::Result<ClientConfig> {
        match self {
            Self::Offered(pem) => trusting(pem.as_bytes()).map_err(io::Error::other),
            Self::File(path) => {
                let unusable = |why| io::Error::other(format!("{}: {why}", path.display()));
                let pem = tokio::fs::read(path).await.map_err(|error| unusable(error.to_string()))?;
                trusting(&pem).map_err(unusable)
            }
        }
    }
}

/// Returns a TLS configuration that trusts these certificate authorities, in PEM.
fn trusting(authorities: &[u8]) -> Result<ClientConfig, String> {
    let malformed = |error: &dyn std::fmt::Display| format!("the certificate authority is malformed: {error}");
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        let authority = authority.map_err(|error| malformed(&error))?;
        roots.add(authority).map_err(|error| malformed(&error))?;
    }
    if roots.is_empty() {
        return Err("it has no certificate authority".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Dialer").field(&self.address).finish()
    }
}

/// If and where a member agent connects to the slice stream.
#[derive(Clone, Debug, Default)]
pub enum Use {
    #[default]
    Off,
    /// At the address that the hub agent offers, once it offers one.
    Offered(Dialers),
    /// With this dialer.
    Fixed(Dialer),
}

impl Use {
    /// Returns the value as the rules need it.
    pub(crate) fn rule(&self) -> SliceStreamUse {
        match self {
            Self::Off => SliceStreamUse::Off,
            Self::Offered(_) => SliceStreamUse::Offered,
            Self::Fixed(_) => SliceStreamUse::Fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_address_or_authority_is_named() {
        let tls = |address: &str| Dialer::tls(address, Authorities::Offered("".into()));
        let error = |address: &str| tls(address).expect_err("malformed");
        assert_eq!(error("hub"), "\"hub\" is not HOST:PORT");
        assert!(error("h b:1").starts_with("\"h b:1\": "), "{}", error("h b:1"));
        assert!(tls("[fd00::1]:1").is_ok());

        let error = |authorities: &str| trusting(authorities.as_bytes()).expect_err("malformed");
        assert_eq!(error(""), "it has no certificate authority");
        let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error(text).starts_with("the certificate authority is malformed"));
    }

    /// Also rule J30.
    #[test]
    fn offers_with_other_hosts_are_not_used() {
        let offer = |address: &str| SliceStreamOffer { address: address.into(), ca_bundle: "".into() };
        let dialers = Dialers::to_hosts(vec!["hub.example".to_owned(), "fd00::1".to_owned()]);
        assert!(dialers.dialer(&offer("hub.example:8443")).is_ok() && dialers.dialer(&offer("[fd00::1]:1")).is_ok());
        let error = dialers.dialer(&offer("10.0.0.1:22")).expect_err("another host");
        assert_eq!(error, "\"10.0.0.1\" is not in --slice-stream-hosts");
        assert!(Dialers::default().dialer(&offer("10.0.0.1:22")).is_ok(), "without hosts, all are used");
    }

    #[tokio::test]
    async fn a_missing_file_of_authorities_is_named() {
        let dialer = Dialer::tls("localhost:1", Authorities::File("/nowhere/ca.crt".into())).expect("valid");
        let error = dialer.dial().await.err().expect("no such file").to_string();
        assert!(error.starts_with("/nowhere/ca.crt: "), "{error}");
    }
}
