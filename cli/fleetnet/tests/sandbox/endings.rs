//! Tests that a sandbox leaves nothing behind when a signal ends it.

use super::{Running, names, text};
use rustix::process::Signal;
use std::net::SocketAddr;

#[test]
fn an_interrupt_ends_it_at_any_point() {
    for event in ["\"starting\"", "\"running\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--members", "3"]);
        running.until(event);
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {event}");
    }
    let mut running = Running::start(&["--json"]);
    running.until("\"change\"");
    assert_eq!(running.end(Signal::TERM), (Some(0), String::new()));
}

#[test]
fn an_interrupted_scenario_ends_with_a_summary_and_without_a_verdict() {
    for more in [&["--once"][..], &[]] {
        let mut running = Running::start(&[&["--json", "--scenario", "hub-down"], more].concat());
        running.until("the hub is disconnected");
        let (code, rest, errors) = running.end_with_output(Signal::INT);
        assert_eq!((code, errors.as_str()), (Some(130), ""), "{more:?}: no verdict, so no 0: {rest}");
        let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        assert_eq!((&last["event"], &last["interrupted"]), (&"ended".into(), &"hub-down".into()), "{last}");
        assert!(!rest.contains("\"verdict\""), "{rest}");
    }
    let mut running = Running::start(&["--scenario", "hub-down"]);
    running.until("the hub is disconnected");
    let (_, rest, _) = running.end_with_output(Signal::INT);
    let said = "; the scenario hub-down was interrupted, so it has no verdict; removed 3 clusters";
    assert!(rest.contains(said) && !rest.contains("passed"), "{rest}");

    // After its verdict, a scenario cannot be interrupted any more.
    let mut running = Running::start(&["--json", "--scenario", "conflict"]);
    running.until("\"passed\":true");
    let (code, rest, _) = running.end_with_output(Signal::INT);
    let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["event"], &last["interrupted"]), (Some(0), &"ended".into(), &serde_json::Value::Null));
}

#[test]
fn an_interrupt_leaves_a_summary_in_lines_and_in_json() {
    let mut running = Running::start(&["--changes-per-second", "20"]);
    running.until("change 6:");
    let (code, rest, _) = running.end_with_output(Signal::INT);
    assert_eq!(code, Some(0));
    for part in [
        "latency member-1 -> member-2: p50 ",
        "changes cost ",
        "exports and imports were as they should be; removed 3 clusters",
    ] {
        assert!(rest.contains(part), "{part:?} is not in:\n{rest}");
    }

    let mut running = Running::start(&["--json", "--changes-per-second", "20"]);
    running.until("\"event\":\"change\"");
    let (_, rest, _) = running.end_with_output(Signal::INT);
    let kinds = |kind: &str| rest.lines().filter(|line| line.contains(&format!("\"event\":\"{kind}\""))).count();
    assert_eq!((kinds("cost"), kinds("ended")), (1, 1), "{rest}");
    let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["compared"]), (&"ended".into(), &true.into()), "{last}");
    assert_eq!(last["differences"], serde_json::json!([]));
    assert_eq!(last["clusters"], serde_json::json!(["hub", "member-1", "member-2"]));
}

#[test]
fn an_interrupt_takes_the_kubeconfigs_and_the_ports_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("configs");
    for event in ["\"starting\"", "\"change\""] {
        let mut running = Running::start(&["--json", "--kubeconfigs", folder.to_str().unwrap()]);
        running.until(event);
        assert_eq!(names(&folder), ["hub.kubeconfig", "member-1.kubeconfig", "member-2.kubeconfig"]);
        let kubeconfig = std::fs::read_to_string(folder.join("hub.kubeconfig")).unwrap();
        let address = kubeconfig.split_once("https://").and_then(|(_, rest)| rest.split(['"', '\n']).next());
        let address: Option<SocketAddr> = address.map(|address| address.parse().unwrap());
        let socket = address.and_then(listener);
        assert!(socket.is_some() || event == "\"starting\"", "nobody listens at {address:?}");
        assert_eq!(running.end(Signal::INT), (Some(0), String::new()), "after {event}");
        assert_eq!(names(scratch.path()), Vec::<String>::new(), "after {event}");
        if let Some((address, socket)) = address.zip(socket) {
            assert_ne!(listener(address), Some(socket), "{address} is still open");
        }
    }
}

/// Returns the inode of the socket that listens at an address, if any. Another process could use the same port a moment
/// later, but not the same inode.
fn listener(address: SocketAddr) -> Option<u64> {
    let SocketAddr::V4(address) = address else { panic!("{address} is not of IPv4") };
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let sockets = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Columns of /proc/net/tcp: the fourth is the state (`0A` is LISTEN), the tenth is the inode.
    sockets.filter(|socket| socket[1] == local && socket[3] == "0A").find_map(|socket| socket[9].parse().ok())
}

#[test]
fn a_signal_while_the_files_are_made_takes_them_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let folder = scratch.path().join("configs");
        let mut running = Running::start(&["--members", "50", "--kubeconfigs", folder.to_str().unwrap()]);
        // Wait for the first of 51 files, and then send the signal. If signal handlers were installed only after the
        // last file, the signal would leave files behind.
        while !folder.join("hub.kubeconfig").exists() {
            assert_eq!(running.child.try_wait().unwrap(), None, "it ended before it made a file");
            std::thread::yield_now();
        }
        assert_eq!(running.end(signal), (Some(0), String::new()), "{signal:?}");
        assert_eq!(names(scratch.path()), Vec::<String>::new(), "{signal:?}");
    }
}

/// Returns the processor time of a process, in milliseconds.
fn processor_milliseconds(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // `fields` begins with the third field of /proc/PID/stat, so 11 fields are skipped. Fields 14 and 15 are user and
    // system time in ticks of 10 ms.
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap());
    ticks.sum::<u64>() * 10
}

#[test]
fn twenty_members_need_less_than_256_mebibytes_and_say_something_at_once() {
    let mut running = Running::start(&["--json", "--members", "20"]);
    running.until("\"starting\"");
    // Measure processor time, because elapsed time depends on the load of the machine.
    let milliseconds = processor_milliseconds(running.child.id());
    assert!(milliseconds < 1000, "the first words came after {milliseconds} ms of processor time");
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
    let Running { child, output, limit } = running;
    drop(output);
    let output = child.wait_with_output().unwrap();
    limit.check("its end without a reader");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}
