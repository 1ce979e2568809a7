//! What differs between the answers of two servers to one case.

use super::script::{Case, Step};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Lines of a document around a difference that are shown.
const CONTEXT_LINES: usize = 3;

/// What came of comparing.
#[derive(Debug, Default)]
pub struct Report {
    /// Answers that were compared.
    pub compared: usize,
    /// What differs, for people.
    pub differences: Vec<String>,
    /// Differences of the docs that were seen.
    pub known: BTreeSet<String>,
}

impl Report {
    /// Adds another's.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.differences.extend(other.differences);
        self.known.extend(other.known);
    }
}

/// Compares the normal answers of the real server with memkube's.
#[must_use]
pub fn compare(case: &Case, real: &[Value], ours: &[Value]) -> Report {
    let mut report = Report { compared: real.len(), ..Report::default() };
    for ((step, real), ours) in case.steps.iter().zip(real).zip(ours) {
        match &step.differs {
            Some(known) if real == ours => {
                let same = format!("no longer differs: take away \"differs {}\"", known.name);
                report.differences.push(told(case, step, &same));
            }
            Some(known) => {
                report.known.insert(known.name.clone());
                let expected = known.code.map_or_else(|| real["code"].clone(), Value::from);
                if ours["code"] != expected {
                    let wrong = format!("memkube should answer {expected} here: {ours:#}");
                    report.differences.push(told(case, step, &wrong));
                }
            }
            None if real == ours => {}
            None => report.differences.push(told(case, step, &lines(real, ours))),
        }
    }
    report
}

/// Where the real server's code is not that of the table.
#[must_use]
pub fn unexpected(case: &Case, answers: &[Value], of_memkube: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (step, answer) in case.steps.iter().zip(answers) {
        let differing = step.differs.as_ref().filter(|_| of_memkube).and_then(|known| known.code);
        let Some(code) = differing.or(step.code) else { continue };
        if answer["code"] != code {
            wrong.push(told(case, step, &format!("the table says {code}: {answer:#}")));
        }
    }
    wrong
}

fn told(case: &Case, step: &Step, what: &str) -> String {
    format!("{}.calls:{} ({})\n  {step}\n{what}", case.theme, step.line, case.title)
}

/// The lines that differ, `-` the real server's and `+` memkube's, with some around them.
fn lines(real: &Value, ours: &Value) -> String {
    let (real, ours) = (format!("{real:#}"), format!("{ours:#}"));
    let (real, ours): (Vec<&str>, Vec<&str>) = (real.lines().collect(), ours.lines().collect());
    let same_start = real.iter().zip(&ours).take_while(|(one, other)| one == other).count();
    let rest = real.len().min(ours.len()) - same_start;
    let same_end = real.iter().rev().zip(ours.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let mut text = String::new();
    let mut show = |sign: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(text, "{sign} {line}");
        }
    };
    show(' ', &real[same_start.saturating_sub(CONTEXT_LINES)..same_start]);
    show('-', &real[same_start..real.len() - same_end]);
    show('+', &ours[same_start..ours.len() - same_end]);
    show(' ', &real[real.len() - same_end..(real.len() - same_end + CONTEXT_LINES).min(real.len())]);
    text
}
