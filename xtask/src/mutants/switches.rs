//! Source text of a file with all its faults (deliberate errors). An environment variable switches one fault on.
//!
//! The innermost block or closure around a fault gets a second copy of its code, with the fault:
//!
//! ```text
//! if is_ready { match crate::planted_fault() { 17 => { send(0) } _ => { send(all) } } }
//! ```
//!
//! So the tests are compiled once for all faults, and a fault costs only the run of its tests.

use super::mark::Fault;
use anyhow::Context as _;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// Environment variable with the number of the fault to switch on.
pub(super) const VARIABLE: &str = "FLEETNET_PLANTED_FAULT";

/// Function that is added to the root file of each crate with faults. Its result is the number of the fault that is switched
/// on, or 0.
pub(super) const FUNCTION: &str = r#"
pub(crate) fn planted_fault() -> u32 {
    static NUMBER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("FLEETNET_PLANTED_FAULT").map_or(0, |number| number.parse().unwrap_or(0)))
}
"#;

/// Source text in which an environment variable switches one of the faults on.
#[derive(Debug)]
pub(super) struct Switched {
    pub(super) text: String,
    /// Line range of each faulty copy of a block, with the number of the copy's fault. Lines count from 1.
    copies: Vec<(Range<usize>, u32)>,
    /// Line range of each block with switches, with the numbers of the faults in this block. Lines count from 1.
    places: Vec<(Range<usize>, Vec<u32>)>,
    /// Faults that cannot have a switch, because no block around them can have a copy. An example is a fault in a constant.
    pub(super) left: Vec<u32>,
}

impl Switched {
    /// Adds switches to a source text. `faults` are the faults of the file with their numbers.
    ///
    /// # Errors
    /// If the text is not Rust, or the code of a fault is not below the comment that describes the fault.
    pub(super) fn new(text: &str, faults: &[(u32, &Fault)]) -> anyhow::Result<Self> {
        let file = syn::parse_file(text).context("cannot parse it")?;
        let mut blocks = Blocks::default();
        blocks.visit_file(&file);
        let mut by_block: BTreeMap<usize, Numbered<'_>> = BTreeMap::new();
        let mut left = Vec::new();
        for (number, fault) in faults {
            let place = fault.place(text)?;
            let around = blocks.0.iter().enumerate().filter(|(_, block)| contains(block, &place));
            match around.min_by_key(|(_, block)| block.len()) {
                Some((block, _)) => by_block.entry(block).or_default().push((*number, *fault)),
                None => left.push(*number),
            }
        }
        let mut chosen: Vec<_> =
            by_block.into_iter().map(|(block, faults)| (blocks.0[block].clone(), faults)).collect();
        chosen.sort_by_key(|(block, _)| (block.start, Reverse(block.end)));
        let mut writer = Writer { source: text, chosen: &chosen, text: String::new(), copies: vec![], places: vec![] };
        writer.write(0..text.len())?;
        let Writer { text, copies, places, .. } = writer;
        Ok(Self { text, copies, places, left })
    }

    /// Returns the faults that may be the reason why the compiler rejects this line. These faults must be compiled without a
    /// switch. If the line is in a faulty copy, returns the fault of the copy. Otherwise returns all faults of the innermost
    /// block with switches.
    pub(super) fn at_fault(&self, line: usize) -> Vec<u32> {
        let copy = self.copies.iter().find(|(lines, _)| lines.contains(&line));
        copy.map(|(_, number)| vec![*number])
            .or_else(|| {
                let around = self.places.iter().filter(|(lines, _)| lines.contains(&line));
                around.min_by_key(|(lines, _)| lines.len()).map(|(_, numbers)| numbers.clone())
            })
            .unwrap_or_default()
    }
}

/// Ranges of bytes with the code of blocks and closures that can have a copy.
#[derive(Default)]
struct Blocks(Vec<Range<usize>>);

impl<'ast> Visit<'ast> for Blocks {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.0.push(block.brace_token.span.join().byte_range());
        visit::visit_block(self, block);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        if !matches!(*closure.body, syn::Expr::Block(_)) {
            self.0.push(closure.body.span().byte_range());
        }
        visit::visit_expr_closure(self, closure);
    }

    // Skip constants, because a constant cannot read an environment variable.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Faults with their numbers.
type Numbered<'a> = Vec<(u32, &'a Fault)>;

struct Writer<'a> {
    source: &'a str,
    /// Blocks that get switches, with their faults, in the order of the source.
    chosen: &'a [(Range<usize>, Numbered<'a>)],
    text: String,
    copies: Vec<(Range<usize>, u32)>,
    places: Vec<(Range<usize>, Vec<u32>)>,
}

impl Writer<'_> {
    /// Writes a part of the source with the switches of all blocks inside it.
    fn write(&mut self, part: Range<usize>) -> anyhow::Result<()> {
        let mut at = part.start;
        let chosen = self.chosen;
        for (block, faults) in chosen {
            if block.start < at || !contains(&part, block) || *block == part {
                continue;
            }
            self.text.push_str(&self.source[at..block.start]);
            self.switch(block, faults)?;
            at = block.end;
        }
        self.text.push_str(&self.source[at..part.end]);
        Ok(())
    }

    fn switch(&mut self, block: &Range<usize>, faults: &[(u32, &Fault)]) -> anyhow::Result<()> {
        let start = self.line();
        self.text.push_str("{ match crate::planted_fault() {\n");
        for (number, fault) in faults {
            let first = self.line();
            let place = fault.place(self.source)?;
            let faulty = fault.applied(self.source)?;
            // The fault is inside of the block, so the text after the block is unchanged. Therefore the end of the faulty block
            // is as far from the end of the text as the end of the original block.
            let end = faulty.len() - (self.source.len() - block.end);
            debug_assert!(contains(block, &place));
            writeln!(self.text, "{number} => {{ {} }}", &faulty[block.start..end])?;
            self.copies.push((first..self.line(), *number));
        }
        self.text.push_str("_ => { ");
        self.write(block.clone())?;
        self.text.push_str(" }\n} }");
        self.places.push((start..self.line() + 1, faults.iter().map(|(number, _)| *number).collect()));
        Ok(())
    }

    /// Returns the number, from 1, of the last line of the text written so far.
    fn line(&self) -> usize {
        self.text.matches('\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark::{self, Fault};
    use super::*;

    fn switched(text: &str) -> Switched {
        let faults = mark::faults_of("core/src/a.rs", text).expect("marks");
        let numbered: Vec<(u32, &Fault)> = (1..).zip(&faults).collect();
        let switched = Switched::new(text, &numbered).expect("switches");
        syn::parse_file(&switched.text).expect("Rust");
        switched
    }

    #[test]
    fn the_innermost_block_around_a_fault_gets_a_copy_with_it() {
        let text =
            "fn f() -> u8 {\n    if ready {\n        // fault S1.1: a ~> b\n        a(1)\n    } else { a(2) }\n}\n";
        let switched = switched(text);
        let expected = "fn f() -> u8 {\n    if ready { match crate::planted_fault() {\n\
             1 => { {\n        // fault S1.1: a ~> b\n        b(1)\n    } }\n\
             _ => { {\n        // fault S1.1: a ~> b\n        a(1)\n    } }\n} } else { a(2) }\n}\n";
        assert_eq!((switched.text.as_str(), switched.left), (expected, vec![]));
    }

    #[test]
    fn a_closure_without_a_block_gets_one() {
        let text = "fn f() -> impl Fn(u8) -> bool {\n    // fault S1.1: == ~> !=\n    |one| one == 1\n}\n";
        let switched = switched(text);
        let closure = "|one| { match crate::planted_fault() {\n1 => { one != 1 }\n_ => { one == 1 }\n} }\n";
        assert!(switched.text.contains(closure), "{}", switched.text);
    }

    #[test]
    fn the_faults_of_a_block_inside_another_are_in_the_unchanged_copy_of_the_outer_one() {
        let text = "fn f() {\n    // fault S1.1: a ~> b\n    a();\n    loop {\n        // fault S1.2: c ~> d\n        c();\n    }\n}\n";
        let switched = switched(text);
        assert_eq!(switched.text.matches("match crate::planted_fault()").count(), 2);
        let (faulty, unchanged) = switched.text.split_once("_ => {").expect("an unchanged copy");
        assert!(faulty.contains("b();") && !faulty.contains("d();") && unchanged.contains("d();"), "{faulty}");
    }

    #[test]
    fn a_fault_of_a_constant_or_a_constant_function_is_left() {
        let text =
            "// fault S1.1: 1 ~> 2\nconst A: u8 = 1;\nconst fn f() -> u8 {\n    // fault S1.2: 3 ~> 4\n    3\n}\n";
        let switched = switched(text);
        assert_eq!((switched.text.as_str(), &switched.left[..]), (text, &[1, 2][..]));
    }

    #[test]
    fn a_line_that_does_not_compile_names_its_fault_or_all_faults_of_its_block() {
        let text = "fn f() {\n    // fault S1.1: a ~> b\n    // fault S1.2: a ~> c\n    a();\n}\nfn g() {}\n";
        let switched = switched(text);
        let line = |wanted: &str| switched.text.lines().position(|line| line.contains(wanted)).expect("a line") + 1;
        assert_eq!(switched.at_fault(line("b();")), [1]);
        assert_eq!(switched.at_fault(line("c();")), [2]);
        assert_eq!(switched.at_fault(line("    a();")), [1, 2]);
        assert!(switched.at_fault(line("fn g")).is_empty());
    }

    #[test]
    fn the_function_of_a_crate_reads_the_variable() {
        assert!(FUNCTION.contains(&format!("{VARIABLE:?}")));
        syn::parse_file(FUNCTION).expect("Rust");
    }
}
