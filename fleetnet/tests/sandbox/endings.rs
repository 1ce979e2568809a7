//! How it is ended from outside, and what is left then: nothing.

use super::{Running, names, text};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn an_interrupt_ends_it_at_any_point() {
    for told in ["\"starting\"", "\"running\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--members", "3"]);
        running.until(told);
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {told}");
    }
    let mut running = Running::start(&["--json", "--once", "--scenario", "hub-down"]);
    running.until("the hub is cut off");
    assert_eq!(running.end(Signal::INT), (Some(130), String::new()), "no verdict, so no 0");
    let mut running = Running::start(&["--json"]);
    running.until("\"change\"");
    assert_eq!(running.end(Signal::TERM), (Some(0), String::new()));
}

#[test]
fn an_interrupt_takes_the_kubeconfigs_and_the_ports_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    for told in ["\"starting\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--kubeconfigs", folder.to_str().unwrap()]);
        running.until(told);
        assert_eq!(names(&folder), ["hub.kubeconfig", "member-1.kubeconfig", "member-2.kubeconfig"]);
        let kubeconfig = std::fs::read_to_string(folder.join("hub.kubeconfig")).unwrap();
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {told}");
        assert_eq!(names(scratch.path()), Vec::<String>::new(), "after {told}");
        if let Some((_, address)) = kubeconfig.split_once("https://") {
            let address = address.split(['"', '\n']).next().unwrap();
            assert!(TcpStream::connect(address).is_err(), "{address} is still open");
        }
    }
}

#[test]
fn a_signal_while_the_files_are_made_takes_them_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let folder = scratch.path().join("configs");
        let running = Running::start(&["--members", "50", "--kubeconfigs", folder.to_str().unwrap()]);
        // The first of 51 files: handlers that come after the last one come too late.
        while !folder.join("hub.kubeconfig").exists() {
            std::thread::yield_now();
        }
        assert_eq!(running.end(signal), (Some(0), String::new()), "{signal:?}");
        assert_eq!(names(scratch.path()), Vec::<String>::new(), "{signal:?}");
    }
}

#[test]
fn twenty_members_need_less_than_256_mebibytes_and_say_something_at_once() {
    let begun = Instant::now();
    let mut running = Running::start(&["--json", "--members", "20"]);
    running.until("\"starting\"");
    assert!(begun.elapsed() < Duration::from_secs(2), "the first words came after {:?}", begun.elapsed());
    running.until("\"event\":\"change\"");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kibibytes < 256 * 1024, "{line}");
    assert_eq!(running.end(Signal::INT), (Some(0), String::new()));
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let mut running = Running::start(&["--json"]);
    running.until("\"change\"");
    let Running { child, output } = running;
    drop(output);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}
