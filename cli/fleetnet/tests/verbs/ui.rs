//! Tests of `fleetnet ui`: the page, its guard, and its documents, which equal those of the other commands.

use crate::fleet::Fleet;
use crate::hub::{Cluster, folder, hub_and_west};
use crate::program::{run, run_with};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use memkube::{Call, Verb};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Time limit of each wait. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Headers of every answer.
const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of a request, besides `Host`.
type More<'a> = &'a [(&'a str, &'a str)];

/// Running `fleetnet ui`.
struct Ui {
    child: Child,
    /// Address and port.
    host: String,
    /// Path of the page, with its token.
    path: String,
}

impl Ui {
    /// Starts the command, and waits for its address.
    async fn start(flags: &[String]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
        command.args(["ui", "--interval", "50ms"]).args(flags).env_clear();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(LIMIT, lines.next_line()).await.expect("waited for the address of the page");
        let line = line.unwrap().expect("it prints the address of the page");
        let (host, path) = line.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    /// Sends a request.
    async fn send(&self, method: Method, path: &str, host: &str, more: More<'_>) -> Response<Incoming> {
        let stream = TcpStream::connect(&self.host).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header("host", host);
        let request = more.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap());
        timeout(LIMIT, answer).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for {path}")).unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        received(self.send(Method::GET, &format!("{}{path}", self.path), &self.host, &[]).await).await
    }

    async fn json(&self, path: &str) -> Value {
        let (status, headers, text) = self.get(path).await;
        assert_eq!(
            (status, &headers["content-type"]),
            (StatusCode::OK, &"application/json".parse().unwrap()),
            "{text}"
        );
        serde_json::from_str(&text).unwrap()
    }

    async fn events(&self) -> Events {
        let path = format!("{}events", self.path);
        let response = self.send(Method::GET, &path, &self.host, &[("sec-fetch-site", "same-origin")]).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { body: response.into_body(), text: String::new() }
    }

    /// Ends the command as Ctrl-C does.
    async fn end(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let ended = timeout(LIMIT, self.child.wait()).await.expect("waited for the end after Ctrl-C").unwrap();
        assert_eq!(ended.code(), Some(0));
    }
}

async fn received(response: Response<Incoming>) -> (StatusCode, HeaderMap, String) {
    let (parts, body) = response.into_parts();
    let body = timeout(LIMIT, body.collect()).await.expect("waited for the content of an answer").unwrap();
    (parts.status, parts.headers, String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

/// Server-sent events.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    /// Returns the data of the next event of this name.
    async fn next(&mut self, name: &str) -> Value {
        let found = async {
            loop {
                if let Some((message, rest)) = self.text.split_once("\n\n") {
                    let data = message.strip_prefix(&format!("event: {name}\ndata: ")).map(str::to_owned);
                    self.text = rest.to_owned();
                    if let Some(data) = data {
                        return serde_json::from_str(&data).unwrap();
                    }
                    continue;
                }
                let frame = self.body.frame().await.expect("the events go on").unwrap();
                self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
            }
        };
        timeout(LIMIT, found).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the event {name}"))
    }
}

/// Removes what changes all the time while endpoints change.
fn settled(mut document: Value) -> Value {
    for member in document["members"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        member.retain(|name, _| !["heardSeconds", "clockMilliseconds"].contains(&name.as_str()));
    }
    for cell in document["cells"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        cell.retain(|name, _| ["origin", "destination", "boundsMilliseconds"].contains(&name.as_str()));
    }
    document
}

/// Waits until a document of the page equals the document of a command.
async fn equals(verb: &[&str], flags: &[String], kind: &str, read: impl AsyncFn() -> Value) {
    let mut last = (Value::Null, Value::Null);
    let is_equal = async {
        loop {
            last = (settled(read().await), settled(run_with(verb, flags, &["-o", "json"]).await.json(kind)));
            if last.0 == last.1 {
                return;
            }
        }
    };
    let ended = timeout(LIMIT, is_equal).await;
    assert!(ended.is_ok(), "waited {LIMIT:?} for the same document of {verb:?}: {:#}\n{:#}", last.0, last.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_the_documents_of_the_commands() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let ui = Ui::start(&flags).await;
    for (verb, kind) in [("status", "Status"), ("services", "ServiceList"), ("latency", "LatencyMatrix")] {
        // The first message on a connection has all documents.
        equals(&[verb], &flags, kind, async || ui.events().await.next("fleet").await[verb].take()).await;
    }
    let explain = ["explain", "work/app"];
    equals(&explain, &flags, "Explanation", async || ui.json("service/work/app").await["explanation"].take()).await;
    equals(&["explain", "--list-codes"], &flags, "Codes", async || ui.json("codes").await).await;
    let answer = ui.json("service/work/app").await;
    let count = |importer: &str, exporter: &str| {
        let counts = answer["endpoints"].as_array().unwrap();
        let found = counts.iter().find(|it| it["importer"] == importer && it["exporter"] == exporter);
        found.map(|it| it["ready"].clone())
    };
    assert_eq!(count("member-1", "member-2"), Some(6.into()), "{answer:#}");
    assert_eq!(answer["endpoints"].as_array().unwrap().len(), 4, "{answer:#}");
    assert_eq!(answer["conflicts"], Value::Array(Vec::new()));
    ui.end().await;
    fleet.end().await;
}

/// True if each step of a way is done at a known time, and no step is before an earlier one.
fn has_arrived(way: &Value) -> bool {
    let steps = way["steps"].as_array().unwrap();
    let is_done = |step: &Value| step["state"] == "done" && step["time"].is_string() && step["clocksDiffer"] == false;
    let points: Vec<&Value> = steps.iter().map(|step| &step["point"]).collect();
    points == ["changed", "seen", "exported", "distributed", "imported"]
        && steps.iter().all(is_done)
        && steps[1..].iter().all(|step| step["since"].is_object())
        && way["whole"].is_object()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_the_way_of_its_changes_and_its_last_events() {
    let fleet = Fleet::start(2).await;
    let ui = Ui::start(&fleet.flags(&["hub", "member-1", "member-2"])).await;
    let mut events = ui.events().await;
    let mut last = Value::Null;
    let is_complete = async {
        loop {
            last = ui.json("service/work/app").await;
            let [ways, events] = ["ways", "events"].map(|field| last[field].as_array().unwrap());
            let is_of_pair = |way: &&Value| way["exporter"] == "member-2" && way["importer"] == "member-1";
            let has = |cluster: &str, reason: &str| {
                events.iter().any(|event| event["cluster"] == cluster && event["reason"] == reason)
            };
            // Two slices of two exporters in two importers.
            if ways.len() == 8
                && ways.iter().filter(is_of_pair).any(has_arrived)
                && has("hub", "ImportersChanged")
                && has("member-1", "FoundServiceImport")
            {
                return;
            }
        }
    };
    let ended = timeout(LIMIT, is_complete).await;
    assert!(ended.is_ok(), "waited {LIMIT:?} for a change that has arrived and for Events: {last:#}");
    assert_eq!((&last["waysLeftOut"], &last["eventsNotRead"]), (&0.into(), &Value::Array(Vec::new())));
    let line = async { while events.next("happened").await["reason"] != "FoundServiceImport" {} };
    timeout(LIMIT, line).await.expect("waited for the Event in the list of what happens");
    ui.end().await;
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_its_files_are_protected_and_nothing_is_written() {
    let folder = folder();
    let (hub, west) = hub_and_west(folder.path()).await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let writes = || {
        let audits = [&hub, &west].map(|cluster| cluster.server.memkube().audit());
        let counts = audits.into_iter().flat_map(|audit| audit.counts);
        // A review of rights creates nothing.
        let counts = counts.filter(|(kind, _)| kind.verb.writes() && !kind.resource.contains("accessreviews"));
        counts.map(|(_, times)| times).sum::<u64>()
    };
    let before = writes();
    let ui = Ui::start(&[hub.flag(), west.flag(), "--hub-context=admin@hub".to_owned()]).await;
    let files = [
        ("", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
        ("favicon.svg", "image/svg+xml"),
    ];
    for (path, content_type) in files {
        let (status, headers, text) = ui.get(path).await;
        assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &content_type.parse().unwrap()));
        assert_eq!(headers["content-security-policy"], POLICY);
        assert!(!text.is_empty() && HEADERS.iter().all(|(name, value)| headers[*name] == *value), "{headers:?}");
        assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control")), "{headers:?}");
        assert_eq!(headers["connection"], "close", "a client that reads no answers keeps no place");
    }
    let page = ui.path.clone();
    let port = ui.host.rsplit_once(':').unwrap().1.to_owned();
    let [rebound, local] = ["evil.example", "localhost"].map(|name| format!("{name}:{port}"));
    let wrong = format!("/{}/", "0".repeat(32));
    let (cross, none): (More<'_>, More<'_>) = (&[("sec-fetch-site", "cross-site")], &[]);
    let events = format!("{page}events");
    let table = [
        (Method::GET, page.as_str(), rebound.as_str(), none, StatusCode::MISDIRECTED_REQUEST),
        (Method::GET, &wrong, &ui.host, none, StatusCode::NOT_FOUND),
        (Method::GET, "/", &ui.host, none, StatusCode::NOT_FOUND),
        (Method::GET, &page, &ui.host, cross, StatusCode::FORBIDDEN),
        (Method::POST, &page, &ui.host, none, StatusCode::METHOD_NOT_ALLOWED),
        (Method::HEAD, &page, &local, none, StatusCode::OK),
        (Method::HEAD, &events, &local, none, StatusCode::OK),
    ];
    for (method, path, host, more, expected) in table {
        let (status, headers, text) = received(ui.send(method.clone(), path, host, more).await).await;
        assert_eq!((status, text.as_str()), (expected, ""), "{method} {path} {host} {more:?}");
        assert_eq!(headers["content-security-policy"], POLICY);
    }
    assert_eq!(ui.get("../Cargo.toml").await.0, StatusCode::NOT_FOUND);
    let (status, _, text) = ui.get("service/Shop/%3Cscript%3E").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("is not the name of a Service: use NAMESPACE/NAME"), "{text}");
    let first = ui.events().await.next("fleet").await;
    assert_eq!(first["status"]["members"][0]["member"], "west", "{first:#}");
    assert_eq!(ui.json("service/shop/web").await["explanation"]["kind"], "Explanation");
    assert_eq!(writes(), before, "nothing is written");
    ui.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_answer_is_shown_and_what_happens_has_a_line() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let flags = [hub.flag(), "--request-timeout=5s".to_owned()];
    let ui = Ui::start(&flags).await;
    let mut events = ui.events().await;
    events.next("fleet").await;
    hub.server.make_namespace("fleet-member-east").await.unwrap();
    let line = events.next("happened").await;
    assert_eq!((&line["cluster"], &line["reason"]), (&"east".into(), &"Joined".into()), "{line}");
    drop(hub);
    let not_read = events.next("notRead").await;
    assert!(not_read["why"].as_str().unwrap().starts_with("not reached ("), "{not_read}");
    let lost = ui.events().await.next("happened").await;
    assert_eq!(lost, line, "a page that connects gets the last lines");
    ui.end().await;
    // The hub is gone from the beginning.
    let ui = Ui::start(&flags).await;
    ui.events().await.next("notRead").await;
    ui.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_user_may_not_list_are_left_out_and_are_no_fault() {
    let folder = folder();
    let (hub, west) = hub_and_west(folder.path()).await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let ui = Ui::start(&[hub.flag(), west.flag(), "--hub-context=admin@hub".to_owned()]).await;
    let mut events = ui.events().await;
    let first = events.next("fleet").await;
    assert_eq!(first["eventsNotRead"], json!([]), "{first:#}");
    let policy = |call: &Call| call.verb == Verb::Create || &*call.target.resource != "events";
    hub.server.memkube().set_policy(Arc::new(policy));
    let expected = json!(["hub: this user may not list Events"]);
    let next = async {
        loop {
            let message = events.next("fleet").await;
            if message["eventsNotRead"] == expected {
                return message;
            }
        }
    };
    let message = timeout(LIMIT, next).await.expect("waited for Events that are not read");
    assert_eq!(message["contextsNotRead"], json!([]), "{message:#}");
    let answer = ui.json("service/shop/web").await;
    assert_eq!((&answer["events"], &answer["eventsNotRead"]), (&json!([]), &expected), "{answer:#}");
    ui.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_context_or_address_is_a_usage_error() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let ended = run(["ui", &hub.flag(), "--hub-context=east"]).await.expect(2);
    assert!(ended.errors.contains("context east: NoContext: ") && ended.output.is_empty(), "{ended:?}");
    let ended = run(["ui", &hub.flag(), "--listen=here"]).await.expect(2);
    assert!(ended.errors.contains("--listen"), "{ended:?}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let ended = run(["ui", &hub.flag(), &format!("--listen={address}")]).await.expect(1);
    assert!(ended.errors.contains(&format!("--listen {address}: cannot serve the page: ")), "{ended:?}");
}
