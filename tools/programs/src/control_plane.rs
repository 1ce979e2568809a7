//! Command `cargo xtask controlplane`: etcd, etcdutl, kube-apiserver, kube-controller-manager, kube-proxy and kubectl
//! for tests and for the sandbox's `--real`.
//!
//! The programs are built once from `tools/controlplane` ([`crate::go`]).
//!
//! `KUBEBUILDER_ASSETS` is the folder of ready-made binaries that controller-runtime's envtest uses. Programs in that
//! folder are used instead of the built programs.
//!
//! Without Go and without that folder, the command fails, because tests that need a control plane are never skipped.

use crate::go::{Build, Module};
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Environment variable with the path of a folder of ready-made control plane binaries.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Program of the control plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Program {
    Etcd,
    /// etcdutl, which restores a snapshot of etcd.
    EtcdUtility,
    ApiServer,
    /// kube-controller-manager, for the controllers of EndpointSlices, namespaces and garbage collection.
    ControllerManager,
    /// kube-proxy, which sends the packets of Services to their endpoints.
    Proxy,
    Kubectl,
    /// Our kubelet-streams: `exec` and `logs` of the pods of one node.
    KubeletStreams,
}

impl Program {
    /// Returns the name of the program's binary. The executable that xtask builds contains all programs, and runs the
    /// program that its first argument names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::EtcdUtility => "etcdutl",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Proxy => "kube-proxy",
            Self::Kubectl => "kubectl",
            Self::KubeletStreams => "kubelet-streams",
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
        println!("{}", build()?.ensure()?.display());
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
    Ok(Invocation { file: build()?.ensure()?, first_argument: Some(program.name()) })
}

/// Returns a program's ready-made binary in `folder`. Fails if etcd or kube-apiserver is missing. `None` if another
/// program is missing, because envtest folders usually lack some of them.
fn ready_made(folder: &Path, program: Program) -> anyhow::Result<Option<PathBuf>> {
    let file = folder.join(program.name());
    if file.is_file() {
        return Ok(Some(file));
    }
    match program {
        Program::EtcdUtility
        | Program::ControllerManager
        | Program::Proxy
        | Program::Kubectl
        | Program::KubeletStreams => Ok(None),
        Program::Etcd | Program::ApiServer => bail!(
            "{ASSETS_VARIABLE} is {}, but there is no {} in it: point it at a folder with etcd and kube-apiserver, or \
             unset it to have both built with Go",
            folder.display(),
            program.name()
        ),
    }
}

/// Returns the build of `tools/controlplane`.
fn build() -> anyhow::Result<Build> {
    Build::of_this_tree(Module {
        folder: "controlplane",
        called: "the control plane",
        takes: "about five minutes",
        instead: "set KUBEBUILDER_ASSETS to a folder with ready-made etcd and kube-apiserver",
        linker_flags,
    })
}

/// Returns linker flags that set the version shown by `kubectl version` and by the server's `/version`. The servers
/// compare this version with the version that they emulate.
fn linker_flags(build: &Build) -> anyhow::Result<String> {
    let version = build.directive("k8s.io/kubernetes ")?;
    let mut parts = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (parts.next(), parts.next()) else {
        bail!("go.mod of the control plane names the odd Kubernetes version {version}");
    };
    let package = "k8s.io/component-base/version";
    Ok(format!("-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"))
}

#[cfg(test)]
mod tests;
