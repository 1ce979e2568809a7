//! Kubeconfig file, and its user.

use anyhow::Context as _;
use std::fs;
use std::path::Path;

/// User in the kubeconfigs. Unlike the sandbox itself, this user cannot reach a server during an interruption.
pub(crate) const KUBECTL: &str = "kubectl";

/// Writes a kubeconfig into a file that already exists.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
