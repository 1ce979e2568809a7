//! Sets defaults, and drops nulls of members that are not nullable.

use super::Node;
use crate::object::Object;
use serde_json::Value;

pub(super) fn apply(node: &Node, object: &mut Object) {
    for (name, property) in &node.properties {
        if let Some(default) = &property.default
            && object.get(name).is_none_or(|old| is_wrong_null(property, old))
        {
            object.insert(name.clone(), default.clone());
        }
    }
    object.retain(|name, member| {
        let Some(node) = node.member(name) else { return true };
        if is_wrong_null(node, member) {
            let Some(default) = &node.default else { return false };
            member.clone_from(default);
        }
        value(node, member);
        true
    });
}

fn value(node: &Node, value: &mut Value) {
    match (value, &node.items) {
        (Value::Object(object), _) => apply(node, object),
        (Value::Array(items), Some(node)) => {
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

fn is_wrong_null(node: &Node, value: &Value) -> bool {
    value.is_null() && !node.nullable()
}
