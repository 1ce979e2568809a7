//! Builds of static executables.

use super::Architecture;
use anyhow::{Context as _, ensure};
use programs::{cargo, root};
use std::path::PathBuf;
use std::process::Command;

/// Flags for executables that need no file of the system. By default, the crate getrandom looks up the function of the
/// C library by name, which a static executable cannot, and then reads /dev/urandom. With the second flag, it calls the
/// kernel.
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
    // A folder of its own: the flags differ from those of other builds, and Cargo would build everything again each
    // time.
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

/// Parts that this machine lacks to build for an architecture.
#[derive(Clone, Copy, Debug)]
struct Missing {
    standard_library: bool,
    linker: bool,
}

/// Fails with the commands to run if this machine cannot build for an architecture.
fn require(architecture: Architecture) -> anyhow::Result<()> {
    if architecture == Architecture::Amd64 && cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot call rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let standard_library = !sysroot.join("lib/rustlib").join(architecture.target()).join("lib").is_dir();
    let is_linked = || Command::new(ARM64_LINKER).arg("--version").output().is_ok();
    let linker = architecture == Architecture::Arm64 && !is_linked();
    verdict(architecture, Missing { standard_library, linker })
}

/// Fails with the commands that install what is missing.
fn verdict(architecture: Architecture, missing: Missing) -> anyhow::Result<()> {
    let target = architecture.target();
    let commands = [
        (missing.standard_library, format!("the standard library: rustup target add {target}")),
        (missing.linker, "a linker: apt-get install gcc-aarch64-linux-gnu".to_owned()),
    ];
    let commands: Vec<String> = commands.into_iter().filter_map(|(is_missing, it)| is_missing.then_some(it)).collect();
    ensure!(
        commands.is_empty(),
        "this machine cannot build for {}. Install {}",
        architecture.name(),
        commands.join(", and ")
    );
    Ok(())
}

/// Returns the revision of the work tree, or `unknown` outside of a repository.
pub(super) fn revision() -> String {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Architecture, Missing, verdict};

    #[test]
    fn what_is_missing_for_arm64_is_named_with_the_command_that_installs_it() {
        const LIBRARY: &str = "the standard library: rustup target add aarch64-unknown-linux-gnu";
        const LINKER: &str = "a linker: apt-get install gcc-aarch64-linux-gnu";
        // standard library, linker, expected end of the error
        let table = [
            (true, true, Some(format!("arm64. Install {LIBRARY}, and {LINKER}"))),
            (true, false, Some(format!("arm64. Install {LIBRARY}"))),
            (false, true, Some(format!("arm64. Install {LINKER}"))),
            (false, false, None),
        ];
        for (standard_library, linker, expected) in table {
            let result = verdict(Architecture::Arm64, Missing { standard_library, linker });
            let error = result.err().map(|error| error.to_string());
            assert_eq!(error, expected.map(|end| format!("this machine cannot build for {end}")));
        }
    }
}
