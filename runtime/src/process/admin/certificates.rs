//! Certificate of a server's TLS: from files that may be replaced at any time, or self-signed.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::limits::{
    AUTHORITIES_BYTES, CERTIFICATE_FILE_BYTES, CERTIFICATE_REREAD_AFTER, HANDSHAKE_SPACING, HANDSHAKE_TIMEOUT,
};
use crate::process::pace::{Client, Turns};

/// Names of the files with the certificate and its key, as in a Secret of type `kubernetes.io/tls`.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];
/// Name of the optional file with the authorities that signed the certificate.
const AUTHORITIES: &str = "ca.crt";

/// Error of a certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("the certificate of the {server} cannot be read: {path}: {cause}", path = path.display())]
    Unreadable { server: &'static str, path: PathBuf, cause: io::Error },
    #[error("the certificate of the {server} in {folder} (tls.crt, tls.key) is not usable: {why}", folder = folder.display())]
    Malformed { server: &'static str, folder: PathBuf, why: String },
    #[error("no self-signed certificate for the {server} can be made: {why}. Give one with {flag}")]
    SelfSigned { server: &'static str, flag: &'static str, why: String },
}

/// Server that a certificate is for.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Name of the server in messages.
    name: &'static str,
    /// Protocol over TLS (ALPN).
    protocol: &'static [u8],
    /// Flag with the folder of the certificate.
    flag: &'static str,
}

impl Server {
    pub const METRICS: Self = Self { name: "metrics", protocol: b"http/1.1", flag: "--metrics-cert-path" };
    pub const SLICE_STREAM: Self = Self { name: "slice stream", protocol: b"h2", flag: "--slice-stream-cert-path" };
}

/// Source of the certificate, with its present TLS configuration.
#[derive(Debug)]
pub struct Certificates {
    server: Server,
    /// Folder with the files [`FILES`]. `None` for a self-signed certificate, which lives as long as the process.
    folder: Option<PathBuf>,
    loaded: Mutex<LoadedCertificate>,
    handshakes: Turns,
}

#[derive(Debug)]
struct LoadedCertificate {
    config: Arc<ServerConfig>,
    /// Authorities that a client must trust, in PEM.
    authorities: Arc<str>,
    /// Content of the files that `config` and `authorities` were made from.
    files: Files,
    read_at: Instant,
}

/// Content of `tls.crt` and `tls.key`, and of `ca.crt` if there is one.
type Files = [Vec<u8>; 3];

impl Certificates {
    /// Reads the certificate in a folder, or makes a self-signed one for this host name.
    ///
    /// # Errors
    /// If the files cannot be read, or have no valid certificate and key.
    pub async fn open(server: Server, folder: Option<&Path>, host_name: &str) -> Result<Self, CertificateError> {
        let loaded = match folder {
            Some(folder) => server.loaded(folder, server.read(folder).await?)?,
            None => server.self_signed(host_name).map_err(|why| {
                let Server { name, flag, .. } = server;
                CertificateError::SelfSigned { server: name, flag, why }
            })?,
        };
        let handshakes = Turns::every(HANDSHAKE_SPACING);
        Ok(Self { server, folder: folder.map(Path::to_owned), loaded: Mutex::new(loaded), handshakes })
    }

    /// Returns a new connection over TLS of a client with this address. `None` if the client fails to agree on TLS in
    /// time. Handshakes cost much, so clients begin them in turns.
    pub async fn handshake(&self, stream: TcpStream, client: IpAddr) -> Option<TlsStream<TcpStream>> {
        self.handshakes.take(Client::Stranger(client)).await.begin().await;
        let acceptor = TlsAcceptor::from(self.config().await);
        let agreed = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await.ok()?;
        agreed.inspect_err(|error| tracing::debug!(%error, "a TLS handshake of the {} failed", self.server.name)).ok()
    }

    /// Returns the TLS configuration for a new connection. If the files are replaced by unusable ones, the last usable
    /// certificate stays in use.
    async fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().await.config)
    }

    /// Returns the authorities that a client must trust, in PEM: `ca.crt`, or the certificate itself if there is no
    /// such file.
    pub async fn authorities(&self) -> Arc<str> {
        Arc::clone(&self.current().await.authorities)
    }

    async fn current(&self) -> MutexGuard<'_, LoadedCertificate> {
        let mut loaded = self.loaded.lock().await;
        if let Some(folder) = &self.folder
            && loaded.read_at.elapsed() >= CERTIFICATE_REREAD_AFTER
        {
            loaded.read_at = Instant::now();
            if let Err(error) = loaded.renew(self.server, folder).await {
                tracing::warn!(%error, "continuing with the certificate that was read before");
            }
        }
        loaded
    }
}

impl LoadedCertificate {
    async fn renew(&mut self, server: Server, folder: &Path) -> Result<(), CertificateError> {
        let files = server.read(folder).await?;
        if files != self.files {
            *self = server.loaded(folder, files)?;
            tracing::info!(folder = %folder.display(), "the certificate of the {} was replaced", server.name);
        }
        Ok(())
    }
}

impl Server {
    async fn read(self, folder: &Path) -> Result<Files, CertificateError> {
        let mut files = Files::default();
        for (name, content) in FILES.into_iter().chain([AUTHORITIES]).zip(&mut files) {
            let path = folder.join(name);
            let read = async {
                let file = tokio::fs::File::open(&path).await?;
                file.take(CERTIFICATE_FILE_BYTES).read_to_end(content).await
            };
            match read.await {
                Ok(_) => {}
                Err(cause) if name == AUTHORITIES && cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(CertificateError::Unreadable { server: self.name, path, cause }),
            }
        }
        Ok(files)
    }

    /// Returns the certificate in the files of a folder.
    fn loaded(self, folder: &Path, files: Files) -> Result<LoadedCertificate, CertificateError> {
        let malformed = |why| CertificateError::Malformed { server: self.name, folder: folder.to_owned(), why };
        let config = self.parse(&files).map_err(malformed)?;
        let [certificate, _, authorities] = &files;
        let authorities = if authorities.is_empty() { certificate } else { authorities };
        let authorities = str::from_utf8(authorities).map_err(|error| malformed(format!("{AUTHORITIES}: {error}")))?;
        if authorities.len() > AUTHORITIES_BYTES {
            return Err(malformed(format!("{AUTHORITIES} has more than {AUTHORITIES_BYTES} bytes")));
        }
        Ok(LoadedCertificate { config, authorities: authorities.into(), files, read_at: Instant::now() })
    }

    fn parse(self, [certificate, key, _]: &Files) -> Result<Arc<ServerConfig>, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|error| format!("tls.crt: {error}"))?;
        if chain.is_empty() {
            return Err("tls.crt has no certificate".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("tls.key: {error}"))?;
        self.tls(chain, key)
    }

    fn self_signed(self, host_name: &str) -> Result<LoadedCertificate, String> {
        let names = [host_name, "localhost"].map(str::to_owned);
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).map_err(|error| error.to_string())?;
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let config = self.tls(vec![cert.der().clone()], key.into())?;
        Ok(LoadedCertificate {
            config,
            authorities: cert.pem().into(),
            files: Files::default(),
            read_at: Instant::now(),
        })
    }

    fn tls(
        self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<ServerConfig>, String> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![self.protocol.to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

    /// Writes a new self-signed certificate for `localhost` to a folder. Returns the certificate.
    pub(in super::super) fn write(folder: &Path) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("tls.crt"), cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), signing_key.serialize_pem()).unwrap();
        cert.der().clone()
    }

    #[tokio::test]
    async fn files_that_are_missing_or_no_pair_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            async || Certificates::open(Server::METRICS, Some(folder.path()), "pod").await.unwrap_err().to_string();
        assert!(open().await.contains("tls.crt"), "{}", open().await);
        write(folder.path());
        let key = std::fs::read(folder.path().join("tls.key")).unwrap();
        write(folder.path());
        std::fs::write(folder.path().join("tls.key"), key).unwrap();
        assert!(open().await.contains("not usable"), "{}", open().await);
        std::fs::write(folder.path().join("tls.crt"), "no certificate").unwrap();
        assert!(open().await.contains("tls.crt has no certificate"), "{}", open().await);
    }

    /// Also rule K12.
    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_is_replaced_is_used_after_ten_seconds_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let certificates = Certificates::open(Server::METRICS, Some(folder.path()), "pod").await.unwrap();
        let first = certificates.config().await;
        write(folder.path());
        assert!(Arc::ptr_eq(&first, &certificates.config().await), "not read yet");
        tokio::time::advance(Duration::from_secs(10)).await;
        let second = certificates.config().await;
        assert!(!Arc::ptr_eq(&first, &second));
        std::fs::write(folder.path().join("tls.crt"), "broken").unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(Arc::ptr_eq(&second, &certificates.config().await));
        std::fs::remove_file(folder.path().join("tls.crt")).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(Arc::ptr_eq(&second, &certificates.config().await));
    }

    /// Also rule K15.
    #[tokio::test(start_paused = true)]
    async fn handshakes_of_all_clients_begin_at_most_100_times_a_second() {
        let certificates = Certificates::open(Server::METRICS, None, "pod").await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let begun = Instant::now();
        for last in 0..=100 {
            let client = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            // The client goes at once, so the handshake fails as soon as it has begun.
            drop(client);
            assert!(certificates.handshake(stream, [10, 0, last, 1].into()).await.is_none());
        }
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_must_trust_the_authorities_in_the_folder_or_else_the_certificate_itself() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let certificates = Certificates::open(Server::SLICE_STREAM, Some(folder.path()), "hub").await.unwrap();
        let certificate = std::fs::read_to_string(folder.path().join("tls.crt")).unwrap();
        assert_eq!(*certificates.authorities().await, *certificate);
        std::fs::write(folder.path().join("ca.crt"), "authority").unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(&*certificates.authorities().await, "authority");
        let own = Certificates::open(Server::SLICE_STREAM, None, "hub").await.unwrap();
        assert!(own.authorities().await.starts_with("-----BEGIN CERTIFICATE-----"));
    }
}
