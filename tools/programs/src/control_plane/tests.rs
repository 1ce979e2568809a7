//! Tests of finding the control plane, and of the flags with which it is built.

use super::{Program, build, linker_flags, ready_made};
use std::fs;
use tempfile::TempDir;

#[test]
fn the_control_plane_gets_the_version_of_its_kubernetes() {
    let flags = linker_flags(&build().expect("a module")).expect("a version");
    let version = flags.split_whitespace().find_map(|flag| flag.split_once("gitVersion=v1.")).expect("a version").1;
    let minor = version.split('.').next().expect("a minor version");
    assert!(flags.contains("gitMajor=1 "), "{flags}");
    assert!(flags.ends_with(&format!("gitMinor={minor}")), "{flags}");
}

#[test]
fn ready_made_binaries_replace_ours_and_a_folder_without_them_is_an_error() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("etcd"), "").expect("a file");
    let etcd = ready_made(folder.path(), Program::Etcd).expect("there");
    assert_eq!(etcd, Some(folder.path().join("etcd")));
    let error = ready_made(folder.path(), Program::ApiServer).expect_err("not there").to_string();
    assert!(error.contains("there is no kube-apiserver in it"), "{error}");
    assert_eq!(ready_made(folder.path(), Program::ControllerManager).expect("not needed"), None);
}
