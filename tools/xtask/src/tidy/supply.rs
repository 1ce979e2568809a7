//! Rules about the crates that come into the build, as `deny.toml` says: their names, their sources and their licenses.
//! They need no network and no further tool. Known vulnerabilities need both: `cargo deny check advisories`.

use super::source::Tree;
use programs::cargo;
use serde_json::Value;
use std::collections::BTreeSet;

/// File with the rules, in the form of cargo-deny.
const DENY: &str = "deny.toml";

/// Source of all crates that are not in the repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Returns the crates in Cargo.lock that `deny.toml` denies, or that come from elsewhere than crates.io, and the
/// dependencies without a version.
pub(super) fn crates_that_are_denied(tree: &Tree) -> Vec<String> {
    let (Some(deny), Some(lock)) = (tree.file(DENY), tree.file("Cargo.lock")) else {
        return vec![format!("{DENY} or Cargo.lock is not there")];
    };
    let denied: BTreeSet<&str> = array(&deny.text, "bans", "deny").filter_map(|entry| value(entry, "crate")).collect();
    if denied.is_empty() {
        return vec![format!("{DENY} denies no crate")];
    }
    let mut places = Vec::new();
    for package in lock.text.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| value(line, "name")).unwrap_or_default();
        if denied.contains(name) {
            places.push(format!("Cargo.lock: {name} is denied, and {DENY} says why"));
        }
        let source = package.lines().find_map(|line| value(line, "source"));
        if let Some(source) = source.filter(|source| *source != REGISTRY) {
            places.push(format!("Cargo.lock: {name} is from {source}, and not from crates.io"));
        }
    }
    let manifests = tree.files().filter(|file| file.path.ends_with("Cargo.toml"));
    let wild = manifests.filter(|file| file.text.lines().any(|line| line.contains("= \"*\"")));
    places.extend(wild.map(|file| format!("{}: a dependency has no version", file.path)));
    places
}

/// Returns the crates whose license `deny.toml` does not allow.
pub(super) fn licenses_that_are_not_allowed(tree: &Tree) -> Vec<String> {
    let Some(deny) = tree.file(DENY) else { return vec![format!("{DENY} is not there")] };
    let allowed: BTreeSet<&str> = array(&deny.text, "licenses", "allow").filter_map(quoted).collect();
    // The crates of this machine, because others may not be downloaded.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--offline", "--locked", "--format-version=1", "--filter-platform", &platform];
    let metadata = match cargo::command(&arguments).output() {
        Ok(output) if output.status.success() => serde_json::from_slice(&output.stdout).unwrap_or_default(),
        Ok(output) => return vec![format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr))],
        Err(error) => return vec![format!("cannot run cargo metadata: {error}")],
    };
    licenses(&metadata, &allowed)
}

/// Returns the packages of `cargo metadata` whose license is not allowed.
pub(super) fn licenses(metadata: &Value, allowed: &BTreeSet<&str>) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    if packages.is_empty() {
        return vec!["cargo metadata names no package".to_owned()];
    }
    let refused = packages.iter().filter_map(|package| {
        let license = package["license"].as_str().unwrap_or_default();
        let name = package["name"].as_str().unwrap_or_default();
        (!is_allowed(license, allowed))
            .then(|| format!("{name} has the license {license:?}, which {DENY} does not allow"))
    });
    refused.collect()
}

/// True if a license expression of SPDX can be met with these licenses. Older crates write `/` for `OR`.
fn is_allowed(license: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = license.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let is_met = any_of(&mut words, allowed);
    is_met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut is_met = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        is_met |= all_of(words, allowed);
    }
    is_met
}

fn all_of(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut is_met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        is_met &= one(words, allowed);
    }
    is_met
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let is_met = any_of(words, allowed);
        let is_closed = words.next() == Some(")");
        return is_met && is_closed;
    }
    match words.next_if_eq(&"WITH") {
        Some(_) => allowed.contains(format!("{word} WITH {}", words.next().unwrap_or_default()).as_str()),
        None => allowed.contains(word),
    }
}

/// Returns the lines of an array in a section of a TOML file.
fn array<'a>(text: &'a str, section: &str, key: &str) -> impl Iterator<Item = &'a str> {
    let (header, begin) = (format!("[{section}]"), format!("{key} = ["));
    let lines = text.lines().skip_while(move |line| *line != header).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).skip_while(move |line| *line != begin);
    lines.skip(1).take_while(|line| *line != "]")
}

/// Returns the text of a key in a line such as `name = "kube"` or `{ crate = "kube", … }`.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (before, after) = line.split_once(&format!("{key} = "))?;
    before.trim_matches([' ', '{']).is_empty().then(|| quoted(after)).flatten()
}

/// Returns the first text in quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Tree;
    use serde_json::json;

    const RULES: &str = "[licenses]\nallow = [\n    \"MIT\",\n    \"Apache-2.0\",\n]\n\n\
                         [bans]\ndeny = [\n    { crate = \"openssl-sys\", reason = \"crate = no\" },\n]\n";

    #[test]
    fn a_crate_that_is_denied_or_from_elsewhere_is_found() {
        let package = |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\nsource = \"{source}\"\n\n");
        let own = "[[package]]\nname = \"own\"\ndependencies = [\n \"openssl-sys\",\n]\n\n";
        let found = |packages: &[String], manifest: &str| {
            let files = [(DENY, RULES), ("Cargo.lock", &packages.concat()), ("a/Cargo.toml", manifest)];
            crates_that_are_denied(&Tree::of(files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()))
        };
        let (fine, none) = (package("kube", REGISTRY), [""; 0]);
        assert_eq!(found(&[own.to_owned(), fine.clone()], "a = \"1\"\n"), none);
        let denied = "Cargo.lock: openssl-sys is denied, and deny.toml says why";
        assert_eq!(found(&[fine.clone(), package("openssl-sys", REGISTRY)], ""), [denied]);
        let git = "Cargo.lock: x is from git+https://example.com, and not from crates.io";
        assert_eq!(found(&[package("x", "git+https://example.com")], ""), [git]);
        assert_eq!(found(&[fine], "a = \"*\"\n"), ["a/Cargo.toml: a dependency has no version"]);
    }

    #[test]
    fn a_license_that_is_not_allowed_is_found_in_any_expression() {
        let allowed: BTreeSet<&str> = array(RULES, "licenses", "allow").filter_map(quoted).collect();
        assert_eq!(allowed, BTreeSet::from(["MIT", "Apache-2.0"]));
        for (license, is_fine) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0/MIT", true),
            ("(MIT OR GPL-3.0) AND Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("(GPL-2.0 OR GPL-3.0) OR MIT", true),
            ("MIT OR GPL-3.0 AND Apache-2.0", true),
            ("GPL-3.0 OR MIT AND GPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("(MIT", false),
            ("MIT MIT", false),
        ] {
            let metadata = json!({"packages": [{"name": "x", "license": license}]});
            assert_eq!(licenses(&metadata, &allowed).is_empty(), is_fine, "{license}");
        }
        assert!(!licenses(&json!({"packages": [{"name": "x", "license": null}]}), &allowed).is_empty());
        assert!(!licenses(&Value::Null, &allowed).is_empty());
    }
}
