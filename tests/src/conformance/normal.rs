//! Makes the answers of one case comparable: what no two servers can share is replaced by what it stands for.
//!
//! - UIDs by their number in order of appearance, times by their form;
//! - resourceVersions of objects by their order within the case; those of lists and bookmarks, which others move on, by
//!   the newest object that they are not older than;
//! - suffixes that the server generated, cluster IPs and node ports that it chose, continue tokens;
//! - `managedFields` are left out: memkube keeps none;
//! - what a refusal says several times it says once (kube-apiserver checks metadata up to four times, as the kind is);
//! - objects quoted in messages have their fields in the order of the alphabet, not of Go's structs.

use super::play::Answer;
use super::script::{Action, Case};
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Patterns in texts, and how many groups of them are not to be seen.
struct Patterns {
    uid: Regex,
    time: Regex,
    version: Regex,
    quoted_version: Regex,
    quoted: Regex,
    /// Of the table's one generateName that is refused, so that no object shows the name.
    refused_name: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |text| Regex::new(text).expect("written here, and every case of the table goes through it");
    Patterns {
        uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        time: pattern(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
        version: pattern(
            r"(in record|ResourceVersion in the precondition|current:|too old resource version: \d+) \(?(\d+)\)?",
        ),
        quoted_version: pattern(r#"(resourceVersion\\*":\s*\\*")(\d+)"#),
        refused_name: pattern("Bad_[a-z0-9]{5}"),
        quoted: pattern(r#"(?s)Invalid value: "?([\[{].*[\]}])"?: "#),
    }
});

/// The letters of generated names.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";
const GENERATED_LETTERS: usize = 5;
/// Of longer prefixes only so much is taken.
const GENERATED_PREFIX: usize = 58;

/// What a case's answers have in common.
#[derive(Default)]
struct Known {
    /// Of objects.
    versions: BTreeSet<u64>,
    uids: BTreeMap<String, usize>,
    generated: BTreeMap<String, String>,
    addresses: BTreeMap<String, usize>,
    ports: BTreeSet<u64>,
    /// What the case itself says is not the server's choice.
    said: String,
}

/// The answers of a case as they can be compared, one document a step.
#[must_use]
pub fn normal(case: &Case, answers: &[Answer]) -> Vec<Value> {
    let mut known = Known { said: said(case), ..Known::default() };
    for answer in answers {
        known.learn(&answer.body);
    }
    let mut documents = Vec::new();
    for answer in answers {
        let body = known.rewritten("", &answer.body);
        let headers: Vec<String> = answer.headers.iter().map(|header| known.text(header)).collect();
        documents.push(json!({"code": answer.code, "headers": headers, "body": body}));
    }
    documents
}

fn said(case: &Case) -> String {
    let calls = case.steps.iter().filter_map(|step| match &step.action {
        Action::Send(call) | Action::Await(call) | Action::Watch(call) | Action::Open(_, call) => {
            Some(call.body.as_str())
        }
        Action::Read(..) | Action::ReadUntil(..) => None,
    });
    calls.collect::<Vec<_>>().join("\n")
}

impl Known {
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
            if !self.said.contains(address) {
                self.addresses.entry(address.to_owned()).or_insert(next);
            }
        }
        for port in spec["ports"].as_array().into_iter().flatten().filter_map(|port| port["nodePort"].as_u64()) {
            if !self.said.contains(&port.to_string()) {
                self.ports.insert(port);
            }
        }
    }

    fn rewritten(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::String(_) if key == "continue" => json!("<continue>"),
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
        say_once(&mut object);
        in_order(&mut object);
        let object = &object;
        let mut written = Map::new();
        for (key, field) in object {
            if key != "managedFields" {
                written.insert(key.clone(), self.rewritten(key, field));
            }
        }
        let version = object.get("metadata").and_then(|meta| number(&meta["resourceVersion"]));
        if let (Some(version), Some(Value::Object(meta))) = (version, written.get_mut("metadata")) {
            let seen = self.rank(version);
            let told = if is_object(object) { format!("<version {seen}>") } else { format!("<since version {seen}>") };
            meta.insert("resourceVersion".to_owned(), json!(told));
        }
        Value::Object(written)
    }

    /// How many versions of objects are known that are not newer.
    fn rank(&self, version: u64) -> usize {
        self.versions.range(..=version).count()
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = PATTERNS.quoted.replace(text, ordered).into_owned();
        for (name, prefix) in &self.generated {
            text = text.replace(name, prefix);
        }
        text = PATTERNS.refused_name.replace_all(&text, "Bad_<generated>").into_owned();
        let uids = &mut self.uids;
        text = PATTERNS
            .uid
            .replace_all(&text, |found: &Captures<'_>| {
                let next = uids.len() + 1;
                format!("<uid {}>", uids.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned();
        let form = |found: &Captures<'_>| if found.get(1).is_some() { "<time with micros>" } else { "<time>" };
        // What the case itself wrote stays: servers must not touch it.
        let said = self.said.clone();
        text = PATTERNS
            .time
            .replace_all(
                &text,
                |found: &Captures<'_>| {
                    if said.contains(&found[0]) { found[0].to_owned() } else { form(found).to_owned() }
                },
            )
            .into_owned();
        text = PATTERNS.version.replace_all(&text, "$1 <version>").into_owned();
        let ranked = |found: &Captures<'_>| {
            let rank = found[2].parse().map_or(0, |version| self.rank(version));
            format!("{}<version {rank}>", &found[1])
        };
        text = PATTERNS.quoted_version.replace_all(&text, ranked).into_owned();
        for (address, number) in &self.addresses {
            text = text.replace(address, &format!("<cluster IP {number}>"));
        }
        text
    }
}

/// Orders the resources of a group version: kube-apiserver lists custom ones as it finds them.
fn in_order(list: &mut Map<String, Value>) {
    if list.get("kind").is_some_and(|kind| kind == "APIResourceList")
        && let Some(Value::Array(resources)) = list.get_mut("resources")
    {
        resources.sort_by(|one, other| text_of(&one["name"]).cmp(text_of(&other["name"])));
    }
}

/// Leaves out causes of a refusal that were told before.
fn say_once(status: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = status.get_mut("details").and_then(|details| details.get_mut("causes")) else {
        return;
    };
    let mut told: Vec<Value> = Vec::new();
    for cause in std::mem::take(causes) {
        if !told.contains(&cause) {
            told.push(cause);
        }
    }
    causes.clone_from(&told);
    let line = |cause: &Value| format!("{}: {}", text_of(&cause["field"]), text_of(&cause["message"]));
    let lines = told.iter().map(line).collect::<Vec<_>>().join(", ");
    let message = status.get("message").map(text_of).unwrap_or_default();
    if let Some((what, _)) = message.split_once(" is invalid: [") {
        let lines = if told.len() == 1 { lines } else { format!("[{lines}]") };
        status.insert("message".to_owned(), json!(format!("{what} is invalid: {lines}")));
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An object that a message quotes, with its fields in order. Values that are quoted as texts are escaped once more.
fn ordered(found: &Captures<'_>) -> String {
    let unescaped = serde_json::from_str::<String>(&format!("\"{}\"", &found[1])).ok();
    let value = unescaped.as_deref().unwrap_or(&found[1]);
    match serde_json::from_str::<Value>(value) {
        Ok(mut value) => {
            if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("managedFields");
            }
            format!("Invalid value: {value}: ")
        }
        Err(_) => found[0].to_owned(),
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// Whether its resourceVersion is that of a change of its own: not so of lists and bookmarks.
fn is_object(object: &Map<String, Value>) -> bool {
    let meta = object.get("metadata");
    !object.contains_key("items") && meta.is_some_and(|meta| meta.get("uid").is_some())
}

fn is_suffix(text: &str) -> bool {
    text.len() == GENERATED_LETTERS && text.chars().all(|letter| GENERATED.contains(letter))
}
