//! Strategic merge patch: a merge patch that merges some lists item by item. The directive `$patch` deletes or replaces
//! values.
//!
//! Unlike kube-apiserver, memkube keeps the order of the old items and adds new items at the end.

use crate::strategy::ListMerge;
use serde_json::{Map, Value};

/// Reason why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inapplicable(pub(crate) String);

/// Function that returns the merge strategy of the list at a path.
pub(crate) type Lists<'a> = dyn Fn(&str) -> ListMerge + 'a;

const PATCH: &str = "$patch";
/// Prefixes of directives about the order of lists and about unions, which memkube ignores.
const IGNORED: [&str; 2] = ["$setElementOrder/", "$retainKeys"];
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

/// Applies a patch to the object at `path`. The path of the root is empty.
pub(crate) fn apply(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    path: &str,
    lists: &Lists<'_>,
) -> Result<(), Inapplicable> {
    match patch.remove(PATCH) {
        None => {}
        Some(directive) if directive == "replace" => {
            *object = patch;
            return Ok(());
        }
        Some(directive) if directive == "delete" => {
            object.clear();
            return Ok(());
        }
        Some(other) => return Err(Inapplicable(format!("unknown patch type: {other}"))),
    }
    for (name, value) in patch {
        if let Some(name) = name.strip_prefix(DELETE_PREFIX) {
            let gone = value.as_array().map_or(&[][..], Vec::as_slice);
            if let Some(Value::Array(items)) = object.get_mut(name) {
                items.retain(|item| !gone.contains(item));
            }
        } else if !IGNORED.iter().any(|prefix| name.starts_with(prefix)) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            member(object, name, value, &path, lists)?;
        }
    }
    Ok(())
}

fn member(
    object: &mut Map<String, Value>,
    name: String,
    value: Value,
    path: &str,
    lists: &Lists<'_>,
) -> Result<(), Inapplicable> {
    let value = match (value, object.remove(&name)) {
        (Value::Null, _) => return Ok(()),
        (Value::Object(patch), _) if is_directive(&patch, "delete") => return Ok(()),
        (Value::Object(patch), old) => {
            let mut inner = match old {
                Some(Value::Object(inner)) => inner,
                _ => Map::new(),
            };
            apply(&mut inner, patch, path, lists)?;
            Value::Object(inner)
        }
        (Value::Array(items), Some(Value::Array(old))) => Value::Array(merge(old, items, path, lists)?),
        (Value::Array(items), _) => Value::Array(merge(Vec::new(), items, path, lists)?),
        (other, _) => other,
    };
    object.insert(name, value);
    Ok(())
}

fn is_directive(patch: &Map<String, Value>, directive: &str) -> bool {
    patch.get(PATCH).is_some_and(|own| own == directive)
}

/// Merges the patch of a list with the old items of the list.
fn merge(mut old: Vec<Value>, items: Vec<Value>, path: &str, lists: &Lists<'_>) -> Result<Vec<Value>, Inapplicable> {
    let key = match lists(path) {
        ListMerge::Replace => return Ok(items),
        ListMerge::Set => {
            let fresh: Vec<Value> = items.into_iter().filter(|item| !old.contains(item)).collect();
            old.extend(fresh);
            return Ok(old);
        }
        ListMerge::ByKey(key) => key,
    };
    let replaces = |item: &Value| item.as_object().is_some_and(|item| is_directive(item, "replace"));
    if items.iter().any(replaces) {
        // The directive `$patch: replace` in one item applies to the whole list. The item with the directive is not
        // stored.
        return Ok(items.into_iter().filter(|item| !replaces(item)).collect());
    }
    for item in items {
        let Value::Object(item) = item else { return Err(Inapplicable(format!("expected a map of the list {path}"))) };
        let missing = || Inapplicable(format!("map of the list {path} does not contain declared merge key: {key}"));
        let own = item.get(key).cloned().ok_or_else(missing)?;
        let at = old.iter().position(|known| known.get(key) == Some(&own));
        match at.and_then(|at| old[at].as_object_mut()) {
            _ if is_directive(&item, "delete") => old.retain(|known| known.get(key) != Some(&own)),
            Some(target) => apply(target, item, path, lists)?,
            None => {
                let mut target = Map::new();
                apply(&mut target, item, path, lists)?;
                old.push(Value::Object(target));
            }
        }
    }
    Ok(old)
}
