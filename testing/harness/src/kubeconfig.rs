//! Access to an API server as one user: a client, a kubeconfig file, or a token file.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Access of one user to one API server.
#[derive(Clone, Debug)]
pub struct Access {
    /// Address of the server, such as `https://127.0.0.1:<port>`.
    pub server_url: String,
    /// Authority that signed the server's certificate, as PEM.
    pub authority_pem: String,
    /// Name of the user, as in the server's audit log.
    pub user: String,
    pub token: String,
}

impl Access {
    /// Returns a client with kube's defaults, except that it never retries a request: tests count requests.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }

    /// Returns kube's configuration for this user and this server.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.document())?;
        Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }

    /// Returns the certificate authority in base64, as in a kubeconfig and in the agents' variable
    /// `HUB_CERTIFICATE_AUTHORITY`.
    #[must_use]
    pub fn authority_base64(&self) -> String {
        STANDARD.encode(&self.authority_pem)
    }

    /// Writes a kubeconfig `<user>_<port>.kubeconfig` into `folder`, with underscores for colons. Returns its path.
    pub fn write_kubeconfig(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        // JSON is valid YAML, the format of a kubeconfig.
        self.write(folder, "kubeconfig", &self.document().to_string())
    }

    /// Writes the token as `<user>_<port>.token` into `folder`, with underscores for colons. Returns its path.
    pub fn write_token(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        self.write(folder, "token", &self.token)
    }

    fn write(&self, folder: &Path, extension: &str, text: &str) -> anyhow::Result<PathBuf> {
        // The port is part of the file's name, because a user may have two addresses of one server.
        let port = self.server_url.rsplit(':').next().unwrap_or_default();
        let path = folder.join(format!("{}_{port}.{extension}", self.user.replace(':', "_")));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn document(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": self.user}}],
            "clusters": [{"name": "it", "cluster": {
                "server": self.server_url,
                "certificate-authority-data": self.authority_base64(),
            }}],
            "users": [{"name": self.user, "user": {"token": self.token}}],
        })
    }
}
