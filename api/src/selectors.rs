//! Cluster selectors in an annotation, as users write them: a JSON list of `{"propertySelector": LabelSelector}`.
//!
//! The decoder is strict, because a selector that is not understood would choose other clusters than its user means.

use crate::crd::internal_service_export::RawRequirement;
use crate::wire::elements;
use fleetnet_core::limits::{CLUSTER_SELECTORS_MAX, SELECTOR_PARTS_MAX};
use fleetnet_core::model::{ClusterSelector, Operator, Requirement, SAME_AS_IMPORTER, WrittenSelectors};
use fleetnet_core::names;
use fleetnet_types::Text;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    property_selector: LabelSelector,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LabelSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

/// Decodes the annotation `cluster-selectors`. No selectors without the annotation.
pub(crate) fn from_annotation(text: Option<&Text>) -> WrittenSelectors {
    text.map_or(Ok(Vec::new()), |text| selectors(text).map_err(Text::from))
}

fn selectors(text: &str) -> Result<Vec<ClusterSelector>, String> {
    let written: Vec<Written> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if written.is_empty() || written.len() > CLUSTER_SELECTORS_MAX {
        return Err(format!("it has {} selectors, and may have 1 to {CLUSTER_SELECTORS_MAX}", written.len()));
    }
    let numbered = |(number, written): (usize, Written)| {
        selector(written.property_selector).map_err(|why| format!("selector {number}: {why}"))
    };
    (1..).zip(written).map(numbered).collect()
}

fn selector(LabelSelector { match_labels, match_expressions }: LabelSelector) -> Result<ClusterSelector, String> {
    let labels = match_labels.into_iter().map(|(key, value)| Expression {
        key,
        operator: Operator::In.as_str().to_owned(),
        values: vec![value],
    });
    let requirements = labels.chain(match_expressions).map(requirement).collect::<Result<Vec<_>, String>>()?;
    match requirements.len() {
        0 => Err("propertySelector is empty, and would match no cluster".to_owned()),
        1..=SELECTOR_PARTS_MAX => Ok(ClusterSelector { requirements }),
        number => Err(format!("propertySelector has {number} requirements, and may have {SELECTOR_PARTS_MAX}")),
    }
}

fn requirement(Expression { key, operator, values }: Expression) -> Result<Requirement, String> {
    let known = Operator::ALL.into_iter().find(|known| known.as_str() == operator);
    let known = known.ok_or_else(|| format!("{operator:?} is no operator: use In, NotIn, Exists or DoesNotExist"))?;
    let needs_values = matches!(known, Operator::In | Operator::NotIn);
    if !names::is_property(&key, "") {
        return Err(format!("{key:?} is no name of a property"));
    }
    if needs_values == values.is_empty() {
        let has = if needs_values { "needs" } else { "has no" };
        return Err(format!("operator {operator} {has} values"));
    }
    if values.len() > SELECTOR_PARTS_MAX {
        return Err(format!("{key} has {} values, and may have {SELECTOR_PARTS_MAX}", values.len()));
    }
    let is_unfit =
        |value: &&String| !names::is_property(&key, value) || value.starts_with('@') && **value != *SAME_AS_IMPORTER;
    if let Some(value) = values.iter().find(is_unfit) {
        return Err(format!("{value:?} is no value of a property, nor {SAME_AS_IMPORTER}"));
    }
    let values = values.into_iter().map(Text::from).collect();
    Ok(Requirement { key: key.into(), operator: known, values })
}

/// Returns the value of the annotation `cluster-selectors` of a claim. `None` without selectors.
pub(crate) fn annotation(selectors: &[ClusterSelector]) -> Option<String> {
    let selector = |selector: &ClusterSelector| json!({ "propertySelector": { "matchExpressions": elements::<RawRequirement>(&selector.requirements) } });
    let list: Vec<Value> = selectors.iter().map(selector).collect();
    (!list.is_empty()).then(|| Value::from(list).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requires(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(|value| (*value).into()).collect() }
    }

    #[test]
    fn selectors_are_read_and_written_again() {
        let text = r#"[
            {"propertySelector": {"matchLabels": {"topology.kubernetes.io/region": "@SameAsImporter@"}}},
            {"propertySelector": {"matchLabels": {"tier": "gold"}, "matchExpressions": [
                {"key": "gpu", "operator": "Exists"}, {"key": "cluster.clusterset.k8s.io", "operator": "NotIn", "values": ["a", "b"]}
            ]}}
        ]"#;
        let expected = vec![
            ClusterSelector {
                requirements: vec![requires("topology.kubernetes.io/region", Operator::In, &[SAME_AS_IMPORTER])],
            },
            ClusterSelector {
                requirements: vec![
                    requires("tier", Operator::In, &["gold"]),
                    requires("gpu", Operator::Exists, &[]),
                    requires("cluster.clusterset.k8s.io", Operator::NotIn, &["a", "b"]),
                ],
            },
        ];
        assert_eq!(selectors(text), Ok(expected.clone()));
        let written = annotation(&expected).expect("there are selectors");
        assert_eq!(selectors(&written), Ok(expected));
        assert_eq!((annotation(&[]), from_annotation(None)), (None, Ok(Vec::new())));
    }

    #[test]
    fn what_is_not_understood_is_an_error_that_names_the_selector() {
        let many = format!("[{}]", vec![r#"{"propertySelector":{"matchLabels":{"a":"b"}}}"#; 17].join(","));
        let expression =
            |expression: &str| format!(r#"[{{"propertySelector":{{"matchExpressions":[{expression}]}}}}]"#);
        let table = [
            ("[]".to_owned(), "it has 0 selectors, and may have 1 to 16"),
            (many, "it has 17 selectors, and may have 1 to 16"),
            (
                r#"[{"propertySelector":{}}]"#.to_owned(),
                "selector 1: propertySelector is empty, and would match no cluster",
            ),
            (
                expression(r#"{"key":"a","operator":"in"}"#),
                r#"selector 1: "in" is no operator: use In, NotIn, Exists or DoesNotExist"#,
            ),
            (expression(r#"{"key":"a","operator":"In"}"#), "selector 1: operator In needs values"),
            (
                expression(r#"{"key":"a","operator":"Exists","values":["b"]}"#),
                "selector 1: operator Exists has no values",
            ),
            (expression(r#"{"key":"a b","operator":"Exists"}"#), r#"selector 1: "a b" is no name of a property"#),
            (
                expression(r#"{"key":"a","operator":"In","values":["@SameAsExporter@"]}"#),
                r#"selector 1: "@SameAsExporter@" is no value of a property, nor @SameAsImporter@"#,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(selectors(&text), Err(expected.to_owned()), "{text}");
        }
        for text in
            ["", "{}", "[1]", "[{}]", r#"[{"propertySelector":{"matchLabel":{"a":"b"}}}]"#, r#"[{"selector":{}}]"#]
        {
            assert!(selectors(text).is_err(), "{text}");
        }
    }
}
