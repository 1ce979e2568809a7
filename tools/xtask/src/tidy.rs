//! Command `cargo xtask tidy`: rules of this project that neither the compiler nor clippy checks. `cargo test` checks
//! them too.

mod architecture;
mod behaviour;
mod citations;
mod commits;
mod depth;
mod docs;
mod layout;
mod library;
mod limits;
mod metrics;
mod modules;
mod names;
mod reasons;
mod source;
mod supply;

use anyhow::bail;
use programs::root;
use source::Tree;
pub use source::texts;

/// Rule of the project. `asks` describes the requirement, and `broken` returns the places that break the rule.
struct Rule {
    asks: &'static str,
    broken: fn(&Tree) -> Vec<String>,
}

const RULES: &[Rule] = &[
    Rule { asks: "every module begins with a //! line", broken: layout::modules_without_a_first_line },
    Rule { asks: "every file of Rust is a module of its crate", broken: layout::orphans },
    Rule { asks: "a file is one idea: at most 500 lines without its tests", broken: layout::long_files },
    Rule { asks: "a function is one level of abstraction: at most 70 lines", broken: layout::long_functions },
    Rule {
        asks: "a function of core has at most 40 lines of code and 3 nested blocks, tests apart",
        broken: layout::large_functions_of_core,
    },
    Rule { asks: "no spaces at the end of a line, and a line end at the end of a file", broken: layout::loose_ends },
    Rule { asks: "comments are at most 120 columns wide", broken: layout::wide_comments },
    Rule {
        asks: "the subject of a commit has at most 72 characters, and begins with a capital letter",
        broken: commits::subjects,
    },
    Rule {
        asks: "nothing refers to one machine or to what is outside of the repository",
        broken: layout::machine_paths,
    },
    Rule { asks: "core has no dependency on Kubernetes, tokio or a clock", broken: architecture::impure_dependencies },
    Rule {
        asks: "crates that must stay apart do: the CLI from tests, xtask from agents, slices from the fleet",
        broken: architecture::crates_not_apart,
    },
    Rule {
        asks: "the fleet uses only pure rules of the EndpointSlice library",
        broken: library::parts_that_others_may_not_use,
    },
    Rule {
        asks: "in the fleet, only the start of the EndpointSlice controller names it",
        broken: library::uses_of_the_controller,
    },
    Rule { asks: "core has no clock, input, output, thread or random order", broken: architecture::impure_core },
    Rule { asks: "no file uses itself through others of its crate", broken: modules::circles },
    Rule { asks: "no function of core takes a bool", broken: architecture::bool_parameters },
    Rule { asks: "in the agents only the runtime writes and watches", broken: architecture::requests_in_agents },
    Rule { asks: "in the runtime each kind of request has its one module", broken: architecture::requests_in_runtime },
    Rule { asks: "only api names what is written on objects of our group", broken: architecture::names_outside_api },
    Rule {
        asks: "every crate has a version and is from crates.io, and deny.toml does not deny it",
        broken: supply::crates_that_are_denied,
    },
    Rule { asks: "deny.toml allows the license of every crate", broken: supply::licenses_that_are_not_allowed },
    Rule {
        asks: "messages and docs have the full names of our annotations and labels",
        broken: names::short_names_of_annotations,
    },
    Rule { asks: "messages name annotations and labels that are there", broken: names::names_that_are_not_there },
    Rule { asks: "every queue has a limit, named in its crate's limits.rs", broken: limits::queues_without_limit },
    Rule {
        asks: "in the agents every limit is in its crate's limits.rs, and other numbers say above why they are none",
        broken: limits::limits_elsewhere,
    },
    Rule {
        asks: "each metric is defined in the metrics.rs of the crate that exports it",
        broken: metrics::metrics_elsewhere,
    },
    Rule { asks: "every limit has a doc comment with its reason", broken: limits::limits_without_reason },
    Rule {
        asks: "each rule of docs/contributors/behaviour.md names tests that are there",
        broken: behaviour::rules_without_tests,
    },
    Rule { asks: "each scenario runs on both backends", broken: behaviour::scenarios_on_one_backend },
    Rule { asks: "each test that the docs name is one", broken: docs::tests_that_are_not_there },
    Rule {
        asks: "the info string of each block of commands in the docs names the test that runs it, or says why none does",
        broken: docs::commands_that_nothing_runs,
    },
    Rule {
        asks: "each file that a step of CONTRIBUTING.md names contains what the step says",
        broken: docs::steps_that_are_not_there,
    },
    Rule { asks: "each link in the docs opens a file and a heading", broken: citations::broken_links },
    Rule { asks: "each path in docs and comments names a file or folder", broken: citations::missing_paths },
    Rule {
        asks: "docs and comments cite no document outside of the repository",
        broken: citations::citations_of_other_documents,
    },
    Rule {
        asks: "each bug of the Go agents has a row in docs/contributors/behaviour.md",
        broken: citations::unknown_bugs,
    },
    Rule {
        asks: "docs/reference/events.md explains each reason that users are told",
        broken: reasons::reasons_that_are_not_explained,
    },
];

/// Checks all rules and prints each place that breaks a rule.
pub(crate) fn run() -> anyhow::Result<()> {
    let tree = Tree::read(&root())?;
    let mut count = 0;
    for rule in RULES {
        let places = (rule.broken)(&tree);
        if !places.is_empty() {
            eprintln!("{}:", rule.asks);
        }
        for place in &places {
            eprintln!("    {place}");
        }
        count += places.len();
    }
    if count > 0 {
        bail!("{count} places are untidy; they are listed above");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
