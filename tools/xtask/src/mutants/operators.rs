//! Faults (deliberate errors) that are derived from source text: small changes of its syntax tree, each with a switch.
//!
//! The changed text has all faults of a file at once. An environment variable switches one of them on, so the tests are
//! compiled once for all faults:
//!
//! ```text
//! plan.add(slice);
//! if !crate::planted::is_on(17) { plan.add(slice); }
//! ```
//!
//! These are the operators:
//!
//! - A **condition** is fixed: it always holds, or it never holds. Conditions are those of `if`, `while` and match
//!   guards, and the bodies of closures whose result is a condition, such as those of `filter`.
//! - An **operand** of `&&` or `||` is dropped.
//! - A **comparison** is shifted: `<` becomes `<=`, and `==` becomes `!=`.
//! - A **choice** of the smaller value becomes one of the larger value.
//! - A **statement** that calls a method or assigns a value is dropped.
//! - A **match arm** is skipped, if a later arm takes every value.
//! - A **function** returns a neutral value at once: `None`, an empty collection, zero, or a fixed condition.

use anyhow::Context as _;
use proc_macro2::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::ops::{Range, RangeInclusive};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, ReturnType, Stmt, Type};

/// Methods whose closure decides: its result is a condition.
const DECIDING: &[&str] = &[
    "all",
    "any",
    "filter",
    "find",
    "is_none_or",
    "is_some_and",
    "partition",
    "position",
    "retain",
    "skip_while",
    "take_if",
    "take_while",
];

/// Fault (a deliberate error) that is derived from the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Fault {
    /// File, function and change: the same as long as this code does not change. Equal changes in a function are
    /// counted.
    pub(super) id: String,
    pub(super) file: String,
    /// Line of the code that changes, from 1.
    pub(super) line: usize,
    /// Lines of the function around it.
    pub(super) function_lines: RangeInclusive<usize>,
}

/// Text of a file with switches.
#[derive(Debug)]
pub(super) struct Planted {
    pub(super) text: String,
    /// Faults of the file. The first one has the number that was given.
    pub(super) faults: Vec<Fault>,
    /// Ranges of bytes of the text that belong to the switch of a fault, with the number of the fault.
    places: Vec<(Range<usize>, usize)>,
}

impl Planted {
    /// Returns the fault whose switch is the innermost one around a byte of the text.
    pub(super) fn at(&self, byte: usize) -> Option<usize> {
        let around = self.places.iter().filter(|(place, _)| place.contains(&byte));
        around.min_by_key(|(place, _)| place.len()).map(|(_, number)| *number)
    }
}

/// Derives the faults of a file that is not a test, and adds their switches. `first` is the number of the first fault.
/// A fault whose id is in `rejected` has a number, but no switch.
///
/// # Errors
/// If the text is not Rust.
pub(super) fn plant(file: &str, text: &str, first: usize, rejected: &BTreeSet<String>) -> anyhow::Result<Planted> {
    let tree = syn::parse_file(text).with_context(|| format!("cannot parse {file}"))?;
    let mut operators = Operators {
        file,
        text,
        first,
        rejected,
        faults: vec![],
        edits: vec![],
        ids: BTreeMap::new(),
        function: None,
        decided: BTreeSet::new(),
    };
    operators.visit_file(&tree);
    let Operators { faults, edits, .. } = operators;
    let (text, places) = edited(text, edits);
    Ok(Planted { text, faults, places })
}

/// Change of the text: `new` replaces a range, which is empty for an insertion.
struct Edit {
    range: Range<usize>,
    new: String,
    /// True if the text belongs to the code before it, such as a closing parenthesis.
    is_end: bool,
    /// Number of the fault.
    number: usize,
}

/// Applies edits that were made from the outside to the inside of the syntax tree. Returns the text, and the range of
/// each fault.
fn edited(text: &str, edits: Vec<Edit>) -> (String, Vec<(Range<usize>, usize)>) {
    let mut ordered: Vec<(usize, Edit)> = edits.into_iter().enumerate().collect();
    // At one place, code inside ends before code outside, and both end before other code begins.
    ordered.sort_by(|(left, a), (right, b)| {
        let by_depth = if a.is_end { right.cmp(left) } else { left.cmp(right) };
        a.range.start.cmp(&b.range.start).then(b.is_end.cmp(&a.is_end)).then(by_depth)
    });
    let (mut result, mut at) = (String::new(), 0);
    let mut places: BTreeMap<usize, Range<usize>> = BTreeMap::new();
    for (_, Edit { range, new, number, .. }) in ordered {
        result.push_str(&text[at..range.start]);
        let start = result.len();
        result.push_str(&new);
        places.entry(number).or_insert(start..start).end = result.len();
        at = range.end;
    }
    result.push_str(&text[at..]);
    (result, places.into_iter().map(|(number, place)| (place, number)).collect())
}

struct Operators<'a> {
    file: &'a str,
    text: &'a str,
    first: usize,
    rejected: &'a BTreeSet<String>,
    faults: Vec<Fault>,
    edits: Vec<Edit>,
    /// Number of faults of each id, without a count.
    ids: BTreeMap<String, usize>,
    /// Name and lines of the function around the code. `None` outside of functions.
    function: Option<(String, RangeInclusive<usize>)>,
    /// Conditions and operands, as ranges of bytes. The opposite of a comparison here would be a fault that is fixed
    /// anyway.
    decided: BTreeSet<(usize, usize)>,
}

impl Operators<'_> {
    /// Adds a fault, and returns its number, or `None` if it gets no switch.
    fn fault(&mut self, what: &str, code: &str, line: usize) -> Option<usize> {
        let (function, function_lines) = self.function.clone()?;
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut id = format!("{} {function} {what}: {code}", self.file);
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            id = format!("{id} ({count})");
        }
        let number = self.first + self.faults.len();
        let number = (!self.rejected.contains(&id)).then_some(number);
        self.faults.push(Fault { id, file: self.file.to_owned(), line, function_lines });
        number
    }

    /// Adds a fault that inserts text around its code. `before` is called with the fault's number.
    fn wrap(&mut self, what: &str, code: Span, before: impl FnOnce(usize) -> String, after: &str) -> Option<usize> {
        let Range { start, end } = code.byte_range();
        let number = self.fault(what, &self.text[start..end], code.start().line)?;
        self.edits.push(Edit { range: start..start, new: before(number), is_end: false, number });
        self.edits.push(Edit { range: end..end, new: after.to_owned(), is_end: true, number });
        Some(number)
    }

    /// A condition is fixed. A chain with `let` cannot hold always, because its `let` gives names to values.
    fn condition(&mut self, condition: &Expr) {
        if has_let(condition) {
            self.wrap("never", condition.span(), |number| format!("!crate::planted::is_on({number}) && "), "");
        } else {
            // A literal is fixed as it is.
            let literal = literal_of(condition);
            if literal != Some(true) {
                self.or("always", condition);
            }
            if literal != Some(false) {
                self.and_not("never", condition);
            }
        }
    }

    fn or(&mut self, what: &str, condition: &Expr) {
        self.decided.insert(bytes(condition.span()));
        self.wrap(what, condition.span(), |number| format!("(crate::planted::is_on({number}) || ("), "))");
    }

    fn and_not(&mut self, what: &str, condition: &Expr) {
        self.decided.insert(bytes(condition.span()));
        self.wrap(what, condition.span(), |number| format!("(!crate::planted::is_on({number}) && ("), "))");
    }

    /// An operand is dropped. Chains of the same operator are one expression with many operands.
    fn operand(&mut self, operand: &Expr, of: &BinOp) {
        let is_part = match operand {
            Expr::Binary(inner) => discriminant(&inner.op) == discriminant(of),
            Expr::Let(_) => true,
            _ => false,
        };
        match of {
            _ if is_part => {}
            BinOp::And(_) => self.or("without", operand),
            _ => self.and_not("without", operand),
        }
    }

    /// A comparison is made by a function with a switch, which takes references to both sides.
    fn comparison(&mut self, binary: &syn::ExprBinary, function: &str) {
        let before = |number| format!("crate::planted::{function}({number}, &(");
        if let Some(number) = self.wrap("shifted", binary.span(), before, "))") {
            let range = binary.op.span().byte_range();
            self.edits.push(Edit { range, new: "), &(".to_owned(), is_end: true, number });
        }
    }

    /// The smaller or larger of two values is chosen by a function with a switch.
    fn smaller_or_larger(&mut self, call: &syn::ExprMethodCall, right: &Expr) {
        let function = if call.method == "min" { "smaller" } else { "larger" };
        let before = |number| format!("crate::planted::{function}({number}, ");
        if let Some(number) = self.wrap("opposite", call.span(), before, "") {
            let range = call.dot_token.span().byte_range().start..right.span().byte_range().start;
            self.edits.push(Edit { range, new: ", ".to_owned(), is_end: true, number });
        }
    }

    /// A match arm is skipped.
    fn skipped(&mut self, pattern: &Pat) {
        let Range { start, end } = pattern.span().byte_range();
        if let Some(number) = self.fault("skipped", &self.text[start..end], pattern.span().start().line) {
            let new = format!(" if !crate::planted::is_on({number})");
            self.edits.push(Edit { range: end..end, new, is_end: true, number });
        }
    }

    /// A function returns a neutral value.
    fn body(&mut self, signature: &syn::Signature, block: &Block) {
        for value in neutral(&signature.output) {
            let at = block.brace_token.span.open().byte_range().end;
            let what = if value.is_empty() { "does nothing".to_owned() } else { format!("returns {value}") };
            if let Some(number) = self.fault(&what, &signature.ident.to_string(), signature.span().start().line) {
                let new = format!(" if crate::planted::is_on({number}) {{ return {value}; }}");
                self.edits.push(Edit { range: at..at, new, is_end: false, number });
            }
        }
    }

    /// Visits a function. A constant function cannot read which fault is on.
    fn in_function(&mut self, signature: &syn::Signature, whole: Span, visit: impl FnOnce(&mut Self)) {
        if signature.constness.is_none() {
            let lines = whole.start().line..=whole.end().line;
            let outer = self.function.replace((signature.ident.to_string(), lines));
            visit(self);
            self.function = outer;
        }
    }
}

impl<'ast> Visit<'ast> for Operators<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.in_function(&function.sig, function.span(), |this| {
                this.body(&function.sig, &function.block);
                visit::visit_item_fn(this, function);
            });
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.in_function(&function.sig, function.span(), |this| {
                this.body(&function.sig, &function.block);
                visit::visit_impl_item_fn(this, function);
            });
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.in_function(&function.sig, function.span(), |this| {
            if let Some(block) = &function.default {
                this.body(&function.sig, block);
            }
            visit::visit_trait_item_fn(this, function);
        });
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if !is_for_tests(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
    }

    // A constant cannot read which fault is on.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.condition(&branch.cond);
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_while(&mut self, repeated: &'ast syn::ExprWhile) {
        // A loop that never ends would only show the time limit of tests.
        if !has_let(&repeated.cond) {
            self.and_not("never", &repeated.cond);
        }
        visit::visit_expr_while(self, repeated);
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let takes_all = |arm: &syn::Arm| is_any(&arm.pat);
        for (index, arm) in choice.arms.iter().enumerate() {
            if let Pat::Guard(guarded) = &arm.pat {
                self.condition(&guarded.guard);
            } else if choice.arms.iter().skip(index + 1).any(takes_all) {
                self.skipped(&arm.pat);
            }
        }
        visit::visit_expr_match(self, choice);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        match binary.op {
            BinOp::And(_) | BinOp::Or(_) => {
                self.operand(&binary.left, &binary.op);
                self.operand(&binary.right, &binary.op);
            }
            BinOp::Lt(_) => self.comparison(binary, "less"),
            BinOp::Le(_) => self.comparison(binary, "less_or_equal"),
            BinOp::Gt(_) => self.comparison(binary, "more"),
            BinOp::Ge(_) => self.comparison(binary, "more_or_equal"),
            BinOp::Eq(_) | BinOp::Ne(_) if !self.decided.contains(&bytes(binary.span())) => {
                let before = |number| format!("(crate::planted::is_on({number}) != (");
                self.wrap("opposite", binary.span(), before, "))");
            }
            _ => {}
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        match call.args.first() {
            Some(Expr::Closure(closure)) if DECIDING.contains(&name.as_str()) => {
                if let Some(result) = result_of(&closure.body) {
                    self.condition(result);
                }
            }
            Some(right) if matches!(name.as_str(), "min" | "max") && call.args.len() == 1 => {
                self.smaller_or_larger(call, right);
            }
            _ if matches!(name.as_str(), "then" | "then_some") => self.condition(&call.receiver),
            _ => {}
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for statement in &block.stmts {
            if let Stmt::Expr(code, Some(_)) = statement
                && acts(code)
            {
                let before = |number| format!("if !crate::planted::is_on({number}) {{ ");
                self.wrap("dropped", statement.span(), before, " }");
            }
        }
        visit::visit_block(self, block);
    }
}

fn literal_of(condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(literal), .. }) => Some(literal.value),
        _ => None,
    }
}

fn bytes(span: Span) -> (usize, usize) {
    let Range { start, end } = span.byte_range();
    (start, end)
}

/// Returns the expression whose value a closure returns.
fn result_of(body: &Expr) -> Option<&Expr> {
    match body {
        Expr::Block(block) => match block.block.stmts.last() {
            Some(Stmt::Expr(last, None)) => Some(last),
            _ => None,
        },
        body => Some(body),
    }
}

/// True for a statement that calls a method or assigns a value.
fn acts(code: &Expr) -> bool {
    match code {
        Expr::MethodCall(_) | Expr::Assign(_) => true,
        Expr::Binary(binary) => matches!(
            binary.op,
            BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitAndAssign(_) | BinOp::BitOrAssign(_)
        ),
        Expr::Try(inner) => acts(&inner.expr),
        Expr::Await(inner) => acts(&inner.base),
        _ => false,
    }
}

fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// True for a pattern that takes every value.
fn is_any(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(name) => name.subpat.is_none() && name.ident.to_string().starts_with(char::is_lowercase),
        _ => false,
    }
}

/// True if the code is for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string().contains("test"))
    })
}

/// Returns the neutral values of a type: what a function returns that does nothing.
fn neutral(output: &ReturnType) -> Vec<String> {
    let ReturnType::Type(_, of) = output else { return vec![String::new()] };
    let Type::Path(path) = &**of else { return Vec::new() };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let values: &[&str] = match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "Option" => &["None"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0"],
        "Duration" | "Vec" | "String" | "BTreeMap" | "BTreeSet" | "HashMap" | "HashSet" => &["Default::default()"],
        _ => &[],
    };
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Planted, plant};
    use std::collections::BTreeSet;

    fn planted(text: &str) -> Planted {
        let planted = plant("a.rs", text, 1, &BTreeSet::new()).expect("Rust");
        syn::parse_file(&planted.text).expect("still Rust");
        planted
    }

    /// Returns the changes of the faults of a function with this body, except those of the function itself.
    fn changes(body: &str) -> Vec<String> {
        let faults = planted(&format!("fn f() -> T {{ {body} }}")).faults;
        faults.into_iter().map(|fault| fault.id.replace("a.rs f ", "")).collect()
    }

    #[test]
    fn conditions_are_fixed_and_their_operands_dropped() {
        assert_eq!(changes("if a { b }"), ["always: a", "never: a"]);
        assert_eq!(
            changes("if a && b || c == 1 { d }"),
            [
                "always: a && b || c == 1",
                "never: a && b || c == 1",
                "without: a && b",
                "without: c == 1",
                "without: a",
                "without: b"
            ]
        );
        assert_eq!(changes("if let Some(a) = b && c { d }"), ["never: let Some(a) = b && c", "without: c"]);
        assert_eq!(changes("while a { b }"), ["never: a"]);
        assert_eq!(
            changes("a.filter(|b| b.c).any(|d| { e; d })"),
            ["always: d", "never: d", "always: b.c", "never: b.c"]
        );
        assert_eq!(changes("a.then(|| b)"), ["always: a", "never: a"]);
        assert_eq!(changes("a.is_some_and(|b| { c; true })"), ["never: true"]);
    }

    #[test]
    fn comparisons_are_shifted_and_choices_turned() {
        assert_eq!(changes("let a = b < c; d"), ["shifted: b < c"]);
        assert_eq!(changes("let a = b != c; d"), ["opposite: b != c"]);
        assert_eq!(changes("a.min(b)"), ["opposite: a.min(b)"]);
        assert_eq!(changes("a.iter().min()"), [""; 0]);
    }

    #[test]
    fn statements_that_act_are_dropped_and_match_arms_skipped() {
        assert_eq!(
            changes("a.b(); c = d; e += 1; f(); let g = 1; a.h()?; i"),
            ["dropped: a.b();", "dropped: c = d;", "dropped: e += 1;", "dropped: a.h()?;"]
        );
        assert_eq!(changes("match a { B => 1, C if d => 2, _ => 3 }"), ["skipped: B", "always: d", "never: d"]);
        assert_eq!(changes("match a { B => 1, C => 2 }"), [""; 0], "the compiler needs each arm");
    }

    #[test]
    fn a_function_returns_a_neutral_value_of_its_type() {
        let ids = |text: &str| -> Vec<String> { planted(text).faults.into_iter().map(|fault| fault.id).collect() };
        assert_eq!(ids("fn f() -> bool { a() }"), ["a.rs f returns true: f", "a.rs f returns false: f"]);
        assert_eq!(ids("fn f() -> Option<T> { a() }"), ["a.rs f returns None: f"]);
        assert_eq!(ids("fn f() { a() }"), ["a.rs f does nothing: f"]);
        assert_eq!(ids("impl A { fn f(&self) -> u8 { 1 } }"), ["a.rs f returns 0: f"]);
        assert_eq!(ids("const fn f() -> u8 { 1 }\nconst A: bool = 1 < 2;\n#[cfg(test)]\nmod b { fn c() {} }"), [""; 0]);
    }

    #[test]
    fn switches_stand_around_the_code_and_those_inside_in_those_outside() {
        let planted = planted("fn f() -> T { if a < b && c { d } }");
        let expected = "fn f() -> T { if (crate::planted::is_on(1) || ((!crate::planted::is_on(2) && \
                        ((crate::planted::is_on(3) || (crate::planted::less(5, &(a ), &( b)))) && \
                        (crate::planted::is_on(4) || (c)))))) { d } }";
        assert_eq!(planted.text, expected);
        let at = |code: &str| planted.at(planted.text.find(code).expect("this code") + 1);
        assert_eq!([at("&(a"), at("(c)"), at("{ d")], [Some(5), Some(4), None]);
    }

    #[test]
    fn a_rejected_fault_keeps_its_number_and_has_no_switch() {
        let rejected = BTreeSet::from(["a.rs f always: a".to_owned()]);
        let planted = plant("a.rs", "fn f() -> T { if a { b } }", 7, &rejected).expect("Rust");
        assert_eq!(
            (planted.faults.len(), planted.text.contains("is_on(7)"), planted.text.contains("is_on(8)")),
            (2, false, true)
        );
    }

    #[test]
    fn equal_changes_of_a_function_are_counted() {
        assert_eq!(changes("if a { b }; if a { c }; d")[..3], ["always: a", "never: a", "always: a (2)"]);
    }
}
