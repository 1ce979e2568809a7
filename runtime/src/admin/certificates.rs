//! Certificate of the metrics' TLS: from files that may be replaced at any time, or self-signed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::limits::{CERTIFICATE_FILE_BYTES, CERTIFICATE_REREAD_AFTER};

/// Names of the files with the certificate and its key, as in a Secret of type `kubernetes.io/tls`.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];

/// Error of a certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("the certificate of the metrics cannot be read: {path}: {cause}", path = path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("the certificate of the metrics in {folder} (tls.crt, tls.key) is not usable: {why}", folder = folder.display())]
    Malformed { folder: PathBuf, why: String },
    #[error("no self-signed certificate for the metrics can be made: {0}. Give one with --metrics-cert-path")]
    SelfSigned(String),
}

/// Source of the certificate, with its present TLS configuration.
#[derive(Debug)]
pub struct Certificates {
    /// Folder with the files [`FILES`]. `None` for a self-signed certificate, which lives as long as the process.
    folder: Option<PathBuf>,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    config: Arc<ServerConfig>,
    /// Content of the files that `config` was made from.
    files: [Vec<u8>; 2],
    read_at: Instant,
}

impl Certificates {
    /// Reads the certificate in a folder, or makes a self-signed one for this host name.
    ///
    /// # Errors
    /// If the files cannot be read, or have no valid certificate and key.
    pub async fn open(folder: Option<&Path>, host_name: &str) -> Result<Self, CertificateError> {
        let (config, files) = match folder {
            Some(folder) => {
                let files = read(folder).await?;
                (config_of(&files).map_err(|why| malformed(folder, why))?, files)
            }
            None => (self_signed(host_name).map_err(CertificateError::SelfSigned)?, Default::default()),
        };
        let held = Held { config, files, read_at: Instant::now() };
        Ok(Self { folder: folder.map(Path::to_owned), held: Mutex::new(held) })
    }

    /// Returns the TLS configuration for a new connection. If the files are replaced by unusable ones, the last usable
    /// certificate stays in use.
    pub(super) async fn config(&self) -> Arc<ServerConfig> {
        let mut held = self.held.lock().await;
        if let Some(folder) = &self.folder
            && held.read_at.elapsed() >= CERTIFICATE_REREAD_AFTER
        {
            held.read_at = Instant::now();
            if let Err(error) = held.renew(folder).await {
                tracing::warn!(%error, "continuing with the certificate that was read before");
            }
        }
        Arc::clone(&held.config)
    }
}

impl Held {
    async fn renew(&mut self, folder: &Path) -> Result<(), CertificateError> {
        let files = read(folder).await?;
        if files != self.files {
            self.config = config_of(&files).map_err(|why| malformed(folder, why))?;
            self.files = files;
            tracing::info!(folder = %folder.display(), "the certificate of the metrics was replaced");
        }
        Ok(())
    }
}

fn malformed(folder: &Path, why: String) -> CertificateError {
    CertificateError::Malformed { folder: folder.to_owned(), why }
}

async fn read(folder: &Path) -> Result<[Vec<u8>; 2], CertificateError> {
    let mut files = [Vec::new(), Vec::new()];
    for (name, content) in FILES.into_iter().zip(&mut files) {
        let path = folder.join(name);
        let read = async {
            let file = tokio::fs::File::open(&path).await?;
            file.take(CERTIFICATE_FILE_BYTES).read_to_end(content).await
        };
        read.await.map_err(|cause| CertificateError::Unreadable { path: path.clone(), cause })?;
    }
    Ok(files)
}

fn config_of([certificate, key]: &[Vec<u8>; 2]) -> Result<Arc<ServerConfig>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|error| format!("tls.crt: {error}"))?;
    if chain.is_empty() {
        return Err("tls.crt has no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("tls.key: {error}"))?;
    server_config(chain, key)
}

fn self_signed(host_name: &str) -> Result<Arc<ServerConfig>, String> {
    let names = [host_name, "localhost"].map(str::to_owned);
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    server_config(vec![cert.der().clone()], key.into())
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, String> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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
        let open = async || Certificates::open(Some(folder.path()), "pod").await.unwrap_err().to_string();
        assert!(open().await.contains("tls.crt"), "{}", open().await);
        write(folder.path());
        let key = std::fs::read(folder.path().join("tls.key")).unwrap();
        write(folder.path());
        std::fs::write(folder.path().join("tls.key"), key).unwrap();
        assert!(open().await.contains("not usable"), "{}", open().await);
        std::fs::write(folder.path().join("tls.crt"), "no certificate").unwrap();
        assert!(open().await.contains("tls.crt has no certificate"), "{}", open().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_is_replaced_is_used_after_ten_seconds_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let certificates = Certificates::open(Some(folder.path()), "pod").await.unwrap();
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
}
