//! HTTP proxy under test: [`Tinyproxy`].

use crate::limits::PORT_ATTEMPTS;
use crate::process::{Process, Spec, free_port};
use crate::watchdog;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// Password of the proxy's only user, which no log may show.
pub const PASSWORD: &str = "swordfish";

/// Running Tinyproxy, which demands a user and a password. Its process is killed when this value is dropped, or when the test
/// process ends in any way.
#[derive(Debug)]
pub struct Tinyproxy {
    process: Process,
    /// URL with the user and the password, as in `HTTPS_PROXY`.
    pub url: String,
}

impl Tinyproxy {
    /// Starts Tinyproxy. If `next` is given, tunnels to the server of this name go through a next proxy at this address. The first
    /// call downloads Tinyproxy, and the clock of the test stops for that time.
    ///
    /// # Errors
    /// If Tinyproxy cannot be found, or does not start.
    pub async fn start(next: Option<(&str, SocketAddr)>) -> anyhow::Result<Self> {
        let file = {
            let _pause = watchdog::pause();
            spawn_blocking(programs::tinyproxy::locate).await??
        };
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port()?;
            let mut configuration =
                format!("Port {port}\nListen 127.0.0.1\nLogLevel Info\nBasicAuth jane {PASSWORD}\n");
            if let Some((name, address)) = next {
                writeln!(configuration, "Upstream http {address} \"{name}\"")?;
            }
            let folder = TempDir::with_prefix("fleetnet-tinyproxy-")?.keep();
            let path = folder.join("tinyproxy.conf");
            fs::write(&path, configuration)?;
            let process = Process::start(Spec {
                name: "tinyproxy".to_owned(),
                file: file.clone(),
                arguments: vec!["-d".into(), "-c".into(), path.into()],
                environment: Vec::new(),
                scratch: Some(folder),
            });
            let process = process.await?;
            let is_taken = |line: &str| match line {
                line if line.contains("Accepting connections") => Some(false),
                line if line.contains("Could not create listening sockets") => Some(true),
                _ => None,
            };
            if process.log().find("that it accepts connections", is_taken).await? {
                process.end().await?;
            } else {
                return Ok(Self { process, url: format!("http://jane:{PASSWORD}@127.0.0.1:{port}") });
            }
        }
        bail!("{PORT_ATTEMPTS} ports in a row were taken by others between their choice and their use")
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
