//! Text and JSON of the results.

use super::super::super::output::names::ends;
use super::super::super::output::safe::Safe;
use super::super::super::output::{Format, Paint, Report};
use super::super::super::view::{View, members};
use diagnosis::connectivity::{By, Connectivity, Outcome, PairResult, TargetResult};
use diagnosis::explain::text;
use diagnosis::report::{Api, Verdict};
use serde_json::{Map, Value, json};

/// Results of the command.
pub(super) struct Shown {
    connectivity: Connectivity,
    is_from_here: bool,
    /// Number of imported Services above the limit.
    pub(super) services_left_out: usize,
    /// Texts about everything that could not be read, tested or deleted.
    pub(super) not_known: Vec<String>,
}

impl Shown {
    pub(super) fn new(is_from_here: bool) -> Self {
        let connectivity = Connectivity::of(Vec::new());
        Self { connectivity, is_from_here, services_left_out: 0, not_known: Vec::new() }
    }

    /// Adds the results of a Service.
    pub(super) fn add(&mut self, mut pairs: Vec<PairResult>) {
        let mut all = std::mem::take(&mut self.connectivity.pairs);
        all.append(&mut pairs);
        self.connectivity = Connectivity::of(all);
    }
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        "Connectivity"
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = members(&self.connectivity);
        document.insert("verdict".to_owned(), json!(self.verdict()));
        document.insert("from".to_owned(), json!(if self.is_from_here { "here" } else { "pods" }));
        document.insert("servicesLeftOut".to_owned(), json!(self.services_left_out));
        document.insert("notKnown".to_owned(), json!(self.not_known));
        document
    }

    fn lines(&self, format: Format, _has_headers: bool, paint: Paint) -> Safe {
        let mut lines = Lines { text: Safe::default(), paint };
        for pair in &self.connectivity.pairs {
            lines.pair(pair, format == Format::Wide);
        }
        if self.connectivity.pairs.is_empty() {
            lines.line("", "no imported Service was tested");
        }
        if self.services_left_out > 0 {
            lines.line("", &format!("{} more Services were not tested: name one of them", self.services_left_out));
        }
        lines.text
    }

    fn names(&self) -> Vec<String> {
        let pairs = &self.connectivity.pairs;
        let services = pairs.iter().map(|pair| format!("service/{}/{}", pair.namespace, pair.name));
        let codes = pairs.iter().flat_map(|pair| pair.findings.iter().map(|finding| format!("code/{}", finding.code)));
        let mut names: Vec<String> = services.chain(codes).collect();
        names.sort_by(|one, two| two.cmp(one)); // Services before codes
        names.dedup();
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        let known = if self.not_known.is_empty() { Verdict::Healthy } else { Verdict::NotKnown };
        self.connectivity.verdict.max(known)
    }

    fn not_known(&self) -> Vec<String> {
        self.not_known.clone()
    }
}

struct Lines {
    text: Safe,
    paint: Paint,
}

impl Lines {
    fn line(&mut self, colour: &'static str, line: &str) {
        let is_painted = self.paint == Paint::Colours && !colour.is_empty();
        self.text.push_own(if is_painted { colour } else { "" });
        self.text.push(&Safe::line(line));
        self.text.push_own(if is_painted { "\x1b[0m\n" } else { "\n" });
    }

    fn pair(&mut self, pair: &PairResult, is_wide: bool) {
        let end = |id: &Option<String>| id.clone().unwrap_or_else(|| "nobody".to_owned());
        let api = match pair.api {
            Api::Fleet => String::new(),
            Api::Mcs => format!(" ({})", pair.api.group()),
        };
        let (colour, headline) = match (pair.findings.first(), pair.verdict) {
            (Some(finding), _) => ("\x1b[31m", format!("{} {}", finding.code, finding.title)),
            (None, Verdict::NotKnown) => ("\x1b[33m", "not known".to_owned()),
            (None, _) => ("\x1b[32m", "ok".to_owned()),
        };
        let ends_of = format!("{} → {}", end(&pair.exporter), end(&pair.importer));
        self.line(colour, &format!("{}/{}: {ends_of}{api}: {headline}", pair.namespace, pair.name));
        for by in By::ALL {
            let results: Vec<&TargetResult> = pair.results.iter().filter(|result| result.by == by).collect();
            if !results.is_empty() {
                self.line("", &format!("  by {:<8} {}", by.word(), outcomes(&results, is_wide)));
            }
        }
        for why in &pair.not_tested {
            self.line("", &format!("  not tested: {why}"));
        }
        if !pair.left_out.is_empty() {
            self.line("", &format!("  left out: {}", pair.left_out.join(", ")));
        }
        for finding in &pair.findings {
            self.line("", &format!("    evidence: {}", text(&finding.evidence)));
            if is_wide && !finding.evidence.command.is_empty() {
                self.line("", &format!("    confirm:  {}", finding.evidence.command));
            }
            self.line("", &format!("    remedy:   {}", finding.remedy));
        }
    }
}

/// Returns the targets of each outcome: `10.1.0.1:80, 10.1.0.2:80 connected; 10.1.0.3:80 timed out`.
fn outcomes(results: &[&TargetResult], is_wide: bool) -> String {
    let mut groups: Vec<(&Outcome, Vec<String>)> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|(outcome, _)| **outcome == result.outcome) {
            Some((_, addresses)) => addresses.push(result.address.clone()),
            None => groups.push((&result.outcome, vec![result.address.clone()])),
        }
    }
    let group = |(outcome, addresses): &(&Outcome, Vec<String>)| {
        let addresses = if is_wide { addresses.join(", ") } else { ends(addresses) };
        match outcome {
            Outcome::NotTested(why) => format!("{addresses} {}: {why}", outcome.word()),
            _ => format!("{addresses} {}", outcome.word()),
        }
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::Exit;
    use crate::cli::view::exit_of;

    fn pair(outcomes: &[Outcome]) -> PairResult {
        let result = |(number, outcome): (usize, &Outcome)| TargetResult {
            by: By::Address,
            host: format!("10.1.0.{number}"),
            port: 80,
            address: format!("10.1.0.{number}:80"),
            outcome: outcome.clone(),
            detail: String::new(),
        };
        let is_ok = outcomes.iter().all(|outcome| *outcome == Outcome::Connected);
        PairResult {
            namespace: "shop".to_owned(),
            name: "web\x1b[31m".to_owned(),
            api: Api::Fleet,
            exporter: Some("west".to_owned()),
            importer: Some("east".to_owned()),
            results: outcomes.iter().enumerate().map(result).collect(),
            left_out: vec!["UDP port 53".to_owned()],
            not_tested: Vec::new(),
            findings: Vec::new(),
            verdict: if is_ok { Verdict::Healthy } else { Verdict::NotKnown },
        }
    }

    #[test]
    fn results_are_grouped_by_outcome_and_what_is_left_out_is_said() {
        let mut shown = Shown::new(false);
        assert_eq!(exit_of(&shown, &[]), Exit::Incomplete, "nothing was tested");
        shown.add(vec![pair(&[Outcome::Connected, Outcome::Connected])]);
        assert_eq!(exit_of(&shown, &[]), Exit::Healthy);
        shown.add(vec![pair(&[Outcome::Connected, Outcome::NotTested("no pod".to_owned())])]);
        assert_eq!(exit_of(&shown, &[]), Exit::Incomplete);
        let lines = shown.lines(Format::Table, true, Paint::Plain);
        let expected = "shop/web\\u{1b}[31m: west → east: ok\n  by address  10.1.0.0:80, 10.1.0.1:80 connected\n  left out: UDP port 53\n";
        assert!(lines.as_str().starts_with(expected), "{lines}");
        assert!(lines.as_str().contains("10.1.0.0:80 connected; 10.1.0.1:80 not tested: no pod"), "{lines}");
        assert_eq!(shown.document()["pairs"][1]["results"][1]["outcome"], "notTested");
    }

    #[test]
    fn a_pod_that_is_left_is_not_known() {
        let mut shown = Shown::new(false);
        shown.add(vec![pair(&[Outcome::Connected])]);
        shown.not_known.push("a pod may still exist".to_owned());
        assert_eq!((exit_of(&shown, &[]), &shown.document()["verdict"]), (Exit::Incomplete, &json!("notKnown")));
    }
}
