//! Tests of building a program, with a script in place of Go.

use super::{Build, Module};
use crate::write_script;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Script in place of Go. For each build, the script adds a line to the file `builds` and writes an executable.
const WORKING_GO: &str = r#"#!/bin/sh
if [ "$1" = version ]; then echo go version go9.9; exit 0; fi
echo "$@" >> ../builds
while [ "$1" != -o ]; do shift; done
echo binary > "$2"
"#;

/// Module of the tests. Its linker flags have the version in go.mod.
const MODULE: Module = Module {
    folder: "kubelet",
    called: "the kubelet",
    takes: "no time",
    instead: "take another machine",
    linker_flags: |build| Ok(format!("-X version={}", build.directive("k8s.io/kubernetes ")?)),
};

fn build(folder: &TempDir, go_script: &str) -> Build {
    let sources = folder.path().join("sources");
    fs::create_dir_all(&sources).expect("a folder");
    fs::write(sources.join("go.mod"), "module m\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/kubernetes v1.35.4\n)\n")
        .expect("go.mod");
    fs::write(sources.join("go.sum"), "sums\n").expect("go.sum");
    fs::write(sources.join("main.go"), "package main\n").expect("main.go");
    let go = folder.path().join("go");
    write_script(&go, go_script).expect("the script");
    Build { module: MODULE, sources, cache: folder.path().join("cache"), go: go.into_os_string() }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_program_is_built_once_however_many_ask_at_the_same_time() {
    let folder = TempDir::new().expect("a folder");
    let build = build(&folder, WORKING_GO);
    let binaries: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(|| build.ensure().expect("a binary"))).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    assert!(binaries.iter().all(|binary| *binary == binaries[0] && binary.is_file()), "{binaries:?}");
    let builds = lines(&folder.path().join("builds"));
    assert_eq!(builds.len(), 1, "{builds:?}");
    assert!(builds[0].contains("-ldflags -s -w -X version=v1.35.4 "), "{builds:?}");
    let name = binaries[0].file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(name.starts_with("kubelet-"), "{name}");
}

#[test]
fn a_change_of_the_sources_is_built_again_beside_the_old_build() {
    let folder = TempDir::new().expect("a folder");
    let build = build(&folder, WORKING_GO);
    let first = build.ensure().expect("a binary");
    fs::write(build.sources.join("go.sum"), "other sums\n").expect("go.sum");
    let second = build.ensure().expect("a binary");
    assert_ne!(first, second);
    assert!(first.is_file() && second.is_file());
}

#[test]
fn a_build_that_fails_leaves_no_binary_and_is_tried_again() {
    let folder = TempDir::new().expect("a folder");
    let failing = WORKING_GO.replace("echo binary > \"$2\"", "echo half > \"$2\"; exit 1");
    let failed = build(&folder, &failing).ensure().expect_err("no binary");
    assert!(failed.to_string().contains("Go could not build the kubelet"), "{failed}");
    build(&folder, WORKING_GO).ensure().expect("a binary");
    assert_eq!(lines(&folder.path().join("builds")).len(), 2);
}

#[test]
fn without_go_the_error_names_what_to_install() {
    let folder = TempDir::new().expect("a folder");
    let mut build = build(&folder, WORKING_GO);
    build.go = OsString::from(folder.path().join("no-such-go"));
    let error = build.ensure().expect_err("no binary").to_string();
    assert!(error.contains("there is no Go"), "{error}");
    assert!(error.contains("install Go 1.25.0 or newer"), "{error}");
    assert!(error.contains("or take another machine"), "{error}");
}

#[test]
fn a_go_that_is_too_old_is_named_with_the_remedy() {
    let folder = TempDir::new().expect("a folder");
    let old = "#!/bin/sh\necho 'go: go.mod requires go >= 1.25.0 (running go 1.20)' >&2\nexit 1\n";
    let error = build(&folder, old).ensure().expect_err("no binary").to_string();
    assert!(error.contains("(running go 1.20)"), "{error}");
    assert!(error.contains("install Go 1.25.0 or newer"), "{error}");
}
