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
fn items_are_merged_by_their_key_and_the_patch_s_come_first() {
    let object = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]});
    let patch = json!({"ports": [{"port": 80, "name": "aa"}, {"port": 82, "name": "c"}]});
    let expected = json!({"ports": [
        {"port": 80, "name": "aa"}, {"port": 82, "name": "c"}, {"port": 81, "name": "b"},
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
    let patch = json!({"finalizers": ["b"], "others": ["b"]});
    assert_eq!(patched(object, patch), Ok(json!({"finalizers": ["b", "a"], "others": ["b"]})));
    let deletion = json!({"$deleteFromPrimitiveList/finalizers": ["a"]});
    assert_eq!(patched(json!({"finalizers": ["a", "b"]}), deletion), Ok(json!({"finalizers": ["b"]})));
}

#[test]
fn an_order_can_be_asked_for() {
    let object = json!({"ports": [{"port": 99}]});
    let patch = json!({
        "$setElementOrder/ports": [{"port": 100}, {"port": 99}],
        "ports": [{"port": 100, "name": "q"}, {"port": 99, "name": "p"}],
    });
    let expected = json!({"ports": [{"port": 100, "name": "q"}, {"port": 99, "name": "p"}]});
    assert_eq!(patched(object, patch), Ok(expected));
    let alone = json!({"$setElementOrder/ports": [{"port": 2}, {"port": 1}]});
    let object = json!({"ports": [{"port": 1}, {"port": 2}]});
    assert_eq!(patched(object, alone), Ok(json!({"ports": [{"port": 2}, {"port": 1}]})));
}

#[test]
fn keys_can_be_retained() {
    let patch = json!({"a": {"$retainKeys": ["b"], "b": 2}});
    assert_eq!(patched(json!({"a": {"b": 1, "c": 1}}), patch), Ok(json!({"a": {"b": 2}})));
}

#[test]
fn an_item_without_its_key_is_refused() {
    let error = patched(json!({}), json!({"ports": [{"name": "nokey"}]})).unwrap_err();
    assert_eq!(error.0, "map: map[name:nokey] does not contain declared merge key: port");
}
