//! Rules about the EndpointSlice library and its controller: the parts that crates of the fleet may use.

use super::source::{File, Tree};
use proc_macro2::{TokenStream, TokenTree};

/// Folders of the crates of the fleet.
const CRATES: [&str; 8] = ["types", "core", "api", "proto", "runtime", "agent", "hub-agent", "member-agent"];

/// Parts of the library that each crate of the fleet may use: rules without state.
const RULES: [&str; 1] = ["hints"];

/// Parts of the library that the flags of the controller need.
const OF_FLAGS: [&str; 3] = ["Config", "MAX_ENDPOINTS_RANGE", "names"];

/// Files of the fleet that may name the controller: its flags, its start and the list of metrics.
const STARTS_CONTROLLER: [&str; 4] = [
    "member-agent/src/endpoint_flags.rs",
    "member-agent/src/lib.rs",
    "member-agent/src/metrics.rs",
    "member-agent/src/settings.rs",
];

/// Returns the uses of the library by crates of the fleet that are not on the list.
pub(super) fn parts_that_others_may_not_use(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in CRATES.iter().flat_map(|folder| tree.sources(folder)) {
        let may = |part: &str| RULES.contains(&part) || file.path == STARTS_CONTROLLER[0] && OF_FLAGS.contains(&part);
        let wrong = uses(file).into_iter().filter(|(_, part)| !may(part));
        places.extend(wrong.map(|(line, part)| format!("{}:{line}: endpointslice::{part}", file.path)));
    }
    places
}

/// Returns the files of the fleet that name the controller, and must not.
pub(super) fn uses_of_the_controller(tree: &Tree) -> Vec<String> {
    let files = CRATES.iter().flat_map(|folder| tree.sources(folder));
    let others = files.filter(|file| !STARTS_CONTROLLER.contains(&&*file.path));
    others.flat_map(|file| file.places(&file.code, "endpointslice_controller")).collect()
}

/// Returns the parts of the library that a file names, each with its line.
fn uses(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    find(file.text.parse().unwrap_or_default(), &mut found);
    found
}

/// Adds the parts of the library that these tokens name, also in arguments of macros.
fn find(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => find(group.stream(), found),
            TokenTree::Ident(name) if name == "endpointslice" && !continues_path(&tokens[..at]) => {
                let line = name.span().start().line;
                found.extend(parts(&tokens[at + 1..]).into_iter().map(|part| (line, part)));
            }
            _ => {}
        }
    }
}

/// True if the tokens end with a path to which the next name belongs, such as `crate::`.
fn continues_path(tokens: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(before), first, second] = tokens else { return false };
    let is_segment = before == "crate" || before == "self" || before == "super";
    (is_segment || syn::parse_str::<syn::Ident>(&before.to_string()).is_ok()) && is_colon(first) && is_colon(second)
}

/// Returns the parts that follow the name of the library: `a` of `::a::b`, and `a` and `d` of `::{a::{b, c}, d}`. The
/// library under another name is the part `self`.
fn parts(after: &[TokenTree]) -> Vec<String> {
    match after {
        [first, second, part, ..] if is_colon(first) && is_colon(second) => match part {
            TokenTree::Group(group) => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                let items = tokens.split(|token| is_punctuation(token, ','));
                items.filter_map(|item| item.first()).map(ToString::to_string).collect()
            }
            part => vec![part.to_string()],
        },
        [TokenTree::Ident(next), ..] if next == "as" => vec!["self".to_owned()],
        _ => Vec::new(),
    }
}

fn is_colon(token: &TokenTree) -> bool {
    is_punctuation(token, ':')
}

fn is_punctuation(token: &TokenTree, letter: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(vec![(path.to_owned(), format!("//! A.\n{text}\n"))])
    }

    #[test]
    fn the_fleet_may_use_hints_and_the_flags_of_the_controller_its_settings() {
        let found = |path: &str, text: &str| parts_that_others_may_not_use(&tree(path, text));
        let text = "use endpointslice::hints::Shares;\nuse endpointslice::{Config, names::CONTROLLER_NAME};";
        let wrong = ["Config", "names"].map(|part| format!("core/src/a.rs:3: endpointslice::{part}"));
        assert_eq!(found("core/src/a.rs", text), wrong);
        assert_eq!(found("member-agent/src/endpoint_flags.rs", text), [""; 0]);
        assert_eq!(found("endpointslice/controller/src/view.rs", text), [""; 0]);
        let other = "fn f() { endpointslice::plan(); other_endpointslice::plan(); crate::endpointslice::plan(); }";
        assert_eq!(found("hub-agent/src/a.rs", other), ["hub-agent/src/a.rs:2: endpointslice::plan"]);
        let nested = "use ::endpointslice::{hints::{Shares, plan}, cache::Cache};\nuse endpointslice as library;";
        let wrong =
            [(2, "cache"), (3, "self")].map(|(line, part)| format!("api/src/a.rs:{line}: endpointslice::{part}"));
        assert_eq!(found("api/src/a.rs", nested), wrong);
        let in_macro = "fn f() { assert!(endpointslice::plan().is_empty()); }";
        assert_eq!(found("api/src/a.rs", in_macro), ["api/src/a.rs:2: endpointslice::plan"]);
    }

    #[test]
    fn in_the_fleet_only_the_start_of_the_controller_names_it() {
        let found = |path: &str| uses_of_the_controller(&tree(path, "use endpointslice_controller::Settings;")).len();
        assert_eq!(["member-agent/src/lib.rs", "testing/sim/src/agent.rs"].map(found), [0, 0]);
        assert_eq!(["member-agent/src/logic.rs", "core/src/a.rs"].map(found), [1, 1]);
    }
}
