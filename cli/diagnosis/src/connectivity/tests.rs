//! Tests of targets, scripts, logs and faults, with the fleet of the fixture.

use super::*;
use crate::codes::Code;
use crate::explain::Filter;
use crate::fixture::{app, healthy, set};
use crate::report::Verdict;
use crate::snapshot::{Listing, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Returns a fleet whose derived Service has an address and these ports.
fn fleet(ports: &Value) -> Snapshot {
    let mut snapshot = healthy();
    let spec = json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"], "ports": ports});
    set(&mut snapshot.members[0].services, "/spec", spec);
    snapshot
}

fn http() -> Value {
    json!([{"name": "http", "port": 80, "protocol": "TCP"}])
}

fn planned(snapshot: &Snapshot) -> Pair {
    let mut pairs = pairs(snapshot, &app(), &Filter::default());
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    pairs.remove(0)
}

fn shown(pair: &Pair) -> Vec<String> {
    pair.targets.iter().map(|target| format!("{} {}", target.by.word(), target.address())).collect()
}

#[test]
fn each_pair_has_its_endpoints_its_service_and_its_name_as_targets() {
    let pair = planned(&fleet(&http()));
    let expected = ["address 10.1.0.1:8080", "Service 10.96.0.7:80", "name shop-app.fleet-system.svc:80"];
    assert_eq!(shown(&pair), expected);
    assert_eq!((pair.exporter.as_deref(), pair.importer.as_deref()), (Some("west"), Some("east")));
    assert!(pair.left_out.is_empty() && pair.not_tested.is_empty(), "{pair:?}");
    assert_eq!(targets(std::slice::from_ref(&pair), "east"), pair.targets);
    assert_eq!(targets(std::slice::from_ref(&pair), "west"), []);
    let mut from_here = pair;
    from_here.leave_out_names();
    assert_eq!(
        (shown(&from_here).as_slice(), from_here.left_out.as_slice()),
        (&shown(&from_here)[..2], &["names".to_owned()][..])
    );
}

#[test]
fn clients_of_a_headless_service_connect_to_the_ports_of_its_endpoints() {
    let mut snapshot = healthy();
    set(&mut snapshot.members[0].services, "/spec", json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    assert_eq!(shown(&planned(&snapshot)), ["address 10.1.0.1:8080", "name shop-app.fleet-system.svc:8080"]);
}

#[test]
fn two_ports_of_a_service_that_lead_to_one_port_are_one_target() {
    let mut snapshot = fleet(&json!([{"name": "http", "port": 80}, {"name": "direct", "port": 8080}]));
    set(
        &mut snapshot.members[0].slices,
        "/ports",
        json!([{"name": "http", "port": 8080}, {"name": "direct", "port": 8080}]),
    );
    let pair = planned(&snapshot);
    assert_eq!(shown(&pair).iter().filter(|it| it.starts_with("address")).count(), 1, "{pair:?}");
    let outcomes = |target: &Target| if target.by == By::Service { Outcome::Refused } else { Outcome::Connected };
    let outcomes: Outcomes = pair.targets.iter().map(|target| (target.clone(), outcomes(target))).collect();
    let result = judge(&[pair], &BTreeMap::from([("east".to_owned(), outcomes)]));
    let value = &result.pairs[0].findings[0].evidence.value;
    assert!(value.contains("10.96.0.7:80 refused") && value.contains("10.96.0.7:8080 refused"), "{value}");
}

#[test]
fn what_is_left_out_is_said() {
    let ports = json!([{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    let mut snapshot = fleet(&ports);
    let endpoint =
        |number: usize| json!({"addresses": [format!("10.1.0.{number}")], "conditions": {"ready": number != 2}});
    let endpoints: Vec<Value> = (1..=6).map(endpoint).collect();
    let ports = json!([{"name": "http", "port": 8080}, {"name": "dns", "port": 5353, "protocol": "UDP"}, {"name": "other", "port": 1}]);
    set(&mut snapshot.members[0].slices, "/endpoints", json!(endpoints));
    set(&mut snapshot.members[0].slices, "/ports", ports);
    let pair = planned(&snapshot);
    let addresses: Vec<String> = shown(&pair).into_iter().filter(|it| it.starts_with("address")).collect();
    let expected = ["address 10.1.0.1:8080", "address 10.1.0.3:8080", "address 10.1.0.4:8080"];
    assert_eq!(
        addresses, expected,
        "an endpoint that is not ready is no target, and neither is a port that the Service lacks"
    );
    assert_eq!(pair.left_out, ["UDP port 5353", "2 more addresses of port 8080"]);
    set(&mut snapshot.members[0].slices, "/ports", json!([{"name": "dns", "port": 5353, "protocol": "UDP"}]));
    let pair = planned(&snapshot);
    assert_eq!((pair.targets.len(), pair.not_tested.len()), (0, 1), "{pair:?}");
    assert_eq!(judge(&[pair], &BTreeMap::new()).verdict, Verdict::NotKnown);
}

#[test]
fn a_pair_without_endpoints_is_not_tested_and_says_why() {
    let mut snapshot = fleet(&http());
    snapshot.members[0].slices = Listing::of(Vec::new());
    let pair = planned(&snapshot);
    assert!(
        pair.targets.is_empty() && pair.not_tested[0].starts_with("east has no endpoints of west: FN6"),
        "{pair:?}"
    );
    snapshot.members[0].slices = Listing::Unknown("timeout".to_owned());
    assert!(planned(&snapshot).not_tested[0].contains("could not be read: timeout"));
    let other = fleetnet_types::ObjectName::new("shop", "other");
    let pairs = pairs(&snapshot, &other, &Filter::default());
    assert_eq!(judge(&pairs, &BTreeMap::new()).verdict, Verdict::NotKnown, "{pairs:?}");
}

/// Returns the verdict and the codes of a pair whose targets have these outcomes: address, Service and name.
fn judged(pair: &Pair, outcomes: [Outcome; 3]) -> (Verdict, Vec<Code>) {
    let outcomes: Outcomes = pair.targets.iter().cloned().zip(outcomes).collect();
    let result = judge(std::slice::from_ref(pair), &BTreeMap::from([("east".to_owned(), outcomes)]));
    let codes = result.pairs[0].findings.iter().map(|finding| finding.code).collect();
    (result.verdict, codes)
}

#[test]
fn the_first_step_that_fails_is_the_fault() {
    use Outcome::{Connected, NameNotResolved, NoRoute, NotTested, Refused, TimedOut};
    let pair = planned(&fleet(&http()));
    let not_tested = || NotTested(String::new());
    let table = [
        ([Connected, Connected, Connected], Verdict::Healthy, None),
        ([TimedOut, TimedOut, NameNotResolved], Verdict::Fault, Some(Code::FN704)),
        ([NoRoute, Connected, Connected], Verdict::Fault, Some(Code::FN704)),
        ([Refused, Refused, Refused], Verdict::Fault, Some(Code::FN708)),
        ([Connected, Refused, Refused], Verdict::Fault, Some(Code::FN709)),
        ([Connected, TimedOut, NameNotResolved], Verdict::Fault, Some(Code::FN709)),
        ([Connected, Connected, NameNotResolved], Verdict::Fault, Some(Code::FN710)),
        ([Connected, Connected, TimedOut], Verdict::Fault, Some(Code::FN710)),
        ([not_tested(), Connected, Connected], Verdict::NotKnown, None),
        ([not_tested(), TimedOut, TimedOut], Verdict::NotKnown, None),
        ([Connected, not_tested(), NameNotResolved], Verdict::NotKnown, None),
        ([not_tested(), not_tested(), not_tested()], Verdict::NotKnown, None),
    ];
    for (outcomes, verdict, code) in table {
        let expected = (verdict, Vec::from_iter(code));
        assert_eq!(judged(&pair, outcomes.clone()), expected, "{outcomes:?}");
    }
    assert_eq!(judge(&[pair], &BTreeMap::new()).verdict, Verdict::NotKnown);
}

#[test]
fn a_fault_has_evidence_and_a_remedy() {
    let pair = planned(&fleet(&http()));
    let outcomes = pair.targets.iter().cloned().zip([Outcome::NoRoute, Outcome::NoRoute, Outcome::NoRoute]).collect();
    let result = judge(&[pair], &BTreeMap::from([("east".to_owned(), outcomes)]));
    let finding = &result.pairs[0].findings[0];
    assert_eq!(finding.evidence.value, "1 of 1 addresses: 10.1.0.1:8080 no route");
    assert_eq!((finding.evidence.cluster.as_str(), finding.evidence.kind.as_str()), ("east", "EndpointSlice"));
    assert!(finding.remedy.contains("`fleetnet test connectivity shop/app`"), "{finding:?}");
    let json = serde_json::to_value(&result).expect("it serializes");
    assert_eq!(json["pairs"][0]["results"][0]["outcome"], "noRoute");
    assert_eq!(json["pairs"][0]["results"][2]["by"], "name");
}

#[test]
fn a_service_is_not_blamed_for_the_endpoints_of_another_exporter() {
    let pair = planned(&fleet(&http()));
    let mut other = pair.clone();
    other.exporter = Some("north".to_owned());
    other.targets[0].host = "10.2.0.1".to_owned();
    let mut outcomes: Outcomes = pair.targets.iter().cloned().map(|target| (target, Outcome::TimedOut)).collect();
    outcomes.insert(pair.targets[0].clone(), Outcome::Connected);
    outcomes.insert(other.targets[0].clone(), Outcome::TimedOut);
    let result = judge(&[pair, other], &BTreeMap::from([("east".to_owned(), outcomes)]));
    let codes: Vec<_> =
        result.pairs.iter().map(|pair| pair.findings.iter().map(|it| it.code).collect::<Vec<_>>()).collect();
    assert_eq!(codes, [vec![], vec![Code::FN704]]);
}

#[test]
fn pods_of_two_clusters_with_the_same_addresses_are_the_fault_whoever_answers() {
    let mut snapshot = fleet(&http());
    let pod = json!({"metadata": {"name": "a", "namespace": "shop"}, "status": {"podIP": "10.1.0.1"}});
    snapshot.members[0].pods = Listing::of(vec![crate::fixture::built_in(pod)]);
    set(
        &mut snapshot.members[1].slices,
        "/endpoints",
        json!([{"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod"}}]),
    );
    let pair = planned(&snapshot);
    let connected = [Outcome::Connected, Outcome::Connected, Outcome::Connected];
    assert_eq!(judged(&pair, connected), (Verdict::Fault, vec![Code::FN707]));
}

#[test]
fn endpoints_that_have_ended_are_no_fault() {
    let mut snapshot = fleet(&http());
    let pair = planned(&snapshot);
    let mut outcomes: Outcomes = pair.targets.iter().cloned().map(|target| (target, Outcome::TimedOut)).collect();
    drop_gone(&mut outcomes, std::slice::from_ref(&pair), "east");
    assert!(outcomes.values().all(|outcome| *outcome == Outcome::TimedOut));
    set(&mut snapshot.members[0].slices, "/endpoints", json!([{"addresses": ["10.1.0.9"]}]));
    drop_gone(&mut outcomes, &[planned(&snapshot)], "east");
    assert!(matches!(outcomes[&pair.targets[0]], Outcome::NotTested(_)));
    assert_eq!(outcomes[&pair.targets[1]], Outcome::TimedOut);
}

fn target(by: By, host: &str, port: u16) -> Target {
    Target { by, host: host.to_owned(), port, port_names: [String::new()].into() }
}

#[test]
fn messages_of_nc_have_outcomes() {
    let table = [
        (0, "", Outcome::Connected),
        (0, "Connection to 10.1.0.1 8080 port [tcp/*] succeeded!", Outcome::Connected),
        (1, "nc: can't connect to remote host (10.1.0.1): Connection refused", Outcome::Refused),
        (1, "nc: 10.1.0.1 (10.1.0.1:8080): Connection refused", Outcome::Refused),
        (1, "nc: connect to 10.1.0.1 port 8080 (tcp) failed: Connection refused", Outcome::Refused),
        (1, "nc: connect to 10.1.0.1 port 8080 (tcp) timed out: Operation now in progress", Outcome::TimedOut),
        (1, "nc: timed out", Outcome::TimedOut),
        (124, "", Outcome::TimedOut),
        (143, "Terminated", Outcome::TimedOut),
        (1, "nc: can't connect to remote host (10.1.0.1): No route to host", Outcome::NoRoute),
        (1, "nc: can't connect to remote host: Network is unreachable", Outcome::NoRoute),
        (1, "nc: bad address 'web.shop.svc.clusterset.local'", Outcome::NameNotResolved),
        (1, "nc: getaddrinfo for host \"web\" port 80: Temporary failure in name resolution", Outcome::NameNotResolved),
    ];
    for (code, message, expected) in table {
        assert_eq!(outcome(code, message, By::Address), expected, "{message}");
    }
    assert_eq!(outcome(124, "", By::Name), Outcome::NameNotResolved);
    assert!(matches!(outcome(127, "sh: nc: not found", By::Name), Outcome::NotTested(_)));
    assert!(matches!(outcome(1, "nc: something else", By::Name), Outcome::NotTested(_)));
}

#[test]
fn a_log_with_garbage_or_without_its_end_gives_the_results_that_it_has() {
    let targets =
        [target(By::Address, "10.1.0.1", 80), target(By::Service, "10.96.0.7", 80), target(By::Name, "web", 80)];
    let log = "\u{0}\u{fffd}garbage\nfleetnet-result 1 1 nc: Connection refused\nfleetnet-result 9 0 x\nfleetnet-result -1 0 x\n\
               fleetnet-result\nfleetnet-result 0\nfleetnet-result x y z\nfleetnet-result 0 0 \nfleetnet-result 0 1 refused\n\
               fleetnet-result 2 ";
    let outcomes = parse(log, &targets, "the pod has ended");
    let expected = [Outcome::Connected, Outcome::Refused, Outcome::NotTested("the pod has ended".to_owned())];
    assert_eq!(targets.map(|target| outcomes[&target].clone()), expected);
}

#[test]
fn a_shell_runs_the_script_and_no_text_of_an_object_becomes_a_command() {
    let marker = std::env::temp_dir().join(format!("fleetnet-connectivity-{}", std::process::id()));
    let hostile = format!("a'; touch {}; '$(touch {0})`touch {0}`", marker.display());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let targets = [
        target(By::Address, "127.0.0.1", port),
        target(By::Address, &hostile, 80),
        target(By::Address, "127.0.0.1", 1),
    ];
    let mut shell = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    shell.stdin.take().expect("a pipe").write_all(script(&targets).as_bytes()).expect("the script is written");
    let log = shell.wait_with_output().expect("the shell ends").stdout;
    let log = String::from_utf8(log).expect("text");
    assert!(!marker.exists(), "{log}");
    assert_eq!(log.matches("fleetnet-result").count(), 3, "{log}");
    // A machine without `nc` shows at least that the script runs.
    if Command::new("nc").arg("-h").stderr(Stdio::null()).stdout(Stdio::null()).status().is_ok() {
        let outcomes = parse(&log, &targets, "");
        assert_eq!(outcomes[&targets[0]], Outcome::Connected, "{log}");
        assert_ne!(outcomes[&targets[1]], Outcome::Connected, "{log}");
        assert_eq!(outcomes[&targets[2]], Outcome::Refused, "{log}");
    }
}

#[test]
fn connections_run_in_groups() {
    let many: Vec<Target> = (1..=70).map(|port| target(By::Address, "10.1.0.1", port)).collect();
    assert_eq!(script(&many).matches("\nwait").count(), 3);
    assert!(script(&[target(By::Address, "fd00::1", 80)]).contains("try 0 4 fd00::1 80 &\nwait\n"));
}
