//! Server program that reads its port from a configuration file: [`start`].

use crate::limits::PORT_ATTEMPTS;
use crate::process::{Process, Spec, free_port};
use anyhow::bail;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Server program.
pub(crate) struct Server<'a> {
    pub(crate) name: &'static str,
    pub(crate) file: PathBuf,
    /// Arguments before the path of the configuration.
    pub(crate) arguments: &'static [&'static str],
    /// Returns the configuration for a port.
    pub(crate) configuration: &'a dyn Fn(u16) -> String,
    /// Part of the line of its log that shows that the server listens.
    pub(crate) listens: &'static str,
    /// Part of the line of its log that shows that another process has the port.
    pub(crate) port_is_taken: &'static str,
}

/// Starts a server on a free port. Returns its process and its port.
///
/// # Errors
/// If the server does not start.
pub(crate) async fn start(server: Server<'_>) -> anyhow::Result<(Process, u16)> {
    let Server { name, file, arguments, configuration, listens, port_is_taken } = server;
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port()?;
        let folder = TempDir::with_prefix(format!("fleetnet-{name}-"))?.keep();
        let path = folder.join("configuration");
        fs::write(&path, configuration(port))?;
        let process = Process::start(Spec {
            name: name.to_owned(),
            file: file.clone(),
            arguments: arguments.iter().map(Into::into).chain([path.into()]).collect(),
            environment: Vec::new(),
            scratch: Some(folder),
        });
        let process = process.await?;
        let is_free = |line: &str| match line {
            line if line.contains(listens) => Some(true),
            line if line.contains(port_is_taken) => Some(false),
            _ => None,
        };
        if process.log().find("that it listens", is_free).await? {
            return Ok((process, port));
        }
        process.end().await?;
    }
    bail!("{PORT_ATTEMPTS} ports in a row were taken by others between their choice and their use")
}
