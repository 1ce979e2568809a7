//! Rule about the files of a crate: none uses itself through others. So a reader can read a file without those that
//! use it.
//!
//! File A uses file B if the code of A, tests left out, names an item of B, by a path or after a `use`. A `use` whose
//! name the code does not have only exports the name again: who takes it from there uses the file of the item. A file
//! and the files of the modules inside it count apart. Declarations of modules and calls of methods do not count.

use super::source::{File, Tree};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::UseTree;

/// Largest number of `use` items that a name is followed through.
const MOST_EXPORTS: usize = 16;

/// Module of a crate, and the names that its code has. Its path begins at the root of the crate, which is empty.
#[derive(Default)]
struct Module {
    /// Path of the file.
    file: String,
    children: BTreeSet<String>,
    /// Names of `use` items, and the paths that they lead to.
    used: BTreeMap<String, Vec<String>>,
    /// Paths in the code, and those of `use` items without a name. The path of a glob ends with `*`.
    paths: Vec<Vec<String>>,
    /// Words of the code outside of `use` items.
    words: BTreeSet<String>,
}

type Modules = BTreeMap<Vec<String>, Module>;
/// Files that each file uses, with the names of the items.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Returns the circles of files of each crate.
pub(super) fn circles(tree: &Tree) -> Vec<String> {
    let crates = tree.files().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    crates.flat_map(|folder| circles_of(&uses(&modules(tree, folder)))).collect()
}

/// Reads the modules of the crate in `folder`.
fn modules(tree: &Tree, folder: &str) -> Modules {
    let mut modules = Modules::new();
    let is_library = tree.file(&format!("{folder}/src/lib.rs")).is_some();
    for file in tree.sources(folder) {
        let path = file.path[folder.len() + "/src/".len()..].trim_end_matches(".rs");
        let is_root = path == "lib" || path == "main" && !is_library;
        let path = if is_root { Vec::new() } else { path.split('/').map(str::to_owned).collect() };
        read(file, path, &mut modules);
    }
    modules
}

fn read(file: &File, path: Vec<String>, modules: &mut Modules) {
    let lines: Vec<&str> = file.production_lines(&file.uncommented).map(|(_, line)| line).collect();
    let Ok(code) = lines.join("\n").parse::<TokenStream>() else { return };
    modules.insert(path.clone(), Module { file: file.path.clone(), ..Module::default() });
    take(code, &path, modules);
}

/// Takes in the paths, the `use` items and the modules of the code of the module at `path`.
fn take(code: TokenStream, path: &[String], modules: &mut Modules) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let begin = at;
        at += 1;
        if let TokenTree::Group(group) = &tokens[begin] {
            let is_visibility = begin > 0 && tokens[begin - 1].to_string() == "pub";
            if !is_visibility {
                take(group.stream(), path, modules);
            }
            continue;
        }
        let TokenTree::Ident(word) = &tokens[begin] else { continue };
        if word == "use" {
            let end = at + tokens[at..].iter().position(|token| token.to_string() == ";").unwrap_or(0);
            // In a type, `use<…>` is no item.
            if let Ok(tree) = syn::parse2(tokens[at..end].iter().cloned().collect()) {
                take_use(&tree, &mut Vec::new(), modules.entry(path.to_vec()).or_default());
                at = end;
            }
        } else if let (true, Some(TokenTree::Ident(name))) = (word == "mod", tokens.get(at)) {
            modules.entry(path.to_vec()).or_default().children.insert(name.to_string());
            at += 1;
            if let Some(TokenTree::Group(group)) = tokens.get(at).filter(|it| is_braced(it)) {
                let inner: Vec<String> = path.iter().cloned().chain([name.to_string()]).collect();
                let file = modules[path].file.clone();
                modules.insert(inner.clone(), Module { file, ..Module::default() });
                take(group.stream(), &inner, modules);
                at += 1;
            }
        } else {
            let mut words = vec![word.to_string()];
            while let [TokenTree::Punct(one), TokenTree::Punct(other), TokenTree::Ident(next), ..] = &tokens[at..]
                && one.as_char() == ':'
                && other.as_char() == ':'
            {
                words.push(next.to_string());
                at += 3;
            }
            let module = modules.entry(path.to_vec()).or_default();
            module.words.insert(word.to_string());
            if words.len() > 1 {
                module.paths.push(words);
            }
        }
    }
}

fn is_braced(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Takes in the paths of a `use` item. `before` is the beginning of the path.
fn take_use(tree: &UseTree, before: &mut Vec<String>, module: &mut Module) {
    let with = |last: String| before.iter().cloned().chain([last]).collect::<Vec<_>>();
    let (name, path) = match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            take_use(&path.tree, before, module);
            before.pop();
            return;
        }
        UseTree::Group(group) => return group.items.iter().for_each(|item| take_use(item, before, module)),
        UseTree::Glob(_) => return module.paths.push(with("*".to_owned())),
        UseTree::Name(name) if name.ident == "self" => (before.last().cloned().unwrap_or_default(), before.clone()),
        UseTree::Name(name) => (name.ident.to_string(), with(name.ident.to_string())),
        UseTree::Rename(name) if name.rename == "_" => return module.paths.push(with(name.ident.to_string())),
        UseTree::Rename(name) => (name.rename.to_string(), with(name.ident.to_string())),
    };
    // A path such as `name` alone would lead to itself.
    if path.len() > 1 {
        module.used.insert(name, path);
    }
}

/// Returns the files that each file uses.
fn uses(modules: &Modules) -> Uses {
    let mut uses = Uses::new();
    for (at, module) in modules {
        let named = module.used.iter().filter(|(name, _)| module.words.contains(*name)).map(|(_, path)| path);
        for path in module.paths.iter().chain(named) {
            if let Some((file, name)) = resolve(modules, at, path, MOST_EXPORTS).filter(|it| it.0 != module.file) {
                uses.entry(module.file.clone()).or_default().entry(file).or_default().insert(name);
            }
        }
    }
    uses
}

/// Returns the file and the name of the item that a path in the module `at` leads to; `None` if the path leads to a
/// module or to another crate.
fn resolve(modules: &Modules, at: &[String], path: &[String], exports: usize) -> Option<(String, String)> {
    let mut at = at.to_vec();
    let mut rest = path;
    let mut is_inside = false;
    loop {
        let module = modules.get(&at)?;
        let (word, more) = rest.split_first()?;
        match word.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            word if module.children.contains(word) => at.push(word.to_owned()),
            name => match module.used.get(name) {
                Some(used) if exports > 0 && used[0] != name => {
                    let whole: Vec<String> = used.iter().chain(more).cloned().collect();
                    return resolve(modules, &at, &whole, exports - 1);
                }
                _ => return is_inside.then(|| (module.file.clone(), name.to_owned())),
            },
        }
        (rest, is_inside) = (more, true);
    }
}

/// Returns the groups of files that use one another, each with the uses inside the group.
fn circles_of(uses: &Uses) -> Vec<String> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (&**file, reached(uses, file))).collect();
    let are_in_one = |one: &str, other: &str| {
        let reaches = |from, to| reached.get(from).is_some_and(|files| files.contains(to));
        reaches(one, other) && reaches(other, one)
    };
    let group = |file: &&str| uses.keys().map(|it| &**it).filter(|it| are_in_one(file, it)).collect::<Vec<&str>>();
    let groups: BTreeSet<Vec<&str>> = reached.keys().map(group).filter(|group| !group.is_empty()).collect();
    let line = |group: Vec<&str>| {
        let inside = group.iter().flat_map(|file| uses[*file].iter().map(move |(used, names)| (file, used, names)));
        let inside = inside.filter(|(_, used, _)| group.contains(&used.as_str()));
        let inside = inside.map(|(file, used, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("\n        {file} uses {used} ({})", names.join(", "))
        });
        format!("{} files: {}", group.len(), inside.collect::<String>())
    };
    groups.into_iter().map(line).collect()
}

/// Returns the files that `file` uses, and those that they use.
fn reached<'a>(uses: &'a Uses, file: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        let next = uses.get(file).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        open.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| (format!("a/src/{path}.rs"), (*text).to_owned()));
        let manifest = ("a/Cargo.toml".to_owned(), String::new());
        circles(&Tree::of(sources.chain([manifest]).collect()))
    }

    fn circle(uses: &[(&str, &str, &str)]) -> Vec<String> {
        let files: BTreeSet<&str> = uses.iter().map(|(file, _, _)| *file).collect();
        let uses =
            uses.iter().map(|(file, used, names)| format!("\n        a/src/{file}.rs uses a/src/{used}.rs ({names})"));
        vec![format!("{} files: {}", files.len(), uses.collect::<String>())]
    }

    const LIB: (&str, &str) = ("lib", "mod hub; mod rights; pub use hub::Hub;");

    #[test]
    fn a_file_and_a_file_inside_its_module_that_use_each_other_are_a_circle() {
        let hub = ("hub", "mod plan; pub struct Hub; fn run() { plan::of(&Hub) }");
        let plan = ("hub/plan", "use super::Hub; pub(super) fn of(_: &Hub) {}");
        let both = circle(&[("hub", "hub/plan", "of"), ("hub/plan", "hub", "Hub")]);
        assert_eq!(found(&[LIB, hub, plan, ("rights", "")]), both);
        let without = ("hub", "mod plan; pub struct Hub;");
        assert_eq!(found(&[LIB, without, plan, ("rights", "")]), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_a_file_only_exports_again_leads_to_the_file_of_the_item() {
        let hub = ("hub", "mod key; mod plan; pub use key::Key; pub use plan::Plan; pub struct Hub;");
        let key = ("hub/key", "pub struct Key(crate::rights::Rights);");
        let plan = ("hub/plan", "use super::{Hub, Key}; pub struct Plan(Hub, Key);");
        let rights = ("rights", "pub struct Rights;");
        assert_eq!(found(&[LIB, hub, key, plan, rights]), Vec::<String>::new());
        let rights = ("rights", "use crate::hub as all; pub struct Rights(Box<all::Key>);");
        assert_eq!(
            found(&[LIB, hub, key, plan, rights]),
            circle(&[("hub/key", "rights", "Rights"), ("rights", "hub/key", "Key")])
        );
    }

    #[test]
    fn paths_in_macros_globs_and_nested_modules_count_and_tests_do_not() {
        let rights = ("rights", "pub mod named { pub const NAME: &str = \"\"; } use super::hub::*;");
        let hub = ("hub", "fn run() { assert!(crate::rights::named::NAME.is_empty()); }");
        let both = circle(&[("hub", "rights", "NAME"), ("rights", "hub", "*")]);
        assert_eq!(found(&[LIB, hub, rights]), both);
        let tests =
            ("hub", "#[cfg(test)]\nmod tests {\n    use crate::rights::named::NAME;\n    fn run() { NAME; }\n}\n");
        assert_eq!(found(&[LIB, tests, rights]), Vec::<String>::new());
        assert_eq!(
            found(&[LIB, ("hub", "// See crate::rights::named::NAME.\nuse std::fmt;"), rights]),
            Vec::<String>::new()
        );
    }
}
