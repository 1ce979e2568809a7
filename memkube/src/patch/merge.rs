//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

pub(crate) fn apply(object: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                object.remove(&name);
            }
            Value::Object(patch) => match object.get_mut(&name) {
                Some(Value::Object(inner)) => apply(inner, patch),
                _ => {
                    let mut fresh = Map::new();
                    apply(&mut fresh, patch);
                    object.insert(name, Value::Object(fresh));
                }
            },
            other => {
                object.insert(name, other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::apply;
    use serde_json::{Value, json};

    fn patched(object: Value, patch: Value) -> Value {
        let (Value::Object(mut object), Value::Object(patch)) = (object, patch) else { panic!("both are objects") };
        apply(&mut object, patch);
        Value::Object(object)
    }

    #[test]
    fn null_removes_and_lists_are_replaced_whole() {
        assert_eq!(patched(json!({"a": 1, "b": [1, 2]}), json!({"a": null, "b": [3]})), json!({"b": [3]}));
    }

    #[test]
    fn objects_are_merged_at_every_depth() {
        let object = json!({"a": {"b": {"c": 1, "d": 2}}});
        assert_eq!(patched(object, json!({"a": {"b": {"c": null, "e": 3}}})), json!({"a": {"b": {"d": 2, "e": 3}}}));
    }

    #[test]
    fn null_within_a_new_object_leaves_nothing() {
        assert_eq!(patched(json!({"a": 1}), json!({"a": {"b": null, "c": 1}})), json!({"a": {"c": 1}}));
    }
}
