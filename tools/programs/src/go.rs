//! Programs that Go builds from the modules in `tools/`.
//!
//! Each program is built once. Its executable stays in the cache under a hash of the sources.

use crate::{cache, root};
use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Go module in `tools/` with one program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// Folder in `tools/`. The executable in the cache has the same name.
    pub(crate) folder: &'static str,
    /// Name of the program in messages.
    pub(crate) called: &'static str,
    /// Time of the first build on two cores, for people who wait.
    pub(crate) takes: &'static str,
    /// Advice for a machine without Go.
    pub(crate) instead: &'static str,
    /// Function that returns linker flags, for example to set the version of the program.
    pub(crate) linker_flags: fn(&Build) -> anyhow::Result<String>,
}

/// Build of a module, and the place of its executable.
pub(crate) struct Build {
    pub(crate) module: Module,
    pub(crate) sources: PathBuf,
    pub(crate) cache: PathBuf,
    /// Go command to build with: its name in PATH, or its path.
    pub(crate) go: OsString,
}

impl Build {
    pub(crate) fn of_this_tree(module: Module) -> anyhow::Result<Self> {
        let sources = root().join("tools").join(module.folder);
        Ok(Self { module, sources, cache: cache::folder()?, go: OsString::from("go") })
    }

    /// Returns the path of the built executable, and builds it if necessary. Other processes wait for a running build.
    pub(crate) fn ensure(&self) -> anyhow::Result<PathBuf> {
        let binary = self.binary()?;
        cache::once(&binary, self.module.folder, || self.build(&binary))?;
        Ok(binary)
    }

    fn binary(&self) -> anyhow::Result<PathBuf> {
        let mut hash = Sha256::new();
        for name in ["go.mod", "go.sum", "main.go"].map(str::to_owned).into_iter().chain(self.other_sources()?) {
            hash.update(self.read(&name)?);
            hash.update([0]);
        }
        Ok(self.cache.join(format!("{}-{}", self.module.folder, cache::key(hash))))
    }

    /// Returns the names of the Go files besides main.go, in order.
    fn other_sources(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        let folder = fs::read_dir(&self.sources);
        for entry in folder.with_context(|| format!("cannot list {}", self.sources.display()))? {
            names.extend(
                entry?.file_name().into_string().ok().filter(|name| name.ends_with(".go") && name != "main.go"),
            );
        }
        names.sort();
        Ok(names)
    }

    fn build(&self, binary: &Path) -> anyhow::Result<()> {
        self.require_go()?;
        let Module { called, takes, linker_flags, .. } = self.module;
        eprintln!("building {called} with Go, once: {takes} on two cores ...");
        // The executable gets its final name when it is complete, so that an interrupted build never looks finished.
        let unfinished = binary.with_extension("unfinished");
        let status = Command::new(&self.go)
            .current_dir(&self.sources)
            .env("CGO_ENABLED", "0")
            .args([
                "build",
                "-trimpath",
                "-buildvcs=false",
                "-ldflags",
                &format!("-s -w {}", linker_flags(self)?),
                "-o",
            ])
            .arg(&unfinished)
            .arg(".")
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", self.go.display()))?;
        if !status.success() {
            let sources = self.sources.display();
            bail!("Go could not build {called} in {sources} ({status}); its own words are above");
        }
        fs::rename(&unfinished, binary).with_context(|| format!("cannot move the build to {}", binary.display()))
    }

    /// Fails if Go is missing or too old. In the module's folder, `go version` checks the version that the module
    /// needs.
    fn require_go(&self) -> anyhow::Result<()> {
        let wanted = self.directive("go ")?;
        let Module { called, instead, .. } = self.module;
        let remedy = format!("install Go {wanted} or newer, or {instead}");
        let answer = Command::new(&self.go).current_dir(&self.sources).arg("version").output();
        match answer {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr);
                bail!("Go cannot build {called}: {}. To have it, {remedy}", words.trim())
            }
            Err(error) => bail!("there is no Go ({error}) to build {called} with. To have it, {remedy}"),
        }
    }

    /// Returns the value of a directive in go.mod: the first word after `name`, in the first line that begins with
    /// `name`.
    pub(crate) fn directive(&self, name: &str) -> anyhow::Result<String> {
        let text = String::from_utf8(self.read("go.mod")?).context("go.mod is not text")?;
        text.lines()
            .find_map(|line| line.trim_start().strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next())
            .map(str::to_owned)
            .with_context(|| format!("go.mod of {} has no line `{name}...`", self.module.called))
    }

    fn read(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.sources.join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

#[cfg(test)]
mod tests;
