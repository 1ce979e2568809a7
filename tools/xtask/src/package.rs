//! Tests of the package of the EndpointSlice library, the only crate that others can use.

use programs::root;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {error}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs `cargo package` without a build and without a network. Returns its output.
fn package(folder: &Path, more: &[&str]) -> String {
    let target = folder.to_str().expect("a name in UTF-8");
    let common =
        ["package", "-p", "endpointslice", "--offline", "--no-verify", "--allow-dirty", "--target-dir", target];
    run(&root(), env!("CARGO"), &[&common, more].concat())
}

#[test]
fn the_package_has_the_sources_the_readme_and_the_license_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = package(folder.path(), &["--list"]);
    let files: BTreeSet<&str> = list.lines().filter(|file| !file.starts_with("src/")).collect();
    let generated = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];
    let own: BTreeSet<&str> = files.into_iter().filter(|file| !generated.contains(file)).collect();
    assert_eq!(own, BTreeSet::from(["Cargo.toml", "LICENSE", "README.md"]));
    for file in ["src/lib.rs", "src/limits.rs", "src/plan/diff.rs", "src/metrics/exposition.txt"] {
        assert!(list.lines().any(|listed| listed == file), "{file} is missing");
    }
}

#[test]
fn the_readme_says_what_stays_compatible() {
    let readme = std::fs::read_to_string(root().join("endpointslice/README.md")).expect("it is there");
    let section = readme.split("\n## ").find(|section| section.starts_with("Compatibility\n")).expect("a section");
    for part in ["API", "Slices", "Names", "Kubernetes", "Rust", "Not covered"] {
        assert!(section.contains(&format!("- **{part}**: ")), "{part}");
    }
}

#[test]
fn the_packaged_manifest_names_no_path_and_no_kubernetes_version() {
    let folder = tempfile::tempdir().expect("a folder");
    package(folder.path(), &[]);
    let archive = "package/endpointslice-0.1.0.crate";
    let manifest = run(folder.path(), "tar", &["-xOzf", archive, "endpointslice-0.1.0/Cargo.toml"]);
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let is_path = line.starts_with("path = ") && section != "[lib]";
        assert!(!is_path, "{section} has {line}: the crate is of this workspace alone");
        // A feature `v1_…` of k8s-openapi selects a version of Kubernetes. Only the program that uses the library may
        // select a version, not the library.
        let is_version = line.trim().starts_with("\"v1_") && section != "[dev-dependencies.k8s-openapi]";
        assert!(!is_version, "{section} has {line}");
    }
    assert!(manifest.contains("\npublish = true\n"), "{manifest}");
    let dependencies: Vec<&str> = manifest.lines().filter_map(|line| line.strip_prefix("[dependencies.")).collect();
    assert!(dependencies.len() >= 8, "{dependencies:?}");
}
