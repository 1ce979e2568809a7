//! Test of a container image: its layout leads to one executable, and this runs as an agent in an otherwise empty root.

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use harness::fleet::start_hub;
use harness::process::Ended;
use harness::turn::Turn;
use harness::{binaries, deployment, run, watchdog};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use tempfile::TempDir;
use tokio::process::Command;

const PROGRAM: &str = "hub-agent";

/// Returns the digest of bytes, as OCI writes it.
fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns the blob of a descriptor, whose size and digest must be those of the descriptor.
fn blob(layout: &Path, descriptor: &Value) -> anyhow::Result<Vec<u8>> {
    let expected = descriptor["digest"].as_str().context("a descriptor has a digest")?;
    let hex = expected.strip_prefix("sha256:").context("the algorithm is sha256")?;
    let bytes = fs::read(layout.join("blobs/sha256").join(hex))?;
    ensure!(digest(&bytes) == expected && descriptor["size"] == bytes.len(), "{descriptor} is another blob");
    Ok(bytes)
}

fn document(layout: &Path, descriptor: &Value) -> anyhow::Result<Value> {
    Ok(serde_json::from_slice(&blob(layout, descriptor)?)?)
}

/// Unpacks the image for amd64 of a layout. Returns its configuration.
fn unpack(layout: &Path, root: &Path) -> anyhow::Result<Value> {
    let version: Value = serde_json::from_slice(&fs::read(layout.join("oci-layout"))?)?;
    ensure!(version["imageLayoutVersion"] == "1.0.0", "{version}");
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let mut images = index["manifests"].as_array().into_iter().flatten();
    let image = images.find(|image| image["platform"]["architecture"] == "amd64").context("an image for amd64")?;
    let manifest = document(layout, image)?;
    let config = document(layout, &manifest["config"])?;
    let layers = manifest["layers"].as_array().context("a manifest has layers")?;
    let diffs = config["rootfs"]["diff_ids"].as_array().context("a configuration has diff ids")?;
    ensure!(layers.len() == diffs.len(), "{} layers, {} diff ids", layers.len(), diffs.len());
    for (layer, diff) in layers.iter().zip(diffs) {
        let mut archive = Vec::new();
        GzDecoder::new(&*blob(layout, layer)?).read_to_end(&mut archive)?;
        ensure!(*diff == digest(&archive), "the layer is not the one of the configuration");
        tar::Archive::new(&*archive).unpack(root)?;
    }
    Ok(config)
}

#[test]
fn an_image_has_one_executable_that_runs_as_an_agent_in_an_empty_root() -> anyhow::Result<()> {
    run(async {
        let folder = TempDir::with_prefix("fleetnet-image-")?;
        let mut build = Command::new(binaries::find("xtask").await?);
        build.args(["image", PROGRAM, "--profile", "image-test", "--out"]).arg(folder.path());
        let output = {
            // All crates are built again, for a static executable.
            let _pause = watchdog::pause();
            build.kill_on_drop(true).output().await?
        };
        ensure!(output.status.success(), "xtask image: {}", String::from_utf8_lossy(&output.stderr));

        let root = folder.path().join("root");
        fs::create_dir(&root)?;
        let config = unpack(&folder.path().join(PROGRAM), &root)?["config"].take();
        let files: Vec<_> = fs::read_dir(&root)?.map(|entry| Ok(entry?.file_name())).collect::<anyhow::Result<_>>()?;
        ensure!(files == [PROGRAM], "the image has these files: {files:?}");
        ensure!(
            config["User"] == "65532:65532" && config["Entrypoint"] == serde_json::json!(["/hub-agent"]),
            "{config}"
        );
        let labels = config["Labels"].as_object().context("labels")?;
        for label in ["title", "version", "revision", "licenses"] {
            ensure!(labels.contains_key(&format!("org.opencontainers.image.{label}")), "no label {label}: {labels:?}");
        }

        let _turn = Turn::with_own_servers().await;
        let hub = start_hub().await?;
        let settings = deployment::settings(&hub, PROGRAM, folder.path()).await?;
        let agent = settings.in_root(root).start_ready().await?;
        ensure!(agent.terminate().await? == Ended::Exited(0), "{}", agent.log().tail());
        Ok(())
    })
}
