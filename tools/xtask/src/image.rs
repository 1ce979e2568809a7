//! Command `cargo xtask image`: builds the programs as static executables, and writes a container image of each as an
//! OCI layout. No container engine is needed.
//!
//! ```text
//! cargo build (static) ──> layer (one file) ──> config, manifest ──> target/images/<name>/{oci-layout,index.json,blobs}
//!       Cargo.lock, package-lock.json ──> SBOM (SPDX), a referrer of the manifest
//! ```
//!
//! The same commit gives the same digests: all times are SOURCE_DATE_EPOCH, or 0.

mod architecture;
mod build;
mod layout;
mod sbom;

pub(crate) use architecture::Architecture;

use crate::limits::IMAGE_BYTES;
use anyhow::{Context as _, ensure};
pub(crate) use layout::sha256;
use layout::{Image, Layout};
use programs::root;
use std::path::{Path, PathBuf};

/// Programs that have an image.
pub(crate) const PROGRAMS: [&str; 3] = ["hub-agent", "member-agent", "fleetnet"];

/// Program that contains the page for a browser.
const WITH_PAGE: &str = "fleetnet";

/// Versions of the npm packages of the page.
const PAGE_LOCK: &str = "cli/ui/package-lock.json";

/// Arguments of `cargo xtask image`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// Programs to build. Default: all of them.
    #[arg(value_name = "PROGRAM", value_parser = PROGRAMS)]
    programs: Vec<String>,
    /// Architecture of the images.
    #[arg(long, value_enum, default_value_t = Architecture::Amd64)]
    arch: Architecture,
    /// Folder in which each image gets a folder with its name. Default: target/images.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Profile of Cargo. The tests use a profile that builds faster.
    #[arg(long, value_name = "NAME", default_value = "dist")]
    profile: String,
}

impl ImageArgs {
    /// Returns the arguments for all images of a release.
    pub(crate) fn for_release(out: &Path) -> Self {
        Self { programs: Vec::new(), arch: Architecture::Amd64, out: Some(out.to_owned()), profile: "dist".to_owned() }
    }
}

/// Builds the programs and writes their images.
pub(crate) fn run(arguments: &ImageArgs) -> anyhow::Result<()> {
    let names: Vec<&str> = match &arguments.programs[..] {
        [] => PROGRAMS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let out = match &arguments.out {
        Some(folder) => folder.clone(),
        None => crate::test::target_folder()?.join("images"),
    };
    let built = build::programs(&names, arguments.arch, &arguments.profile)?;
    let revision = build::revision();
    let read = |path| std::fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"));
    let lock = read("Cargo.lock")?;
    let of_page = sbom::npm_packages(&read(PAGE_LOCK)?)?;
    for (name, executable) in built {
        let program = std::fs::read(&executable).with_context(|| format!("cannot read {}", executable.display()))?;
        let npm = if name == WITH_PAGE { of_page.as_slice() } else { &[] };
        let sbom = sbom::spdx(name, &lock, &sbom::dependencies(name, arguments.arch.target())?, npm, seconds()?)?;
        let image =
            Image { name, program: &program, architecture: arguments.arch.name(), revision: &revision, sbom: &sbom };
        let layout = Layout::of(&image, seconds()?)?;
        let bytes = layout.layer_bytes();
        ensure!(
            arguments.profile != "dist" || bytes <= IMAGE_BYTES,
            "the image of {name} has {bytes} bytes compressed, and may have {IMAGE_BYTES}"
        );
        let folder = out.join(name);
        layout.write(&folder)?;
        println!("{} {bytes} bytes compressed, {} as a program", folder.display(), program.len());
    }
    Ok(())
}

/// Returns the time of all files and documents of the images, in seconds since 1970: SOURCE_DATE_EPOCH, or 0.
fn seconds() -> anyhow::Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().with_context(|| format!("SOURCE_DATE_EPOCH {text:?} is not a number of seconds")),
        Err(_) => Ok(0),
    }
}
