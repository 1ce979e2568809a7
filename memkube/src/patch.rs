//! Patch formats: JSON patch, merge patch and strategic merge patch.

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;

use serde_json::Value;

/// Formats a value as Go's `%v` does: `map[spec:map[ports:5]]`. Messages of kube-apiserver show patches in this form.
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
