//! Decides what happens to an object that a manifest asks for. Values that a user may have changed on purpose stay.

use super::quantity;
use serde_json::Value;

/// What happens to values of an existing object that differ from the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Differences {
    /// They stay, and the user is told.
    Keep,
    /// The manifest replaces them.
    Overwrite,
}

/// Decision about one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Create,
    Unchanged,
    /// The object stays. The text says what differs.
    Keep(String),
    /// The object is replaced by this one. The text says what changes.
    Update(Box<Value>, String),
    /// The object prevents what the manifest asks for. The text says why and what to do.
    Impossible(String),
}

/// Decides what happens to an object: `wanted` is in the manifest, `present` in the cluster.
pub(crate) fn decide(present: Option<&Value>, wanted: &Value, differences: Differences) -> Decision {
    let Some(present) = present else { return Decision::Create };
    if present["metadata"]["deletionTimestamp"].is_string() {
        return Decision::Impossible(
            "it is being deleted: wait until it is gone, and run the command again".to_owned(),
        );
    }
    match wanted["kind"].as_str() {
        Some("Role") => role(present, wanted, differences),
        Some("RoleBinding") => binding(present, wanted, differences),
        _ => other(present, wanted, differences),
    }
}

/// A role must grant every right of the manifest. Rights beyond them are those of a user or of an older version.
fn role(present: &Value, wanted: &Value, differences: Differences) -> Decision {
    let rules = |role: &Value| role["rules"].as_array().cloned().unwrap_or_default();
    let (has, needs) = (rules(present), rules(wanted));
    let missing: Vec<&Value> = needs.iter().filter(|need| !has.iter().any(|rule| grants(rule, need))).collect();
    let extra: Vec<&Value> = has.iter().filter(|rule| !needs.iter().any(|need| grants(need, rule))).collect();
    if missing.is_empty() && extra.is_empty() {
        return Decision::Unchanged;
    }
    let replace = |rules: Vec<Value>| {
        let mut object = present.clone();
        object["rules"] = Value::Array(rules);
        Box::new(object)
    };
    let shown = |rules: &[&Value]| rules.iter().map(|rule| right(rule)).collect::<Vec<_>>().join(", ");
    match (missing.is_empty(), differences) {
        (_, Differences::Overwrite) => {
            Decision::Update(replace(needs.clone()), "rules are those of this version".to_owned())
        }
        (true, Differences::Keep) => Decision::Keep(format!("more rights than needed: {}", shown(&extra))),
        (false, Differences::Keep) => {
            let all = needs.iter().chain(extra).cloned().collect();
            Decision::Update(replace(all), format!("missing rights added: {}", shown(&missing)))
        }
    }
}

/// True if a rule grants at least what another rule grants.
fn grants(rule: &Value, need: &Value) -> bool {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let covers = |field: &str| {
        let has = list(&rule[field]);
        list(&need[field]).iter().all(|item| has.contains(item) || has.iter().any(|item| item == "*"))
    };
    let (names, needed) = (list(&rule["resourceNames"]), list(&need["resourceNames"]));
    let is_named = names.is_empty() || (!needed.is_empty() && needed.iter().all(|name| names.contains(name)));
    is_named && ["apiGroups", "resources", "verbs"].into_iter().all(covers)
}

/// Returns a rule as a text, such as `get,list of memberagents`.
fn right(rule: &Value) -> String {
    let list = |value: &Value| {
        let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(",")
    };
    format!("{} of {}", list(&rule["verbs"]), list(&rule["resources"]))
}

/// A binding must name the role and the account. Kubernetes does not let anybody change the role of a binding.
fn binding(present: &Value, wanted: &Value, differences: Differences) -> Decision {
    if !is_part_of(&wanted["roleRef"], &present["roleRef"]) {
        let role = present["roleRef"]["name"].as_str().unwrap_or_default();
        return Decision::Impossible(format!(
            "it binds the role {role}, and the role of a binding cannot be changed: delete it, and run the command again"
        ));
    }
    let subjects = |binding: &Value| binding["subjects"].as_array().cloned().unwrap_or_default();
    let (has, needs) = (subjects(present), subjects(wanted));
    let is_complete = needs.iter().all(|need| has.iter().any(|subject| is_part_of(need, subject)));
    let extra: Vec<Value> =
        has.iter().filter(|subject| !needs.iter().any(|need| is_part_of(need, subject))).cloned().collect();
    if is_complete && extra.is_empty() {
        return Decision::Unchanged;
    }
    let names: Vec<&str> = extra.iter().filter_map(|subject| subject["name"].as_str()).collect();
    let mut object = present.clone();
    match (is_complete, differences) {
        (true, Differences::Keep) => return Decision::Keep(format!("more subjects than needed: {}", names.join(", "))),
        (false, Differences::Keep) => object["subjects"] = needs.into_iter().chain(extra).collect(),
        (_, Differences::Overwrite) => object["subjects"] = Value::Array(needs),
    }
    Decision::Update(Box::new(object), "subjects are corrected".to_owned())
}

/// Any other object: each value of the manifest is compared, and values beyond the manifest are not. A value that is
/// absent outside of `spec` is one that an older version did not have.
fn other(present: &Value, wanted: &Value, differences: Differences) -> Decision {
    let mut found = Vec::new();
    collect(wanted, present, "", &mut found);
    if found.is_empty() {
        return Decision::Unchanged;
    }
    let is_new = |difference: &&Difference| difference.is_absent && !difference.path.starts_with("spec");
    let (new, changed): (Vec<&Difference>, Vec<&Difference>) = found.iter().partition(is_new);
    let changed = changed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let kept = format!("{changed}: use --overwrite to replace");
    let mut object = present.clone();
    match differences {
        Differences::Keep if new.is_empty() => return Decision::Keep(kept),
        Differences::Keep => {
            let mut added = wanted.clone();
            if let Some(members) = added.as_object_mut() {
                members.remove("spec");
            }
            // Only absent values are added: the present ones win.
            overlay(present, &mut added);
            object = added;
        }
        Differences::Overwrite => overlay(wanted, &mut object),
    }
    let added = new.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>().join(", ");
    let added = if added.is_empty() { added } else { format!("added {added}") };
    let changed = match (changed.is_empty(), differences) {
        (true, _) => String::new(),
        (false, Differences::Keep) => format!("kept {kept}"),
        (false, Differences::Overwrite) => format!("was {changed}"),
    };
    let texts = [added, changed].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    Decision::Update(Box::new(object), texts.join("; "))
}

/// Value that differs from the manifest.
#[derive(Debug)]
struct Difference {
    path: String,
    wanted: String,
    present: String,
    is_absent: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}, not {}", self.path, self.present, self.wanted)
    }
}

/// Collects the values that differ.
fn collect(wanted: &Value, present: &Value, path: &str, found: &mut Vec<Difference>) {
    match (wanted, present) {
        (Value::Object(wanted), Value::Object(present)) => {
            for (key, value) in wanted {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(value, present.get(key).unwrap_or(&Value::Null), &path, found);
            }
        }
        (Value::Object(wanted), Value::Null) if !wanted.is_empty() => {
            for (key, value) in wanted {
                collect(value, &Value::Null, &format!("{path}.{key}"), found);
            }
        }
        (Value::String(one), Value::String(other)) if quantity::is_same(one, other) => {}
        (wanted, present) if wanted == present => {}
        (wanted, present) => {
            let text = |value: &Value| match value {
                Value::Null => "absent".to_owned(),
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let (wanted, is_absent) = (text(wanted), present.is_null());
            found.push(Difference { path: path.to_owned(), wanted, present: text(present), is_absent });
        }
    }
}

fn overlay(wanted: &Value, object: &mut Value) {
    match (wanted, object) {
        (Value::Object(wanted), Value::Object(object)) => {
            for (key, value) in wanted {
                overlay(value, object.entry(key.clone()).or_insert(Value::Null));
            }
        }
        (wanted, object) => wanted.clone_into(object),
    }
}

/// True if each value of `part` is in `whole`.
fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|found| is_part_of(value, found)))
        }
        (part, whole) => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::join::manifests::{Token, of_member};
    use serde_json::json;

    /// Returns the object of a kind for the member `west`, as an API server returns it.
    fn stored(kind: &str) -> (Value, Value) {
        let wanted = of_member("west", Token::NeverExpires).into_iter().find(|object| object["kind"] == kind).unwrap();
        let mut stored = wanted.clone();
        stored["metadata"]["uid"] = json!("1");
        stored["metadata"]["resourceVersion"] = json!("7");
        (wanted, stored)
    }

    #[test]
    fn an_absent_object_is_created_and_one_that_fits_is_unchanged() {
        for kind in ["Namespace", "ResourceQuota", "ServiceAccount", "Role", "RoleBinding", "Secret"] {
            let (wanted, stored) = stored(kind);
            assert_eq!(decide(None, &wanted, Differences::Keep), Decision::Create);
            for differences in [Differences::Keep, Differences::Overwrite] {
                assert_eq!(decide(Some(&stored), &wanted, differences), Decision::Unchanged, "{kind}");
            }
        }
    }

    #[test]
    fn an_object_that_is_being_deleted_is_named() {
        let (wanted, mut stored) = stored("Namespace");
        stored["metadata"]["deletionTimestamp"] = json!("2026-11-23T00:00:00Z");
        assert!(
            matches!(decide(Some(&stored), &wanted, Differences::Keep), Decision::Impossible(why) if why.contains("gone"))
        );
    }

    #[test]
    fn a_raised_quota_stays_unless_the_user_says_otherwise() {
        let (wanted, mut stored) = stored("ResourceQuota");
        let limit = "count/endpointsliceexports.networking.fleet.azure.com";
        stored["spec"]["hard"][limit] = json!("5k");
        assert_eq!(decide(Some(&stored), &wanted, Differences::Keep), Decision::Unchanged);
        stored["spec"]["hard"][limit] = json!("20k");
        stored["spec"]["hard"]["pods"] = json!("0");
        assert_eq!(
            decide(Some(&stored), &wanted, Differences::Keep),
            Decision::Keep(format!("spec.hard.{limit}: 20k, not 5000: use --overwrite to replace"))
        );
        let Decision::Update(object, _) = decide(Some(&stored), &wanted, Differences::Overwrite) else {
            panic!("an update")
        };
        assert_eq!((&object["spec"]["hard"][limit], &object["spec"]["hard"]["pods"]), (&json!("5000"), &json!("0")));
        assert_eq!(object["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn labels_that_an_older_version_did_not_have_are_added() {
        let (wanted, mut stored) = stored("ResourceQuota");
        stored["metadata"]["labels"] = json!({"app.kubernetes.io/name": "own", "mine": "1"});
        stored["spec"]["hard"]["count/memberagents.networking.fleet.azure.com"] = json!("9");
        let Decision::Update(object, why) = decide(Some(&stored), &wanted, Differences::Keep) else {
            panic!("an update")
        };
        let labels = json!({"app.kubernetes.io/name": "own", "app.kubernetes.io/part-of": "fleetnet", "mine": "1"});
        assert_eq!((&object["metadata"]["labels"], &object["spec"]), (&labels, &stored["spec"]));
        assert!(why.starts_with("added metadata.labels.app.kubernetes.io/part-of; kept "), "{why}");
        assert!(why.contains("memberagents.networking.fleet.azure.com: 9, not 4"), "{why}");
        let (wanted, mut stored) = self::stored("ServiceAccount");
        stored["metadata"].as_object_mut().unwrap().remove("labels");
        stored.as_object_mut().unwrap().remove("automountServiceAccountToken");
        let Decision::Update(object, _) = decide(Some(&stored), &wanted, Differences::Keep) else {
            panic!("an update")
        };
        assert_eq!(object["metadata"]["labels"], wanted["metadata"]["labels"]);
        assert_eq!(object["metadata"]["uid"], "1");
    }

    #[test]
    fn missing_rights_are_added_and_others_stay() {
        let (wanted, mut stored) = stored("Role");
        let own = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
        stored["rules"].as_array_mut().unwrap().push(own.clone());
        assert_eq!(
            decide(Some(&stored), &wanted, Differences::Keep),
            Decision::Keep("more rights than needed: get of pods".to_owned())
        );
        stored["rules"][1]["verbs"] = json!(["get", "list", "watch"]);
        let Decision::Update(object, why) = decide(Some(&stored), &wanted, Differences::Keep) else {
            panic!("an update")
        };
        assert_eq!(why, "missing rights added: get,list,watch,create,patch of memberagents");
        for rule in wanted["rules"].as_array().unwrap().iter().chain([&own]) {
            assert!(object["rules"].as_array().unwrap().contains(rule), "{rule}");
        }
        let Decision::Update(object, _) = decide(Some(&stored), &wanted, Differences::Overwrite) else {
            panic!("an update")
        };
        assert_eq!(object["rules"], wanted["rules"]);
    }

    #[test]
    fn a_rule_for_some_names_does_not_grant_all() {
        let all = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
        let some = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]});
        assert!(grants(&all, &some) && grants(&some, &some) && !grants(&some, &all));
        let star = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
        assert!(grants(&star, &all) && !grants(&all, &star));
    }

    #[test]
    fn a_binding_gets_its_subject_back_and_cannot_get_another_role() {
        let (wanted, mut stored) = stored("RoleBinding");
        let user = json!({"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"});
        stored["subjects"] = json!([user]);
        let Decision::Update(object, _) = decide(Some(&stored), &wanted, Differences::Keep) else {
            panic!("an update")
        };
        assert_eq!(object["subjects"], json!([wanted["subjects"][0], user]));
        assert_eq!(
            decide(Some(&object), &wanted, Differences::Keep),
            Decision::Keep("more subjects than needed: jane".to_owned())
        );
        stored["roleRef"]["name"] = json!("view");
        assert!(
            matches!(decide(Some(&stored), &wanted, Differences::Overwrite), Decision::Impossible(why) if why.contains("view"))
        );
    }
}
