//! Evaluation of rules on values.

use super::super::old::{self, OldItems};
use super::super::{Node, Path};
use super::{Reason, Rule, ordered, values};
use crate::object::Object;
use crate::status::{FieldError, FieldReason};
use kube::core::cel::KubeCelExt;
use kube::core::cel::cel::objects::OptionalValue;
use kube::core::cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

thread_local! {
    /// CEL context with all functions. Each thread has one context, because creating it costs more than evaluating most rules.
    static FUNCTIONS: Context<'static> = functions();
}

/// Type names, so that a rule can compare types: `type(self) == int`.
const TYPES: [&str; 8] = ["bool", "bytes", "double", "int", "list", "map", "string", "uint"];

/// Returns a context with Kubernetes' functions, and with the function `type`, which the `cel` crate lacks.
fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Cel| -> Result<Cel, ExecutionError> {
        Ok(Cel::String(Arc::new(type_name(&value).to_owned())))
    });
    for name in TYPES {
        context.add_variable_from_value(name, Cel::String(Arc::new(name.to_owned())));
    }
    ordered::add_functions(&mut context);
    context
}

/// Calls `run` with the context of this thread.
pub(super) fn with_functions<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    FUNCTIONS.with(run)
}

fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::Bool(_) => "bool",
        Cel::Bytes(_) => "bytes",
        Cel::Float(_) => "double",
        Cel::Int(_) => "int",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::String(_) => "string",
        Cel::UInt(_) => "uint",
        _ => "dyn",
    }
}

/// Argument of a rule: a value or a whole object. The variant for objects avoids cloning a whole object into a JSON value.
#[derive(Clone, Copy, PartialEq)]
enum Given<'a> {
    Object(&'a Object),
    Value(&'a Value),
}

impl<'a> From<&'a Value> for Given<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Object(object) => Self::Object(object),
            value => Self::Value(value),
        }
    }
}

/// Returns the errors of all rules of an object. If an unchanged value breaks a rule, the error is added to `warnings`.
pub(in super::super) fn errors(
    root: &Node,
    object: &Object,
    old: Option<&Object>,
    warnings: &mut Vec<String>,
) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new(), warnings };
    walk.visit(root, Given::Object(object), old.map(Given::Object), &Path::ROOT);
    walk.errors
}

struct Walk<'a> {
    errors: Vec<FieldError>,
    warnings: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn visit(&mut self, node: &Node, given: Given<'_>, old: Option<Given<'_>>, path: &Path<'_>) {
        if !node.rules_within || matches!(given, Given::Value(Value::Null)) {
            return;
        }
        for rule in &node.rules {
            if let Some(error) = broken(rule, node, given, old, path) {
                self.tell(rule, error, old == Some(given));
            }
        }
        match given {
            Given::Object(object) => {
                let old = match old {
                    Some(Given::Object(old)) => Some(old),
                    _ => None,
                };
                self.members(node, object, old, path);
            }
            Given::Value(Value::Array(items)) => {
                let old = match old {
                    Some(Given::Value(old)) => Some(old),
                    _ => None,
                };
                let Some(item_node) = &node.items else { return };
                let old_items = OldItems::of(node, old);
                for (index, item) in items.iter().enumerate() {
                    let old = old_items.get(item).map(Given::from);
                    self.visit(item_node, Given::from(item), old, &path.item(index));
                }
            }
            Given::Value(_) => {}
        }
    }

    fn members(&mut self, node: &Node, object: &Object, old: Option<&Object>, path: &Path<'_>) {
        for (name, member) in object {
            let old = old.and_then(|old| old::member(node, old, name)).map(Given::from);
            if let Some(node) = node.properties.get(name) {
                self.visit(node, Given::from(member), old, &path.member(name));
            } else if let Some(node) = &node.additional {
                self.visit(node, Given::from(member), old, &path.key(name));
            }
        }
    }

    fn tell(&mut self, rule: &Rule, error: FieldError, unchanged: bool) {
        if unchanged && !rule.uses_old {
            self.warnings.push(format!("{}: {}", error.field, error.message));
        } else {
            self.errors.push(error);
        }
    }
}

/// Returns the error if the value breaks the rule, otherwise `None`.
fn broken(rule: &Rule, node: &Node, given: Given<'_>, old: Option<Given<'_>>, path: &Path<'_>) -> Option<FieldError> {
    if rule.uses_old && old.is_none() && !rule.optional_old {
        return None;
    }
    let convert = |given: Given<'_>| match given {
        Given::Object(object) => values::object(Some(node), object, &rule.members),
        Given::Value(value) => values::value(Some(node), value, &rule.members),
    };
    let old_self = match (old.map(convert), rule.optional_old) {
        (old, true) => {
            let optional = old.map_or_else(OptionalValue::none, OptionalValue::of);
            Some(Cel::Opaque(Arc::new(optional)))
        }
        (old, false) => old,
    };
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", convert(given));
        if let Some(old) = old_self {
            context.add_variable_from_value("oldSelf", old);
        }
        match Cel::resolve(&rule.program, &context) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => {
                let message = rule.message_program.as_ref().and_then(|program| match Cel::resolve(program, &context) {
                    Ok(Cel::String(text)) => usable(&text),
                    _ => None,
                });
                Some(error(rule, given, path, &message.unwrap_or_else(|| rule.default_message())))
            }
            Err(why) => Some(failed(rule, node, path, &why)),
        }
    })
}

/// Returns a message without surrounding space. `None` if the message has several lines or more than 5 KiB: kube-apiserver does
/// not use such a message.
fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = !text.is_empty() && !text.contains('\n') && text.len() <= 5 << 10;
    fits.then(|| text.to_owned())
}

fn error(rule: &Rule, given: Given<'_>, path: &Path<'_>, message: &str) -> FieldError {
    let field = match (path.to_string(), rule.field_path.as_str()) {
        (_, "") => path.field(),
        (place, below) if place.is_empty() => below.trim_start_matches('.').to_owned(),
        (place, below) => format!("{place}{below}"),
    };
    // The error shows a simple value. It shows no object or list, and no value if `fieldPath` points to another value.
    let shown = match given {
        Given::Value(value) if !value.is_array() && rule.field_path.is_empty() => Some(value),
        _ => None,
    };
    let (reason, message) = match (rule.reason, shown) {
        (Reason::Required, _) => return FieldError::required(field, message),
        (Reason::Forbidden, _) => return FieldError::forbidden(field, message),
        (Reason::Duplicate, Some(value)) => return FieldError::duplicate(field, value),
        (Reason::Invalid, Some(value)) => return FieldError::invalid(field, value, message),
        (Reason::Duplicate, None) => (FieldReason::Duplicate, "Duplicate value".to_owned()),
        (Reason::Invalid, None) => (FieldReason::Invalid, format!("Invalid value: {message}")),
    };
    FieldError { field, reason, message }
}

/// Error of a rule that could not be evaluated.
fn failed(rule: &Rule, node: &Node, path: &Path<'_>, why: &ExecutionError) -> FieldError {
    let kind = node.kind.map_or("", |kind| kind.name());
    let why = match why {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        // The `cel` crate's messages of these errors contain values in random order. So these errors have a fixed message.
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedMapIndex(_)
        | ExecutionError::UnsupportedListIndex(_)
        | ExecutionError::UnsupportedIndex(..) => {
            let why = format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature \
                 for rule: {}",
                rule.name()
            );
            return FieldError::invalid(path.field(), &Value::from(kind), &why);
        }
        other => other.to_string(),
    };
    let why = format!("{why} evaluating rule: {}", rule.name());
    FieldError::invalid(path.field(), &Value::from(kind), &why)
}
