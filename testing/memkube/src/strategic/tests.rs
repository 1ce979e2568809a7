//! Tests of strategic merge patches. The expected results are those of kube-apiserver 1.35.

use super::{Inapplicable, apply};
use crate::strategy::ListMerge;
use serde_json::{Value, json};

fn patched(object: Value, patch: Value) -> Result<Value, Inapplicable> {
    let (Value::Object(mut object), Value::Object(patch)) = (object, patch) else { panic!("both are objects") };
    let lists = |path: &str| match path {
        "ports" => ListMerge::ByKey("port"),
        "finalizers" => ListMerge::Set,
        _ => ListMerge::Replace,
    };
    apply(&mut object, patch, "", &lists)?;
    Ok(Value::Object(object))
}

#[test]
fn items_are_merged_by_their_key_and_new_items_come_last() {
    let object = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]});
    let patch = json!({"ports": [{"port": 82, "name": "c"}, {"port": 80, "name": "aa"}]});
    let expected = json!({"ports": [
        {"port": 80, "name": "aa"}, {"port": 81, "name": "b"}, {"port": 82, "name": "c"},
    ]});
    assert_eq!(patched(object, patch), Ok(expected));
}

#[test]
fn an_item_can_be_deleted_and_a_list_replaced() {
    let object = json!({"ports": [{"port": 80}, {"port": 81}]});
    let deletion = json!({"ports": [{"port": 80, "$patch": "delete"}]});
    assert_eq!(patched(object.clone(), deletion), Ok(json!({"ports": [{"port": 81}]})));
    let replacement = json!({"ports": [{"$patch": "replace"}, {"port": 99}]});
    assert_eq!(patched(object, replacement), Ok(json!({"ports": [{"port": 99}]})));
}

#[test]
fn lists_of_values_are_sets_where_the_kind_says_so() {
    let object = json!({"finalizers": ["a"], "others": ["a"]});
    let patch = json!({"finalizers": ["b", "a"], "others": ["b"]});
    assert_eq!(patched(object, patch), Ok(json!({"finalizers": ["a", "b"], "others": ["b"]})));
    let deletion = json!({"$deleteFromPrimitiveList/finalizers": ["a"]});
    assert_eq!(patched(json!({"finalizers": ["a", "b"]}), deletion), Ok(json!({"finalizers": ["b"]})));
}

#[test]
fn members_are_merged_deleted_and_replaced() {
    let object = json!({"a": {"b": 1, "c": 1}, "d": 1, "e": {"f": 1}});
    let patch = json!({"a": {"b": 2}, "d": null, "e": {"$patch": "delete"}, "$retainKeys": ["a"]});
    assert_eq!(patched(object.clone(), patch), Ok(json!({"a": {"b": 2, "c": 1}})));
    let patch = json!({"a": {"$patch": "replace", "x": 1}});
    assert_eq!(patched(object, patch), Ok(json!({"a": {"x": 1}, "d": 1, "e": {"f": 1}})));
}

#[test]
fn what_cannot_be_applied_is_rejected() {
    let patches = [json!({"ports": [{"name": "nokey"}]}), json!({"ports": [1]}), json!({"$patch": "turn"})];
    for patch in patches {
        assert!(patched(json!({}), patch.clone()).is_err(), "{patch}");
    }
}
