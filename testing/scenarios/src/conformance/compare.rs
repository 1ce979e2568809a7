//! Comparison of two servers' responses to one case.

use super::script::{Case, Step};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Number of lines of a document that a message shows before and after a difference.
const CONTEXT_LINES: usize = 3;

/// Result of comparing the responses of two servers.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of responses that were compared.
    pub compared: usize,
    /// Messages about unexpected differences. The file of the case has no line `differs` below these calls.
    pub differences: Vec<String>,
    /// Calls with a known difference, with both responses.
    pub marks: Vec<Mark>,
}

/// Call with a known difference: the file of the case has a line `differs` below the call. Contains both servers'
/// responses.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Name of the file in `table/` with the case, without extension.
    pub theme: String,
    pub title: String,
    pub namespace: String,
    /// Number of the call in the case, from 1.
    pub step: usize,
    pub call: String,
    /// Name of the difference in docs/contributors/memkube.md.
    pub name: String,
    /// Response of the real server; null if the case was not run on the real server.
    pub real: Value,
    pub ours: Value,
}

impl Report {
    /// Adds the content of another report.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.differences.extend(other.differences);
        self.marks.extend(other.marks);
    }

    /// Returns the names of the known differences that occurred.
    #[must_use]
    pub fn known(&self) -> BTreeSet<&str> {
        self.marks.iter().map(|mark| mark.name.as_str()).collect()
    }
}

/// Compares the normalized responses of the real server (`real`) with memkube's normalized responses (`ours`).
#[must_use]
pub fn compare(case: &Case, real: &[Value], ours: &[Value]) -> Report {
    let differences = unmarked(case, real, ours);
    let mut report = Report { compared: real.len(), differences, marks: Vec::new() };
    for mark in marks(case, real, ours) {
        let step = &case.steps[mark.step - 1];
        let expected = step.differs.as_ref().and_then(|known| known.code);
        let expected = expected.map_or_else(|| mark.real["code"].clone(), Value::from);
        if mark.real == mark.ours {
            let same = format!("no longer differs: take away \"differs {}\"", mark.name);
            report.differences.push(describe(case, step, &same));
        } else if mark.ours["code"] != expected {
            let wrong = format!("memkube should answer {expected} here: {:#}", mark.ours);
            report.differences.push(describe(case, step, &wrong));
        }
        report.marks.push(mark);
    }
    report
}

/// Returns messages about unexpected differences: calls whose responses differ without a line `differs` in the file of
/// the case.
#[must_use]
pub fn unmarked(case: &Case, real: &[Value], ours: &[Value]) -> Vec<String> {
    let differing = differing(case, real, ours);
    differing.map(|step| describe(case, &case.steps[step], &lines(&real[step], &ours[step]))).collect()
}

/// Returns the indexes of the calls whose responses differ without a line `differs` in the file of the case.
pub fn differing<'a>(case: &'a Case, real: &'a [Value], ours: &'a [Value]) -> impl Iterator<Item = usize> + 'a {
    let steps = case.steps.iter().zip(real).zip(ours).enumerate();
    steps.filter_map(|(number, ((step, real), ours))| (step.differs.is_none() && real != ours).then_some(number))
}

/// Returns the calls with a known difference (a line `differs` in the file of the case), with both responses. `real`
/// may be empty, for a run without a real server.
pub fn marks<'a>(case: &'a Case, real: &'a [Value], ours: &'a [Value]) -> impl Iterator<Item = Mark> + 'a {
    let steps = (1..).zip(&case.steps).zip(ours);
    steps.filter_map(|((number, step), ours)| {
        let real = real.get(number - 1).unwrap_or(&Value::Null);
        let known = step.differs.as_ref()?;
        Some(Mark {
            theme: case.theme.clone(),
            title: case.title.clone(),
            namespace: case.namespace.clone(),
            step: number,
            call: step.to_string(),
            name: known.name.clone(),
            real: real.clone(),
            ours: ours.clone(),
        })
    })
}

/// Returns messages about calls to which a server responds with another status code than the file of the case says.
#[must_use]
pub fn unexpected(case: &Case, answers: &[Value], of_memkube: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (step, answer) in case.steps.iter().zip(answers) {
        let differing = step.differs.as_ref().filter(|_| of_memkube).and_then(|known| known.code);
        let Some(code) = differing.or(step.code) else { continue };
        if answer["code"] != code {
            wrong.push(describe(case, step, &format!("the table says {code}: {answer:#}")));
        }
    }
    wrong
}

fn describe(case: &Case, step: &Step, what: &str) -> String {
    format!("{}.calls:{} ({})\n  {step}\n{what}", case.theme, step.line, case.title)
}

/// Returns the lines that differ, with `-` for the real server and `+` for memkube, and some lines before and after
/// them.
fn lines(real: &Value, ours: &Value) -> String {
    let (real, ours) = (format!("{real:#}"), format!("{ours:#}"));
    let (real, ours): (Vec<&str>, Vec<&str>) = (real.lines().collect(), ours.lines().collect());
    let same_start = real.iter().zip(&ours).take_while(|(one, other)| one == other).count();
    let rest = real.len().min(ours.len()) - same_start;
    let same_end = real.iter().rev().zip(ours.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let mut text = String::new();
    let mut show = |marker: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(text, "{marker} {line}");
        }
    };
    show(' ', &real[same_start.saturating_sub(CONTEXT_LINES)..same_start]);
    show('-', &real[same_start..real.len() - same_end]);
    show('+', &ours[same_start..ours.len() - same_end]);
    show(' ', &real[real.len() - same_end..(real.len() - same_end + CONTEXT_LINES).min(real.len())]);
    text
}
