//! Regular expressions for texts such as error messages. The expressions find values that are different on each server.

use regex::{Captures, Regex};
use serde_json::Value;
use std::sync::LazyLock;

/// Regular expressions for values that are different in each run.
pub(super) struct Patterns {
    pub(super) uid: Regex,
    pub(super) time: Regex,
    /// A resourceVersion in an error message: either the client's request or the object has this resourceVersion.
    pub(super) version: Regex,
    /// The server's newest resourceVersion in an error message. Also a resourceVersion in a YAML document: the document may be a
    /// list.
    pub(super) current: Regex,
    /// Two resourceVersions in an error message: the version that the client requested, and the oldest version that the server
    /// still has.
    pub(super) too_old: Regex,
    pub(super) quoted: Regex,
    /// Generated name in the error message about a rejected create with generateName. No object has this name, so a list of known
    /// names cannot find it.
    pub(super) bad_name: Regex,
}

pub(super) static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |text| Regex::new(text).expect("written here, and every case of the table goes through it");
    Patterns {
        uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        time: pattern(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
        version: pattern(r#"(in record \(|ResourceVersion in the precondition \(|resourceVersion\\*":\s*\\*")(\d+)"#),
        current: pattern(r#"(current: |resourceVersion: ")(\d+)"#),
        too_old: pattern(r"(too old resource version: )(\d+) \((\d+)\)"),
        bad_name: pattern("Bad_[a-z0-9]{5}"),
        quoted: pattern(r#"(?s)Invalid value: "?([\[{].*[\]}])"?: "#),
    }
});

/// Returns the text of an object in a message with sorted fields. `found` is a match of [`Patterns::quoted`]: the object as JSON,
/// or a JSON string that contains this JSON.
pub(super) fn ordered(found: &Captures<'_>) -> String {
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
