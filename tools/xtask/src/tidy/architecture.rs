//! Rules about dependencies between the crates of the project.

use super::source::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Direct dependencies that core may have, each with its reason.
const CORE_MAY: &[&str] = &[
    "fleetnet-types", // the values that core and the runtime share
    "hashbrown",      // a hash map with a fast hash
    "ipnet",          // address ranges
    "sha2",           // object names end in a part of a hash
    "thiserror",      // error types
];

/// Packages that core must not depend on, directly or indirectly, by the beginning of their names.
const CORE_MUST_NOT: &[&str] = &[
    "k8s-openapi",
    "kube",
    "tokio",
    "hyper",
    "futures",
    "async",
    "chrono",
    "jiff",
    "time",
    "rand",
    "tracing",
    "fleetnet-agent",
    "fleetnet-api",
    "fleetnet-runtime",
];

/// Crates of this workspace on which a crate must not depend, directly or indirectly, each with the reason.
const APART: [(&str, &[&str], &str); 4] = [
    ("fleetnet", &["scenarios", "harness", "xtask"], "users install the CLI, and tests are no part of it"),
    ("xtask", &["fleetnet-runtime", "fleetnet-api", "harness"], "it must compile in seconds"),
    ("endpointslice", &["fleetnet-types", "fleetnet-runtime"], "others use the library without this workspace"),
    ("endpointslice-controller", FLEET, "it works in a cluster of no fleet"),
];

/// Crates of the fleet.
const FLEET: &[&str] =
    &["fleetnet-core", "fleetnet-api", "fleetnet-proto", "fleetnet-agent", "hub-agent", "member-agent"];

/// Crates whose code must do no I/O, read no clock, start no thread, and not depend on a random order.
const PURE: [&str; 2] = ["core", "types"];

/// Words that must not occur in the code of the crates in [`PURE`].
const IMPURE: &[&str] = &[
    "SystemTime",
    "Instant",
    "std::env",
    "std::fs",
    "std::io",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
    "std::process",
    "std::thread",
    "std::sync::atomic",
    "std::sync::mpsc",
    "LazyLock",
    "Mutex",
    "OnceLock",
    "RwLock",
    "async",
    "await",
    "println!",
    "eprintln!",
    "HashMap",
    "HashSet",
    "RandomState",
];

/// Words of [`IMPURE`] that a file may contain. The map of `reads.rs` gives numbers to values, and nothing depends on
/// the order of the numbers.
const ALLOWED: [(&str, &str); 1] = [("core/src/reads.rs", "HashMap")];

/// Crates that must not make requests. These crates describe requests as data, and the runtime makes the requests.
const AGENTS: &[&str] = &["agent", "hub-agent", "member-agent", "core", "endpointslice/controller"];

/// Texts in code that show that the code makes a request with the crates kube or http.
const REQUESTS: &[&str] = &[
    "Api<",
    "Api::",
    "kube::api",
    "kube::Api",
    "http::Request",
    "Request::builder",
    "WatchParams",
    "ListParams",
    "PatchParams",
    "PostParams",
    "DeleteParams",
    "request_text",
    "request_stream",
    "hyper::",
];

/// Module of an agent that serves requests, and makes none: connections of the slice stream.
const SERVES: &str = "hub-agent/src/stream/listener.rs";

/// Modules of the runtime that may make requests, by the beginning of their paths, each with its purpose.
const RUNTIME_MAY_REQUEST: &[&str] = &[
    "runtime/src/io/client",       // the connections of all requests
    "runtime/src/io/events",       // writes of Events
    "runtime/src/io/watch",        // lists and watches
    "runtime/src/io/writer",       // all other writes
    "runtime/src/process/lease",   // writes of Leases
    "runtime/src/process/token",   // requests tokens
    "runtime/src/process/reviews", // reviews of clients by the API server
    "runtime/src/process/admin",   // serves metrics and probes, makes no requests
];

/// Name of the API group, in two parts so that this file passes the check for that name.
const GROUP: (&str, &str) = ("networking.fleet", ".azure.com");

/// Folders and files whose code may contain the name of the API group: `api`, the code of tests, and texts that show
/// users the names of annotations.
const NAMES_MAY_BE_IN: [&str; 6] = [
    "api/",
    "testing/harness/",
    "testing/scenarios/",
    "core/src/annotations.rs",
    "cli/diagnosis/src/codes/",
    "cli/diagnosis/src/migrate/to_",
];

/// Prefix of the names of Leases, both of the Go agents and of fleetnet. These names contain the name of the API group,
/// and the check allows them outside of `api`.
const LEASE_PREFIX: &str = "2bf2b407.";

pub(super) fn impure_dependencies(tree: &Tree) -> Vec<String> {
    let Some(manifest) = tree.file("core/Cargo.toml") else {
        return vec!["core/Cargo.toml is not there".to_owned()];
    };
    let Some(lock) = tree.file("Cargo.lock") else {
        return vec!["Cargo.lock is not there".to_owned()];
    };
    let direct = dependencies(&manifest.text);
    let mut places: Vec<String> = direct
        .iter()
        .filter(|name| !CORE_MAY.contains(&name.as_str()))
        .map(|name| format!("core/Cargo.toml: {name} is not on the short list of what core may depend on"))
        .collect();
    let below = closure(&packages(&lock.text), direct);
    let impure = below.iter().filter(|name| CORE_MUST_NOT.iter().any(|banned| name.starts_with(banned)));
    places.extend(impure.map(|name| format!("core/Cargo.toml: {name} is below core")));
    places
}

/// Returns the crates that depend on a crate that they must not depend on ([`APART`]). Optional dependencies do not
/// count.
pub(super) fn crates_not_apart(tree: &Tree) -> Vec<String> {
    let manifests = tree.files().filter(|file| file.path.ends_with("/Cargo.toml"));
    let package = |file: &File| {
        let name = file.text.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').to_owned();
        Some((name, required(&file.text)))
    };
    let packages: BTreeMap<_, _> = manifests.filter_map(package).collect();
    let mut places = Vec::new();
    for (name, others, reason) in APART {
        let below = closure(&packages, packages.get(name).cloned().unwrap_or_default());
        let wrong = others.iter().filter(|other| below.contains(**other));
        places.extend(wrong.map(|other| format!("{name} depends on {other}, but {reason}")));
    }
    places
}

/// Returns the packages in the section `[dependencies]` of a manifest that are not optional.
fn required(manifest: &str) -> BTreeSet<String> {
    let optional = |name: &String| {
        let line = |line: &&str| line.split(['.', '=', ' ']).next() == Some(name) && line.contains("optional = true");
        manifest.lines().any(|it| line(&it))
    };
    dependencies(manifest).into_iter().filter(|name| !optional(name)).collect()
}

pub(super) fn impure_core(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in PURE.iter().flat_map(|pure| tree.sources(pure)) {
        let words = IMPURE.iter().filter(|word| !ALLOWED.contains(&(&*file.path, **word)));
        places.extend(words.flat_map(|word| file.places(&file.code, word)));
    }
    places
}

/// Returns the functions with a parameter of type bool in the crates core and types. At a call of such a function, a
/// reader cannot see what `true` means.
pub(super) fn bool_parameters(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in PURE.iter().flat_map(|pure| tree.sources(pure)) {
        let mut found = BoolParameters::default();
        if let Ok(parsed) = syn::parse_file(&file.text) {
            found.visit_file(&parsed);
        }
        places.extend(found.functions.iter().map(|(line, name)| format!("{}:{line}: {name}", file.path)));
    }
    places
}

/// Functions with a parameter of type `bool`, each with its line. Functions of test modules do not count.
#[derive(Default)]
struct BoolParameters {
    functions: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for BoolParameters {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let is_bool = |argument: &syn::FnArg| {
            matches!(argument, syn::FnArg::Typed(typed)
                if matches!(&*typed.ty, syn::Type::Path(path) if path.path.is_ident("bool")))
        };
        if signature.inputs.iter().any(is_bool) {
            self.functions.push((signature.ident.span().start().line, signature.ident.to_string()));
        }
    }
}

pub(super) fn requests_in_agents(tree: &Tree) -> Vec<String> {
    AGENTS.iter().flat_map(|agent| tree.sources(agent)).filter(|file| file.path != SERVES).flat_map(requests).collect()
}

pub(super) fn requests_in_runtime(tree: &Tree) -> Vec<String> {
    let may = |file: &&File| RUNTIME_MAY_REQUEST.iter().any(|module| file.path.starts_with(module));
    tree.sources("runtime").filter(|file| !may(file)).flat_map(requests).collect()
}

fn requests(file: &File) -> Vec<String> {
    REQUESTS.iter().flat_map(|word| file.places(&file.code, word)).collect()
}

pub(super) fn names_outside_api(tree: &Tree) -> Vec<String> {
    let group = format!("{}{}", GROUP.0, GROUP.1);
    let mut places = Vec::new();
    for file in tree.rust().filter(|file| !NAMES_MAY_BE_IN.iter().any(|folder| file.path.starts_with(folder))) {
        for (number, line) in file.production_lines(&file.uncommented) {
            let lease = |at: usize| {
                let word = line[..at].rfind(|letter: char| !letter.is_alphanumeric() && letter != '.');
                line[word.map_or(0, |at| at + 1)..at].starts_with(LEASE_PREFIX)
            };
            if line.match_indices(&group).any(|(at, _)| !lease(at)) {
                places.push(format!("{}:{number}", file.path));
            }
        }
    }
    places
}

/// Returns the packages in the section `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let section = manifest.split("\n[").find_map(|section| section.strip_prefix("dependencies]\n"));
    let lines = section.unwrap_or_default().lines().filter(|line| !line.trim_start().starts_with('#'));
    lines
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the dependencies of each package in Cargo.lock. Versions of one package are merged.
fn packages(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in lock.split("[[package]]").skip(1) {
        let quoted = |line: &str| line.split('"').nth(1).and_then(|name| name.split(' ').next()).map(str::to_owned);
        let mut lines = section.lines();
        let name = lines.by_ref().find(|line| line.starts_with("name = ")).and_then(quoted);
        let below = lines.skip_while(|line| !line.starts_with("dependencies = [")).skip(1).filter_map(quoted);
        packages.entry(name.unwrap_or_default()).or_default().extend(below);
    }
    packages
}

fn closure(packages: &BTreeMap<String, BTreeSet<String>>, direct: BTreeSet<String>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut left: Vec<String> = direct.into_iter().collect();
    while let Some(name) = left.pop() {
        left.extend(packages.get(&name).into_iter().flatten().filter(|below| !all.contains(*below)).cloned());
        all.insert(name);
    }
    all
}
