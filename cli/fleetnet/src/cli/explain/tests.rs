//! Tests of the text of an explanation.

use super::*;
use crate::cli::output::render;
use crate::cli::view::exit_of;
use diagnosis::Code;
use diagnosis::report::{Api, Evidence, Finding, Pair, Step};

fn shown(all: bool) -> Shown {
    let step = |code: Code, outcome, detail: &str| Step { code, title: "a title", outcome, detail: detail.to_owned() };
    let evidence = Evidence {
        cluster: "hub".to_owned(),
        kind: "InternalServiceExport".to_owned(),
        namespace: "fleet-member-west".to_owned(),
        name: "work-app".to_owned(),
        field: "status.conditions".to_owned(),
        value: "Conflict\x1b[31m".to_owned(),
        time: Some("2026-11-23T06:00:00Z".to_owned()),
        command: "kubectl --context hub get".to_owned(),
        remedy: None,
    };
    let finding = |code: Code| Finding {
        code,
        title: "a conflict",
        reasons: vec!["ConflictFound"],
        evidence: evidence.clone(),
        remedy: "use the same ports".to_owned(),
    };
    let broken = Pair {
        api: Api::Fleet,
        exporter: Some("west".to_owned()),
        importer: None,
        steps: vec![
            step(Code::FN101, Outcome::Ok, ""),
            step(Code::FN105, Outcome::Skipped, "x"),
            step(Code::FN106, Outcome::Unknown, "timeout"),
            step(Code::FN312, Outcome::Broken, "ports differ"),
        ],
        cause: Some(finding(Code::FN312)),
        earlier_unknown: true,
        verdict: Verdict::Fault,
    };
    let healthy = Pair {
        api: Api::Mcs,
        exporter: Some("east".to_owned()),
        importer: Some("north".to_owned()),
        steps: vec![step(Code::FN101, Outcome::Ok, "")],
        cause: None,
        earlier_unknown: false,
        verdict: Verdict::Healthy,
    };
    let explanation = Explanation {
        api_version: diagnosis::report::API_VERSION,
        kind: "Explanation",
        namespace: "work".to_owned(),
        name: "app".to_owned(),
        pairs: vec![broken, healthy],
        notices: vec![finding(Code::FN212)],
        verdict: Verdict::Fault,
        not_known: Vec::new(),
    };
    shown_of(explanation, all)
}

fn shown_of(explanation: Explanation, all: bool) -> Shown {
    let (names_to_call, importers, not_reached, similar) = Default::default();
    Shown { explanation, names_to_call, importers, not_reached, similar, all, is_strict: false }
}

fn text(all: bool, output: Format, paint: Paint) -> String {
    render(&shown(all), OutputFlags { output, ..OutputFlags::default() }, paint).to_string()
}

#[test]
fn the_cause_comes_with_evidence_and_remedy() {
    assert_eq!(
        text(false, Format::Table, Paint::Plain),
        format!(
            "\
west → nobody: FN312 a conflict
  unknown  FN106 {fn106}: timeout
  broken   FN312 a title
  1 steps ok, 1 do not apply (--all shows them)
    evidence: hub: InternalServiceExport fleet-member-west/work-app status.conditions: Conflict\\u{{1b}}[31m since 2026-11-23T06:00:00Z
    reasons:  ConflictFound
    remedy:   use the same ports
    note:     an earlier step could not be read, and may be the cause
east → north (multicluster.x-k8s.io): ok
  1 steps ok, 0 do not apply (--all shows them)
notices:
  FN212 a conflict
    evidence: hub: InternalServiceExport fleet-member-west/work-app status.conditions: Conflict\\u{{1b}}[31m since 2026-11-23T06:00:00Z
    reasons:  ConflictFound
    remedy:   use the same ports
",
            fn106 = Code::FN106.entry().ok
        )
    );
    assert!(
        text(true, Format::Table, Paint::Plain).contains(&format!("  skipped  FN105 {}: x\n", Code::FN105.entry().ok))
    );
    assert!(text(false, Format::Wide, Paint::Plain).contains("    confirm:  kubectl --context hub get\n"));
    assert!(
        text(false, Format::Table, Paint::Colours)
            .contains("\x1b[32meast → north (multicluster.x-k8s.io): ok\x1b[0m\n")
    );
    assert_eq!(text(false, Format::Name, Paint::Plain), "service/work/app\ncode/FN312\n");
    let json: Value = serde_json::from_str(&text(false, Format::Json, Paint::Plain)).unwrap();
    assert_eq!((&json["kind"], &json["pairs"][0]["cause"]["code"]), (&"Explanation".into(), &"FN312".into()));
}

#[test]
fn who_has_no_importer_learns_how_to_go_on_unless_the_importers_are_not_known() {
    let hint = "no cluster imports the Service: `--to MEMBER` says why a member does not";
    for (verdict, has_hint) in [(Verdict::Healthy, true), (Verdict::NotKnown, false)] {
        let mut view = shown(false);
        let pair = &mut view.explanation.pairs[1];
        (pair.importer, pair.verdict) = (None, verdict);
        let text = render(&view, OutputFlags::default(), Paint::Plain).to_string();
        assert_eq!(text.contains(hint), has_hint, "{text}");
    }
    assert!(!text(false, Format::Table, Paint::Plain).contains(hint), "a cause says more");
}

#[test]
fn a_notice_has_exit_code_1_only_if_the_user_is_strict() {
    let mut view = shown(false);
    view.explanation.verdict = Verdict::Healthy;
    assert_eq!(exit_of(&view, &[]), Exit::Healthy);
    view.is_strict = true;
    assert_eq!(exit_of(&view, &[]), Exit::Fault);
    view.explanation.verdict = Verdict::NotKnown;
    assert_eq!(exit_of(&view, &[]), Exit::Incomplete);
    (view.explanation.verdict, view.explanation.notices) = (Verdict::Healthy, Vec::new());
    assert_eq!(exit_of(&view, &[]), Exit::Healthy);
}

#[test]
fn a_waiting_step_is_waited_for() {
    let mut view = shown(false);
    assert!(!view.is_waiting());
    view.explanation.pairs[1].steps[0].outcome = Outcome::Waiting;
    assert!(view.is_waiting());
    // Nobody knows yet if traffic can flow.
    let text = render(&view, OutputFlags::default(), Paint::Plain).to_string();
    assert!(text.contains("east → north (multicluster.x-k8s.io): waiting\n"), "{text}");
    assert!(!text.contains("): ok\n"), "the last word is not ok while endpoints may be missing: {text}");
    view.explanation.pairs.remove(0);
    view.explanation.verdict = Verdict::Healthy;
    assert_eq!(exit_of(&view, &[]), Exit::Healthy, "a change under way is no fault: --wait waits for it");
}

#[test]
fn a_service_has_a_namespace_and_a_name() {
    for (written, namespace) in [("work/app", None), ("app", Some("work")), ("work/app", Some("work"))] {
        assert_eq!(service(written, namespace).unwrap(), ObjectName::new("work", "app"));
    }
    for (written, namespace) in [
        ("app", None),
        ("work/app", Some("x")),
        ("/app", None),
        ("work/", None),
        ("a/b/c", None),
        ("W/a", None),
        ("w/a\x1b", None),
    ] {
        let stop = service(written, namespace).unwrap_err();
        assert_eq!(stop.exit, Exit::Usage, "{written}");
        assert!(!stop.why.contains('\x1b'));
    }
}

/// Returns an explanation with a pair for each two of these members.
fn of_members(count: usize, change: impl Fn(&str, &mut Pair)) -> Explanation {
    let ids: Vec<String> = (1..=count).map(|number| format!("member-{number}")).collect();
    let mut explanation = shown(false).explanation;
    let healthy = explanation.pairs.remove(1);
    let pair = |exporter: &String, importer: &String| {
        let (exporter, importer) = (Some(exporter.clone()), Some(importer.clone()));
        Pair { api: Api::Fleet, exporter, importer, ..healthy.clone() }
    };
    explanation.pairs = ids.iter().flat_map(|one| ids.iter().map(move |two| pair(one, two))).collect();
    explanation.pairs.iter_mut().for_each(|pair| change(pair.exporter.clone().unwrap_or_default().as_str(), pair));
    explanation.notices.clear();
    explanation
}

fn lines(view: &Shown, format: Format) -> String {
    render(view, OutputFlags { output: format, ..OutputFlags::default() }, Paint::Plain).to_string()
}

#[test]
fn many_healthy_pairs_fit_one_screen() {
    let mut view = shown_of(of_members(20, |_, _| {}), false);
    assert_eq!(lines(&view, Format::Table), "member-1 … member-20 → member-1 … member-20: ok, 400 pairs\n");
    let call = |number: usize| NameToCall {
        importer: format!("member-{number}"),
        api: Api::Fleet,
        name: "work-app.fleet-system.svc".to_owned(),
        addresses: vec![format!("10.0.0.{number}")],
        ports: vec!["80/TCP".to_owned()],
    };
    view.names_to_call = (1..=20).map(call).collect();
    view.importers = (1..=20).map(|number| format!("member-{number}")).collect();
    assert_eq!(
        lines(&view, Format::Table),
        "\
member-1 … member-20 → member-1 … member-20: ok, 400 pairs
importers in the hub: member-1 … member-20
names to call:
  in member-1 … member-20: work-app.fleet-system.svc (port 80/TCP; -o wide shows the addresses)
"
    );
    let wide = lines(&view, Format::Wide);
    assert!(wide.contains("  in member-2: work-app.fleet-system.svc (port 80/TCP; at 10.0.0.2)\n"), "{wide}");
    view.all = true;
    assert_eq!(lines(&view, Format::Table).matches(" → ").count(), 400);
}

#[test]
fn a_fault_of_one_exporter_is_one_block_beside_the_healthy_pairs() {
    let cause = shown(false).explanation.pairs[0].cause.clone();
    let explanation = of_members(10, |exporter, pair| {
        if exporter == "member-3" {
            (pair.cause, pair.verdict) = (cause.clone(), Verdict::Fault);
        }
    });
    let text = lines(&shown_of(explanation, false), Format::Table);
    assert!(text.contains("member-1 … member-10 → member-1 … member-10: ok, 90 pairs\n"), "{text}");
    assert!(text.contains("member-3 → member-1 … member-10: FN312 a conflict, 10 pairs\n    evidence: "), "{text}");
    assert_eq!(text.matches(" → ").count(), 2, "{text}");
}

#[test]
fn a_cluster_that_was_not_reached_has_one_line() {
    let step = |code: Code, cluster: &str| Step {
        code,
        title: "a title",
        outcome: Outcome::Unknown,
        detail: format!("{cluster}: no kubeconfig context leads to this cluster"),
    };
    let explanation = of_members(3, |exporter, pair| {
        if exporter == "member-3" {
            pair.steps.extend([Code::FN102, Code::FN301, Code::FN302].map(|code| step(code, "member-3")));
            pair.verdict = Verdict::NotKnown;
        }
    });
    let mut view = shown_of(explanation, false);
    let why = "no kubeconfig context leads to this cluster".to_owned();
    view.not_reached = vec![NotReached { cluster: "member-3".to_owned(), why, remedy: "add it" }];
    assert_eq!(
        lines(&view, Format::Table),
        "\
member-1, member-2 → member-1, member-2, member-3: ok, 6 pairs
member-3 → member-1, member-2, member-3: not known, 3 pairs
not reached:
  member-3: no kubeconfig context leads to this cluster, so 9 steps are unknown: add it
"
    );
    view.all = true;
    assert_eq!(lines(&view, Format::Table).matches("  unknown  ").count(), 9);
}

#[test]
fn a_notice_is_not_called_broken() {
    let mut view = shown(false);
    let notice = Step { code: Code::FN610, title: "no address", outcome: Outcome::Broken, detail: "x".to_owned() };
    view.explanation.pairs[1].steps.push(notice);
    let text = lines(&view, Format::Table);
    assert!(text.contains(": ok\n  notice   FN610 no address\n"), "the evidence is below: {text}");
    let notice = view.explanation.notices.remove(0);
    view.explanation.notices = vec![notice; 5];
    for (number, notice) in view.explanation.notices.iter_mut().enumerate() {
        notice.evidence.value = number.to_string();
    }
    let text = lines(&view, Format::Table);
    assert!(
        text.contains("  FN212 a conflict (5)\n") && text.contains("    and 2 more (-o wide shows them)\n"),
        "{text}"
    );
    assert_eq!(lines(&view, Format::Wide).matches("    evidence: ").count(), 6);
    view.all = true;
    assert!(lines(&view, Format::Table).contains("  notice   FN610 no address: x\n"));
}

#[test]
fn a_conflict_of_the_mcs_api_is_one_block_and_its_text_occurs_once() {
    let text = "True ports: the oldest export of cluster member-1 decides";
    let detail = |exporter: &str| format!("hub: InternalServiceExport fleet-member-{exporter}/work-app: {text}");
    let step = |exporter: &str| {
        let (code, outcome, detail) = (Code::FN320, Outcome::Broken, detail(exporter));
        Step { code, title: Code::FN320.entry().title, outcome, detail }
    };
    let mut explanation = of_members(3, |exporter, pair| {
        pair.api = Api::Mcs;
        pair.steps.push(step(exporter));
    });
    let mut notice = shown(false).explanation.notices.remove(0);
    (notice.code, notice.title, notice.evidence.value) = (Code::FN320, Code::FN320.entry().title, text.to_owned());
    for exporter in ["member-1", "member-2", "member-3"] {
        notice.evidence.namespace = format!("fleet-member-{exporter}");
        explanation.notices.push(notice.clone());
    }
    let shown = lines(&shown_of(explanation, false), Format::Table);
    let ends = "member-1, member-2, member-3";
    let headline = format!("{ends} → {ends} (multicluster.x-k8s.io): ok, 9 pairs\n  notice   FN320 ");
    assert!(shown.starts_with(&headline), "{shown}");
    assert_eq!((shown.matches(text).count(), shown.matches("  notice   FN320").count()), (1, 1), "{shown}");
    assert!(shown.contains(" conflict (3)\n") && shown.contains("    and 2 more (-o wide shows them)\n"), "{shown}");
}

#[test]
fn a_cluster_that_is_no_member_is_a_usage_error_with_the_members() {
    let ids = ["east", "north"].map(str::to_owned);
    let wrong = member(Some("west"), "--from", Some(&ids)).unwrap_err();
    assert_eq!(
        (wrong.exit, wrong.why.as_str()),
        (Exit::Usage, "--from west: it is no member of this fleet; the members are east, north")
    );
    assert!(member(Some("east"), "--to", Some(&ids)).is_ok());
    assert!(member(Some("west"), "--to", None).is_ok(), "the hub did not answer");
    assert!(member(None, "--to", Some(&ids)).is_ok());
}

#[test]
fn steps_that_are_ok_or_skipped_are_left_out_above_the_limit_of_pairs() {
    for (pairs_max, expected) in [(3, [4, 1]), (2, [4, 1]), (1, [2, 0])] {
        let shown = shown(true).shortened(pairs_max);
        let steps: Vec<usize> = shown.explanation.pairs.iter().map(|pair| pair.steps.len()).collect();
        assert_eq!(steps, expected, "2 pairs, of which {pairs_max} may be whole");
        assert!(shown.explanation.pairs[0].cause.is_some());
    }
}
