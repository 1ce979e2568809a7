//! Random objects of a kind, generated from its CustomResourceDefinition. A new field of a definition needs no change
//! here.

use fleetnet_api::crds::{Form, all};
use proptest::prelude::*;
use proptest::{collection, option, sample};
use serde_json::{Map, Value};

/// Times that are written in whole seconds.
const IN_SECONDS: [&str; 2] = ["lastTransitionTime", "exportCreationTimestamp"];

/// Returns objects of a kind of the group `networking.fleet.azure.com`, without metadata.
pub(crate) fn objects(kind: &str) -> BoxedStrategy<Value> {
    let definition = all(Form::Full).into_iter().find(|it| it.spec.names.kind == kind).unwrap();
    let version = definition.spec.versions.into_iter().find(|version| version.storage).unwrap();
    let mut schema = serde_json::to_value(version.schema.unwrap().open_api_v3_schema.unwrap()).unwrap();
    schema["required"] = Value::from(vec!["spec", "status"]);
    value(kind, &schema)
}

fn value(name: &str, schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return sample::select(values.clone()).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return prop_oneof![any::<i32>().prop_map(Value::from), ".{0,12}".prop_map(Value::from)].boxed();
    }
    match schema["type"].as_str() {
        Some("object") => object(schema),
        Some("array") => {
            let least = usize::from(schema["minItems"].is_number());
            let most = schema["maxItems"].as_u64().map_or(3, |most| most.min(3) as usize);
            collection::vec(value(name, &schema["items"]), least..=most).prop_map(Value::from).boxed()
        }
        Some("string") => text(name, schema).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => integer(schema).prop_map(Value::from).boxed(),
        Some("number") => Just(Value::from(1.5)).boxed(),
        other => panic!("the field {name} has the type {other:?}"),
    }
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !matches!(&***name, "apiVersion" | "metadata"));
    let (names, values): (Vec<String>, Vec<_>) = fields
        .map(|(name, schema)| {
            let value = value(name, schema);
            let value =
                if required.contains(&&**name) { value.prop_map(Some).boxed() } else { option::of(value).boxed() };
            (name.clone(), value)
        })
        .unzip();
    values
        .prop_map(move |values| {
            let fields = names.iter().cloned().zip(values).filter_map(|(name, value)| Some((name, value?)));
            Value::Object(fields.collect::<Map<_, _>>())
        })
        .boxed()
}

fn text(name: &str, schema: &Value) -> BoxedStrategy<String> {
    let is_in_seconds = IN_SECONDS.contains(&name);
    if schema["format"] == "date-time" {
        let time = (2000..2100_u32, 1..29_u32, 0..60_u32, 0..1_000_000_u32);
        return time
            .prop_map(move |(year, day, second, micros)| {
                let fraction = if is_in_seconds { String::new() } else { format!(".{micros:06}") };
                format!("{year}-02-{day:02}T12:34:{second:02}{fraction}Z")
            })
            .boxed();
    }
    if name == "addresses" {
        return prop_oneof!["10[.]0[.]0[.][1-9]{1,2}", "([Ff]d00|[Ff]d00:0)::[1-9]"].boxed();
    }
    if schema["pattern"].is_string() {
        return "[a-z]{1,8}".boxed();
    }
    // A text that may not be empty is a name.
    if schema["minLength"].is_number() { "[a-z0-9.-]{1,12}".boxed() } else { ".{0,12}".boxed() }
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds of the definitions are small")]
fn integer(schema: &Value) -> BoxedStrategy<i64> {
    let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
    let (least, most) =
        if schema["format"] == "int32" { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    (bound("minimum").unwrap_or(least)..=bound("maximum").unwrap_or(most)).boxed()
}
