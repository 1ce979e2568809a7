//! Command `cargo xtask helm`: Helm, for the tests of the charts in `deploy/charts`.
//!
//! Helm is built once from `tools/helm` ([`crate::go`]). If the environment variable `FLEETNET_HELM` is set, the Helm
//! that it names is used instead, for example to run the tests with another version.

use crate::go::{Build, Module};
use crate::named;
use std::path::PathBuf;

/// Environment variable with the path of a ready-made Helm.
pub const HELM_VARIABLE: &str = "FLEETNET_HELM";

/// Finds Helm, and builds it if necessary.
///
/// # Errors
/// If there is no file where `FLEETNET_HELM` points, or the build fails.
pub fn locate() -> anyhow::Result<PathBuf> {
    if let Some(file) = named(HELM_VARIABLE, "correct it, or unset it to have Helm built with Go")? {
        return Ok(file);
    }
    build()?.ensure()
}

fn build() -> anyhow::Result<Build> {
    Build::of_this_tree(Module {
        folder: "helm",
        called: "Helm",
        takes: "about two minutes",
        instead: "set FLEETNET_HELM to the path of Helm 4",
        linker_flags,
    })
}

/// Returns linker flags that set the version shown by `helm version`.
fn linker_flags(build: &Build) -> anyhow::Result<String> {
    let version = build.directive("require helm.sh/helm/v4 ")?;
    Ok(format!("-X helm.sh/helm/v4/internal/version.version={version}"))
}
