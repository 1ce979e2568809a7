//! OCI image layout of one program: one layer with one file, the configuration, the manifest and the index. Pure, but
//! for the write to a folder.

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// User and group of the program: no user of any system, and the one that the Deployments name.
pub(super) const USER: &str = "65532:65532";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const SPDX: &str = "application/spdx+json";

/// Content of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image<'a> {
    /// Name of the program. Its file in the image is `/<name>`.
    pub(super) name: &'a str,
    pub(super) program: &'a [u8],
    pub(super) architecture: &'a str,
    pub(super) revision: &'a str,
    /// List of the crates in the program.
    pub(super) sbom: &'a Value,
}

/// Image as blobs.
#[derive(Debug)]
pub(super) struct Layout {
    blobs: Vec<Blob>,
    index: Value,
    layer_bytes: usize,
}

#[derive(Clone, Debug)]
struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: sha256(&bytes), bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.bytes.len()})
    }
}

impl Layout {
    /// Returns the layout of an image. `seconds` is the time of its file.
    pub(super) fn of(image: &Image<'_>, seconds: u64) -> anyhow::Result<Self> {
        let Image { name, program, architecture, revision, sbom } = *image;
        let tar = archive(name, program, seconds)?;
        let diff_id = format!("sha256:{}", sha256(&tar));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&tar)?;
        let layer = Blob::new(encoder.finish()?);
        let labels = labels(name, revision);
        let config = Blob::json(&json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"User": USER, "Entrypoint": [format!("/{name}")], "WorkingDir": "/", "Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        }));
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(CONFIG),
            "layers": [layer.descriptor(LAYER)],
            "annotations": labels,
        }));
        let (empty, sbom) = (Blob::new(b"{}".to_vec()), Blob::json(sbom));
        let referrer = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": SPDX,
            "config": empty.descriptor(EMPTY),
            "layers": [sbom.descriptor(SPDX)],
            "subject": manifest.descriptor(MANIFEST),
        }));
        let mut of_image = manifest.descriptor(MANIFEST);
        of_image["platform"] = json!({"architecture": architecture, "os": "linux"});
        of_image["annotations"] = json!({"org.opencontainers.image.ref.name": env!("CARGO_PKG_VERSION")});
        let mut of_referrer = referrer.descriptor(MANIFEST);
        of_referrer["artifactType"] = SPDX.into();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [of_image, of_referrer]});
        let layer_bytes = layer.bytes.len();
        Ok(Self { blobs: vec![layer, config, manifest, empty, sbom, referrer], index, layer_bytes })
    }

    /// Returns the size of the compressed layer: what a node pulls.
    pub(super) fn layer_bytes(&self) -> usize {
        self.layer_bytes
    }

    /// Writes the layout to a folder. Replaces an older layout there.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot write the image to {}", folder.display());
        let blobs = folder.join("blobs/sha256");
        if blobs.is_dir() {
            fs::remove_dir_all(&blobs).with_context(context)?;
        }
        fs::create_dir_all(&blobs).with_context(context)?;
        for blob in &self.blobs {
            fs::write(blobs.join(&blob.digest), &blob.bytes).with_context(context)?;
        }
        fs::write(folder.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())
            .with_context(context)?;
        fs::write(folder.join("index.json"), self.index.to_string()).with_context(context)
    }
}

/// Returns the archive of a layer: the program, readable and executable for all, and the folder for the agent's files.
fn archive(name: &str, program: &[u8], seconds: u64) -> anyhow::Result<Vec<u8>> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(program.len().try_into()?);
    header.set_mode(0o755);
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, name, program).context("cannot write the layer")?;
    archive.into_inner().context("cannot write the layer")
}

fn labels(name: &str, revision: &str) -> Value {
    json!({
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
    })
}

/// Returns the SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
