//! `cargo xtask controlplane`: etcd, kube-apiserver, kube-controller-manager and kubectl for tests and the
//! sandbox's `--real`.
//!
//! They are built once from `tools/controlplane` and kept outside the work tree under a name made from the sources, so that
//! every checkout and every clean build shares them. `KUBEBUILDER_ASSETS`, the folder of ready-made binaries that
//! controller-runtime's envtest uses, replaces those that it holds. Where there is neither Go nor that folder, it is an
//! error: tests that need a control plane never pass by skipping.

use crate::root;
use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment variable that names a folder of ready-made binaries.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// A program of the control plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Program {
    /// The store behind the API server.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers in the tree: EndpointSlices, namespaces, garbage.
    ControllerManager,
    /// The command line.
    Kubectl,
}

impl Program {
    /// The name of its binary, and the first argument that chooses it in ours.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }
}

/// What to start for a program: a file and the arguments that come before the program's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invocation {
    /// The file to execute.
    pub file: PathBuf,
    /// The first argument, where the file holds several programs.
    pub first_argument: Option<&'static str>,
}

/// Finds a program, and builds ours if that is what is needed.
///
/// # Errors
/// Where the folder of `KUBEBUILDER_ASSETS` lacks etcd or kube-apiserver, or our build cannot be made.
pub fn locate(program: Program) -> anyhow::Result<Invocation> {
    match assets() {
        Some(folder) => match ready_made(&folder, program)? {
            Some(file) => Ok(Invocation { file, first_argument: None }),
            None => built(program),
        },
        None => built(program),
    }
}

/// Prints where the control plane is: our build, or the folder that replaces it.
///
/// # Errors
/// As [`locate`].
pub fn run() -> anyhow::Result<()> {
    let Some(folder) = assets() else {
        println!("{}", Build::of_this_tree()?.ensure()?.display());
        return Ok(());
    };
    for program in [Program::Etcd, Program::ApiServer] {
        ready_made(&folder, program)?;
    }
    println!("{}", folder.display());
    Ok(())
}

fn assets() -> Option<PathBuf> {
    std::env::var_os(ASSETS_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn built(program: Program) -> anyhow::Result<Invocation> {
    Ok(Invocation { file: Build::of_this_tree()?.ensure()?, first_argument: Some(program.name()) })
}

/// The ready-made binary in `folder`; none only for the programs that such folders do not usually hold.
fn ready_made(folder: &Path, program: Program) -> anyhow::Result<Option<PathBuf>> {
    let file = folder.join(program.name());
    if file.is_file() {
        return Ok(Some(file));
    }
    match program {
        Program::ControllerManager | Program::Kubectl => Ok(None),
        Program::Etcd | Program::ApiServer => bail!(
            "{ASSETS_VARIABLE} is {}, but there is no {} in it: point it at a folder with etcd and kube-apiserver, or \
             unset it to have both built with Go",
            folder.display(),
            program.name()
        ),
    }
}

/// A build of `tools/controlplane` and where its result is kept.
struct Build {
    sources: PathBuf,
    cache: PathBuf,
    /// The Go tool to call, a name to be found in PATH or a path.
    go: OsString,
}

impl Build {
    fn of_this_tree() -> anyhow::Result<Self> {
        let sources = root().join("tools/controlplane");
        Ok(Self { sources, cache: cache_folder()?, go: OsString::from("go") })
    }

    /// The binary, built if it is not there yet. Callers in other processes wait for one build.
    fn ensure(&self) -> anyhow::Result<PathBuf> {
        let binary = self.binary()?;
        if binary.is_file() {
            return Ok(binary);
        }
        fs::create_dir_all(&self.cache).with_context(|| format!("cannot make the folder {}", self.cache.display()))?;
        let lock_path = self.cache.join("controlplane.lock");
        let lock = File::create(&lock_path).with_context(|| format!("cannot make {}", lock_path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
        if !binary.is_file() {
            self.build(&binary)?;
        }
        Ok(binary)
    }

    fn binary(&self) -> anyhow::Result<PathBuf> {
        let mut hash = Sha256::new();
        for name in ["go.mod", "go.sum", "main.go"] {
            hash.update(self.read(name)?);
            hash.update([0]);
        }
        let key: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(self.cache.join(format!("controlplane-{key}")))
    }

    fn build(&self, binary: &Path) -> anyhow::Result<()> {
        self.require_go()?;
        eprintln!("building the control plane with Go, once: about five minutes on two cores ...");
        // Renamed when it is whole: a build that was killed half-way leaves nothing that looks like a result.
        let unfinished = binary.with_extension("unfinished");
        let status = Command::new(&self.go)
            .current_dir(&self.sources)
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &self.linker_flags()?, "-o"])
            .arg(&unfinished)
            .arg(".")
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", self.go.display()))?;
        if !status.success() {
            bail!(
                "Go could not build the control plane in {} ({status}); its own words are above",
                self.sources.display()
            );
        }
        fs::rename(&unfinished, binary).with_context(|| format!("cannot move the build to {}", binary.display()))
    }

    /// Run in the module's folder, `go version` also tells whether this Go is new enough for it.
    fn require_go(&self) -> anyhow::Result<()> {
        let wanted = self.directive("go ")?;
        let remedy = format!(
            "install Go {wanted} or newer, or set {ASSETS_VARIABLE} to a folder with ready-made etcd and kube-apiserver"
        );
        let answer = Command::new(&self.go).current_dir(&self.sources).arg("version").output();
        match answer {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr);
                bail!("Go cannot build the control plane: {}. To have one, {remedy}", words.trim())
            }
            Err(error) => bail!("there is no Go ({error}) to build the control plane with. To have one, {remedy}"),
        }
    }

    /// What `kubectl version` and the server's `/version` say; the servers compare it with what they emulate.
    fn linker_flags(&self) -> anyhow::Result<String> {
        let version = self.directive("k8s.io/kubernetes ")?;
        let mut parts = version.trim_start_matches('v').split('.');
        let (Some(major), Some(minor)) = (parts.next(), parts.next()) else {
            bail!("go.mod of the control plane names the odd Kubernetes version {version}");
        };
        let package = "k8s.io/component-base/version";
        Ok(format!(
            "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        ))
    }

    /// The rest of the first line of go.mod that begins with `name`.
    fn directive(&self, name: &str) -> anyhow::Result<String> {
        let text = String::from_utf8(self.read("go.mod")?).context("go.mod is not text")?;
        text.lines()
            .find_map(|line| line.trim_start().strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next())
            .map(str::to_owned)
            .with_context(|| format!("go.mod of the control plane has no line `{name}...`"))
    }

    fn read(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.sources.join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// `$XDG_CACHE_HOME/fleetnet`, or `~/.cache/fleetnet`.
fn cache_folder() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let absolute = |value: &OsString| Path::new(value).is_absolute();
    match (set("XDG_CACHE_HOME").filter(absolute), set("HOME")) {
        (Some(cache), _) => Ok(Path::new(&cache).join("fleetnet")),
        (None, Some(home)) => Ok(Path::new(OsStr::new(&home)).join(".cache/fleetnet")),
        (None, None) => {
            bail!("neither HOME nor XDG_CACHE_HOME is set, so there is no place to keep the control plane in")
        }
    }
}

#[cfg(test)]
mod tests;
