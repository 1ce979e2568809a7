//! Programs that tests and developers run: Cargo on this work tree, programs that Go builds, programs of Debian, and
//! the commands of the docs.

mod cache;
pub mod cargo;
pub mod chromium;
pub mod collector;
pub mod control_plane;
pub mod coredns;
mod debian;
pub mod docs;
mod go;
pub mod helm;
pub mod mcs_api;
pub mod playwright;
pub mod prometheus;
pub mod tinyproxy;

use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the work tree in which this program was compiled.
#[must_use]
pub fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).expect("this crate is in a folder of a folder of the workspace").to_path_buf()
}

/// Returns the file that an environment variable names; `None` if the variable is not set.
///
/// # Errors
/// If there is no such file. `remedy` says what to do.
fn named(variable: &str, remedy: &str) -> anyhow::Result<Option<PathBuf>> {
    let file = std::env::var_os(variable).filter(|file| !file.is_empty()).map(PathBuf::from);
    if let Some(file) = &file {
        ensure!(file.is_file(), "{variable} is {}, but there is no such file: {remedy}", file.display());
    }
    Ok(file)
}

/// Writes an executable script.
///
/// A shell writes the file. If this process wrote it, a child that another thread starts in this moment could inherit
/// the open file, and the kernel would refuse to run the script (ETXTBSY).
///
/// # Errors
/// If the shell cannot be run or cannot write the file.
pub fn write_script(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).arg(text);
    let status = shell.status().context("cannot run sh")?;
    ensure!(status.success(), "sh cannot write the script {} ({status})", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::write_script;
    use std::process::Command;
    use tempfile::TempDir;

    #[test]
    fn scripts_run_while_other_threads_start_programs() {
        let folder = TempDir::new().expect("a folder");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let folder = folder.path();
                scope.spawn(move || {
                    for turn in 0..20 {
                        let script = folder.join(format!("{thread}-{turn}"));
                        write_script(&script, "#!/bin/sh\nexit 3\n").expect("a script");
                        let status = Command::new(&script).status().expect("the script runs");
                        assert_eq!(status.code(), Some(3));
                    }
                });
            }
        });
    }
}
