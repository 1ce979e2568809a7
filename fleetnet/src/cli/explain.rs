//! Command `fleetnet explain`: the first broken step on the way of a Service from each exporter to each importer.

mod codes;

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::{self, Format, OutputFlags, Paint, Report};
use super::view::{View, ViewFlags, members, show};
use codes::Codes;
use fleetnet_diagnosis::explain::Filter;
use fleetnet_diagnosis::read::Scope;
use fleetnet_diagnosis::report::{Api, Evidence, Explanation, Finding, Outcome, Pair, Verdict};
use fleetnet_types::ObjectName;
use serde_json::{Map, Value};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Service to explain.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present_any = ["explain_code", "list_codes"])]
    service: Option<String>,

    /// Namespace of the Service, if the name has none.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Only the way from this member.
    #[arg(long, value_name = "MEMBER")]
    from: Option<String>,

    /// Only the way to this member.
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,

    /// Show all steps, also those that are ok or do not apply.
    #[arg(long)]
    all: bool,

    /// Explain a fault code. Sends no request.
    #[arg(long, value_name = "FNnnn", conflicts_with_all = ["service", "list_codes"], value_parser = codes::code)]
    explain_code: Option<fleetnet_diagnosis::Code>,

    /// List all fault codes. Sends no request.
    #[arg(long, conflicts_with = "service")]
    list_codes: bool,

    /// Exit with 1 also for notices: what degrades the fleet and is no fault.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

struct Shown {
    explanation: Explanation,
    /// True to show all steps.
    all: bool,
    /// True if a notice counts as a fault.
    is_strict: bool,
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.explanation.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.explanation)
    }

    fn lines(&self, format: Format, _has_headers: bool, paint: Paint) -> Safe {
        let mut lines = Lines { text: Safe::default(), paint, is_wide: format == Format::Wide };
        for pair in &self.explanation.pairs {
            self.pair(pair, &mut lines);
        }
        if !self.explanation.notices.is_empty() {
            lines.line(Colour::None, "notices:");
        }
        for notice in &self.explanation.notices {
            lines.line(Colour::Yellow, &format!("  {} {}", notice.code, notice.title));
            lines.finding(notice);
        }
        lines.text
    }

    fn names(&self) -> Vec<String> {
        let causes = self.explanation.pairs.iter().filter_map(|pair| pair.cause.as_ref());
        let mut names: Vec<String> = causes.map(|cause| format!("code/{}", cause.code)).collect();
        names.sort();
        names.dedup();
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        match self.explanation.verdict {
            Verdict::Healthy if self.is_strict && !self.explanation.notices.is_empty() => Verdict::Fault,
            verdict => verdict,
        }
    }

    fn is_waiting(&self) -> bool {
        let mut steps = self.explanation.pairs.iter().flat_map(|pair| &pair.steps);
        steps.any(|step| step.outcome == Outcome::Waiting)
    }
}

impl Shown {
    fn pair(&self, pair: &Pair, lines: &mut Lines) {
        let end = |id: &Option<String>| id.clone().unwrap_or_else(|| "nobody".to_owned());
        let api = match pair.api {
            Api::Fleet => String::new(),
            Api::Standard => format!(" ({})", pair.api.group()),
        };
        let way = format!("{} → {}{api}", end(&pair.exporter), end(&pair.importer));
        match (&pair.cause, pair.verdict) {
            (Some(cause), _) => lines.line(Colour::Red, &format!("{way}: {} {}", cause.code, cause.title)),
            (None, Verdict::NotKnown) => lines.line(Colour::Yellow, &format!("{way}: not known")),
            (None, _) => lines.line(Colour::Green, &format!("{way}: ok")),
        }
        let mut hidden = [0_usize; 2];
        for step in &pair.steps {
            let place = match step.outcome {
                Outcome::Ok => Some(0),
                Outcome::Skipped => Some(1),
                Outcome::Broken | Outcome::Waiting | Outcome::Unknown => None,
            };
            if let (Some(place), false) = (place, self.all) {
                hidden[place] += 1;
                continue;
            }
            let (word, colour) = outcome(step.outcome);
            // The evidence of the cause follows below.
            let is_cause = pair.cause.as_ref().is_some_and(|cause| cause.code == step.code);
            let has_detail = !step.detail.is_empty() && !is_cause;
            let detail = if has_detail { format!(": {}", step.detail) } else { String::new() };
            // The title of a code is that of the fault, so it is in brackets where the fault was not found.
            let title = match step.outcome {
                Outcome::Broken => step.title.to_owned(),
                Outcome::Ok | Outcome::Waiting | Outcome::Skipped | Outcome::Unknown => format!("({})", step.title),
            };
            lines.line(colour, &format!("  {word:<8} {} {title}{detail}", step.code));
        }
        if !self.all {
            let [ok, skipped] = hidden;
            lines.line(Colour::None, &format!("  {ok} steps ok, {skipped} do not apply (--all shows them)"));
        }
        if let Some(cause) = &pair.cause {
            lines.finding(cause);
        }
    }
}

/// Colour of a line.
#[derive(Clone, Copy)]
enum Colour {
    None,
    Green,
    Yellow,
    Red,
}

/// Text in the making.
struct Lines {
    text: Safe,
    paint: Paint,
    is_wide: bool,
}

impl Lines {
    fn line(&mut self, colour: Colour, text: &str) {
        let (begin, end) = match (self.paint, colour) {
            (Paint::Plain, _) | (_, Colour::None) => ("", "\n"),
            (Paint::Colours, Colour::Green) => ("\x1b[32m", "\x1b[0m\n"),
            (Paint::Colours, Colour::Yellow) => ("\x1b[33m", "\x1b[0m\n"),
            (Paint::Colours, Colour::Red) => ("\x1b[31m", "\x1b[0m\n"),
        };
        self.text.push_own(begin);
        self.text.push(&Safe::line(text));
        self.text.push_own(end);
    }

    fn finding(&mut self, finding: &Finding) {
        self.line(Colour::None, &format!("    evidence: {}", evidence(&finding.evidence)));
        if !finding.reasons.is_empty() {
            self.line(Colour::None, &format!("    reasons:  {}", finding.reasons.join(", ")));
        }
        if self.is_wide && !finding.evidence.command.is_empty() {
            self.line(Colour::None, &format!("    confirm:  {}", finding.evidence.command));
        }
        self.line(Colour::None, &format!("    remedy:   {}", finding.remedy));
    }
}

fn outcome(outcome: Outcome) -> (&'static str, Colour) {
    match outcome {
        Outcome::Ok => ("ok", Colour::Green),
        Outcome::Broken => ("broken", Colour::Red),
        Outcome::Waiting => ("waiting", Colour::Yellow),
        Outcome::Skipped => ("skipped", Colour::None),
        Outcome::Unknown => ("unknown", Colour::Yellow),
    }
}

/// Returns evidence as one line.
fn evidence(evidence: &Evidence) -> String {
    let Evidence { cluster, kind, namespace, name, field, value, time, .. } = evidence;
    let object = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    let time = time.as_ref().map_or_else(String::new, |time| format!(" since {time}"));
    let field = if field.is_empty() { String::new() } else { format!(" {field}") };
    let value = if value.is_empty() { String::new() } else { format!(": {value}") };
    format!("{cluster}: {kind} {object}{field}{value}{time}")
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.list_codes || options.explain_code.is_some() {
        output::print(&Codes(options.explain_code), options.output)?;
        return Ok(Exit::Healthy);
    }
    let service = service(options.service.as_deref().unwrap_or_default(), options.namespace.as_deref())?;
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::All, options.view.timeout, &progress).await?;
    let filter = Filter { from: options.from, to: options.to };
    let read = async |progress: &Progress| {
        let snapshot = fleet.snapshot(&Scope::Service(service.clone()), progress).await;
        let explanation = fleetnet_diagnosis::explain(&snapshot, &service, &filter);
        Shown { explanation, all: options.all, is_strict: options.strict }
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

/// Returns the Service that the user names: `NAMESPACE/NAME`, or a name and `-n NAMESPACE`.
fn service(written: &str, namespace: Option<&str>) -> Result<ObjectName, Stop> {
    let (namespace, name) = match (written.split_once('/'), namespace) {
        (Some((namespace, name)), None) => (namespace, name),
        (Some((one, name)), Some(other)) if one == other => (one, name),
        (None, Some(namespace)) => (namespace, written),
        (Some(_), Some(_)) => return Err(Stop::usage(format!("{written} and --namespace name two namespaces"))),
        (None, None) => return Err(Stop::usage(format!("{written} has no namespace: use NAMESPACE/{written}"))),
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_LENGTH
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
    };
    if is_name(namespace) && is_name(name) {
        return Ok(ObjectName::new(namespace, name));
    }
    Err(Stop::usage(format!("{} is not the name of a Service: use NAMESPACE/NAME", written.escape_debug())))
}

/// Longest name of an object in Kubernetes.
const NAME_LENGTH: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use crate::cli::view::exit_of;
    use fleetnet_diagnosis::Code;
    use fleetnet_diagnosis::report::Step;

    fn shown(all: bool) -> Shown {
        let step =
            |code: Code, outcome, detail: &str| Step { code, title: "a title", outcome, detail: detail.to_owned() };
        let evidence = Evidence {
            cluster: "hub".to_owned(),
            kind: "InternalServiceExport".to_owned(),
            namespace: "fleet-member-west".to_owned(),
            name: "work-app".to_owned(),
            field: "status.conditions".to_owned(),
            value: "Conflict\x1b[31m".to_owned(),
            time: Some("2026-11-23T06:00:00Z".to_owned()),
            command: "kubectl --context hub get".to_owned(),
        };
        let finding = |code: Code| Finding {
            code,
            title: "a conflict",
            reasons: vec!["ConflictFound"],
            evidence: evidence.clone(),
            remedy: "use the same ports",
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
            verdict: Verdict::Fault,
        };
        let healthy = Pair {
            api: Api::Standard,
            exporter: Some("east".to_owned()),
            importer: Some("north".to_owned()),
            steps: vec![step(Code::FN101, Outcome::Ok, "")],
            cause: None,
            verdict: Verdict::Healthy,
        };
        let explanation = Explanation {
            api_version: fleetnet_diagnosis::report::API_VERSION,
            kind: "Explanation",
            namespace: "work".to_owned(),
            name: "app".to_owned(),
            pairs: vec![broken, healthy],
            notices: vec![finding(Code::FN212)],
            verdict: Verdict::Fault,
        };
        Shown { explanation, all, is_strict: false }
    }

    fn text(all: bool, output: Format, paint: Paint) -> String {
        render(&shown(all), OutputFlags { output, ..OutputFlags::default() }, paint).to_string()
    }

    #[test]
    fn the_cause_comes_with_evidence_and_remedy() {
        assert_eq!(
            text(false, Format::Table, Paint::Plain),
            "\
west → nobody: FN312 a conflict
  unknown  FN106 (a title): timeout
  broken   FN312 a title
  1 steps ok, 1 do not apply (--all shows them)
    evidence: hub: InternalServiceExport fleet-member-west/work-app status.conditions: Conflict\\u{1b}[31m since 2026-11-23T06:00:00Z
    reasons:  ConflictFound
    remedy:   use the same ports
east → north (multicluster.x-k8s.io): ok
  1 steps ok, 0 do not apply (--all shows them)
notices:
  FN212 a conflict
    evidence: hub: InternalServiceExport fleet-member-west/work-app status.conditions: Conflict\\u{1b}[31m since 2026-11-23T06:00:00Z
    reasons:  ConflictFound
    remedy:   use the same ports
"
        );
        assert!(text(true, Format::Table, Paint::Plain).contains("  skipped  FN105 (a title): x\n"));
        assert!(text(false, Format::Wide, Paint::Plain).contains("    confirm:  kubectl --context hub get\n"));
        assert!(
            text(false, Format::Table, Paint::Colours)
                .contains("\x1b[32meast → north (multicluster.x-k8s.io): ok\x1b[0m\n")
        );
        assert_eq!(text(false, Format::Name, Paint::Plain), "code/FN312\n");
        let json: Value = serde_json::from_str(&text(false, Format::Json, Paint::Plain)).unwrap();
        assert_eq!((&json["kind"], &json["pairs"][0]["cause"]["code"]), (&"Explanation".into(), &"FN312".into()));
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
}
