//! Page of the agents' flags, from their command lines.

use super::markdown::{code, codes, table, text};
use clap::{Arg, ArgAction, Args as _, Command, CommandFactory as _};
use fleetnet_agent::flags::CommonFlags;
use std::collections::BTreeSet;

const INTRODUCTION: &str = "\
Boolean flags take `true` and `false`; a boolean flag without a value is true. Durations are written as in Go: `90s`, `1m30s`. \
Flags may start with one dash or two. If a flag is given twice, the last value counts. Flags of klog are accepted and ignored.

`cargo run -p fleetnet -- sandbox --help` shows the flags of the sandbox, which [sandbox.md](../start/sandbox.md) explains.

";

pub(super) fn body() -> String {
    let common = CommonFlags::augment_args(Command::new("common"));
    let of_both: BTreeSet<String> = common.get_arguments().map(|flag| flag.get_id().to_string()).collect();
    let mut body = format!("{INTRODUCTION}## Both agents\n\n{}", rows(common.get_arguments()));
    for (agent, command) in
        [("hub-agent", hub_agent::Flags::command()), ("member-agent", member_agent::Flags::command())]
    {
        let own = command.get_arguments().filter(|flag| !of_both.contains(flag.get_id().as_str()));
        body.push_str(&format!("## {agent}\n\n{}", rows(own)));
    }
    body
}

fn rows<'a>(flags: impl Iterator<Item = &'a Arg>) -> String {
    table(&["flag", "default", "environment variable", "meaning"], flags.filter(is_flag).map(row))
}

/// True for flags other than `--help` and `--version`.
fn is_flag(flag: &&Arg) -> bool {
    matches!(flag.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue)
}

fn row(flag: &Arg) -> Vec<String> {
    let name = flag.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let value = flag.get_value_names().and_then(<[_]>::first).map(|value| format!(" {value}")).unwrap_or_default();
    let defaults = codes(flag.get_default_values().iter().map(|value| value.to_string_lossy()));
    let variable = flag.get_env().map(|variable| code(&variable.to_string_lossy())).unwrap_or_default();
    let help = flag.get_long_help().or(flag.get_help()).map(ToString::to_string).unwrap_or_default();
    vec![code(&format!("{name}{value}")), defaults, variable, format!("{}{}", text(&help), values(flag))]
}

/// Returns the values that the flag accepts, each with its meaning. Returns an empty text for flags that accept any
/// value.
fn values(flag: &Arg) -> String {
    let values: Vec<String> = flag
        .get_possible_values()
        .iter()
        .map(|value| {
            let help = value.get_help().map(|help| format!(": {}", text(&help.to_string()))).unwrap_or_default();
            format!("<br>{}{help}", code(value.get_name()))
        })
        .collect();
    values.concat()
}
