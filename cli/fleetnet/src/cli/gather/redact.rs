//! Removes secrets from what is gathered, and addresses if the user asks for it.

use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

/// JSON Web Token: three parts in base64url, of which the first two are JSON objects.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(\.[A-Za-z0-9_-]*)?").expect("it is a pattern")
});
/// Credentials in a URL.
static PASSWORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"://[^/\s:@]+:[^/\s@]+@").expect("it is a pattern"));
/// Header with credentials.
static BEARER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)bearer\s+[A-Za-z0-9._~+/=-]{8,}").expect("it is a pattern"));
/// Environment variables whose values are not secret. Values of all others are removed.
const PLAIN_VARIABLES: [&str; 6] =
    ["MEMBER_CLUSTER_NAME", "CONFIG_PATH", "HUB_SERVER_URL", "HUB_CERTIFICATE_AUTHORITY", "RUST_LOG", "NO_PROXY"];
/// Annotation that repeats a whole object as text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const REMOVED: &str = "<removed>";

/// Removes from an object what may be secret or is of no use: managed fields, the last applied configuration, and
/// values of environment variables. Secrets and ConfigMaps are not gathered at all.
pub(super) fn object(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    variables(object);
}

/// Removes the values of environment variables anywhere in an object.
fn variables(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                if key == "env"
                    && let Some(entries) = value.as_array_mut()
                {
                    entries.iter_mut().for_each(variable);
                }
                variables(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(variables),
        _ => {}
    }
}

fn variable(entry: &mut Value) {
    let is_plain = entry["name"].as_str().is_some_and(|name| PLAIN_VARIABLES.contains(&name));
    if !is_plain && entry.get("value").is_some() {
        entry["value"] = json!(REMOVED);
    }
}

/// Removes tokens and passwords from a text.
pub(super) fn secrets(text: &str) -> String {
    let text = TOKEN.replace_all(text, "<token>");
    let text = PASSWORD.replace_all(&text, "://<credentials>@");
    BEARER.replace_all(&text, "Bearer <token>").into_owned()
}

/// Replaces IP addresses by names such as `ip-1`. An address has the same name everywhere, so a reader can still
/// compare.
#[derive(Debug, Default)]
pub(super) struct Addresses(BTreeMap<IpAddr, usize>);

impl Addresses {
    /// Returns a text without IP addresses. Loopback and unspecified addresses stay: they say nothing about a network.
    pub(super) fn replace(&mut self, text: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == ':' || c == '_';
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, next) = rest.split_at(end);
            result.push_str(&self.word(word));
            let between = next.find(is_word).unwrap_or(next.len());
            result.push_str(&next[..between]);
            rest = &next[between..];
        }
        result
    }

    fn word(&mut self, word: &str) -> String {
        let core = word.trim_end_matches(['.', ':']);
        let end = &word[core.len()..];
        if let Ok(address) = core.parse::<IpAddr>() {
            return format!("{}{end}", self.name(address, core));
        }
        // An IPv4 address with a port.
        if let Some((host, port)) = core.split_once(':')
            && let Ok(address @ IpAddr::V4(_)) = host.parse::<IpAddr>()
        {
            return format!("{}:{port}{end}", self.name(address, host));
        }
        word.to_owned()
    }

    fn name(&mut self, address: IpAddr, written: &str) -> String {
        if address.is_loopback() || address.is_unspecified() {
            return written.to_owned();
        }
        let next = self.0.len() + 1;
        format!("ip-{}", self.0.entry(address).or_insert(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_passwords_and_headers_are_removed_from_texts() {
        let table = [
            ("token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln end", "token <token> end"),
            ("https://user:secret@proxy.test:3128/", "https://<credentials>@proxy.test:3128/"),
            ("Authorization: bearer abcdefgh12345678", "Authorization: Bearer <token>"),
            ("nothing here", "nothing here"),
        ];
        for (text, expected) in table {
            assert_eq!(secrets(text), expected);
        }
    }

    #[test]
    fn values_of_variables_are_removed_but_known_ones() {
        let mut value = json!({
            "metadata": {"name": "a", "managedFields": [1], "annotations": {LAST_APPLIED: "secret", "kept": "1"}},
            "spec": {"template": {"spec": {"containers": [{"env": [
                {"name": "MEMBER_CLUSTER_NAME", "value": "west"},
                {"name": "PASSWORD", "value": "secret"},
                {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
            ]}]}}},
        });
        object(&mut value);
        let text = value.to_string();
        assert!(!text.contains("secret\"") && !text.contains("managedFields"), "{text}");
        assert!(text.contains("west") && text.contains("secretKeyRef") && text.contains("kept"), "{text}");
    }

    #[test]
    fn an_address_has_one_name_everywhere() {
        let mut addresses = Addresses::default();
        let table = [
            ("10.0.0.1 and 10.0.0.2", "ip-1 and ip-2"),
            ("[\"10.0.0.2\",\"10.0.0.1:8080\"]", "[\"ip-2\",\"ip-1:8080\"]"),
            ("https://10.0.0.1:6443/x", "https://ip-1:6443/x"),
            ("cidr 10.0.0.0/16.", "cidr ip-3/16."),
            ("at fd00::1, [fd00::1]:443", "at ip-4, [ip-4]:443"),
            ("127.0.0.1 ::1 0.0.0.0 :: stay", "127.0.0.1 ::1 0.0.0.0 :: stay"),
            (
                "fleetnet_runtime::io::watch 1.2.3 03:48:02 1.2.3.4.5 v1.35.4",
                "fleetnet_runtime::io::watch 1.2.3 03:48:02 1.2.3.4.5 v1.35.4",
            ),
            ("größe 10.0.0.1", "größe ip-1"),
        ];
        for (text, expected) in table {
            assert_eq!(addresses.replace(text), expected);
        }
    }
}
