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
    /// The steps that are marked, which do differ.
    pub marks: Vec<Mark>,
}

/// The answers to a step that is marked as differing.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The file.
    pub theme: String,
    /// The case.
    pub title: String,
    /// The case's.
    pub namespace: String,
    /// In the case, from 1.
    pub step: usize,
    /// What is asked.
    pub call: String,
    /// The difference's, in the docs.
    pub name: String,
    /// What the real server answers; null where none was asked.
    pub real: Value,
    /// What memkube answers.
    pub ours: Value,
}

impl Report {
    /// Adds another's.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.differences.extend(other.differences);
        self.marks.extend(other.marks);
    }

    /// The names of the differences that were seen.
    #[must_use]
    pub fn known(&self) -> BTreeSet<&str> {
        self.marks.iter().map(|mark| mark.name.as_str()).collect()
    }
}

/// Compares the normal answers of the real server with memkube's.
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
            report.differences.push(told(case, step, &same));
        } else if mark.ours["code"] != expected {
            let wrong = format!("memkube should answer {expected} here: {:#}", mark.ours);
            report.differences.push(told(case, step, &wrong));
        }
        report.marks.push(mark);
    }
    report
}

/// What differs in steps that are not marked.
#[must_use]
pub fn unmarked(case: &Case, real: &[Value], ours: &[Value]) -> Vec<String> {
    let differing = differing(case, real, ours);
    differing.map(|step| told(case, &case.steps[step], &lines(&real[step], &ours[step]))).collect()
}

/// The steps that differ and are not marked, from 0.
pub fn differing<'a>(case: &'a Case, real: &'a [Value], ours: &'a [Value]) -> impl Iterator<Item = usize> + 'a {
    let steps = case.steps.iter().zip(real).zip(ours).enumerate();
    steps.filter_map(|(number, ((step, real), ours))| (step.differs.is_none() && real != ours).then_some(number))
}

/// The answers to the steps that are marked; the real server need not have been asked.
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
