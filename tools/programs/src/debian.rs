//! Programs from Debian's packages. A package is downloaded once and unpacked into the cache, not installed, so this
//! needs no root.

use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Downloads a package, of which `cost` says the size and the time, and unpacks it into `folder`.
///
/// apt gets its own lists of packages, because the lists of the machine may be old or missing, and only root may update
/// them.
pub(crate) fn unpack(package: &str, cost: &str, folder: &Path) -> anyhow::Result<()> {
    eprintln!("downloading {package} from Debian's packages, once: {cost} ...");
    let cache = folder.parent().context("the cache is a folder")?;
    let work = TempDir::with_prefix_in(format!("{package}-"), cache)?;
    let lists = work.path().join("lists");
    let archives = work.path().join("archives");
    for state in [&lists, &archives] {
        fs::create_dir_all(state.join("partial"))?;
    }
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(work.path()).arg("-qq");
        // As root, apt would download as the user `_apt`, who cannot write to this folder.
        command
            .args(["-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=", "-o"])
            .arg(format!("Dir::State::Lists={}", lists.display()));
        command.arg("-o").arg(format!("Dir::Cache={}", archives.display())).args(words);
        command
    };
    finish(apt(&["update"]))?;
    finish(apt(&["download", package]))?;
    let unpacked = work.path().join("unpacked");
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(downloaded(work.path())?).arg(&unpacked);
    finish(unpack)?;
    fs::rename(&unpacked, folder).with_context(|| format!("cannot move the programs to {}", folder.display()))
}

/// Returns the package in a folder.
fn downloaded(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let package =
        entries.into_iter().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "deb"));
    package.context("apt-get downloaded no package")
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
