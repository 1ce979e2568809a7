//! HTTP proxy under test: [`Tinyproxy`].

use crate::process::Process;
use crate::served::{self, Server};
use crate::watchdog;
use anyhow::Context as _;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// Password of the proxy's only user, which no log may show.
pub const PASSWORD: &str = "swordfish";

/// Running Tinyproxy, which demands a user and a password. Its process is killed when this value is dropped, or when
/// the test process ends in any way.
#[derive(Debug)]
pub struct Tinyproxy {
    process: Process,
    /// URL with the user and the password, as in `HTTPS_PROXY`.
    pub url: String,
}

impl Tinyproxy {
    /// Starts Tinyproxy. If `next` is given, tunnels to the server of this name go through a next proxy at this
    /// address. The first call downloads Tinyproxy, and the clock of the test stops for that time.
    ///
    /// # Errors
    /// If Tinyproxy cannot be found, or does not start.
    pub async fn start(next: Option<(&str, SocketAddr)>) -> anyhow::Result<Self> {
        let file = {
            let _pause = watchdog::pause();
            spawn_blocking(programs::tinyproxy::locate).await??
        };
        let upstream = next.map(|(name, address)| format!("Upstream http {address} \"{name}\"\n")).unwrap_or_default();
        let configuration =
            |port: u16| format!("Port {port}\nListen 127.0.0.1\nLogLevel Info\nBasicAuth jane {PASSWORD}\n{upstream}");
        let server = Server {
            name: "tinyproxy",
            file,
            arguments: &["-d", "-c"],
            configuration: &configuration,
            listens: "Accepting connections",
            port_is_taken: "Could not create listening sockets",
        };
        let (process, port) = served::start(server).await?;
        Ok(Self { process, url: format!("http://jane:{PASSWORD}@127.0.0.1:{port}") })
    }

    /// Writes a copy of a kubeconfig, with this proxy for each cluster. Returns its path.
    ///
    /// # Errors
    /// If the file is not a kubeconfig of this harness.
    pub fn kubeconfig(&self, original: &Path) -> anyhow::Result<PathBuf> {
        let mut config: Value = serde_json::from_str(&fs::read_to_string(original)?)?;
        for cluster in config["clusters"].as_array_mut().context("a kubeconfig has clusters")? {
            cluster["cluster"]["proxy-url"] = self.url.as_str().into();
        }
        let path = original.with_extension("through-proxy");
        fs::write(&path, config.to_string())?;
        Ok(path)
    }

    /// Ends the proxy, which cuts its tunnels.
    pub async fn end(self) -> anyhow::Result<()> {
        self.process.end().await
    }
}
