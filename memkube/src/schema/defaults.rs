//! Sets defaults, and drops nulls of members that are not nullable.

use super::Node;
use crate::object::Object;
use serde_json::Value;

pub(super) fn apply(root: &Node, object: &mut Object) {
    members(root, object);
}

fn value(node: &Node, value: &mut Value) {
    match value {
        Value::Object(object) => members(node, object),
        Value::Array(items) => {
            let Some(node) = &node.items else { return };
            for item in items {
                if let (true, Some(default)) = (is_wrong_null(node, item), &node.default) {
                    item.clone_from(default);
                }
                self::value(node, item);
            }
        }
        _ => {}
    }
}

fn members(node: &Node, object: &mut Object) {
    for (name, property) in &node.properties {
        if let Some(default) = &property.default
            && object.get(name).is_none_or(|old| is_wrong_null(property, old))
        {
            object.insert(name.clone(), default.clone());
        }
    }
    object.retain(|name, member| {
        let Some(node) = node.properties.get(name).or(node.additional.as_deref()) else { return true };
        if is_wrong_null(node, member) {
            let Some(default) = &node.default else { return false };
            member.clone_from(default);
        }
        value(node, member);
        true
    });
}

fn is_wrong_null(node: &Node, value: &Value) -> bool {
    value.is_null() && !node.nullable
}
