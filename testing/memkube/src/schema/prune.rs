//! Drops members that are not in the schema.

use super::Node;
use crate::object::Object;
use crate::object::path::Path;
use serde_json::Value;

/// Members that every object may have without a schema.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn object(root: &Node, object: &mut Object) -> Vec<String> {
    let mut dropped = Vec::new();
    members(root, object, true, &Path::ROOT, &mut dropped);
    dropped
}

fn value(node: &Node, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    match (value, &node.items) {
        (Value::Object(object), _) => {
            members(node, object, node.given.x_kubernetes_embedded_resource == Some(true), path, dropped);
        }
        (Value::Array(items), Some(node)) => {
            for (index, item) in items.iter_mut().enumerate() {
                self::value(node, item, &path.item(index), dropped);
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
        if let Some(node) = node.member(name) {
            value(node, member, &path, dropped);
            return true;
        }
        if !node.keeps_unknown {
            dropped.push(path.to_string());
        }
        node.keeps_unknown
    });
}
