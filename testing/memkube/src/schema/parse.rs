//! Parser for `openAPIV3Schema`. The parser collects all errors in a schema.

use super::{Node, check};
use crate::object::path::Path;
use crate::status::FieldError;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_cel::cel::Program;
use regex::Regex;
use serde::Deserialize as _;
use serde_json::Value;

/// Maximum nesting depth of a schema. The limit protects the parser from deep recursion.
const DEPTH_MAX: usize = 64;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Position of a node in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    /// A member of an object, or the items of a list.
    Inner,
    /// A branch, for example of `anyOf`. In a branch, `type` may be absent.
    Branch,
}

/// Parses a schema. `at` is the field path of this schema in errors.
pub(super) fn schema(schema: &Value, at: &str) -> Result<Node, Vec<FieldError>> {
    let given = JSONSchemaProps::deserialize(schema);
    let given = given.map_err(|error| vec![FieldError::invalid(at, &Value::Null, &error.to_string())])?;
    let mut errors = Vec::new();
    let node = node(given, at, Position::Root, 0, &mut errors);
    if errors.is_empty() { Ok(node) } else { Err(errors) }
}

fn node(mut given: JSONSchemaProps, at: &str, position: Position, depth: usize, errors: &mut Vec<FieldError>) -> Node {
    if depth > DEPTH_MAX {
        errors.push(FieldError::forbidden(at, &format!("schemas are at most {DEPTH_MAX} deep")));
        return Node::default();
    }
    let position_below = if position == Position::Branch { Position::Branch } else { Position::Inner };
    let mut child = |given, at: &str, position| node(given, at, position, depth + 1, errors);
    let mut keeps_unknown = given.x_kubernetes_preserve_unknown_fields == Some(true);
    let properties = given.properties.take().into_iter().flatten().map(|(name, given)| {
        let child = child(given, &format!("{at}.properties[{name}]"), position_below);
        (name, child)
    });
    let properties = properties.collect();
    let additional = match given.additional_properties.take() {
        Some(JSONSchemaPropsOrBool::Schema(given)) => {
            Some(Box::new(child(*given, &format!("{at}.additionalProperties"), position_below)))
        }
        Some(JSONSchemaPropsOrBool::Bool(any)) => {
            keeps_unknown |= any;
            None
        }
        None => None,
    };
    let items = match given.items.take() {
        Some(JSONSchemaPropsOrArray::Schema(given)) => {
            Some(Box::new(child(*given, &format!("{at}.items"), position_below)))
        }
        _ => None,
    };
    let mut branches = |given: Option<Vec<JSONSchemaProps>>, name: &str| {
        let given = given.into_iter().flatten().enumerate();
        given.map(|(index, given)| child(given, &format!("{at}.{name}[{index}]"), Position::Branch)).collect()
    };
    let (all_of, any_of, one_of) = (
        branches(given.all_of.take(), "allOf"),
        branches(given.any_of.take(), "anyOf"),
        branches(given.one_of.take(), "oneOf"),
    );
    let not = given.not.take().map(|given| Box::new(child(*given, &format!("{at}.not"), Position::Branch)));
    let default = given.default.take().map(|default| default.0);
    let allowed = given.enum_.take().map(|allowed| allowed.into_iter().map(|value| value.0).collect());
    let pattern = pattern(&given, at, errors);
    let node = Node {
        given,
        default,
        allowed,
        pattern,
        properties,
        additional,
        keeps_unknown,
        items,
        all_of,
        any_of,
        one_of,
        not,
    };
    errors.extend(structure_errors(&node, at, position));
    errors.extend(default_errors(&node, at));
    node
}

fn pattern(given: &JSONSchemaProps, at: &str, errors: &mut Vec<FieldError>) -> Option<Regex> {
    let source = given.pattern.as_deref().filter(|source| !source.is_empty())?;
    let pattern = Regex::new(source);
    errors.extend(
        pattern
            .as_ref()
            .err()
            .map(|error| FieldError::invalid(format!("{at}.pattern"), &Value::from(source), &error.to_string())),
    );
    pattern.ok()
}

fn structure_errors(node: &Node, at: &str, position: Position) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given = &node.given;
    let kind = given.type_.as_deref();
    if let Some(kind) = kind.filter(|kind| !TYPES.contains(kind)) {
        errors.push(FieldError::not_supported(format!("{at}.type"), &Value::from(kind), &TYPES));
    }
    if given.unique_items == Some(true) {
        errors.push(FieldError::forbidden(format!("{at}.uniqueItems"), "uniqueItems cannot be set to true"));
    }
    match given.x_kubernetes_list_type.as_deref() {
        Some("map") if given.x_kubernetes_list_map_keys.as_ref().is_none_or(Vec::is_empty) => {
            let why = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(format!("{at}.x-kubernetes-list-map-keys"), why));
        }
        None | Some("atomic" | "map" | "set") => {}
        Some(other) => {
            let supported = ["atomic", "set", "map"];
            let field = format!("{at}.x-kubernetes-list-type");
            errors.push(FieldError::not_supported(field, &Value::from(other), &supported));
        }
    }
    for (index, rule) in given.x_kubernetes_validations.iter().flatten().enumerate() {
        let field = format!("{at}.x-kubernetes-validations[{index}].rule");
        if rule.rule.trim().is_empty() {
            errors.push(FieldError::required(field, "rule is not specified"));
        } else if let Err(error) = Program::compile(&rule.rule) {
            let why = format!("compilation failed: {error}");
            errors.push(FieldError::invalid(field, &Value::from(rule.rule.as_str()), &why));
        }
    }
    if position == Position::Branch {
        return errors;
    }
    if kind == Some("array") && node.items.is_none() {
        errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
    }
    match (position, kind) {
        (Position::Root, Some(kind)) if kind != "object" => {
            let why = "must be object at the root";
            errors.push(FieldError::invalid(format!("{at}.type"), &Value::from(kind), why));
        }
        (_, None) if position == Position::Root || !(node.int_or_string() || node.keeps_unknown) => {
            errors.push(FieldError::required(format!("{at}.type"), "must not be empty"));
        }
        _ => {}
    }
    errors
}

fn default_errors(node: &Node, at: &str) -> Vec<FieldError> {
    let default = node.default.as_ref().filter(|default| !default.is_null() || !node.nullable());
    let Some(mut filled) = default.cloned() else { return Vec::new() };
    if let Value::Object(object) = &mut filled {
        super::defaults::apply(node, object);
    }
    check::value(node, &filled, None, &Path::ROOT.member(&format!("{at}.default")))
}
