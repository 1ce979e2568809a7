//! JSON parser that detects duplicate members. As in kube-apiserver, the last of several duplicates is used.

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Returns the parsed value, and a message for each duplicate member. The error is the reason why the text is not valid JSON.
pub(super) fn parse(json: &[u8]) -> Result<(Value, Vec<String>), String> {
    let found = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let seed = Seed { path: String::new(), found: &found };
    let value = seed.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok((value, found.into_inner()))
}

struct Seed<'a> {
    path: String,
    found: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            let seed = Seed { path, found: self.found };
            match items.next_element_seed(seed)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            if object.contains_key(&name) {
                self.found.borrow_mut().push(format!("duplicate field \"{path}\""));
            }
            let seed = Seed { path, found: self.found };
            let value = members.next_value_seed(seed)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn members_that_come_twice_are_told_and_the_last_counts() {
        let (value, found) = parse(br#"{"a":1,"data":{"x":"1","x":"2"},"l":[{"y":1,"y":2}]}"#).unwrap();
        assert_eq!(value, json!({"a": 1, "data": {"x": "2"}, "l": [{"y": 2}]}));
        assert_eq!(found, ["duplicate field \"data.x\"", "duplicate field \"l[0].y\""]);
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        assert!(parse(b"{").is_err());
        assert!(parse(b"{} x").is_err());
    }
}
