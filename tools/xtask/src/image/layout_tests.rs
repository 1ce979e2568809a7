//! Tests of the OCI layout of an image: its blobs, its digests, and that it is the same each time.

use super::*;
use flate2::read::GzDecoder;
use std::collections::BTreeSet;
use std::io::Read as _;
use tempfile::TempDir;

const PROGRAM: &[u8] = b"#!/bin/true\n";

fn layout(seconds: u64) -> Layout {
    let sbom = json!({"spdxVersion": "SPDX-2.3"});
    let image = Image { name: "hub-agent", program: PROGRAM, architecture: "amd64", revision: "abc", sbom: &sbom };
    Layout::of(&image, seconds).expect("a layout")
}

fn read(folder: &TempDir, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().expect("a digest").trim_start_matches("sha256:");
    let bytes = fs::read(folder.path().join("blobs/sha256").join(digest)).expect("the blob");
    assert_eq!((descriptor["size"].as_u64(), sha256(&bytes).as_str()), (Some(bytes.len() as u64), digest));
    bytes
}

fn read_json(folder: &TempDir, descriptor: &Value) -> Value {
    serde_json::from_slice(&read(folder, descriptor)).expect("JSON")
}

#[test]
fn the_index_leads_to_the_program_its_user_and_its_list_of_crates() {
    let folder = tempfile::tempdir().expect("a folder");
    layout(0).write(folder.path()).expect("written");
    layout(0).write(folder.path()).expect("written over the first");
    let file = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    assert_eq!(file("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    let index: Value = serde_json::from_str(&file("index.json")).expect("JSON");
    let [of_image, of_sbom] = &index["manifests"].as_array().expect("manifests")[..] else { panic!("two") };

    let manifest = read_json(&folder, of_image);
    let config = read_json(&folder, &manifest["config"]);
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/hub-agent"]));
    assert_eq!(config["config"]["Labels"]["org.opencontainers.image.revision"], "abc");
    let mut tar = Vec::new();
    GzDecoder::new(&read(&folder, &manifest["layers"][0])[..]).read_to_end(&mut tar).expect("gzip");
    assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(&tar))]));
    let mut archive = tar::Archive::new(&tar[..]);
    let mut files = archive.entries().expect("entries").map(|entry| {
        let mut entry = entry.expect("an entry");
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("content");
        let path = entry.path().expect("a path").display().to_string();
        let header = entry.header();
        (path, header.mode().expect("a mode"), header.mtime().expect("a time"), content)
    });
    assert_eq!(files.next(), Some(("hub-agent".to_owned(), 0o755, 0, PROGRAM.to_vec())));
    assert_eq!(files.next(), None);

    let referrer = read_json(&folder, of_sbom);
    assert_eq!(referrer["subject"]["digest"], of_image["digest"]);
    assert_eq!(read_json(&folder, &referrer["layers"][0])["spdxVersion"], "SPDX-2.3");
    let blobs = fs::read_dir(folder.path().join("blobs/sha256")).expect("blobs").count();
    assert_eq!(blobs, 6, "no blob of an older image is left");
}

#[test]
fn the_same_program_gives_the_same_digests_and_another_time_others() {
    let digests = |seconds| layout(seconds).blobs.into_iter().map(|blob| blob.digest).collect::<BTreeSet<_>>();
    assert_eq!(digests(0), digests(0));
    assert_ne!(digests(0), digests(1));
}
