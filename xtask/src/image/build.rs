//! Builds of static executables.

use super::Architecture;
use anyhow::{Context as _, bail, ensure};
use programs::{cargo, root};
use std::path::PathBuf;
use std::process::Command;

/// Flags for executables that need no file of the system. By default, the crate getrandom looks up the function of the C library
/// by name, which a static executable cannot, and then reads /dev/urandom. With the second flag, it calls the kernel.
const RUSTFLAGS: &str = "-C target-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\"";
/// Linker for arm64, in Debian's package gcc-aarch64-linux-gnu.
const ARM64_LINKER: &str = "aarch64-linux-gnu-gcc";

/// Builds programs that need no file of the system, not even the C library. Returns the path of each.
pub(super) fn programs<'a>(
    names: &[&'a str],
    architecture: Architecture,
    profile: &str,
) -> anyhow::Result<Vec<(&'a str, PathBuf)>> {
    let target = architecture.target();
    require(architecture)?;
    let mut arguments = vec!["build", "--profile", profile, "--target", target];
    arguments.extend(names.iter().flat_map(|name| ["--package", name]));
    // A folder of its own: the flags differ from those of other builds, and Cargo would build everything again each time.
    let folder = crate::test::target_folder()?.join("static");
    let mut command = cargo::command(&arguments);
    command.env("CARGO_TARGET_DIR", &folder).env("FLEETNET_REVISION", revision());
    command.env("RUSTFLAGS", RUSTFLAGS);
    if architecture == Architecture::Arm64 {
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", ARM64_LINKER);
        command.env("CC_aarch64_unknown_linux_gnu", ARM64_LINKER);
    }
    let status = command.status().context("cannot call cargo")?;
    ensure!(status.success(), "cargo cannot build {} for {target} ({status})", names.join(", "));
    // The folder of a profile has the name of the profile, except `debug` for the profile `dev`.
    let profile = if profile == "dev" { "debug" } else { profile };
    Ok(names.iter().map(|name| (*name, folder.join(target).join(profile).join(name))).collect())
}

/// Fails with the command to run if this machine cannot build for an architecture.
fn require(architecture: Architecture) -> anyhow::Result<()> {
    if architecture == Architecture::Amd64 && cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let target = architecture.target();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot call rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let mut missing = Vec::new();
    if !sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
        missing.push(format!("the standard library: rustup target add {target}"));
    }
    if architecture == Architecture::Arm64 && Command::new(ARM64_LINKER).arg("--version").output().is_err() {
        missing.push("a linker: apt-get install gcc-aarch64-linux-gnu".to_owned());
    }
    if !missing.is_empty() {
        bail!("this machine cannot build for {}. Install {}", architecture.name(), missing.join(", and "));
    }
    Ok(())
}

/// Returns the revision of the work tree, or `unknown` outside of a repository.
pub(super) fn revision() -> String {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
