//! Parser for `openAPIV3Schema`. The parser collects all errors in a schema.

use super::formats::Format;
use super::rules::Rule;
use super::{Kind, ListType, Node, Values, check};
use crate::status::FieldError;
use regex::Regex;
use serde_json::{Map, Value};

/// Maximum nesting depth of a schema. The limit protects the parser from deep recursion.
const DEPTH_MAX: usize = 64;

/// Position of a node in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    /// A member of an object.
    Member,
    /// The items of a list.
    Item,
    /// A branch, for example of `anyOf`. In a branch, `type` may be absent.
    Branch,
}

struct Parser {
    errors: Vec<FieldError>,
}

/// Parses a schema. `at` is the field path of this schema in messages.
pub(super) fn schema(schema: &Value, at: &str) -> Result<Node, Vec<FieldError>> {
    let mut parser = Parser { errors: Vec::new() };
    let node = parser.node(schema, at, Position::Root, 0);
    if parser.errors.is_empty() { Ok(node) } else { Err(parser.errors) }
}

impl Parser {
    fn node(&mut self, schema: &Value, at: &str, position: Position, depth: usize) -> Node {
        let empty = Map::new();
        let schema = schema.as_object().unwrap_or(&empty);
        if depth > DEPTH_MAX {
            self.errors.push(FieldError::forbidden(at, &format!("schemas are at most {DEPTH_MAX} deep")));
            return Node::default();
        }
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let mut node = Node {
            kind: self.kind(schema, at),
            nullable: flag("nullable"),
            default: schema.get("default").cloned(),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            atomic_map: schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            list: self.list_type(schema, at),
            ..Node::default()
        };
        self.children(&mut node, schema, at, position, depth);
        node.values = self.values(schema, at, depth);
        if node.embedded {
            let required = ["apiVersion", "kind"].map(str::to_owned);
            node.values.required.extend(required);
        }
        self.check_structure(&node, schema, at, position);
        node.rules = self.rules(schema, at);
        let children = node.properties.values().chain(node.additional.as_deref()).chain(node.items.as_deref());
        node.rules_within = !node.rules.is_empty() || children.into_iter().any(|child| child.rules_within);
        self.check_default(&node, at);
        node
    }

    fn kind(&mut self, schema: &Map<String, Value>, at: &str) -> Option<Kind> {
        let name = schema.get("type").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let found = Kind::ALL.iter().find(|(own, _)| *own == name);
        if found.is_none() {
            let names = Kind::ALL.map(|(name, _)| name);
            self.errors.push(FieldError::not_supported(format!("{at}.type"), &Value::from(name), &names));
        }
        found.map(|(_, kind)| *kind)
    }

    fn list_type(&mut self, schema: &Map<String, Value>, at: &str) -> ListType {
        match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListType::Set,
            Some("map") => {
                let keys = texts(schema.get("x-kubernetes-list-map-keys"));
                if keys.is_empty() {
                    let field = format!("{at}.x-kubernetes-list-map-keys");
                    let why = "must not be empty if x-kubernetes-list-type is map";
                    self.errors.push(FieldError::required(field, why));
                }
                ListType::Map(keys)
            }
            None | Some("atomic") => ListType::Atomic,
            Some(other) => {
                let field = format!("{at}.x-kubernetes-list-type");
                let supported = ["atomic", "set", "map"];
                self.errors.push(FieldError::not_supported(field, &Value::from(other), &supported));
                ListType::Atomic
            }
        }
    }

    fn children(&mut self, node: &mut Node, schema: &Map<String, Value>, at: &str, position: Position, depth: usize) {
        let inner = |own: Position| if position == Position::Branch { Position::Branch } else { own };
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = format!("{at}.properties[{name}]");
            let child = self.node(property, &at, inner(Position::Member), depth + 1);
            node.properties.insert(name.clone(), child);
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(any)) => node.any_additional = *any,
            Some(additional @ Value::Object(_)) => {
                let at = format!("{at}.additionalProperties");
                let child = self.node(additional, &at, inner(Position::Member), depth + 1);
                node.additional = Some(Box::new(child));
            }
            _ => {}
        }
        if let Some(items) = schema.get("items") {
            let child = self.node(items, &format!("{at}.items"), inner(Position::Item), depth + 1);
            node.items = Some(Box::new(child));
        }
    }

    fn values(&mut self, schema: &Map<String, Value>, at: &str, depth: usize) -> Values {
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let format = schema.get("format").and_then(Value::as_str).and_then(Format::named);
        Values {
            required: texts(schema.get("required")),
            allowed: schema.get("enum").and_then(Value::as_array).cloned(),
            format,
            pattern: self.pattern(schema, at),
            length_min: count("minLength"),
            length_max: count("maxLength"),
            minimum: number("minimum"),
            minimum_exclusive: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            maximum_exclusive: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            items_min: count("minItems"),
            items_max: count("maxItems"),
            members_min: count("minProperties"),
            members_max: count("maxProperties"),
            all_of: self.branches(schema, "allOf", at, depth),
            any_of: self.branches(schema, "anyOf", at, depth),
            one_of: self.branches(schema, "oneOf", at, depth),
            not: schema.get("not").map(|branch| {
                let at = format!("{at}.not");
                Box::new(self.node(branch, &at, Position::Branch, depth + 1))
            }),
        }
    }

    fn pattern(&mut self, schema: &Map<String, Value>, at: &str) -> Option<(String, Regex)> {
        let source = schema.get("pattern").and_then(Value::as_str).filter(|source| !source.is_empty())?;
        match Regex::new(source) {
            Ok(pattern) => Some((source.to_owned(), pattern)),
            Err(error) => {
                let why = format!("must be a valid regular expression, but isn't: {error}");
                self.errors.push(FieldError::invalid(format!("{at}.pattern"), &Value::from(source), &why));
                None
            }
        }
    }

    fn branches(&mut self, schema: &Map<String, Value>, name: &str, at: &str, depth: usize) -> Vec<Node> {
        let branches = schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let parsed = branches.iter().enumerate().map(|(index, branch)| {
            let at = format!("{at}.{name}[{index}]");
            self.node(branch, &at, Position::Branch, depth + 1)
        });
        parsed.collect()
    }

    fn check_structure(&mut self, node: &Node, schema: &Map<String, Value>, at: &str, position: Position) {
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(FieldError::forbidden(format!("{at}.uniqueItems"), why));
        }
        if position == Position::Branch {
            return;
        }
        if node.kind == Some(Kind::Array) && node.items.is_none() {
            self.errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
        }
        let has_no_type = !schema.contains_key("type") && !node.int_or_string && !node.preserve_unknown_fields;
        let field = format!("{at}.type");
        match (position, node.kind) {
            (Position::Root, None) if !schema.contains_key("type") => {
                self.errors.push(FieldError::required(field, "must not be empty at the root"));
            }
            (Position::Root, Some(kind)) if kind != Kind::Object => {
                let why = "must be object at the root";
                self.errors.push(FieldError::invalid(field, &Value::from(kind.name()), why));
            }
            (Position::Member, None) if has_no_type => {
                self.errors.push(FieldError::required(field, "must not be empty for specified object fields"));
            }
            (Position::Item, None) if has_no_type => {
                self.errors.push(FieldError::required(field, "must not be empty for specified array items"));
            }
            _ => {}
        }
        if position == Position::Root {
            self.check_metadata(schema, at);
        }
    }

    fn check_metadata(&mut self, schema: &Map<String, Value>, at: &str) {
        let Some(metadata) = schema.get("properties").and_then(|all| all.get("metadata")?.as_object()) else { return };
        let known = |name: &String| ["type", "description", "properties"].contains(&name.as_str());
        let named = |name: &String| ["name", "generateName"].contains(&name.as_str());
        let members = metadata.get("properties").and_then(Value::as_object);
        if !metadata.keys().all(known) || !members.into_iter().flatten().all(|(name, _)| named(name)) {
            let why =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.errors.push(FieldError::forbidden(format!("{at}.properties[metadata]"), why));
        }
    }

    fn rules(&mut self, schema: &Map<String, Value>, at: &str) -> Vec<Rule> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let rules = rules.map_or(&[][..], Vec::as_slice);
        let mut compiled = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            match Rule::compile(rule, &format!("{at}.x-kubernetes-validations[{index}]")) {
                Ok(rule) => compiled.push(rule),
                Err(error) => self.errors.push(error),
            }
        }
        compiled
    }

    fn check_default(&mut self, node: &Node, at: &str) {
        let Some(default) = node.default.as_ref().filter(|default| !default.is_null() || !node.nullable) else {
            return;
        };
        let mut filled = default.clone();
        if let Value::Object(object) = &mut filled {
            super::defaults::apply(node, object);
        }
        self.errors.extend(check::default(node, &filled, &format!("{at}.default")));
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn unknown_formats(schema: &Value, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else { return };
    let format = schema.get("format").and_then(Value::as_str).filter(|format| !format.is_empty());
    found.extend(format.filter(|format| !super::formats::is_known(format)).map(str::to_owned));
    let children = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.values());
    let others = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    children.chain(others).for_each(|child| unknown_formats(child, found));
}
