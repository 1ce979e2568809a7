//! Tests of the page of the sandbox.

use super::{LIMIT, Running, run, text};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use tokio::time::Instant;

/// Connects to the page at this URL. Returns its messages: their names and their data.
pub(super) fn messages(url: &str) -> impl Iterator<Item = (String, Value)> {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET /{path}events HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("waited for a message of the page"));
    assert_eq!(lines.next().as_deref(), Some("HTTP/1.1 200 OK"));
    std::iter::from_fn(move || {
        let name = lines.find_map(|line| line.strip_prefix("event: ").map(str::to_owned))?;
        let data = serde_json::from_str(lines.next()?.strip_prefix("data: ").unwrap()).unwrap();
        Some((name, data))
    })
}

/// Returns the data of the first message with this name of the page at this URL.
fn first(name: &str, url: &str) -> Value {
    wanted(name, url, |_| true)
}

/// Waits for a message with this name and with this property, and returns its data.
fn wanted(name: &str, url: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + LIMIT;
    for (event, data) in messages(url).filter(|(event, _)| event == name) {
        if is_wanted(&data) {
            return data;
        }
        assert!(Instant::now() < until, "waited {LIMIT:?} for a message {event}, the last one was {data}");
    }
    panic!("the events go on");
}

#[test]
fn the_address_of_the_page_comes_at_once_and_the_page_shows_the_fleet() {
    let mut running = Running::start(&["--json"]);
    running.until("\"starting\"");
    // The next event is before the clusters run.
    let event: Value = serde_json::from_str(&running.until("\"event\"")).unwrap();
    assert_eq!(event["event"], "page", "{event}");
    let fleet = first("fleet", event["url"].as_str().unwrap());
    let members: Vec<&Value> = fleet["status"]["members"].as_array().unwrap().iter().map(|it| &it["member"]).collect();
    assert_eq!(members, ["member-1", "member-2"], "{fleet:#}");
    assert_eq!((&fleet["status"]["hub"]["reached"], &fleet["services"]["kind"]), (&true.into(), &"ServiceList".into()));
    assert_eq!(running.end(Signal::INT), (Some(0), String::new()));
}

#[test]
fn the_page_shows_an_interruption_of_the_hub() {
    let mut running = Running::start(&["--json", "--scenario", "hub-down"]);
    let event: Value = serde_json::from_str(&running.until("\"page\"")).unwrap();
    let not_read = first("notRead", event["url"].as_str().unwrap());
    assert!(not_read["why"].as_str().unwrap().starts_with("not reached (TCP): "), "{not_read}");
    let (code, errors) = running.end(Signal::INT);
    assert_eq!((code, errors.as_str()), (Some(130), ""), "the scenario has no verdict yet");
}

#[test]
fn the_page_shows_the_event_of_a_conflict() {
    let mut running = Running::start(&["--json", "--scenario", "conflict"]);
    let event: Value = serde_json::from_str(&running.until("\"page\"")).unwrap();
    let url = event["url"].as_str().unwrap();
    let is_found = |line: &Value| line["reason"] == "ConflictFound" && line["kind"] == "ServiceExport";
    let line = wanted("happened", url, is_found);
    let shown = ["cluster", "namespace", "name", "tone"].map(|field| line[field].as_str().unwrap());
    assert_eq!(shown, ["member-2", "work", "shop", "warning"], "{line:#}");
    running.end(Signal::INT);
}

#[test]
fn a_run_that_ends_by_itself_has_no_page() {
    let output = run(&["--once", "--json", "--changes", "1"]);
    assert!(!text(&output.stdout).contains("\"event\":\"page\""), "{}", text(&output.stdout));
    let mut running = Running::start(&[]);
    running.until("the same in a browser: http://127.0.0.1:");
    assert_eq!(running.end(Signal::INT).0, Some(0));
}
