//! Catalogue of requests in `refused.requests`, which explains its format.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CATALOGUE: &str = include_str!("refused.requests");

/// What the server must do with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Expected {
    Allowed,
    /// RBAC refuses the request.
    Refused,
    /// The admission policy refuses the request.
    ByPolicy,
}

/// Request of the catalogue.
#[derive(Debug)]
pub(super) struct Request {
    /// Line of the catalogue, for messages.
    pub(super) line: usize,
    pub(super) expected: Expected,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// User to impersonate.
    pub(super) impersonated: Option<String>,
}

/// Section of the catalogue: a role and the requests with a token of its service account.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) account: String,
    pub(super) requests: Vec<Request>,
}

impl Role {
    /// Returns the requests that are expected to be allowed, or those that are expected to be refused.
    pub(super) fn requests(&self, are_allowed: bool) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| (request.expected == Expected::Allowed) == are_allowed)
    }
}

impl Request {
    pub(super) fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Returns the path, with a parameter that makes a write a dry run.
    pub(super) fn dry_run(&self) -> String {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        if self.is_write() { format!("{}{separator}dryRun=All", self.path) } else { self.path.clone() }
    }

    pub(super) fn shown(&self) -> String {
        format!("line {}: {} {}", self.line, self.method, self.path)
    }
}

/// Returns the roles of the catalogue with their requests.
pub(super) fn catalogue() -> anyhow::Result<Vec<Role>> {
    let mut roles: Vec<Role> = Vec::new();
    for (index, line) in CATALOGUE.lines().enumerate() {
        let context = || format!("line {}: {line}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            roles.push(role(section).with_context(context)?);
        } else {
            let role = roles.last_mut().with_context(context)?;
            role.requests.push(one(index + 1, line).with_context(context)?);
        }
    }
    Ok(roles)
}

fn role(section: &str) -> anyhow::Result<Role> {
    let (name, account) = section.split_once("] ").context("a section has a role and an account")?;
    let (namespace, account) = account.split_once('/').context("an account has a namespace")?;
    let [name, namespace, account] = [name, namespace, account].map(str::to_owned);
    Ok(Role { name, namespace, account, requests: Vec::new() })
}

fn one(line: usize, text: &str) -> anyhow::Result<Request> {
    let mut words = text.splitn(4, ' ');
    let mut word = || words.next().context("a request has an expectation, a method and a path");
    let (expected, method, path) = (word()?, word()?.to_owned(), word()?.to_owned());
    let expected = match expected {
        "allowed" => Expected::Allowed,
        "refused" => Expected::Refused,
        "policy" => Expected::ByPolicy,
        other => bail!("{other} is no expectation"),
    };
    let (mut body, mut impersonated) = (None, None);
    match words.next() {
        Some(rest) if rest.starts_with("as ") => impersonated = rest.strip_prefix("as ").map(str::to_owned),
        Some(rest) => body = Some(with_version(serde_saphyr::from_str(rest)?, &path)?),
        None => {}
    }
    ensure!(["POST", "PATCH"].contains(&&*method) == body.is_some(), "only POST and PATCH have a body");
    Ok(Request { line, expected, method, path, body, impersonated })
}

/// Adds the `apiVersion` of the path to an object with a kind.
fn with_version(mut body: Value, path: &str) -> anyhow::Result<Value> {
    if body["kind"].is_string() && body.get("apiVersion").is_none() {
        let mut segments = path.split('/').skip(1);
        let mut segment = || segments.next().context("a path begins with the version");
        let version = match segment()? {
            "api" => segment()?.to_owned(),
            _ => format!("{}/{}", segment()?, segment()?),
        };
        body["apiVersion"] = json!(version);
    }
    Ok(body)
}

#[test]
fn the_catalogue_has_at_least_60_refused_requests_and_the_guide_says_how_many_of_each_role() {
    let roles = catalogue().expect("the catalogue is valid");
    let refused: Vec<(&str, usize)> = roles.iter().map(|role| (&*role.name, role.requests(false).count())).collect();
    assert!(refused.iter().map(|(_, number)| number).sum::<usize>() >= 60, "{refused:?}");
    let guide = std::fs::read_to_string(programs::root().join("docs/how-to/protect.md")).expect("the guide");
    for (name, number) in &refused {
        let (start, end) = (format!("| {name} | "), format!(" | {number} |"));
        let is_right = guide.lines().any(|line| line.starts_with(&start) && line.ends_with(&end));
        assert!(is_right, "docs/how-to/protect.md has not {number} for the {name}");
    }
    for role in &roles {
        assert!(role.requests(false).count() >= 8, "{refused:?}");
        assert!(role.requests(true).next().is_some(), "nothing shows that the token of the {} is valid", role.name);
    }
    let text = |role: &Role, it: &Request| {
        format!("{}: {} {} {:?} {:?}", role.name, it.method, it.path, it.body, it.impersonated)
    };
    let all: Vec<String> = roles.iter().flat_map(|role| role.requests.iter().map(|it| text(role, it))).collect();
    let different: BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "a request is there twice");
}
