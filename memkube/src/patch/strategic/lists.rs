//! Merging of lists in a strategic merge patch.

use super::{Inapplicable, Lists, PATCH, apply};
use crate::patch::go_format;
use crate::strategy::ListMerge;
use serde_json::{Map, Value};

/// Merges the patch of a list with the old items of the list.
pub(super) fn merge(
    old: Vec<Value>,
    items: Vec<Value>,
    path: &str,
    order: Option<&[Value]>,
    lists: &Lists<'_>,
) -> Result<Vec<Value>, Inapplicable> {
    match lists(path) {
        ListMerge::Replace => Ok(items),
        ListMerge::Set => {
            let wanted = order.map_or_else(|| items.clone(), <[Value]>::to_vec);
            let mut merged = old.clone();
            merged.extend(items.into_iter().filter(|item| !old.contains(item)));
            Ok(arrange(merged, &wanted, &old, &|item| item.clone()))
        }
        ListMerge::ByKey(key) => by_key(old, items, key, path, order, lists),
    }
}

fn by_key(
    old: Vec<Value>,
    items: Vec<Value>,
    key: &str,
    path: &str,
    order: Option<&[Value]>,
    lists: &Lists<'_>,
) -> Result<Vec<Value>, Inapplicable> {
    let replaces = |item: &Value| item.get(PATCH).is_some_and(|directive| directive == "replace");
    if items.iter().any(replaces) {
        // The directive `$patch: replace` in one item applies to the whole list. The item with the directive is not stored.
        return Ok(items.into_iter().filter(|item| !replaces(item)).collect());
    }
    let mut merged = old.clone();
    let mut wanted = Vec::new();
    for item in items {
        let Value::Object(item) = item else {
            return Err(Inapplicable(format!("expected a map of the list {path}, found {}", go_format(&item))));
        };
        let own = key_of_patch(&item, key)?;
        let at = merged.iter().position(|known| known.get(key) == Some(&own));
        if item.get(PATCH).is_some_and(|directive| directive == "delete") {
            merged.retain(|known| known.get(key) != Some(&own));
            continue;
        }
        wanted.push(own);
        let mut target = match at.and_then(|at| merged.get(at)) {
            Some(Value::Object(target)) => target.clone(),
            _ => Map::new(),
        };
        apply(&mut target, item, path, lists)?;
        match at {
            Some(at) => merged[at] = Value::Object(target),
            None => merged.push(Value::Object(target)),
        }
    }
    if let Some(order) = order {
        wanted = order.iter().map(|item| key_of(item, key)).collect();
    }
    let old: Vec<Value> = old.iter().map(|item| key_of(item, key)).collect();
    Ok(arrange(merged, &wanted, &old, &|item| key_of(item, key)))
}

fn key_of_patch(item: &Map<String, Value>, key: &str) -> Result<Value, Inapplicable> {
    item.get(key).cloned().ok_or_else(|| {
        let shown = go_format(&Value::Object(item.clone()));
        Inapplicable(format!("map: {shown} does not contain declared merge key: {key}"))
    })
}

fn key_of(item: &Value, key: &str) -> Value {
    item.get(key).cloned().unwrap_or_default()
}

/// Orders the items of a merged list. `wanted` has the keys of the items in the patch, `old` has the keys of the old items.
///
/// - Items in the patch have the order of the patch.
/// - Other items keep their old order.
/// - Between an item in the patch and another item, the old order decides if both items are old. Otherwise the item in the patch
///   comes first.
fn arrange(items: Vec<Value>, wanted: &[Value], old: &[Value], key: &dyn Fn(&Value) -> Value) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|known| *known == key(item));
    let (mut spoken, mut silent): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| place(wanted, item).is_some());
    spoken.sort_by_key(|item| place(wanted, item));
    silent.sort_by_key(|item| place(old, item));
    let mut arranged = Vec::new();
    let mut spoken = spoken.into_iter().peekable();
    let mut silent = silent.into_iter().peekable();
    while let (Some(left), Some(right)) = (spoken.peek(), silent.peek()) {
        let right_was_first = match (place(old, left), place(old, right)) {
            (Some(left), Some(right)) => right < left,
            _ => false,
        };
        arranged.extend(if right_was_first { silent.next() } else { spoken.next() });
    }
    arranged.extend(spoken);
    arranged.extend(silent);
    arranged
}

/// Applies `$setElementOrder` to a list whose items the patch does not change.
pub(super) fn reorder(object: &mut Map<String, Value>, name: &str, order: &[Value], merge: ListMerge) {
    let Some(Value::Array(items)) = object.get_mut(name) else {
        return;
    };
    let key = |item: &Value| match merge {
        ListMerge::ByKey(key) => key_of(item, key),
        _ => item.clone(),
    };
    let old: Vec<Value> = items.iter().map(&key).collect();
    let wanted: Vec<Value> = order.iter().map(&key).collect();
    *items = arrange(std::mem::take(items), &wanted, &old, &key);
}

pub(super) fn delete_values(object: &mut Map<String, Value>, name: &str, gone: &[Value]) {
    if let Some(Value::Array(items)) = object.get_mut(name) {
        items.retain(|item| !gone.contains(item));
    }
}
