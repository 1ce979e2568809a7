//! The npm packages Playwright and axe-core, for the tests of the page in a browser.
//!
//! `cli/ui/browser/package-lock.json` has their versions and checksums.

use crate::{cache, root};
use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Returns the folder `node_modules` with the packages. npm downloads them once.
///
/// # Errors
/// If npm is missing, or cannot download the packages.
pub fn locate() -> anyhow::Result<PathBuf> {
    let sources = root().join("cli/ui/browser");
    let lock = sources.join("package-lock.json");
    let lock = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let key = cache::key(Sha256::new_with_prefix(lock));
    let packages = cache::folder()?.join(format!("playwright-{key}"));
    cache::once(&packages, "playwright", || download(&sources, &packages))?;
    Ok(packages)
}

fn download(sources: &Path, packages: &Path) -> anyhow::Result<()> {
    eprintln!("downloading Playwright and axe-core with npm, once: 5 MB, a few seconds ...");
    let work = TempDir::with_prefix_in("playwright-", packages.parent().context("the cache is a folder")?)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(sources.join(name), work.path().join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(work.path()).stdin(Stdio::null());
    let output = npm.output().context("there is no npm: install the packages nodejs and npm (Node 20 or later)")?;
    if !output.status.success() {
        bail!("npm ci failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    fs::rename(work.path().join("node_modules"), packages)
        .with_context(|| format!("cannot move the packages to {}", packages.display()))
}
