//! Binaries that tests start, built from the present sources if needed.

use crate::watchdog;
use anyhow::{Context as _, bail, ensure};
use programs::cargo;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::sync::Mutex;

/// Paths of binaries that this process has found or built. All later starts of a binary use the same path.
static FOUND: Mutex<BTreeMap<&'static str, PathBuf>> = Mutex::const_new(BTreeMap::new());

/// Returns the path of a binary of the workspace.
///
/// Cargo does not build binaries of other packages for a test. So this function builds the binary if it is missing or
/// older than one of its sources: a test never runs an outdated agent.
pub async fn find(name: &'static str) -> anyhow::Result<PathBuf> {
    let _pause = watchdog::pause();
    let mut found = FOUND.lock().await;
    if let Some(binary) = found.get(name) {
        return Ok(binary.clone());
    }
    let binary = folder()?.join(name);
    if !current(&binary)? {
        build(name, &folder()?)?;
        ensure!(binary.is_file(), "cargo built {name}, but there is no {}", binary.display());
    }
    found.insert(name, binary.clone());
    Ok(binary)
}

/// Returns the folder `target/<profile>` of this executable. A test executable is in the subfolder `deps`.
fn folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let folder = own.parent().with_context(|| format!("{} has no folder", own.display()))?;
    match (folder.ends_with("deps"), folder.parent()) {
        (true, Some(parent)) => Ok(parent.to_path_buf()),
        _ => Ok(folder.to_path_buf()),
    }
}

/// True if the binary exists and none of its sources is newer. Cargo lists the sources in the `.d` file beside it.
fn current(binary: &Path) -> anyhow::Result<bool> {
    let (Ok(built), Ok(rule)) = (modified(binary), fs::read_to_string(binary.with_extension("d"))) else {
        return Ok(false);
    };
    let sources = rule.split_once(": ").map_or("", |(_, sources)| sources);
    // In Cargo's `.d` file, spaces in paths are escaped with a backslash.
    let sources = sources.trim_end().replace("\\ ", "\0");
    for source in sources.split(' ').map(|source| source.replace('\0', " ")) {
        match modified(Path::new(&source)) {
            Ok(changed) if changed <= built => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// Builds a binary with the profile of the running program, so that Cargo writes both into the same folder.
fn build(name: &str, folder: &Path) -> anyhow::Result<()> {
    // The folder of a profile has the name of the profile, except `debug` for the profile `dev`.
    let profile = folder.file_name().filter(|name| *name != "debug").map(|name| [OsStr::new("--profile"), name]);
    let output = cargo::command(&["build", "--quiet", "--workspace", "--features", cargo::FEATURES, "--bin", name])
        .args(profile.into_iter().flatten())
        .output()
        .with_context(|| format!("cannot call cargo to build {name}"))?;
    if !output.status.success() {
        bail!("cannot build {name}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
