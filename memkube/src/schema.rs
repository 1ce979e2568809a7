//! Structural schemas of custom resources. Behaviour and messages are those of kube-apiserver 1.35.
//!
//! A write calls [`Schema::prune`], [`Schema::set_defaults`] and [`Schema::errors`] in this order. The module [`rules`]
//! evaluates `x-kubernetes-validations`, which are CEL expressions.

mod check;
mod defaults;
mod embedded;
mod formats;
mod lists;
mod numbers;
mod old;
mod parse;
mod path;
mod prune;
mod rules;
mod texts;

use crate::object::Object;
use crate::status::{FieldError, FieldReason};
use formats::Format;
use path::Path;
use regex::Regex;
use rules::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Schema {
    root: Node,
    has_rules: bool,
}

/// Node of a schema: the schema of one value.
#[derive(Debug, Default)]
struct Node {
    /// `type`. `None` if the schema has no `type`, for example in a branch of `anyOf`. Then values of any type are valid here.
    kind: Option<Kind>,
    nullable: bool,
    default: Option<Value>,
    properties: BTreeMap<String, Node>,
    /// `additionalProperties`: the schema of members that are not in `properties`.
    additional: Option<Box<Node>>,
    /// True for `additionalProperties: true`.
    any_additional: bool,
    items: Option<Box<Node>>,
    preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`: the value is an object of any kind with `apiVersion`, `kind` and `metadata`.
    embedded: bool,
    int_or_string: bool,
    list: ListType,
    /// `x-kubernetes-map-type: atomic`: an update replaces the map as a whole. So rules get no old values of its members.
    atomic_map: bool,
    values: Values,
    rules: Vec<Rule>,
    /// True if this node or a node below has rules.
    rules_within: bool,
}

/// Values of `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

/// `x-kubernetes-list-type`: the rule that identifies the items of a list.
#[derive(Debug, Default, PartialEq, Eq)]
enum ListType {
    #[default]
    Atomic,
    Set,
    /// The values of these members identify an item.
    Map(Vec<String>),
}

/// Constraints on values.
#[derive(Debug, Default)]
struct Values {
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    format: Option<Format>,
    pattern: Option<(String, Regex)>,
    length_min: Option<u64>,
    length_max: Option<u64>,
    minimum: Option<f64>,
    minimum_exclusive: bool,
    maximum: Option<f64>,
    maximum_exclusive: bool,
    multiple_of: Option<f64>,
    items_min: Option<u64>,
    items_max: Option<u64>,
    members_min: Option<u64>,
    members_max: Option<u64>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
}

impl Kind {
    const ALL: [(&'static str, Self); 6] = [
        ("array", Self::Array),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("object", Self::Object),
        ("string", Self::String),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Part of the object that an update can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole object.
    Whole,
    /// Only the status.
    Status,
}

impl Schema {
    /// Parses `openAPIV3Schema` of a version. `at` is the field path of this schema in messages.
    ///
    /// # Errors
    /// All errors that the server finds in the schema.
    pub(crate) fn parse(schema: &Value, at: &str) -> Result<Self, Vec<FieldError>> {
        let root = parse::schema(schema, at)?;
        let has_rules = root.rules_within;
        Ok(Self { root, has_rules })
    }

    /// Drops members that are not in the schema. Returns their paths, for example `spec.ports[0].foo`.
    pub(crate) fn prune(&self, object: &mut Object) -> Vec<String> {
        prune::object(&self.root, object)
    }

    /// Checks `metadata` of embedded objects (`x-kubernetes-embedded-resource`), and drops the unknown and empty fields of this
    /// metadata.
    ///
    /// # Errors
    ///
    /// Message about metadata that cannot be decoded: `spec.template.metadata: Invalid value: …`.
    pub(crate) fn coerce_embedded(&self, object: &mut Object) -> Result<(), String> {
        embedded::coerce(&self.root, object)
    }

    /// Drops nulls of members that are not nullable, and sets defaults.
    pub(crate) fn set_defaults(&self, object: &mut Object) {
        defaults::apply(&self.root, object);
    }

    /// Validates a new object: values, embedded objects, lists, and rules.
    ///
    /// Rules are not evaluated if other errors make their result meaningless.
    pub(crate) fn errors(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = check::object(&self.root, object, None);
        errors.extend(embedded::errors(&self.root, object));
        errors.extend(lists::errors(&self.root, object));
        self.add_rule_errors(&mut errors, object, None, &mut Vec::new());
        errors
    }

    /// Validates an update. Errors of unchanged values are ignored. If an unchanged value breaks a rule, the error is added to
    /// `warnings`.
    pub(crate) fn update_errors(
        &self,
        object: &Object,
        old: &Object,
        part: Part,
        warnings: &mut Vec<String>,
    ) -> Vec<FieldError> {
        let mut errors = match part {
            Part::Whole => check::object(&self.root, object, Some(old)),
            Part::Status => match (self.root.properties.get("status"), object.get("status")) {
                (Some(node), Some(status)) => check::part(node, status, old.get("status"), "status"),
                _ => Vec::new(),
            },
        };
        if part == Part::Whole {
            errors.extend(embedded::errors(&self.root, object));
        }
        let list_errors = lists::errors(&self.root, object);
        if !list_errors.is_empty() && lists::errors(&self.root, old).is_empty() {
            errors.extend(list_errors);
        }
        self.add_rule_errors(&mut errors, object, Some(old), warnings);
        errors
    }

    /// Returns the formats in a schema that kube-apiserver does not know. kube-apiserver accepts such a schema with a warning.
    #[must_use]
    pub(crate) fn unknown_formats(schema: &Value) -> Vec<String> {
        let mut found = Vec::new();
        parse::unknown_formats(schema, &mut found);
        found
    }

    fn add_rule_errors(
        &self,
        errors: &mut Vec<FieldError>,
        object: &Object,
        old: Option<&Object>,
        warnings: &mut Vec<String>,
    ) {
        if !self.has_rules {
            return;
        }
        let blocks = |error: &FieldError| {
            matches!(
                error.reason,
                FieldReason::NotSupported
                    | FieldReason::Required
                    | FieldReason::TooLong
                    | FieldReason::TooMany
                    | FieldReason::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                       to complete validation";
            errors.push(FieldError::invalid(path::NOWHERE, &Value::Null, why));
        } else {
            errors.extend(rules::errors(&self.root, object, old, warnings));
        }
    }
}
