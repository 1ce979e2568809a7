//! Tests of options that the sandbox rejects, and of the messages.

use super::{names, output, run, sandbox, text};
use std::fs::File;
use std::net::TcpListener;

/// Runs the sandbox with options that it must reject: one line on standard error that contains `named`, and exit
/// code 2.
fn rejects(arguments: &[&str], named: &str) {
    let output = run(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(named), "{arguments:?}: {error}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
}

#[test]
fn an_impossible_option_is_rejected_on_one_line() {
    // The tests of the command line cover all options.
    rejects(&["--scenario", "flood"], "hub-down, agent-killed, member-silent, conflict, slice-storm");
    rejects(&["--port", "8001"], "--kubeconfigs");
    rejects(&["--changes-per-second", "-1"], "--changes-per-second");
    rejects(&["--kubeconfigs", "a\nb/c"], "control characters");
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    for view in [&["--once"][..], &["--once", "--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = output(sandbox(view).stdout(full));
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.starts_with("error: standard output cannot be written to: "), "{error}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_rejected_and_nothing_is_left() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    rejects(&["--kubeconfigs", file.to_str().unwrap()], "cannot make this folder");
    rejects(&["--kubeconfigs", file.join("below").to_str().unwrap()], "cannot make this folder");
    rejects(&["--kubeconfigs", scratch.path().join("no/parent").to_str().unwrap()], "cannot make this folder");
    assert_eq!(names(scratch.path()), ["file"]);
}

#[test]
fn a_port_that_is_taken_is_rejected_and_nothing_is_left() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    rejects(&["--kubeconfigs", folder.to_str().unwrap(), "--port", &port], &format!("127.0.0.1:{port}"));
    assert_eq!(names(scratch.path()), Vec::<String>::new());
}
