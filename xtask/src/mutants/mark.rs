//! Marks of faults (deliberate errors) in the source, and the change that each mark makes.
//!
//! A mark is a comment above the line that its fault changes:
//!
//! ```text
//! // fault S2.1: live ~> get
//! let Some(service) = view.services.live(&export.meta.name) else { return Eligibility::NotFound };
//! ```
//!
//! The first `live` in the code below becomes `get`. The left side is compared with the code token by token, so reformatting does
//! not matter. If the right side is empty, the fault removes the code of the left side.
//!
//! The tests of rule S2 in docs/contributors/behaviour.md must detect the fault. A mark such as `// fault S2.1 (export::a_test): …`
//! names another test instead. A mark with several ids, such as `// fault S2.1, S7.3: …`, is a fault of each of these rules.

use anyhow::{Context as _, bail, ensure};

/// Fault (a deliberate error) that can be planted in the source, parsed from its mark.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    /// Id of the fault: the rule that it breaks, and its number in that rule, such as `S4.1`.
    pub(crate) id: String,
    /// Test that must detect the fault, as `file::test`. `None` means the tests of the rule.
    pub(crate) test: Option<String>,
    /// Path of the file in which to plant the fault, from the root.
    pub(crate) file: String,
    /// Line of the comment that describes the fault, from 1.
    pub(crate) line: usize,
    old: String,
    new: String,
}

const BEGIN: &str = "// fault ";
const BECOMES: &str = " ~>";

/// True if a line of source is a mark: a comment that describes a fault (a deliberate error) in the line below.
pub(crate) fn is_mark(line: &str) -> bool {
    line.trim_start().starts_with(BEGIN)
}

/// Returns the faults that are marked in a file.
///
/// # Errors
/// If a mark is malformed. The error is about the first such mark.
pub(crate) fn faults_of(file: &str, text: &str) -> anyhow::Result<Vec<Fault>> {
    let marks = text.lines().zip(1..).filter_map(|(line, number)| Some((line.trim().strip_prefix(BEGIN)?, number)));
    let mut faults = Vec::new();
    for (mark, line) in marks {
        let parsed = parse(mark, file, line);
        faults.extend(parsed.with_context(|| format!("{file}:{line}: a mark reads `// fault ID: old ~> new`"))?);
    }
    Ok(faults)
}

fn parse(mark: &str, file: &str, line: usize) -> anyhow::Result<Vec<Fault>> {
    let (head, change) = mark.split_once(": ").context("it has no `: `")?;
    let (ids, test) = match head.split_once(" (") {
        Some((ids, test)) => (ids, Some(test.strip_suffix(')').context("its test has no `)`")?.to_owned())),
        None => (head, None),
    };
    let (old, new) = change.split_once(BECOMES).context("it has no `~>`")?;
    let (old, new) = (old.trim().to_owned(), new.trim().to_owned());
    ensure!(!old.is_empty() && old != new, "it changes nothing");
    let faults = ids.split(", ").map(|id| {
        ensure!(id.contains('.') && !id.contains(' '), "{id} is no id");
        let (id, file) = (id.to_owned(), file.to_owned());
        Ok(Fault { id, test: test.clone(), file, line, old: old.clone(), new: new.clone() })
    });
    faults.collect()
}

impl Fault {
    /// Returns the id of the rule that the fault breaks.
    pub(crate) fn rule(&self) -> &str {
        self.id.split_once('.').map_or(&self.id, |(rule, _)| rule)
    }

    /// True if `id`, from the command line, is the id of this fault or of its rule.
    pub(crate) fn is_named_by(&self, id: &str) -> bool {
        self.id == id || self.rule() == id
    }

    /// Returns the folder of the fault's package.
    pub(crate) fn folder(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }

    /// Returns the fault's change of the code, in the form in which the comment above the code describes the change.
    pub(crate) fn change(&self) -> String {
        format!("{}{BECOMES} {}", self.old, self.new)
    }

    /// Returns the range of bytes in the file that the fault replaces.
    ///
    /// # Errors
    /// If the code to replace is not in the line below the comment that describes the fault.
    pub(crate) fn place(&self, text: &str) -> anyhow::Result<std::ops::Range<usize>> {
        let mark: usize = text.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        let comments = text[mark..].split_inclusive('\n').take_while(|line| line.trim_start().starts_with("//"));
        let below = mark + comments.map(str::len).sum::<usize>();
        let line = text[below..].lines().next().unwrap_or_default();
        let starts = (below..below + line.len()).filter(|at| text.is_char_boundary(*at));
        let found = starts.into_iter().find_map(|at| Some(at..end_of(text, at, &self.old)?));
        let Some(found) = found else { bail!("the line below does not contain `{}`", self.old) };
        Ok(found)
    }

    /// Returns the file's text with the fault planted.
    ///
    /// # Errors
    /// If the code to replace is not in the line below the comment that describes the fault.
    pub(crate) fn applied(&self, text: &str) -> anyhow::Result<String> {
        let place = self.place(text)?;
        Ok(format!("{}{}{}", &text[..place.start], self.new, &text[place.end..]))
    }
}

/// Returns the end of the code at `at` if this code has the same tokens as `old`. Comments and white space do not count.
fn end_of(text: &str, at: usize, old: &str) -> Option<usize> {
    let (mut rest, mut wanted) = (&text[at..], old);
    let mut before = text[..at].chars().next_back();
    while let Some(token) = first_token(wanted) {
        let is_first = rest.len() == text.len() - at;
        let code = if is_first { rest } else { without_blanks(rest) };
        // Compare words as a whole: `live` does not match in `deliver`.
        if first_token(code)? != token || is_first && before.is_some_and(is_word) && token.starts_with(is_word) {
            return None;
        }
        before = token.chars().next_back();
        rest = &code[token.len()..];
        wanted = wanted[token.len()..].trim_start();
    }
    Some(text.len() - rest.len())
}

/// Returns the token at the start of a text: a whole word, or one other character. `None` at the end and before white space.
fn first_token(text: &str) -> Option<&str> {
    let first = text.chars().next().filter(|letter| !letter.is_whitespace())?;
    let length =
        if is_word(first) { text.find(|letter| !is_word(letter)).unwrap_or(text.len()) } else { first.len_utf8() };
    Some(&text[..length])
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Returns the text after all white space and line comments at its start.
fn without_blanks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with("//") {
        rest = rest.split_once('\n').map_or("", |(_, below)| below).trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::{Fault, faults_of};

    fn fault(text: &str) -> Fault {
        let [fault] = &faults_of("core/src/a.rs", text).expect("a mark")[..] else { panic!("one mark") };
        fault.clone()
    }

    fn applied(text: &str) -> String {
        fault(text).applied(text).expect("it can be planted")
    }

    #[test]
    fn a_mark_breaks_the_line_below_it() {
        let text = "let deliver = live(\n// fault S2.1: live ~> get\n    deliver, live(1), live(2)\n";
        assert_eq!(applied(text), "let deliver = live(\n// fault S2.1: live ~> get\n    deliver, get(1), live(2)\n");
    }

    #[test]
    fn code_is_compared_by_its_tokens_and_may_go_on_in_further_lines() {
        let text = "// fault S2.1: f(a, b) && ~>\nf(\n    a, // first\n    // fault S2.2: b ~> c\n    b) && g\n";
        let [first, second] = &faults_of("a.rs", text).expect("marks")[..] else { panic!("two marks") };
        assert_eq!(first.applied(text).expect("planted"), "// fault S2.1: f(a, b) && ~>\n g\n");
        assert!(second.applied(text).expect("planted").ends_with("    c) && g\n"));
    }

    #[test]
    fn marks_that_change_one_line_are_above_each_other() {
        let text = "// fault S2.1: 1 ~> 2\n// fault S3.1 (sums::a_sum): 10 ~> 11\n10 + 1\n";
        let [first, second] = &faults_of("a.rs", text).expect("marks")[..] else { panic!("two marks") };
        assert!(first.applied(text).expect("planted").ends_with("\n10 + 2\n"));
        assert!(second.applied(text).expect("planted").ends_with("\n11 + 1\n"));
        assert_eq!((first.test.as_deref(), second.test.as_deref()), (None, Some("sums::a_sum")));
    }

    #[test]
    fn a_mark_with_several_ids_is_a_fault_of_each_of_their_rules() {
        let faults = faults_of("a.rs", "// fault S2.1, S7.3: 1 ~> 2\n1\n").expect("a mark");
        let ids: Vec<&str> = faults.iter().map(|fault| fault.id.as_str()).collect();
        assert_eq!((ids, faults[0].change()), (vec!["S2.1", "S7.3"], "1 ~> 2".to_owned()));
    }

    #[test]
    fn code_that_is_not_in_the_line_below_is_an_error() {
        let text = "// fault S2.1: get ~> live\nlet forget = 1;\nget\n";
        let error = fault(text).applied(text).expect_err("not in the line below");
        assert_eq!(error.to_string(), "the line below does not contain `get`");
    }

    #[test]
    fn a_malformed_mark_is_an_error_with_its_place() {
        for mark in ["S2: a ~> b", "S2.1 a ~> b", "S2.1: a", "S2.1: a ~> a", "S2.1:  ~> b", "S2.1 (a::b: a ~> b"] {
            let error = faults_of("a.rs", &format!("\n// fault {mark}\n")).expect_err("malformed");
            assert_eq!(error.to_string(), "a.rs:2: a mark reads `// fault ID: old ~> new`", "{mark}");
        }
    }

    #[test]
    fn a_fault_is_named_by_its_id_or_its_rule() {
        let fault = fault("// fault S4.1: a ~> b\n");
        assert_eq!((fault.rule(), fault.folder()), ("S4", "core"));
        assert_eq!(["S4.1", "S4", "S4.2", "S"].map(|id| fault.is_named_by(id)), [true, true, false, false]);
    }
}
