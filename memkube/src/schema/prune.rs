//! Drops members that are not in the schema.

use super::{Node, Path};
use crate::object::Object;
use serde_json::Value;

/// Members that every object and every embedded object may have without a schema.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn object(root: &Node, object: &mut Object) -> Vec<String> {
    let mut dropped = Vec::new();
    members(root, object, true, &Path::ROOT, &mut dropped);
    dropped
}

fn value(node: &Node, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(object) => members(node, object, node.embedded, path, dropped),
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    self::value(node, item, &path.item(index), dropped);
                }
            }
        }
        _ => {}
    }
}

fn members(node: &Node, object: &mut Object, whole: bool, path: &Path<'_>, dropped: &mut Vec<String>) {
    object.retain(|name, member| {
        if whole && OF_OBJECTS.contains(&name.as_str()) {
            return true;
        }
        let path = path.member(name);
        if let Some(node) = node.properties.get(name).or(node.additional.as_deref()) {
            value(node, member, &path, dropped);
            return true;
        }
        let kept = node.preserve_unknown_fields || node.any_additional;
        if !kept {
            dropped.push(path.to_string());
        }
        kept
    });
}
