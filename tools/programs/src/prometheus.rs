//! Command `cargo xtask prometheus`: Prometheus and promtool, for the tests of alerts and dashboards.
//!
//! Both come from Debian's package `prometheus`. If the environment variable `FLEETNET_PROMETHEUS` is set, the programs
//! are in the folder that it names.

use crate::cache;
use crate::debian::{Packages, unpack};
use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};

/// Environment variable with a folder that contains `prometheus` and `promtool`.
pub const PROMETHEUS_VARIABLE: &str = "FLEETNET_PROMETHEUS";

/// Paths of the programs of Prometheus.
#[derive(Clone, Debug)]
pub struct Prometheus {
    pub prometheus: PathBuf,
    pub promtool: PathBuf,
}

impl Prometheus {
    /// Finds Prometheus, and downloads it if necessary.
    ///
    /// # Errors
    /// If there are no programs where `FLEETNET_PROMETHEUS` points, or the download fails.
    pub fn locate() -> anyhow::Result<Self> {
        if let Some(folder) = std::env::var_os(PROMETHEUS_VARIABLE).filter(|folder| !folder.is_empty()) {
            return Self::of(Path::new(&folder)).with_context(|| format!("{PROMETHEUS_VARIABLE} is wrong"));
        }
        let folder = cache::folder()?.join("prometheus");
        let download = || unpack(Packages::Alone("prometheus"), "45 MB, a few seconds", &folder, |_| Ok(()));
        cache::once(&folder, "prometheus", download).with_context(|| {
            format!(
                "cannot get Prometheus. Install Prometheus 2.42 or newer, and set {PROMETHEUS_VARIABLE} to the folder of \
                 prometheus and promtool"
            )
        })?;
        Self::of(&folder.join("usr/bin"))
    }

    fn of(folder: &Path) -> anyhow::Result<Self> {
        let program = |name: &str| {
            let file = folder.join(name);
            ensure!(file.is_file(), "there is no file {}", file.display());
            Ok(file)
        };
        Ok(Self { prometheus: program("prometheus")?, promtool: program("promtool")? })
    }
}

/// Prints the paths of both programs.
///
/// # Errors
/// Fails for the same reasons as [`Prometheus::locate`].
pub fn run() -> anyhow::Result<()> {
    let Prometheus { prometheus, promtool } = Prometheus::locate()?;
    println!("{}\n{}", prometheus.display(), promtool.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Prometheus;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn both_programs_must_be_in_the_folder() {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("prometheus"), "").expect("a file");
        let error = Prometheus::of(folder.path()).expect_err("promtool is missing").to_string();
        assert!(error.ends_with("promtool"), "{error}");
        fs::write(folder.path().join("promtool"), "").expect("a file");
        let found = Prometheus::of(folder.path()).expect("both programs");
        assert_eq!(found.prometheus, folder.path().join("prometheus"));
    }
}
