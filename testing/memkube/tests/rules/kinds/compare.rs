//! Comparison of responses with the expected responses.

use crate::support::Answer;
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of metadata that differ between any two servers.
const OWN: [&str; 8] =
    ["uid", "resourceVersion", "creationTimestamp", "generateName", "namespace", "continue", "name", "managedFields"];

/// Expected response to a call.
#[derive(Default)]
pub(crate) struct Expected {
    /// Expected status code; 0 if the file contains no expected response.
    code: u16,
    reason: String,
    /// Reason and field of each cause.
    causes: BTreeSet<String>,
    object: Option<Value>,
}

impl Expected {
    /// Adds a line of the file to the expected response. `mark` is the start of the line: `< ` for code and content,
    /// `! ` for a cause. `line` is the rest.
    pub(crate) fn add(&mut self, mark: &str, line: &str) {
        match mark {
            "< " => {
                let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
                self.code = code.parse().expect("an answer has a code");
                if rest.starts_with('{') {
                    self.object = Some(serde_json::from_str(rest).expect("an object is JSON"));
                } else {
                    rest.clone_into(&mut self.reason);
                }
            }
            "! " => drop(self.causes.insert(line.to_owned())),
            other => panic!("no line begins with {other:?}"),
        }
    }
}

/// Returns the differences between a response and the expected response.
pub(crate) fn differences(expected: &Expected, answer: &Answer) -> Vec<String> {
    if expected.code == 0 {
        return if answer.code < 300 { Vec::new() } else { vec![answer.body.to_string()] };
    }
    let mut found = Vec::new();
    let mut compare = |what: &str, wanted: String, given: String| {
        if wanted != given {
            found.push(format!("  {what}\n    expected {wanted}\n    answered {given}"));
        }
    };
    compare("code", expected.code.to_string(), answer.code.to_string());
    if let Some(object) = &expected.object {
        let given = plain(&answer.body, object);
        if !fits(object, &given) {
            compare("object", object.to_string(), given.to_string());
        }
        return found;
    }
    compare("reason", expected.reason.clone(), answer.body["reason"].as_str().unwrap_or_default().to_owned());
    compare("causes", format!("{:?}", expected.causes), format!("{:?}", causes(&answer.body)));
    found
}

fn causes(status: &Value) -> BTreeSet<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    causes.map(|cause| format!("{} {}", text(cause, "reason"), text(cause, "field"))).collect()
}

/// Returns the object of a response without the metadata that differs between servers. Keeps metadata that the expected
/// object has.
fn plain(object: &Value, expected: &Value) -> Value {
    let mut plain = object.clone();
    let Some(members) = plain.as_object_mut() else { return plain };
    members.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion") || expected.get(name).is_some());
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        let named = |name: &str| expected["metadata"].get(name).is_some();
        metadata.retain(|name, _| !OWN.contains(&name.as_str()) || named(name));
        if metadata.is_empty() {
            members.remove("metadata");
        }
    }
    plain
}

/// True if a value is equal to the expected value. The expected value `"*"` matches any value.
fn fits(expected: &Value, given: &Value) -> bool {
    match (expected, given) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Object(expected), Value::Object(given)) => {
            let same = |(name, value): (&String, &Value)| given.get(name).is_some_and(|given| fits(value, given));
            expected.len() == given.len() && expected.iter().all(same)
        }
        (Value::Array(expected), Value::Array(given)) => {
            expected.len() == given.len() && expected.iter().zip(given).all(|(expected, given)| fits(expected, given))
        }
        (expected, given) => expected == given,
    }
}
