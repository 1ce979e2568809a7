//! Patches: what they make of an object.

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;

use serde_json::Value;

/// A value as Go's `%v` shows it: `map[spec:map[ports:5]]`. Messages of kube-apiserver have patches in this form.
pub(crate) fn go_format(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_format).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            let members: Vec<String> =
                names.iter().map(|name| format!("{name}:{}", go_format(&members[*name]))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}
