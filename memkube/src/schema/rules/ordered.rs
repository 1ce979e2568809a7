//! Iteration over CEL maps in the order of their keys.
//!
//! Maps of the `cel` crate have a random order, so the result of a rule could be different in each run. Therefore [`ordered`]
//! adds function calls that sort maps: around the range of each macro, and around the arguments of each `format`.

use kube::core::cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use kube::core::cel::cel::objects::{Key, Map};
use kube::core::cel::cel::{Context, ExecutionError, Program, Value as Cel};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// Name of the function that sorts the range of a macro: `m.all(…)` becomes `@keys(m).all(…)`. A rule itself cannot call this
/// function, because CEL names cannot contain `@`.
const KEYS: &str = "@keys";
/// Name of the function that converts the arguments of `format` to text.
const PRINTABLE: &str = "@printable";

/// Returns an equivalent expression that visits maps in order. The context must have the functions of
/// [`add_functions`].
pub(super) fn ordered(expression: &IdedExpr) -> IdedExpr {
    let mut expression = expression.clone();
    order(&mut expression);
    expression
}

/// Adds the functions that the expressions of [`ordered`] call.
pub(super) fn add_functions(context: &mut Context<'_>) {
    context.add_function(KEYS, |value: Cel| -> Result<Cel, ExecutionError> { Ok(keys(value)) });
    context.add_function(PRINTABLE, |arguments: Cel| -> Result<Cel, ExecutionError> { printable(arguments) });
}

fn order(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Select(select) => order(&mut select.operand),
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| order(target));
            call.args.iter_mut().for_each(order);
            if call.func_name == "format" {
                call.args.iter_mut().for_each(|argument| wrap(PRINTABLE, argument));
            }
        }
        Expr::Comprehension(comprehension) => {
            order(&mut comprehension.iter_range);
            order(&mut comprehension.accu_init);
            order(&mut comprehension.loop_cond);
            order(&mut comprehension.loop_step);
            order(&mut comprehension.result);
            wrap(KEYS, &mut comprehension.iter_range);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(order),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| order_entry(&mut entry.expr)),
        Expr::Struct(literal) => literal.entries.iter_mut().for_each(|entry| order_entry(&mut entry.expr)),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn order_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => order(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            order(&mut entry.key);
            order(&mut entry.value);
        }
    }
}

fn wrap(function: &str, expression: &mut IdedExpr) {
    // A list literal already has an order.
    if function == KEYS && matches!(expression.expr, Expr::List(_)) {
        return;
    }
    let argument = std::mem::take(expression);
    expression.id = argument.id;
    expression.expr = Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args: vec![argument] });
}

/// Returns the sorted keys of a map. Returns any other value unchanged.
fn keys(value: Cel) -> Cel {
    let Cel::Map(map) = value else { return value };
    Cel::List(Arc::new(in_order(&map).into_keys().map(|key| Cel::from(key.clone())).collect()))
}

#[allow(clippy::disallowed_methods, reason = "here they are brought into order")]
fn in_order(map: &Map) -> BTreeMap<&Key, &Cel> {
    map.map.iter().collect()
}

/// Returns the arguments of `format`, with maps and lists replaced by their text.
fn printable(arguments: Cel) -> Result<Cel, ExecutionError> {
    let Cel::List(arguments) = arguments else { return Ok(arguments) };
    let printed = arguments.iter().map(|argument| match argument {
        Cel::Map(_) | Cel::List(_) => printed(argument).map(|text| Cel::String(Arc::new(text))),
        other => Ok(other.clone()),
    });
    Ok(Cel::List(Arc::new(printed.collect::<Result<_, _>>()?)))
}

/// Text of a value, as the CEL function `format` prints an item of a list.
fn printed(value: &Cel) -> Result<String, ExecutionError> {
    match value {
        Cel::List(items) => {
            let items: Vec<String> = items.iter().map(printed).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Cel::Map(map) => {
            let entries =
                in_order(map).into_iter().map(|(key, value)| Ok(format!("{}{}", name(key)?, printed(value)?)));
            let entries: Vec<String> = entries.collect::<Result<_, ExecutionError>>()?;
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        other => formatted(Cel::List(Arc::new(vec![other.clone()])), "[", "]"),
    }
}

/// Text of a map key and its colon, as the CEL function `format` prints them.
fn name(key: &Key) -> Result<String, ExecutionError> {
    let entry = HashMap::from([(key.clone(), Cel::Null)]);
    formatted(Cel::Map(Map { map: Arc::new(entry) }), "{", "null}")
}

/// Text of a value as the CEL function `format` prints it, without the prefix `before` and the suffix `behind`.
fn formatted(value: Cel, before: &str, behind: &str) -> Result<String, ExecutionError> {
    static FORMAT: LazyLock<Program> =
        LazyLock::new(|| Program::compile("'%s'.format([value])").expect("it is an expression"));
    super::evaluate::with_functions(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("value", value);
        match FORMAT.execute(&context)? {
            Cel::String(text) => {
                let text = text.strip_prefix(before).and_then(|text| text.strip_suffix(behind));
                Ok(text.unwrap_or_default().to_owned())
            }
            other => Err(ExecutionError::UnexpectedType { got: format!("{other:?}"), want: "string".to_owned() }),
        }
    })
}
