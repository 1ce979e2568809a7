//! Command `cargo xtask controlplane`: etcd, kube-apiserver, kube-controller-manager and kubectl for tests and for
//! the sandbox's `--real`.
//!
//! The programs are built once from `tools/controlplane`. The result is cached outside the work tree under a hash of
//! the sources, so all checkouts and clean builds share it.
//!
//! `KUBEBUILDER_ASSETS` is the folder of ready-made binaries that controller-runtime's envtest uses. Programs in that folder are
//! used instead of the built programs.
//!
//! Without Go and without that folder, the command fails, because tests that need a control plane are never skipped.

use crate::root;
use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the path of a folder of ready-made control plane binaries.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Program of the control plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Program {
    Etcd,
    ApiServer,
    /// kube-controller-manager, for the controllers of EndpointSlices, namespaces and garbage collection.
    ControllerManager,
    Kubectl,
}

impl Program {
    /// Returns the name of the program's binary. The executable that xtask builds contains all programs, and runs the program
    /// that its first argument names.
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

/// Executable of a control plane program, and its first argument if the executable needs one to select the program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invocation {
    pub file: PathBuf,
    /// First argument that selects the program, if the executable contains several programs.
    pub first_argument: Option<&'static str>,
}

/// Finds a control plane program, and builds it if necessary.
///
/// # Errors
/// If the folder of `KUBEBUILDER_ASSETS` lacks etcd or kube-apiserver, or the build fails.
pub fn locate(program: Program) -> anyhow::Result<Invocation> {
    match assets() {
        Some(folder) => match ready_made(&folder, program)? {
            Some(file) => Ok(Invocation { file, first_argument: None }),
            None => built(program),
        },
        None => built(program),
    }
}

/// Prints the path of the control plane: the executable that xtask built, or the folder of `KUBEBUILDER_ASSETS`.
///
/// # Errors
/// Fails for the same reasons as [`locate`].
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

/// Returns a program's ready-made binary in `folder`. Fails if etcd or kube-apiserver is missing. `None` if another program is
/// missing, because envtest folders usually lack some of them.
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

/// Build of `tools/controlplane`, and the place of its executable.
struct Build {
    sources: PathBuf,
    cache: PathBuf,
    /// Go command to build with: its name in PATH, or its path.
    go: OsString,
}

impl Build {
    fn of_this_tree() -> anyhow::Result<Self> {
        let sources = root().join("tools/controlplane");
        Ok(Self { sources, cache: cache_folder()?, go: OsString::from("go") })
    }

    /// Returns the path of the built executable, and builds it if necessary. Other processes wait for a running build.
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
        // The executable gets its final name when it is complete, so that an interrupted build never looks finished.
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

    /// Fails if Go is missing or too old. In the module's folder, `go version` checks the version that the module
    /// needs.
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

    /// Returns linker flags that set the version shown by `kubectl version` and by the server's `/version`. The servers compare
    /// this version with the version that they emulate.
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

    /// Returns the value of a directive in go.mod: the first word after `name`, in the first line that begins with `name`.
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

/// Returns the folder for cached builds: `$XDG_CACHE_HOME/fleetnet` or `~/.cache/fleetnet`.
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
