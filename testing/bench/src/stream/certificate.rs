//! Certificate of a hub agent's slice stream, for its address on this machine.

use harness::agent::AgentSpec;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Files of a certificate, as in a Secret.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Makes a self-signed certificate.
    pub fn make() -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("fleetnet-bench-")?;
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        fs::write(folder.path().join("tls.crt"), made.cert.pem())?;
        fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem())?;
        Ok(Self { folder })
    }

    /// Returns the settings of a hub agent that serves the stream with this certificate on a free port.
    #[must_use]
    pub fn served_by(&self, hub_agent: AgentSpec) -> AgentSpec {
        hub_agent
            .flag("--slice-stream-bind-address", "127.0.0.1:0")
            .flag("--slice-stream-cert-path", self.folder.path())
    }

    /// Returns the path of the certificate, which is its own authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }
}
