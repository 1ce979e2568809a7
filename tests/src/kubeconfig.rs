//! Access to an API server as one user: a client, a kubeconfig file, a token file.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Access of one user to one server.
#[derive(Clone, Debug)]
pub struct Access {
    /// For example `https://127.0.0.1:<port>`.
    pub server_url: String,
    /// Authority that signed the server's certificate, PEM.
    pub authority_pem: String,
    /// Name of the user in the server's audit log.
    pub user: String,
    pub token: String,
}

impl Access {
    /// Client with kube's defaults, except that it never retries a request: tests count requests.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }

    /// Settings of a client.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.document())?;
        Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }

    /// Authority in the form of the agents' environment variable.
    #[must_use]
    pub fn authority_base64(&self) -> String {
        STANDARD.encode(&self.authority_pem)
    }

    /// Writes `<user>_<port>.kubeconfig` into `folder`, with underscores for colons.
    pub fn write_kubeconfig(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        // JSON is YAML too.
        self.write(folder, "kubeconfig", &self.document().to_string())
    }

    /// Writes `<user>_<port>.token` into `folder`, with underscores for colons.
    pub fn write_token(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        self.write(folder, "token", &self.token)
    }

    fn write(&self, folder: &Path, extension: &str, text: &str) -> anyhow::Result<PathBuf> {
        // A user may have two addresses of one server.
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
