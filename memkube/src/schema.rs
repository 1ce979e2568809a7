//! Structural schemas of custom resources: what CustomResourceDefinitions say of their objects, enforced as
//! kube-apiserver 1.35 enforces it, with its messages.
//!
//! A write goes through [`Schema::prune`], [`Schema::set_defaults`] and [`Schema::errors`]; see there for the order of
//! what is found. Rules of `x-kubernetes-validations` are CEL ([`rules`]).

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

/// The schema of one version of a custom resource.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Node,
    has_rules: bool,
}

/// One place in a schema.
#[derive(Debug, Default)]
struct Node {
    /// As `type` has it; absent where anything goes, and in the branches of `anyOf` and the like.
    kind: Option<Kind>,
    nullable: bool,
    default: Option<Value>,
    properties: BTreeMap<String, Node>,
    /// The schema of members that are not in `properties`.
    additional: Option<Box<Node>>,
    /// `additionalProperties: true`.
    any_additional: bool,
    items: Option<Box<Node>>,
    preserve_unknown_fields: bool,
    /// A whole object of any kind, with `apiVersion`, `kind` and `metadata`.
    embedded: bool,
    int_or_string: bool,
    list: ListType,
    /// `x-kubernetes-map-type: atomic`: its members are not told apart between old and new.
    atomic_map: bool,
    values: Values,
    rules: Vec<Rule>,
    /// Whether there are rules here or below.
    rules_within: bool,
}

/// What `type` can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

/// How items of a list are told apart.
#[derive(Debug, Default, PartialEq, Eq)]
enum ListType {
    #[default]
    Atomic,
    Set,
    /// By the members of these names.
    Map(Vec<String>),
}

/// What is said of values.
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

/// What an update is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of the object.
    Whole,
    /// Only the status can have changed.
    Status,
}

impl Schema {
    /// Reads `openAPIV3Schema` of a version, which is at `at` as messages have it.
    ///
    /// # Errors
    /// All that the server has against it.
    pub(crate) fn parse(schema: &Value, at: &str) -> Result<Self, Vec<FieldError>> {
        let root = parse::schema(schema, at)?;
        let has_rules = root.rules_within;
        Ok(Self { root, has_rules })
    }

    /// Drops members that the schema does not know. Returns where they were: `spec.ports[0].foo`.
    pub(crate) fn prune(&self, object: &mut Object) -> Vec<String> {
        prune::object(&self.root, object)
    }

    /// Brings `metadata` of objects within the object into shape.
    ///
    /// # Errors
    /// What cannot be read as metadata: `spec.template.metadata: Invalid value: …`.
    pub(crate) fn coerce_embedded(&self, object: &mut Object) -> Result<(), String> {
        embedded::coerce(&self.root, object)
    }

    /// Drops nulls where there can be none and fills in defaults.
    pub(crate) fn set_defaults(&self, object: &mut Object) {
        defaults::apply(&self.root, object);
    }

    /// What is wrong with a new object: values, embedded objects, lists, and, unless these are so wrong that rules make
    /// no sense, rules.
    pub(crate) fn errors(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = check::object(&self.root, object, None);
        errors.extend(embedded::errors(&self.root, object));
        errors.extend(lists::errors(&self.root, object));
        self.add_rule_errors(&mut errors, object, None, &mut Vec::new());
        errors
    }

    /// What is wrong with an update. What is wrong with values that did not change is let pass; where it is a rule that
    /// they break, `warnings` tells of it.
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

    /// Formats in a schema that the server does not know: it takes them with a warning.
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
