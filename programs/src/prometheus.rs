//! Command `cargo xtask prometheus`: Prometheus and promtool, for the tests of alerts and dashboards.
//!
//! Both come from Debian's package `prometheus`. The package is downloaded once and unpacked into the cache, not installed, so
//! this needs no root. If the environment variable `FLEETNET_PROMETHEUS` is set, the programs are in the folder that it names.

use crate::cache;
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

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
        cache::once(&folder, "prometheus", || download(&folder)).with_context(|| {
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

/// Downloads Debian's package and unpacks it into `folder`.
///
/// apt gets its own lists of packages, because the lists of the machine may be old or missing, and only root may update them.
fn download(folder: &Path) -> anyhow::Result<()> {
    eprintln!("downloading Prometheus from Debian's packages, once: 45 MB, a few seconds ...");
    let cache = folder.parent().context("the cache is a folder")?;
    let work = TempDir::with_prefix_in("prometheus-", cache)?;
    let lists = work.path().join("lists");
    let archives = work.path().join("archives");
    for state in [&lists, &archives] {
        fs::create_dir_all(state.join("partial"))?;
    }
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(work.path()).arg("-qq");
        // As root, apt would download as the user `_apt`, who cannot write to this folder.
        command
            .args(["-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=", "-o"])
            .arg(format!("Dir::State::Lists={}", lists.display()));
        command.arg("-o").arg(format!("Dir::Cache={}", archives.display())).args(words);
        command
    };
    finish(apt(&["update"]))?;
    finish(apt(&["download", "prometheus"]))?;
    let unpacked = work.path().join("unpacked");
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(package(work.path())?).arg(&unpacked);
    finish(unpack)?;
    fs::rename(&unpacked, folder).with_context(|| format!("cannot move the programs to {}", folder.display()))
}

/// Returns the package in a folder.
fn package(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let package =
        entries.into_iter().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "deb"));
    package.context("apt-get downloaded no package")
}

/// Runs a command to its end.
fn finish(mut command: Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let program = program.display();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Prometheus, finish};
    use std::fs;
    use std::process::Command;
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

    #[test]
    fn a_command_that_fails_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such package >&2; exit 100"]);
        let error = finish(command).expect_err("a failure").to_string();
        assert_eq!(error, "sh failed (exit status: 100): no such package");
    }
}
