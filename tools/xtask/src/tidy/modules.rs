//! Rule about the modules of core: none uses itself through others. So a reader can read a module without those that
//! use it.

use super::source::Tree;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item, UseTree};

const SOURCES: &str = "core/src/";

/// Modules by their paths, such as `hub::view`. The root of the crate is empty.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the circles of modules of core. A module and those below it count as one. A file that only names its modules
/// is a folder: these count apart.
pub(super) fn circles_of_core(tree: &Tree) -> Vec<String> {
    let files = tree.rust().filter_map(|file| Some((module(&file.path)?, syn::parse_file(&file.text).ok()?)));
    let files: BTreeMap<String, syn::File> = files.collect();
    let names: BTreeSet<&str> = files.keys().map(String::as_str).collect();
    let used = |module: &str, file: &syn::File| {
        let mut paths = Vec::new();
        for item in &file.items {
            if let Item::Use(item) = item
                && !item.attrs.iter().any(is_of_tests)
            {
                collect(&item.tree, &mut Vec::new(), &mut paths);
            }
        }
        let used = paths.iter().filter_map(|path| resolve(module, path, &names));
        used.filter(|used| used != module).collect::<BTreeSet<String>>()
    };
    let folders: BTreeSet<&str> = files.iter().filter(|(_, file)| is_folder(file)).map(|(name, _)| &**name).collect();
    let mut uses = Uses::new();
    for (name, file) in files.iter().filter(|(name, _)| !name.is_empty()) {
        let module = whole(name, &folders);
        let used = used(name, file).into_iter().map(|used| whole(&used, &folders)).filter(|used| *used != module);
        uses.entry(module.clone()).or_default().extend(used.collect::<Vec<_>>());
    }
    let circles: BTreeSet<Vec<String>> = uses.keys().filter_map(|module| circle(&uses, module)).collect();
    circles.into_iter().map(|circle| format!("{SOURCES}: {}", circle.join(" uses "))).collect()
}

/// Returns the module of a file of core; `None` for other files.
fn module(path: &str) -> Option<String> {
    let path = path.strip_prefix(SOURCES)?.strip_suffix(".rs")?;
    Some(if path == "lib" { String::new() } else { path.replace('/', "::") })
}

/// True if a file has no code but the names of modules.
fn is_folder(file: &syn::File) -> bool {
    file.items.iter().all(|item| matches!(item, Item::Mod(_) | Item::Use(_)))
}

/// Returns the module that a module counts as.
fn whole(name: &str, folders: &BTreeSet<&str>) -> String {
    let ends = name.match_indices("::").map(|(at, _)| &name[..at]).chain([name]);
    ends.into_iter().find(|module| !folders.contains(module)).unwrap_or(name).to_owned()
}

fn is_of_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// Appends all paths of a `use`.
fn collect(tree: &UseTree, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, paths);
            before.pop();
        }
        UseTree::Name(name) => paths.push(before.iter().cloned().chain([name.ident.to_string()]).collect()),
        UseTree::Rename(name) => paths.push(before.iter().cloned().chain([name.ident.to_string()]).collect()),
        UseTree::Glob(_) => paths.push(before.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, before, paths)),
    }
}

/// Returns the module that a path leads to; `None` if it is of another crate.
fn resolve(module: &str, path: &[String], names: &BTreeSet<&str>) -> Option<String> {
    let mut at: Vec<&str> = module.split("::").collect();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => (at, rest) = (Vec::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while let Some((word, more)) = rest.split_first().filter(|(word, _)| *word == "super") {
                let _ = word;
                at.pop();
                rest = more;
            }
        }
        _ => {}
    }
    let is_here = path[0] == "crate" || path[0] == "self" || path[0] == "super";
    let full: Vec<&str> = at.into_iter().chain(rest.iter().map(String::as_str)).collect();
    let found = (1..=full.len()).rev().map(|length| full[..length].join("::")).find(|name| names.contains(&**name))?;
    (is_here || found != module).then_some(found)
}

/// Returns a way from a module back to itself, beginning at the first module of the circle in alphabetical order.
fn circle(uses: &Uses, start: &str) -> Option<Vec<String>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in uses.get(module).into_iter().flatten() {
            if next == start {
                let mut way = vec![start.to_owned(), module.to_owned()];
                while let Some(before) = from.get(way.last().map_or("", String::as_str)) {
                    way.push((*before).to_owned());
                }
                way.truncate(way.iter().skip(1).position(|it| it == start).map_or(way.len(), |at| at + 2));
                way.reverse();
                return way.iter().all(|it| start <= it.as_str()).then_some(way);
            }
            if !from.contains_key(next.as_str()) {
                from.insert(next, module);
                open.push(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (format!("core/src/{path}.rs"), (*text).to_owned()));
        circles_of_core(&Tree::of(files.collect()))
    }

    #[test]
    fn a_circle_is_found_also_through_a_module_that_exports_the_names_of_others() {
        let facade = ("hub", "pub use planner::Planner; pub use view::Key; mod planner; mod rights; mod view;");
        let planner = ("hub/planner", "use super::rights; use crate::hub::view::View;");
        let view = ("hub/view", "use crate::index::Table; use std::fmt;");
        let index = ("index", "#[cfg(test)] use crate::hub::Planner; pub struct Table;");
        let direct = ("hub/rights", "use crate::hub::view::Key;");
        assert_eq!(found(&[facade, planner, view, index, direct]), Vec::<String>::new());
        let through = ("hub/rights", "use crate::hub::{Key as Name};");
        let circle = "core/src/: hub uses hub::planner uses hub::rights uses hub";
        assert_eq!(found(&[facade, planner, view, index, through]), [circle]);
        let back = ("hub/view", "use super::planner::*;");
        assert_eq!(found(&[facade, planner, back, index, direct]).len(), 1);
    }
}
