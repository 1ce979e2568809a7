//! Cases of the conformance suite as text.
//!
//! ```text
//! 201 POST {cm} {"metadata":{"name":"a"}} => a        the response is stored as `a`
//! 200 MERGE {cm}/a {"data":{"k":"${a.metadata.uid}"}}  the body contains a field of the response `a`
//!     accept: application/json                         a header of the line before
//!     | ,"more of the body"                            more of the body of the line before
//!     differs table-answers 406                        memkube's code, and the name in docs/contributors/memkube.md
//! 200 AWAIT {widget}                                    repeat the GET until its code is 200
//! 200 WATCH {cm}?watch=1&timeoutSeconds=1              read until the server ends the watch
//! 200 OPEN w {cm}?watch=1                              open the watch `w`; later steps read it
//!     READ w 2                                         the next two events of `w`
//!     READ w end                                       the events of `w` up to the first about the object `end`
//!     READ w 1 => b                                    stored: `${b.0.object.metadata.resourceVersion}`
//! ```
//!
//! The number is the known status code of the real server. Each case has a separate namespace, `{ns}`.

use anyhow::{Context as _, bail, ensure};
use std::fmt;

/// Case: calls that depend on each other, in a separate namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the file in `table/` with the case, without extension.
    pub theme: String,
    /// Title of the case: the behaviour that the case shows.
    pub title: String,
    pub namespace: String,
    pub steps: Vec<Step>,
}

/// Step of a case: one call, or one read of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line number of the step in its file, from 1.
    pub line: usize,
    /// Known status code of the real server's response; `None` in random cases.
    pub code: Option<u16>,
    pub action: Action,
    /// Name under which the response is stored for later steps. `None` if no later step uses the response.
    pub save: Option<String>,
    /// Known difference between memkube's response and the real server's. `None` if the responses are equal.
    pub differs: Option<Difference>,
}

/// Known difference between memkube's response and the real server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the difference in docs/contributors/memkube.md.
    pub name: String,
    /// Status code of memkube's response; `None` if it is the same as the real server's.
    pub code: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a request with one response.
    Send(Call),
    /// Repeats a request until its response has the expected code, because a server may need a moment.
    Await(Call),
    /// Opens a watch and reads events until the server ends the watch.
    Watch(Call),
    /// Opens a watch with this name. Later steps read the watch.
    Open(String, Call),
    /// Reads this many events of an open watch.
    Read(String, usize),
    /// Reads events of an open watch (the first name) up to the first event about an object (the second name).
    ReadUntil(String, String),
}

/// Request of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub method: &'static str,
    /// Path of the request with its query.
    pub path: String,
    /// Body of the request; empty for none.
    pub body: String,
    /// Headers of the request, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Call {
    /// Returns a request with one of the verbs that the files in `table/` use, such as `POST` or `MERGE`.
    ///
    /// # Errors
    /// If the verb does not exist.
    pub fn new(verb: &str, path: &str, body: &str) -> anyhow::Result<Self> {
        let (method, content_type) = match verb {
            "GET" | "AWAIT" | "WATCH" | "OPEN" => ("GET", ""),
            "HEAD" => ("HEAD", ""),
            "POST" => ("POST", "application/json"),
            "PUT" => ("PUT", "application/json"),
            "DELETE" => ("DELETE", "application/json"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "JSON" => ("PATCH", "application/json-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            other => bail!("no verb {other}"),
        };
        let headers = [("content-type", content_type)].into_iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { method, path: path.to_owned(), body: body.to_owned(), headers })
    }
}

/// Abbreviations in the files of cases, each with the path that replaces it.
const SHORT: [(&str, &str); 9] = [
    ("{cm}", "/api/v1/namespaces/{ns}/configmaps"),
    ("{pod}", "/api/v1/namespaces/{ns}/pods"),
    ("{svc}", "/api/v1/namespaces/{ns}/services"),
    ("{slice}", "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"),
    ("{lease}", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"),
    ("{widget}", "/apis/conformance.test/v1/namespaces/{ns}/widgets"),
    ("{gadget}", "/apis/conformance.test/v1/gadgets"),
    ("{fleet}", "/apis/networking.fleet.azure.com/v1alpha1/namespaces/{ns}"),
    ("{crd}", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
];

/// Replaces the abbreviations in a text of a case by the paths that they stand for.
#[must_use]
pub fn written_out(text: &str, namespace: &str) -> String {
    let long = SHORT.iter().fold(text.to_owned(), |text, (short, long)| text.replace(short, long));
    long.replace("{ns}", namespace)
}

/// Parses the cases of one file in `table/`. `theme` is the name of the file.
///
/// # Errors
/// If a line is malformed.
pub fn parse(theme: &str, text: &str) -> anyhow::Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let read = if let Some(title) = text.strip_prefix("== ") {
            let namespace = format!("{theme}-{}", cases.len());
            let (theme, title) = (theme.to_owned(), title.to_owned());
            cases.push(Case { theme, title, namespace, steps: Vec::new() });
            Ok(())
        } else {
            cases.last_mut().context("a step before the first case").and_then(|case| read_line(case, line, text))
        };
        read.with_context(|| format!("{theme}.calls:{line}: {text}"))?;
    }
    Ok(cases)
}

fn read_line(case: &mut Case, line: usize, text: &str) -> anyhow::Result<()> {
    if !text.starts_with(' ') {
        case.steps.push(step(line, text)?);
        return Ok(());
    }
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("READ ") {
        let (rest, save) = kept_as(rest);
        let (watch, end) = rest.split_once(' ').context("READ <watch> <count or name>")?;
        let (watch, end) = (watch.to_owned(), end.to_owned());
        let action = match end.parse() {
            Ok(count) => Action::Read(watch, count),
            Err(_) => Action::ReadUntil(watch, end),
        };
        case.steps.push(Step { line, code: Some(0), action, save, differs: None });
        return Ok(());
    }
    let step = case.steps.last_mut().context("a line that goes on with no step")?;
    if let Some(rest) = text.strip_prefix("differs ") {
        let (name, code) = rest.split_once(' ').map_or((rest, None), |(name, code)| (name, Some(code)));
        step.differs = Some(Difference { name: name.to_owned(), code: code.map(str::parse).transpose()? });
        return Ok(());
    }
    let (Action::Send(call) | Action::Await(call) | Action::Watch(call) | Action::Open(_, call)) = &mut step.action
    else {
        bail!("READ has nothing more to say");
    };
    if let Some(more) = text.strip_prefix("| ") {
        call.body.push_str(more);
        return Ok(());
    }
    let (name, value) = text.split_once(": ").context("neither a header nor more of a body")?;
    call.headers.retain(|(other, _)| other != name);
    call.headers.push((name.to_owned(), value.to_owned()));
    Ok(())
}

/// Splits a line at ` => ` into its text and the name under which the response is stored. Without ` => ` there is no
/// name.
fn kept_as(text: &str) -> (&str, Option<String>) {
    match text.rsplit_once(" => ") {
        Some((text, save)) => (text, Some(save.trim().to_owned())),
        None => (text, None),
    }
}

fn step(line: usize, text: &str) -> anyhow::Result<Step> {
    let (text, save) = kept_as(text);
    let mut words = text.trim().splitn(3, ' ');
    let (code, verb) = (words.next().unwrap_or_default(), words.next().context("no verb")?);
    let rest = words.next().context("no path")?;
    let (name, rest) = if verb == "OPEN" { rest.split_once(' ').context("OPEN <name> <path>")? } else { ("", rest) };
    let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
    ensure!(!path.is_empty(), "no path");
    let call = Call::new(verb, path, body)?;
    let action = match verb {
        "AWAIT" => Action::Await(call),
        "WATCH" => Action::Watch(call),
        "OPEN" => Action::Open(name.to_owned(), call),
        _ => Action::Send(call),
    };
    Ok(Step { line, code: Some(code.parse()?), action, save, differs: None })
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Read(watch, count) => write!(formatter, "READ {watch} {count}"),
            Action::ReadUntil(watch, name) => write!(formatter, "READ {watch} {name}"),
            Action::Open(watch, call) => write!(formatter, "OPEN {watch} {}", call.path),
            Action::Send(call) | Action::Await(call) | Action::Watch(call) => {
                let content_type = call.headers.iter().find(|(name, _)| name == "content-type");
                let kind = content_type.map_or("", |(_, value)| value.as_str());
                write!(formatter, "{} {} {} {kind}", call.method, call.path, call.body)
            }
        }
    }
}
