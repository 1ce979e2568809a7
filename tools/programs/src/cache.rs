//! Cache of programs, outside of the work tree. All checkouts and clean builds share it.

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Returns the folder of the cache: `$XDG_CACHE_HOME/fleetnet` or `~/.cache/fleetnet`.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let absolute = |value: &OsString| Path::new(value).is_absolute();
    match (set("XDG_CACHE_HOME").filter(absolute), set("HOME")) {
        (Some(cache), _) => Ok(Path::new(&cache).join("fleetnet")),
        (None, Some(home)) => Ok(Path::new(OsStr::new(&home)).join(".cache/fleetnet")),
        (None, None) => {
            bail!("neither HOME nor XDG_CACHE_HOME is set, so there is no place to keep programs in")
        }
    }
}

/// Returns the part of a name that stands for the sources with this hash.
pub(crate) fn key(hash: Sha256) -> String {
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Calls `make` if `made` does not exist. While one process makes it, other processes wait.
///
/// `make` must give the result its final name as the last step, so that an interrupted `make` never looks finished.
pub(crate) fn once(made: &Path, name: &str, make: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    if made.exists() {
        return Ok(());
    }
    let cache = made.parent().context("a path in the cache has a parent")?;
    fs::create_dir_all(cache).with_context(|| format!("cannot make the folder {}", cache.display()))?;
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).with_context(|| format!("cannot make {}", lock_path.display()))?;
    lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
    if made.exists() { Ok(()) } else { make() }
}
