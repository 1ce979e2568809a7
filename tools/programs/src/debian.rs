//! Programs from Debian's packages. A package is downloaded once and unpacked into the cache, not installed, so this
//! needs no root.

use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Packages that are downloaded for a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packages<'a> {
    /// Only this package.
    Alone(&'a str),
    /// These packages, and all packages that they depend on and that the machine lacks.
    WithDependencies(&'a [&'a str]),
}

/// Downloads packages, of which `cost` says the size and the time, and unpacks them into `folder`. Before the folder
/// gets its name, `complete` may add files.
///
/// apt gets its own lists of packages, because the lists of the machine may be old or missing, and only root may update
/// them.
pub(crate) fn unpack(
    packages: Packages<'_>,
    cost: &str,
    folder: &Path,
    complete: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = match packages {
        Packages::Alone(package) => package.to_owned(),
        Packages::WithDependencies(names) => names.join(" and "),
    };
    eprintln!("downloading {name} from Debian's packages, once: {cost} ...");
    let cache = folder.parent().context("the cache is a folder")?;
    let work = TempDir::with_prefix_in("debian-", cache)?;
    finish(apt(work.path(), &["update"])?)?;
    finish(match packages {
        Packages::Alone(package) => apt(work.path(), &["download", package])?,
        Packages::WithDependencies(names) => {
            // Only the locks of dpkg need root, and nothing is installed.
            let words = ["-o", "Debug::NoLocking=1", "--no-install-recommends", "--download-only", "--yes", "install"];
            apt(work.path(), &[&words, names].concat())?
        }
    })?;
    let unpacked = work.path().join("unpacked");
    for package in downloaded(work.path())? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--extract").arg(package).arg(&unpacked);
        finish(unpack)?;
    }
    complete(&unpacked)?;
    fs::rename(&unpacked, folder).with_context(|| format!("cannot move the programs to {}", folder.display()))
}

/// Returns a call of apt-get that keeps its lists and packages in a folder.
fn apt(work: &Path, words: &[&str]) -> anyhow::Result<Command> {
    let lists = work.join("lists");
    for partial in [lists.join("partial"), work.join("partial")] {
        fs::create_dir_all(partial)?;
    }
    let mut command = Command::new("apt-get");
    // As root, apt would download as the user `_apt`, who cannot write to this folder.
    command.current_dir(work).args(["-qq", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User="]);
    for (setting, value) in
        [("Dir::State::Lists", lists.as_path()), ("Dir::Cache", work), ("Dir::Cache::archives", work)]
    {
        command.arg("-o").arg(format!("{setting}={}", value.display()));
    }
    command.args(words);
    Ok(command)
}

/// Returns the packages in a folder.
fn downloaded(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let packages: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|it| it == "deb")).collect();
    ensure!(!packages.is_empty(), "apt-get downloaded no package");
    Ok(packages)
}

/// Runs a command to its end.
fn finish(mut command: Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let program = program.display();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::finish;
    use std::process::Command;

    #[test]
    fn a_command_that_fails_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such package >&2; exit 100"]);
        let error = finish(command).expect_err("a failure").to_string();
        assert_eq!(error, "sh failed (exit status: 100): no such package");
    }
}
