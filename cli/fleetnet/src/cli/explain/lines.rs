//! Text of an explanation. Pairs with equal results are one block, so that a large healthy fleet fits on one screen.

use super::super::output::Paint;
use super::super::output::names::ends;
use super::super::output::safe::Safe;
use super::super::unreached::Unreached;
use diagnosis::Code;
use diagnosis::order::distinct;
use diagnosis::report::{Api, Evidence, Finding, NameToCall, NotReached, Outcome, Pair, Step, Verdict};

/// Maximum number of lines about equal objects, such as the evidence of one notice in many clusters.
const LISTED: usize = 3;

/// Colour of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    None,
    Green,
    Yellow,
    Red,
}

/// Text in the making.
pub(super) struct Lines {
    pub(super) text: Safe,
    pub(super) paint: Paint,
    pub(super) is_wide: bool,
}

/// Result of a pair, without its clusters. Pairs with equal results are in one block.
#[derive(PartialEq)]
struct Block<'a> {
    api: Api,
    headline: (Colour, String),
    steps: Vec<(Colour, String)>,
    cause: Option<&'a Finding>,
    /// True if a step before the cause could not be read.
    earlier_unknown: bool,
}

impl Lines {
    pub(super) fn line(&mut self, colour: Colour, text: &str) {
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

    /// Adds the pairs, and the clusters that were not reached.
    pub(super) fn pairs(&mut self, pairs: &[Pair], not_reached: &[NotReached], all: bool) {
        let mut unreached = Unreached::new(not_reached);
        let mut blocks: Vec<(Block<'_>, Vec<&Pair>, [usize; 3])> = Vec::new();
        for pair in pairs {
            let (block, hidden) = block(pair, all, &mut unreached);
            match blocks.iter_mut().find(|(other, ..)| !all && *other == block) {
                Some((_, pairs, _)) => pairs.push(pair),
                None => blocks.push((block, vec![pair], hidden)),
            }
        }
        for (block, pairs, hidden) in &blocks {
            self.block(block, pairs, *hidden, all);
        }
        let lines = unreached.lines("steps");
        if !lines.is_empty() {
            self.line(Colour::Yellow, "not reached:");
        }
        for line in lines {
            self.line(Colour::None, &format!("  {line}"));
        }
    }

    fn block(&mut self, block: &Block<'_>, pairs: &[&Pair], hidden: [usize; 3], all: bool) {
        let api = match block.api {
            Api::Fleet => String::new(),
            Api::Mcs => format!(" ({})", block.api.group()),
        };
        let (exporters, importers) =
            (clusters(pairs.iter().map(|it| &it.exporter)), clusters(pairs.iter().map(|it| &it.importer)));
        let number = if pairs.len() > 1 { format!(", {} pairs", pairs.len()) } else { String::new() };
        let (colour, headline) = &block.headline;
        self.line(*colour, &format!("{} → {}{api}: {headline}{number}", ends(&exporters), ends(&importers)));
        for (colour, step) in &block.steps {
            self.line(*colour, step);
        }
        let is_known = |pair: &&Pair| pair.importer.is_none() && pair.verdict != Verdict::NotKnown;
        if block.cause.is_none() && pairs.iter().all(is_known) {
            self.line(Colour::None, "  no cluster imports the Service: `--to MEMBER` says why a member does not");
        }
        if pairs.len() == 1 && !all {
            let [ok, skipped, unknown] = hidden;
            let unknown = if unknown > 0 { format!(", {unknown} are unknown") } else { String::new() };
            self.line(Colour::None, &format!("  {ok} steps ok, {skipped} do not apply{unknown} (--all shows them)"));
        }
        if let Some(cause) = block.cause {
            self.finding(cause);
        }
        if block.earlier_unknown {
            self.line(Colour::None, "    note:     an earlier step could not be read, and may be the cause");
        }
    }

    /// Adds the notices. Those with one code are in one block.
    pub(super) fn notices(&mut self, notices: &[Finding]) {
        if !notices.is_empty() {
            self.line(Colour::None, "notices:");
        }
        let mut codes: Vec<Code> = notices.iter().map(|notice| notice.code).collect();
        codes.sort();
        codes.dedup();
        for code in codes {
            let of_code: Vec<&Finding> = notices.iter().filter(|notice| notice.code == code).collect();
            let Some(first) = of_code.first() else { continue };
            let number = if of_code.len() > 1 { format!(" ({})", of_code.len()) } else { String::new() };
            self.line(Colour::Yellow, &format!("  {} {}{number}", first.code, first.title));
            let listed = if self.is_wide { of_code.clone() } else { distinct_evidence(&of_code) };
            let Some((last, others)) = listed.split_last() else { continue };
            others.iter().for_each(|notice| self.evidence(notice));
            self.finding(last);
            if listed.len() < of_code.len() {
                self.line(Colour::None, &format!("    and {} more (-o wide shows them)", of_code.len() - listed.len()));
            }
        }
    }

    /// Adds the names to call. Importers with one name are on one line.
    pub(super) fn names_to_call(&mut self, calls: &[NameToCall]) {
        if !calls.is_empty() {
            self.line(Colour::None, "names to call:");
        }
        let mut names: Vec<(&NameToCall, Vec<&NameToCall>)> = Vec::new();
        for call in calls {
            let is_same = |first: &NameToCall| (&first.name, &first.ports) == (&call.name, &call.ports);
            match names.iter_mut().find(|(first, _)| !self.is_wide && is_same(first)) {
                Some((_, same)) => same.push(call),
                None => names.push((call, vec![call])),
            }
        }
        for (first, same) in names {
            let importers: Vec<String> = same.iter().map(|call| call.importer.clone()).collect();
            let addresses: Vec<String> = match (same.as_slice(), first.addresses.as_slice()) {
                ([_], []) => Vec::new(),
                ([_], addresses) => vec![format!("at {}", addresses.join(", "))],
                _ => vec!["-o wide shows the addresses".to_owned()],
            };
            let ports = if first.ports.is_empty() { None } else { Some(format!("port {}", first.ports.join(", "))) };
            let details: Vec<String> = ports.into_iter().chain(addresses).collect();
            let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join("; ")) };
            self.line(Colour::None, &format!("  in {}: {}{details}", ends(&importers), first.name));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        self.evidence(finding);
        if !finding.reasons.is_empty() {
            self.line(Colour::None, &format!("    reasons:  {}", finding.reasons.join(", ")));
        }
        if self.is_wide && !finding.evidence.command.is_empty() {
            self.line(Colour::None, &format!("    confirm:  {}", finding.evidence.command));
        }
        self.line(Colour::None, &format!("    remedy:   {}", finding.remedy));
    }

    fn evidence(&mut self, finding: &Finding) {
        self.line(Colour::None, &format!("    evidence: {}", evidence(&finding.evidence)));
    }
}

/// Returns the result of a pair, and the numbers of hidden steps that are ok, do not apply and are unknown.
fn block<'a>(pair: &'a Pair, all: bool, unreached: &mut Unreached<'_>) -> (Block<'a>, [usize; 3]) {
    let headline = match (&pair.cause, pair.verdict) {
        (Some(cause), _) => (Colour::Red, format!("{} {}", cause.code, cause.title)),
        (None, Verdict::NotKnown) => (Colour::Yellow, "not known".to_owned()),
        (None, _) if pair.steps.iter().any(|step| step.outcome == Outcome::Waiting) => {
            (Colour::Yellow, "waiting".to_owned())
        }
        (None, _) => (Colour::Green, "ok".to_owned()),
    };
    let (mut steps, mut hidden) = (Vec::new(), [0_usize; 3]);
    for step in &pair.steps {
        let place = match step.outcome {
            Outcome::Ok => Some(0),
            Outcome::Skipped => Some(1),
            Outcome::Unknown => unreached.takes(&step.detail).then_some(2),
            Outcome::Broken | Outcome::Waiting => None,
        };
        match place {
            Some(place) if !all => hidden[place] += 1,
            _ => steps.push(line_of(step, pair.cause.as_ref(), all)),
        }
    }
    let (cause, earlier_unknown) = (pair.cause.as_ref(), pair.earlier_unknown);
    (Block { api: pair.api, headline, steps, cause, earlier_unknown }, hidden)
}

/// Returns the line of a step. A notice is no fault, so it is not called broken. The evidence of the cause and of the
/// notices follows below, so that pairs with equal results are one block. `all` shows which pair has which evidence.
fn line_of(step: &Step, cause: Option<&Finding>, all: bool) -> (Colour, String) {
    let (word, colour) = match step.outcome {
        Outcome::Ok => ("ok", Colour::Green),
        Outcome::Broken if step.code.entry().is_notice() => ("notice", Colour::Yellow),
        Outcome::Broken => ("broken", Colour::Red),
        Outcome::Waiting => ("waiting", Colour::Yellow),
        Outcome::Skipped => ("skipped", Colour::None),
        Outcome::Unknown => ("unknown", Colour::Yellow),
    };
    let title = if step.outcome == Outcome::Broken { step.title } else { step.code.entry().ok };
    let is_notice = step.outcome == Outcome::Broken && step.code.entry().is_notice();
    let is_below = cause.is_some_and(|cause| cause.code == step.code) || is_notice && !all;
    let detail = if step.detail.is_empty() || is_below { String::new() } else { format!(": {}", step.detail) };
    (colour, format!("  {word:<8} {} {title}{detail}", step.code))
}

/// Returns the first findings whose evidence differs in more than the object.
fn distinct_evidence<'a>(findings: &[&'a Finding]) -> Vec<&'a Finding> {
    let text = |finding: &'a Finding| {
        let Evidence { cluster, kind, field, value, .. } = &finding.evidence;
        (cluster, kind, field, value)
    };
    let mut listed: Vec<&Finding> = Vec::new();
    for finding in findings {
        if listed.len() < LISTED && !listed.iter().any(|it| text(it) == text(finding)) {
            listed.push(finding);
        }
    }
    listed
}

/// Returns the clusters at one end of pairs, in their natural order.
fn clusters<'a>(ids: impl Iterator<Item = &'a Option<String>>) -> Vec<String> {
    distinct(ids.map(|id| id.clone().unwrap_or_else(|| "nobody".to_owned())))
}

/// Returns evidence as one line.
fn evidence(evidence: &Evidence) -> String {
    let Evidence { cluster, kind, namespace, name, field, value, time, .. } = evidence;
    let slash = if namespace.is_empty() || name.is_empty() { "" } else { "/" };
    let time = time.as_ref().map_or_else(String::new, |time| format!(" since {time}"));
    let field = if field.is_empty() { String::new() } else { format!(" {field}") };
    let value = if value.is_empty() { String::new() } else { format!(": {value}") };
    format!("{cluster}: {kind} {namespace}{slash}{name}{field}{value}{time}")
}
