//! Old values of fields in an update: rules read these values, and errors of unchanged values are ignored.

use super::{ListType, Node};
use crate::object::Object;
use serde_json::Value;
use std::collections::BTreeMap;

/// Old value of a member. `None` if there is none, and for a member of an atomic map.
pub(super) fn member<'a>(node: &Node, old: &'a Object, name: &str) -> Option<&'a Value> {
    if node.atomic_map { None } else { old.get(name) }
}

/// Old items of a list by key. Only items of a list of type map have a key, so other lists have no old items.
pub(super) struct OldItems<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(super) fn of(node: &'a Node, old: Option<&'a Value>) -> Self {
        let ListType::Map(keys) = &node.list else {
            return Self { keys: &[], items: BTreeMap::new() };
        };
        let items = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let keyed = items.iter().map(|item| (map_key(keys, item).to_string(), item));
        Self { keys, items: keyed.collect() }
    }

    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&map_key(self.keys, item).to_string()).copied()
    }
}

/// Key of an item in a list of type map: an object with only the key members of the item. Absent members stay absent.
pub(super) fn map_key(keys: &[String], item: &Value) -> Value {
    let members = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(members.collect())
}
