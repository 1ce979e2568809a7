//! Go module `sigs.k8s.io/mcs-api`, which has the CustomResourceDefinitions of the group `multicluster.x-k8s.io`.
//!
//! `tools/mcs-api/go.mod` has its version, and `go.sum` its checksum.

use crate::root;
use anyhow::{Context as _, ensure};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Environment variable with a folder that contains a ready-made copy of the module.
pub const MCS_API_VARIABLE: &str = "FLEETNET_MCS_API";

const MODULE: &str = "sigs.k8s.io/mcs-api";

/// Returns the folder with the sources of the module. Go downloads the module once.
///
/// # Errors
/// If Go is missing, cannot download the module, or finds another checksum.
pub fn locate() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(MCS_API_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    download(&OsString::from("go"))
}

fn download(go: &OsString) -> anyhow::Result<PathBuf> {
    let remedy = || format!("install Go 1.25 or newer, or set {MCS_API_VARIABLE} to a folder with the module {MODULE}");
    let mut command = Command::new(go);
    command.current_dir(root().join("tools/mcs-api")).args(["mod", "download", "-json", MODULE]);
    let output = command.output().with_context(|| format!("there is no Go to download {MODULE}: {}", remedy()))?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    ensure!(
        output.status.success(),
        "Go cannot download {MODULE}: {} {}. To have it, {}",
        answer["Error"].as_str().unwrap_or_default(),
        String::from_utf8_lossy(&output.stderr).trim(),
        remedy()
    );
    answer["Dir"].as_str().map(PathBuf::from).with_context(|| format!("Go does not say where it stored {MODULE}"))
}

#[cfg(test)]
mod tests {
    use super::download;
    use std::ffi::OsString;

    #[test]
    fn a_machine_without_go_gets_the_remedy() {
        let error = download(&OsString::from("no-such-go")).expect_err("there is no such program");
        assert!(error.to_string().contains("set FLEETNET_MCS_API"), "{error}");
    }
}
