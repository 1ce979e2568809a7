//! Test of `cargo xtask release --dry-run`, without the images, whose builds take minutes.

use anyhow::ensure;
use harness::{binaries, run};
use std::fs;
use tempfile::TempDir;
use tokio::process::Command;

#[test]
fn a_dry_run_writes_charts_and_checksums_and_lists_all_that_is_not_ready() -> anyhow::Result<()> {
    run(async {
        let folder = TempDir::with_prefix("fleetnet-release-")?;
        let out = folder.path().join("release");
        // No version of the repository is 98.76.54.
        let mut release = Command::new(binaries::find("xtask").await?);
        release.args(["release", "--dry-run", "--without-images", "--version", "98.76.54", "--out"]).arg(&out);
        let output = release.kill_on_drop(true).output().await?;
        let (printed, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(1), "{:?}: {printed}{errors}", output.status);
        for expected in [
            "Cargo.toml: the version of the workspace is ",
            "deploy/charts/fleetnet-crds/Chart.yaml: version is ",
            "deploy/charts/fleetnet-hub-agent/Chart.yaml: appVersion is ",
            "deploy/hub-agent.yaml: line ",
            "docs/how-to/install.md: line ",
            "CHANGELOG.md: there is no section 98.76.54",
        ] {
            ensure!(errors.contains(expected), "no {expected:?} in {errors}");
        }
        ensure!(printed.contains("THE IMAGES ARE LEFT OUT") && !printed.contains("git tag"), "{printed}");

        let charts: Vec<String> = fs::read_dir(out.join("charts"))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<anyhow::Result<_>>()?;
        ensure!(charts.len() == 3 && charts.iter().all(|name| name.ends_with(".tgz")), "{charts:?}");
        let mut check = Command::new("sha256sum");
        let checked = check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out).output().await?;
        ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        ensure!(
            String::from_utf8_lossy(&checked.stdout).lines().count() == 4,
            "one for each chart and for the library"
        );
        let crates: Vec<_> = fs::read_dir(out.join("crates"))?.collect::<Result<_, _>>()?;
        let name = |it: &fs::DirEntry| it.file_name().to_string_lossy().starts_with("endpointslice-");
        ensure!(crates.len() == 1 && crates.iter().all(name), "{crates:?}");

        let mut again = Command::new(binaries::find("xtask").await?);
        again.args(["release", "--dry-run", "--without-images", "--out"]).arg(&out);
        let output = again.kill_on_drop(true).output().await?;
        let errors = String::from_utf8(output.stderr)?;
        ensure!(!output.status.success() && errors.contains("is not empty"), "{errors}");
        Ok(())
    })
}
