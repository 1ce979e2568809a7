//! CEL rules (`x-kubernetes-validations`). The `cel` crate evaluates the rules, with Kubernetes' functions (kube's feature
//! `cel`).
//!
//! For a new CustomResourceDefinition, kube-apiserver also checks the types of each rule and estimates its cost. memkube does
//! neither. The results of rules are the same.

mod evaluate;
mod members;
mod ordered;
mod values;

use crate::status::{FieldError, FieldReason, shown_struct};
pub(super) use evaluate::errors;
use kube::core::cel::cel::Program;
use kube::core::cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};
use members::Members;
use ordered::ordered;
use serde_json::Value;
use std::fmt;

/// `reason` of the error for an object that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reason {
    #[default]
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// A compiled rule.
pub(super) struct Rule {
    source: String,
    program: IdedExpr,
    message: String,
    message_program: Option<IdedExpr>,
    reason: Reason,
    /// `fieldPath`, for example `.spec.x`, relative to the value with the rule. Empty for the value itself.
    field_path: String,
    /// True if the rule uses `oldSelf`. Such a rule is evaluated only if there is an old value.
    uses_old: bool,
    /// `optionalOldSelf`: the old value is a CEL optional. The rule is also evaluated if there is no old value.
    optional_old: bool,
    /// Members of the value that the rule uses.
    members: Members,
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Rule({:?})", self.source)
    }
}

impl Rule {
    /// Compiles a rule. `at` is the field path of the rule in messages.
    pub(super) fn compile(rule: &Value, at: &str) -> Result<Self, FieldError> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let source = text("rule");
        if source.is_empty() {
            return Err(FieldError::required(format!("{at}.rule"), "rule is not specified"));
        }
        let program = |member: &str, source: &str| {
            Program::compile(source).map_err(|error| {
                let why = format!("compilation failed: {error}").replace("\n|", "\n |");
                invalid(format!("{at}.{member}"), rule, &why)
            })
        };
        let compiled = program("rule", &source)?;
        if is_no_condition(compiled.expression()) {
            return Err(invalid(format!("{at}.rule"), rule, "cel expression must evaluate to a bool"));
        }
        let message_source = text("messageExpression");
        let message_program = match message_source.as_str() {
            "" => None,
            source => Some(program("messageExpression", source)?),
        };
        let mut members = Members::of(compiled.expression());
        if let Some(message) = &message_program {
            members = members.and(Members::of(message.expression()));
        }
        Ok(Self {
            uses_old: compiled.references().has_variable("oldSelf"),
            program: ordered(compiled.expression()),
            message: text("message"),
            message_program: message_program.map(|program| ordered(program.expression())),
            reason: reason(rule, at)?,
            field_path: text("fieldPath"),
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
            members,
            source,
        })
    }

    /// Returns the message for a broken rule without `messageExpression`.
    fn default_message(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.source) } else { self.message.clone() }
    }

    /// Name of the rule in messages about errors of the evaluation.
    fn name(&self) -> &str {
        if self.message.is_empty() { &self.source } else { &self.message }
    }
}

fn reason(rule: &Value, at: &str) -> Result<Reason, FieldError> {
    let Some(name) = rule.get("reason").filter(|reason| !reason.is_null()) else { return Ok(Reason::default()) };
    match name.as_str() {
        Some("FieldValueInvalid") => Ok(Reason::Invalid),
        Some("FieldValueForbidden") => Ok(Reason::Forbidden),
        Some("FieldValueRequired") => Ok(Reason::Required),
        Some("FieldValueDuplicate") => Ok(Reason::Duplicate),
        _ => {
            let supported = ["FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden", "FieldValueDuplicate"];
            Err(FieldError::not_supported(format!("{at}.reason"), name, &supported))
        }
    }
}

/// Error `Invalid value: <the rule>: <why>`. The rule is shown in the form of a Go struct.
fn invalid(field: String, rule: &Value, why: &str) -> FieldError {
    let text = |name: &str| Value::from(rule.get(name).and_then(Value::as_str).unwrap_or_default());
    let member = |name: &str| rule.get(name).cloned().unwrap_or_default();
    let shown = shown_struct(&[
        ("Rule", text("rule").to_string()),
        ("Message", text("message").to_string()),
        ("MessageExpression", text("messageExpression").to_string()),
        ("Reason", member("reason").to_string()),
        ("FieldPath", text("fieldPath").to_string()),
        ("OptionalOldSelf", member("optionalOldSelf").to_string()),
    ]);
    let message = format!("Invalid value: {shown}: {why}");
    FieldError { field, reason: FieldReason::Invalid, message }
}

/// True if an expression obviously never returns a bool, so it cannot be a rule. Only the outermost function or literal of the
/// expression is checked.
fn is_no_condition(expression: &IdedExpr) -> bool {
    const NUMBERS_AND_TEXT: [&str; 11] =
        ["size", "int", "uint", "double", "string", "timestamp", "duration", "_+_", "_-_", "_*_", "_/_"];
    match &expression.expr {
        Expr::Call(call) => NUMBERS_AND_TEXT.contains(&call.func_name.as_str()),
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        _ => false,
    }
}
