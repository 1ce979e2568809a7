//! The HTTP proxy Tinyproxy, for the tests of agents behind a proxy.
//!
//! Tinyproxy comes from Debian's package `tinyproxy-bin`. If the environment variable `FLEETNET_TINYPROXY` is set, the
//! tests run the file that the variable names.

use crate::cache;
use crate::debian::{Packages, unpack};
use crate::named;
use anyhow::{Context as _, ensure};
use std::path::PathBuf;

/// Environment variable with the path of Tinyproxy.
const VARIABLE: &str = "FLEETNET_TINYPROXY";

/// Returns the path of Tinyproxy, and downloads it if necessary.
///
/// # Errors
/// If there is no file where `FLEETNET_TINYPROXY` points, or the download fails.
pub fn locate() -> anyhow::Result<PathBuf> {
    if let Some(file) = named(VARIABLE, "correct it, or unset it to have the program downloaded")? {
        return Ok(file);
    }
    let folder = cache::folder()?.join("tinyproxy");
    let download = || unpack(Packages::Alone("tinyproxy-bin"), "60 kB, a few seconds", &folder, |_| Ok(()));
    cache::once(&folder, "tinyproxy", download).with_context(|| {
        format!("cannot get Tinyproxy. Install Tinyproxy 1.11 or newer, and set {VARIABLE} to its path")
    })?;
    let file = folder.join("usr/bin/tinyproxy");
    ensure!(file.is_file(), "the package tinyproxy-bin has no file {}", file.display());
    Ok(file)
}
