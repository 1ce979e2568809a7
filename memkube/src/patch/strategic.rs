//! Strategic merge patch: a merge patch that merges some lists item by item. Directives such as `$patch` express
//! changes that a merge cannot express.

mod lists;

use crate::strategy::ListMerge;
use serde_json::{Map, Value};

/// Reason why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inapplicable(pub(crate) String);

/// Function that returns the merge strategy of the list at a path.
pub(crate) type Lists<'a> = dyn Fn(&str) -> ListMerge + 'a;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

/// Applies a patch to the object at `path`. The path of the root is empty.
pub(crate) fn apply(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    path: &str,
    lists: &Lists<'_>,
) -> Result<(), Inapplicable> {
    match patch.get(PATCH) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(PATCH);
            *object = patch;
            return Ok(());
        }
        Some(directive) if directive == "delete" => {
            object.clear();
            return Ok(());
        }
        Some(other) => {
            let other = super::go_format(other);
            let patch = super::go_format(&Value::Object(patch));
            return Err(Inapplicable(format!("unknown patch type: {other} in map: {patch}")));
        }
    }
    if let Some(Value::Array(kept)) = patch.remove(RETAIN_KEYS) {
        object.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    let orders = take_prefixed(&mut patch, ORDER_PREFIX);
    let deletions = take_prefixed(&mut patch, DELETE_PREFIX);
    for (name, gone) in &deletions {
        lists::delete_values(object, name, gone);
    }
    for (name, order) in &orders {
        // If the patch has `$setElementOrder` but no patch of the list, only order the existing items.
        if !patch.contains_key(name) {
            lists::reorder(object, name, order, lists(&join(path, name)));
        }
    }
    for (name, value) in patch {
        let path = join(path, &name);
        let order = orders.iter().find(|(list, _)| *list == name).map(|(_, order)| order.as_slice());
        member(object, name, value, &path, order, lists)?;
    }
    Ok(())
}

fn member(
    object: &mut Map<String, Value>,
    name: String,
    value: Value,
    path: &str,
    order: Option<&[Value]>,
    lists: &Lists<'_>,
) -> Result<(), Inapplicable> {
    match value {
        Value::Null => {
            object.remove(&name);
        }
        Value::Object(patch) => {
            let deleted = patch.get(PATCH).is_some_and(|directive| directive == "delete");
            let mut inner = match object.remove(&name) {
                Some(Value::Object(inner)) => inner,
                _ => Map::new(),
            };
            apply(&mut inner, patch, path, lists)?;
            if !deleted {
                object.insert(name, Value::Object(inner));
            }
        }
        Value::Array(items) => {
            let old = match object.remove(&name) {
                Some(Value::Array(old)) => old,
                _ => Vec::new(),
            };
            let merged = lists::merge(old, items, path, order, lists)?;
            object.insert(name, Value::Array(merged));
        }
        other => {
            object.insert(name, other);
        }
    }
    Ok(())
}

fn take_prefixed(patch: &mut Map<String, Value>, prefix: &str) -> Vec<(String, Vec<Value>)> {
    let names: Vec<String> = patch.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    let taken = names.into_iter().map(|name| {
        let values = match patch.remove(&name) {
            Some(Value::Array(values)) => values,
            _ => Vec::new(),
        };
        (name[prefix.len()..].to_owned(), values)
    });
    taken.collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
