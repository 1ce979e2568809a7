//! Objects that the hub needs for a member, from `deploy/hub-member.yaml`.

use serde_json::{Value, json};

/// Manifest of the hub's objects for a member. The manifest is the only definition of these objects.
const HUB_MEMBER: &str = include_str!("../../../../../deploy/hub-member.yaml");
/// Cluster id in the manifest.
const EXAMPLE: &str = "member-1";
/// ServiceAccount of the member agent in the hub.
pub(crate) const ACCOUNT: &str = "member-agent";
/// Secret in the hub with a token that does not expire.
pub(crate) const TOKEN_SECRET: &str = "member-agent-token";
/// Type of Secrets for which the hub makes a token that does not expire.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

/// Token that a member uses for the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The member gets a token by TokenRequest, and renews it.
    Expires,
    /// The hub stores a token that does not expire.
    NeverExpires,
}

/// Name of the member's namespace in the hub.
pub(crate) fn namespace(member: &str) -> String {
    fleetnet_core::names::member_namespace(member).to_string()
}

/// Returns the objects that the hub needs for a member, in the order in which they must be created.
///
/// # Panics
/// If the manifest in this program is no YAML, which a test excludes.
pub(crate) fn of_member(member: &str, token: Token) -> Vec<Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(HUB_MEMBER).expect("deploy/hub-member.yaml is YAML");
    for object in &mut objects {
        rename(object, member);
    }
    if token == Token::NeverExpires {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": TOKEN_TYPE,
            "metadata": {
                "name": TOKEN_SECRET,
                "namespace": namespace(member),
                "labels": {"app.kubernetes.io/name": ACCOUNT, "app.kubernetes.io/part-of": "fleetnet"},
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
        }));
    }
    objects
}

/// Replaces the example's id. Only whole values are replaced: the id itself, and the name of the member's namespace.
fn rename(value: &mut Value, member: &str) {
    match value {
        Value::String(text) if text == EXAMPLE => member.clone_into(text),
        Value::String(text) if *text == namespace(EXAMPLE) => *text = namespace(member),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, member)),
        Value::Object(members) => members.values_mut().for_each(|value| rename(value, member)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_the_example_is_the_file() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(HUB_MEMBER).unwrap();
        assert_eq!(of_member(EXAMPLE, Token::Expires), documents);
    }

    #[test]
    fn each_object_is_in_the_members_namespace() {
        let objects = of_member("west", Token::NeverExpires);
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "ResourceQuota", "ServiceAccount", "Role", "RoleBinding", "Secret"]);
        assert_eq!(objects[0]["metadata"]["name"], "fleet-member-west");
        for object in &objects[1..] {
            assert_eq!(object["metadata"]["namespace"], "fleet-member-west", "{object}");
        }
        assert_eq!(objects[4]["subjects"][0]["namespace"], "fleet-member-west");
        assert!(!serde_json::to_string(&objects).unwrap().contains("member-1"));
    }

    #[test]
    fn a_member_whose_id_is_a_word_of_yaml_stays_text() {
        for member in ["true", "null", "1", "0x10", "member", "agent"] {
            let objects = of_member(member, Token::Expires);
            assert_eq!(objects[0]["metadata"]["name"], format!("fleet-member-{member}"));
            assert_eq!(objects[2]["metadata"]["name"], "member-agent");
        }
    }
}
