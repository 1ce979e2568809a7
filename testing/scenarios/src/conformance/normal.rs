//! Normalization of responses, so that the responses of two servers to one case can be compared. Values that differ on
//! any two servers become placeholders:
//!
//! - A UID becomes its number in order of appearance.
//! - A time is only checked for plausibility. An object's creationTimestamp must not change. Its deletionTimestamp must
//!   be between the creation and the response ([`times`]).
//! - The resourceVersion of an object becomes its rank among the resourceVersions in the case. The
//!   resourceVersion of a list or bookmark also depends on other writers. So its placeholder contains the number of
//!   resourceVersions of the case's objects that are not greater.
//! - Generated name suffixes, cluster IPs and node ports that the server chose, and continue tokens become
//!   placeholders.
//! - `managedFields` are removed, because memkube has none.
//! - Of an error, only the code, the reason, and the reasons and fields of its causes are compared, not its texts.
//! - Of the warnings, only those about unknown fields are compared. Descriptions of columns are removed.

mod texts;
mod times;

use super::run::CaseRun;
use super::script::{Action, Call, Case, Step};
use memkube::random::NAME_LETTERS;
use regex::Captures;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use texts::PATTERNS;
use times::Times;

/// First bytes of a protobuf document.
const PROTOBUF: &str = "k8s\0";
const GENERATED_LETTERS: usize = 5;
/// Number of characters to which the server cuts the prefix of a generated name.
const GENERATED_PREFIX: usize = 58;

/// Values found in earlier responses of a case. Placeholders replace these values in later responses.
#[derive(Default)]
struct SeenValues {
    /// resourceVersions of objects in this case.
    versions: BTreeSet<u64>,
    uids: BTreeMap<String, usize>,
    generated: BTreeMap<String, String>,
    addresses: BTreeMap<String, usize>,
    ports: BTreeSet<u64>,
    times: Times,
    /// True if the current response is that of a dry-run request.
    dry_run: bool,
    /// Text of the case. If a value occurs in this text, the server did not choose the value.
    case_text: String,
}

/// Returns the normalized responses of a case, one document for each call.
#[must_use]
pub fn normal(case: &Case, run: &CaseRun) -> Vec<Value> {
    let mut known = SeenValues { case_text: case_text(case), times: Times::of(run), ..SeenValues::default() };
    for answer in &run.answers {
        known.learn(&answer.body);
    }
    let mut documents = Vec::new();
    for (step, answer) in case.steps.iter().zip(&run.answers) {
        known.times.at(answer.at_seconds);
        known.dry_run = call(step).is_some_and(|call| call.path.contains("dryRun"));
        let body = known.rewritten("", &answer.body);
        let compared = |header: &&String| !header.starts_with("warning: ") || header.contains("unknown field");
        let headers: Vec<String> = answer.headers.iter().filter(compared).map(|header| known.text(header)).collect();
        documents.push(json!({"code": answer.code, "headers": headers, "body": body}));
    }
    documents
}

fn call(step: &Step) -> Option<&Call> {
    match &step.action {
        Action::Send(call) | Action::Await(call) | Action::Watch(call) | Action::Open(_, call) => Some(call),
        Action::Read(..) | Action::ReadUntil(..) => None,
    }
}

fn case_text(case: &Case) -> String {
    let calls = case.steps.iter().filter_map(call);
    calls.map(|call| format!("{}\n{}", call.path, call.body)).collect::<Vec<_>>().join("\n")
}

impl SeenValues {
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(object) => {
                if is_object(object) {
                    self.learn_object(value);
                }
                object.values().for_each(|field| self.learn(field));
            }
            _ => {}
        }
    }

    fn learn_object(&mut self, object: &Value) {
        let meta = &object["metadata"];
        self.versions.extend(number(&meta["resourceVersion"]));
        if let (Some(prefix), Some(name)) = (meta["generateName"].as_str(), meta["name"].as_str()) {
            let prefix = &prefix[..prefix.len().min(GENERATED_PREFIX)];
            if name.strip_prefix(prefix).is_some_and(is_suffix) {
                self.generated.insert(name.to_owned(), format!("{prefix}<generated>"));
            }
        }
        let spec = &object["spec"];
        let addresses = std::iter::once(&spec["clusterIP"]).chain(spec["clusterIPs"].as_array().into_iter().flatten());
        for address in addresses.filter_map(Value::as_str).filter(|address| !address.is_empty() && *address != "None") {
            let next = self.addresses.len() + 1;
            if !self.case_text.contains(address) {
                self.addresses.entry(address.to_owned()).or_insert(next);
            }
        }
        for port in spec["ports"].as_array().into_iter().flatten().filter_map(|port| port["nodePort"].as_u64()) {
            if !self.case_text.contains(&port.to_string()) {
                self.ports.insert(port);
            }
        }
    }

    fn rewritten(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::String(_) if key == "continue" => json!("<continue>"),
            Value::String(text) if text.starts_with(PROTOBUF) => json!("<protobuf>"),
            // Column of a table with an object's age. The age depends on the time of the request.
            Value::String(text) if key == "cells" && is_age(text) => json!("<age>"),
            Value::String(text) => json!(self.text(text)),
            Value::Number(port)
                if key == "nodePort" && port.as_u64().is_some_and(|port| self.ports.contains(&port)) =>
            {
                json!("<node port>")
            }
            Value::Array(items) => items.iter().map(|item| self.rewritten(key, item)).collect(),
            Value::Object(object) => self.rewritten_object(object),
            other => other.clone(),
        }
    }

    fn rewritten_object(&mut self, object: &Map<String, Value>) -> Value {
        let mut object = object.clone();
        without_texts(&mut object);
        in_order(&mut object);
        let object = &object;
        let mut written = Map::new();
        for (key, field) in object {
            if key != "managedFields" {
                written.insert(key.clone(), self.rewritten(key, field));
            }
        }
        if let (Some(meta), Some(Value::Object(written))) = (object.get("metadata"), written.get_mut("metadata")) {
            self.times.stamp(meta, written, self.dry_run);
            if let Some(version) = number(&meta["resourceVersion"]) {
                let shown = if is_object(object) { self.version(version) } else { self.since(version) };
                written.insert("resourceVersion".to_owned(), json!(shown));
            }
        }
        Value::Object(written)
    }

    /// Returns the placeholder for an object's resourceVersion: its rank among the versions in the case.
    fn version(&self, version: u64) -> String {
        let rank = self.versions.range(..=version).count();
        if self.versions.contains(&version) {
            return format!("<version {rank}>");
        }
        format!("<no version, after {rank}>")
    }

    /// Returns the placeholder for the resourceVersion of a list or bookmark, which also depends on other writers. The
    /// placeholder contains the number of resourceVersions of the case's objects that are not greater than `version`.
    fn since(&self, version: u64) -> String {
        format!("<since version {}>", self.versions.range(..=version).count())
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, prefix) in &self.generated {
            text = text.replace(name, prefix);
        }
        let uids = &mut self.uids;
        text = PATTERNS
            .uid
            .replace_all(&text, |found: &Captures<'_>| {
                let next = uids.len() + 1;
                format!("<uid {}>", uids.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned();
        text = self.with_times(&text);
        text = PATTERNS.version.replace_all(&text, "resourceVersion: <version>").into_owned();
        for (address, number) in &self.addresses {
            text = text.replace(address, &format!("<cluster IP {number}>"));
        }
        text
    }
}

impl SeenValues {
    /// Replaces times in a text. Times that the case wrote itself are not replaced: servers must not change them.
    fn with_times(&self, text: &str) -> String {
        let form = |found: &Captures<'_>| match &found[0] {
            time if self.case_text.contains(time) => time.to_owned(),
            time => self.times.form(time, found.get(1).is_some()).to_owned(),
        };
        PATTERNS.time.replace_all(text, form).into_owned()
    }
}

/// Sorts the resources in a discovery document, because kube-apiserver lists custom resources in any order.
fn in_order(list: &mut Map<String, Value>) {
    if list.get("kind").is_some_and(|kind| kind == "APIResourceList")
        && let Some(Value::Array(resources)) = list.get_mut("resources")
    {
        resources.sort_by(|one, other| text_of(&one["name"]).cmp(text_of(&other["name"])));
    }
}

/// Removes texts that are not compared: those of an error except its reason and the fields of its causes, and the
/// descriptions of columns in a table.
fn without_texts(document: &mut Map<String, Value>) {
    for column in document.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        column["description"] = json!("");
    }
    if document.get("kind").is_none_or(|kind| kind != "Status")
        || document.get("status").is_none_or(|it| it != "Failure")
    {
        return;
    }
    document.remove("message");
    let details = document.remove("details").unwrap_or_default();
    let causes = details["causes"].as_array().into_iter().flatten();
    let causes: BTreeSet<String> =
        causes.map(|cause| format!("{} {}", text_of(&cause["reason"]), text_of(&cause["field"]))).collect();
    document.insert("causes".to_owned(), json!(causes));
    document.insert("retryAfterSeconds".to_owned(), details["retryAfterSeconds"].clone());
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// True if the object's resourceVersion is the version of its last change. False for lists and bookmarks.
fn is_object(object: &Map<String, Value>) -> bool {
    let meta = object.get("metadata");
    !object.contains_key("items") && meta.is_some_and(|meta| meta.get("uid").is_some())
}

fn is_age(text: &str) -> bool {
    text.strip_suffix('s').is_some_and(|count| count.parse::<u32>().is_ok())
}

fn is_suffix(text: &str) -> bool {
    text.len() == GENERATED_LETTERS && text.bytes().all(|letter| NAME_LETTERS.contains(&letter))
}
