//! List of the crates and npm packages in a program, in the format SPDX 2.3 (JSON).

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use programs::cargo;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of a crate.
type Crate = (String, String);

/// Returns the crates that a package's program contains: its dependencies for a target, without those of tests and
/// builds.
pub(super) fn dependencies(package: &str, target: &str) -> anyhow::Result<BTreeSet<Crate>> {
    let arguments = ["tree", "--package", package, "--target", target, "--edges", "normal", "--prefix", "none"];
    let output = cargo::command(&arguments).output().context("cannot call cargo tree")?;
    ensure!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout).context("cargo tree is not text")?.lines().filter_map(parse).collect())
}

/// Returns the crate of a line of `cargo tree`, such as `kube v5.0.0` or `api v0.1.0 (/path) (*)`.
fn parse(line: &str) -> Option<Crate> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

/// Package of npm in the page of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NpmPackage {
    name: String,
    version: String,
    license: String,
    /// In hexadecimal digits.
    sha512: String,
}

/// Returns the packages of a package-lock.json whose code is in the built page. The others are only for its build.
pub(super) fn npm_packages(lock: &str) -> anyhow::Result<Vec<NpmPackage>> {
    let lock: Value = serde_json::from_str(lock).context("package-lock.json is not JSON")?;
    let packages = lock["packages"].as_object().context("package-lock.json has no packages")?;
    let built_in = packages.iter().filter(|(path, package)| !path.is_empty() && package["dev"] != true);
    let package = |(path, package): (&String, &Value)| {
        let field = |name: &str| package[name].as_str().with_context(|| format!("{path} has no {name}"));
        let integrity = field("integrity")?;
        let sha512 = integrity.strip_prefix("sha512-").with_context(|| format!("{path}: {integrity} is no SHA-512"))?;
        let digest = STANDARD.decode(sha512).with_context(|| format!("{path}: {integrity} is not base64"))?;
        Ok(NpmPackage {
            name: path.rsplit_once("node_modules/").map_or(path.as_str(), |(_, name)| name).to_owned(),
            version: field("version")?.to_owned(),
            license: field("license")?.to_owned(),
            sha512: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    };
    built_in.map(package).collect()
}

/// Returns the document for a program. Checksums come from `lock`, the text of Cargo.lock. Crates of this project have
/// none.
pub(super) fn spdx(
    program: &str,
    lock: &str,
    crates: &BTreeSet<Crate>,
    npm: &[NpmPackage],
    seconds: u64,
) -> anyhow::Result<Value> {
    let created = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let created = created.context("SOURCE_DATE_EPOCH is beyond the calendar")?;
    let checksums = checksums(lock);
    let id = |(name, version): &Crate| format!("SPDXRef-{name}-{}", version.replace(['+', '_'], "-"));
    let packages = crates.iter().map(|of| {
        let (name, version) = of;
        let mut package = json!({
            "SPDXID": id(of),
            "name": name,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
        });
        if let Some(checksum) = checksums.get(of) {
            let purl = format!("pkg:cargo/{name}@{version}");
            package["downloadLocation"] = format!("https://crates.io/crates/{name}/{version}").into();
            package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
            package["externalRefs"] = external(&purl);
        }
        package
    });
    let own = crates.iter().find(|(name, _)| name == program);
    let own = own.with_context(|| format!("{program} is not in its own list of crates"))?;
    let parts = crates.iter().filter(|of| *of != own).map(id).chain(npm.iter().map(npm_id));
    let contains =
        parts.map(|of| json!({"spdxElementId": id(own), "relationshipType": "CONTAINS", "relatedSpdxElement": of}));
    let described = json!({
        "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": id(own),
    });
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{program}-{}", own.1),
        "documentNamespace": format!("https://spdx.org/spdxdocs/{program}-{}", own.1),
        "creationInfo": {"created": created.to_string(), "creators": ["Tool: fleetnet-xtask"]},
        "packages": packages.chain(npm.iter().map(npm_package)).collect::<Vec<_>>(),
        "relationships": std::iter::once(described).chain(contains).collect::<Vec<_>>(),
    }))
}

fn npm_id(package: &NpmPackage) -> String {
    format!("SPDXRef-npm-{}-{}", package.name.replace(['@', '/', '_'], "-"), package.version.replace('+', "-"))
}

fn npm_package(package: &NpmPackage) -> Value {
    let NpmPackage { name, version, license, sha512 } = package;
    json!({
        "SPDXID": npm_id(package),
        "name": name,
        "versionInfo": version,
        "downloadLocation": format!("https://www.npmjs.com/package/{name}/v/{version}"),
        "filesAnalyzed": false,
        "licenseDeclared": license,
        "checksums": [{"algorithm": "SHA512", "checksumValue": sha512}],
        "externalRefs": external(&format!("pkg:npm/{}@{version}", name.replace('@', "%40"))),
    })
}

/// Returns the reference to a package by its purl.
fn external(purl: &str) -> Value {
    json!([{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}])
}

/// Returns the checksum of each crate of a registry in Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let value = |section: &str, key: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches(" = ").trim_matches('"').to_owned())
    };
    let sections = lock.split("[[package]]").skip(1);
    sections
        .filter_map(|section| {
            Some(((value(section, "name")?, value(section, "version")?), value(section, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_is_a_crate() {
        let of = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(parse("kube v5.0.0"), of("kube", "5.0.0"));
        assert_eq!(parse("fleetnet-api v0.1.0 (/a/b) (*)"), of("fleetnet-api", "0.1.0"));
        assert_eq!(parse("derive v1.2.3+k (proc-macro)"), of("derive", "1.2.3+k"));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_document_lists_each_crate_with_its_checksum() {
        let lock = "[[package]]\nname = \"hub-agent\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"kube\"\n\
                    version = \"5.0.0\"\nsource = \"registry\"\nchecksum = \"abcd\"\ndependencies = [\n \"http\",\n]\n";
        let of = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let crates = BTreeSet::from([of("hub-agent", "0.1.0"), of("kube", "5.0.0")]);
        let document = spdx("hub-agent", lock, &crates, &[], 1_000_000_000).expect("a document");
        assert_eq!(document["creationInfo"]["created"], "2001-09-09T01:46:40Z");
        let [own, kube] = &document["packages"].as_array().expect("packages")[..] else { panic!("two") };
        assert_eq!((&own["name"], own.get("checksums")), (&json!("hub-agent"), None));
        assert_eq!(kube["checksums"][0]["checksumValue"], "abcd");
        assert_eq!(kube["externalRefs"][0]["referenceLocator"], "pkg:cargo/kube@5.0.0");
        let relations = document["relationships"].as_array().expect("relationships");
        let words: Vec<_> = relations.iter().map(|it| it["relationshipType"].as_str().expect("a word")).collect();
        assert_eq!(words, ["DESCRIBES", "CONTAINS"]);
        assert!(spdx("member-agent", lock, &crates, &[], 0).is_err(), "another program");
    }

    #[test]
    fn the_page_contains_packages_that_are_not_only_for_its_build() {
        let lock = r#"{"packages": {
            "": {"name": "page"},
            "node_modules/@types/node": {"version": "1.0.0", "dev": true},
            "node_modules/preact": {"version": "2.0.0", "integrity": "sha512-q80=", "license": "MIT"}
        }}"#;
        let npm = npm_packages(lock).expect("packages");
        let [name, version, license, sha512] = ["preact", "2.0.0", "MIT", "abcd"].map(str::to_owned);
        assert_eq!(npm, [NpmPackage { name, version, license, sha512 }]);
        let crates = BTreeSet::from([("fleetnet".to_owned(), "0.1.0".to_owned())]);
        let document = spdx("fleetnet", "", &crates, &npm, 0).expect("a document");
        let package = &document["packages"][1];
        assert_eq!((&package["licenseDeclared"], &package["versionInfo"]), (&json!("MIT"), &json!("2.0.0")));
        assert_eq!(package["externalRefs"][0]["referenceLocator"], "pkg:npm/preact@2.0.0");
        assert_eq!(package["checksums"][0]["checksumValue"], "abcd");
        assert_eq!(document["relationships"][1]["relatedSpdxElement"], package["SPDXID"]);
        assert!(npm_packages(r#"{"packages": {"node_modules/a": {"version": "1.0.0"}}}"#).is_err(), "no checksum");
    }

    #[test]
    fn the_license_of_each_package_in_the_page_is_in_the_page() {
        let read = |path: &str| std::fs::read_to_string(programs::root().join(path)).expect("a file");
        let page = read("cli/ui/dist/app.js");
        let npm = npm_packages(&read("cli/ui/package-lock.json")).expect("packages");
        assert!(!npm.is_empty());
        for NpmPackage { name, version, license, .. } in npm {
            assert_eq!(license, "MIT", "this test does not know the license of {name}");
            let notice = format!("/* contains {name} {version}.\n");
            let start = page.to_ascii_lowercase().find(&notice);
            let start = start.unwrap_or_else(|| panic!("{notice:?} is not in the page"));
            let (comment, _) = page[start..].split_once("*/").expect("the end of the comment");
            for part in [
                "\nCopyright (c) ",
                "\nPermission is hereby granted, free of charge, to any person obtaining a copy\n",
                "\nThe above copyright notice and this permission notice shall be included in all\n",
                "\nTHE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR\n",
            ] {
                assert!(comment.contains(part), "the license of {name} has no {part:?}: {comment}");
            }
        }
    }

    #[test]
    fn the_agents_contain_their_runtime_and_no_test_code() {
        let crates = dependencies("hub-agent", "x86_64-unknown-linux-gnu").expect("cargo tree");
        let has = |name: &str| crates.iter().any(|(other, _)| other == name);
        assert!(has("hub-agent") && has("fleetnet-runtime") && has("kube"), "{crates:?}");
        assert!(!has("proptest") && !has("harness") && !has("member-agent"), "{crates:?}");
    }
}
