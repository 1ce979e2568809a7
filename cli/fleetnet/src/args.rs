//! Command line of `fleetnet`, and the checks of its options. These checks have no side effects.

use crate::cli::{
    check, completion, explain, gather, join, latency, leave, migrate, rotate, services, status, test, version,
};
use crate::limits::{CHANGES_MAX, MEMBERS_MAX, REAL_MEMBERS_MAX, REQUESTS_MAX};
use crate::ui;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use fleetnet_agent::flags::{USAGE_EXIT_CODE, exit_with_error, one_line};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Error of `--real` in a build without the feature `real`.
pub(crate) const NO_REAL: &str = "--real is not part of this build: use `cargo run --release -p fleetnet --features real \
                                  -- sandbox --real`";
/// Error of `--packets` in a build without the feature `real`.
pub(crate) const NO_PACKETS: &str = "--packets is not part of this build: use `cargo run --release -p fleetnet --features \
                                     real -- sandbox --packets`";

/// File name of the program as a plugin of kubectl. kubectl runs the plugin for the command `kubectl fleetnet`.
const PLUGIN: &str = "kubectl-fleetnet";

/// Multi-cluster Services for Kubernetes.
///
/// Exit codes: 0 healthy or done, 1 fault found or not done, 2 usage, 3 not everything could be read, 4 timeout of
/// --wait.
#[derive(Debug, Parser)]
#[command(
    name = "fleetnet",
    version,
    after_help = "Start with `fleetnet sandbox`, or with `fleetnet status` on a fleet. Each command \
                                                    has examples in its --help."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Commands of `fleetnet`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a whole fleet on this machine and show what happens in it.
    ///
    /// A hub and its members run in this process on in-memory API servers, with the real agents. Every member exports a
    /// Service and imports it from all members, itself included. Endpoints change all the time: each change costs one
    /// write for the export and two for each importer. Ctrl-C ends the sandbox, which removes everything that it
    /// created. Without --once, it prints the address of a page that shows the fleet in a browser. The environment
    /// variable RUST_LOG, such as RUST_LOG=info, shows the agents' logs on standard error.
    #[command(after_help = "Examples:\n  fleetnet sandbox --members 3\n  fleetnet sandbox --kubeconfigs clusters")]
    Sandbox(Options),

    /// Show the state of the members and of the hub agent.
    #[command(after_help = "Examples:\n  fleetnet status\n  fleetnet status -o wide\n  fleetnet status --wait=2m")]
    Status(Box<status::Options>),

    /// List the exported and imported Services of the fleet.
    #[command(after_help = "Examples:\n  fleetnet services\n  fleetnet services shop/web -o wide")]
    Services(Box<services::Options>),

    /// Find the first broken step on the way of a Service from each exporter to each importer.
    ///
    /// Each step has a fault code. A step that could not be read is unknown, never broken.
    #[command(
        after_help = "Examples:\n  fleetnet explain shop/web\n  fleetnet explain shop/web --from west --to east --all\n  fleetnet explain --explain-code FN203"
    )]
    Explain(Box<explain::Options>),

    /// Test what objects cannot show: connections to imported Services.
    #[command(
        after_help = "Examples:\n  fleetnet test connectivity shop/web\n  fleetnet test connectivity --from-here"
    )]
    Test(test::Options),

    /// Check the installation and the members.
    #[command(after_help = "Examples:\n  fleetnet check -o short\n  fleetnet check --pre --hub-context hub")]
    Check(Box<check::Options>),

    /// Show how long changes take from each member to each other member.
    ///
    /// Each value is the time from a change in the member of its row until the change is imported in the member of its
    /// column.
    #[command(after_help = "Examples:\n  fleetnet latency --watch\n  fleetnet latency --quantile 0.5,0.9,0.99")]
    Latency(Box<latency::Options>),

    /// Print or apply what a hub and a member need for the member to be part of the fleet.
    ///
    /// Without --apply, no request is sent: the output is manifests for the hub, and comments with values of the
    /// member's chart and the commands for the member's token.
    #[command(
        after_help = "Examples:\n  fleetnet join west\n  fleetnet join west --apply --hub-context hub --context west"
    )]
    Join(Box<join::Options>),

    /// Take a member out of the fleet.
    ///
    /// Deletes the ServiceExports and MultiClusterServices of the member, and removes the label fleetnet/import from
    /// its namespaces. Waits until the agents have removed everything that they made for them. Then removes the
    /// member's Secret and its namespace in the hub. A namespace with objects of others stays. --dry-run shows the
    /// objects. Without --yes, the command asks before it deletes them.
    #[command(
        after_help = "Examples:\n  fleetnet leave west --context west --dry-run\n  fleetnet leave west --force --yes"
    )]
    Leave(Box<leave::Options>),

    /// Revoke all tokens of a member for the hub, and give the member a new one.
    ///
    /// Deletes the ServiceAccount of the member in the hub and creates it again, so that nobody can use an old token.
    /// Then writes the Secret of the member with a new token.
    #[command(after_help = "Examples:\n  fleetnet rotate west --context west\n  fleetnet rotate west --hub-only")]
    Rotate(Box<rotate::Options>),

    /// Change between the Go agents of Azure/fleet-networking and fleetnet.
    #[command(
        after_help = "Examples:\n  fleetnet migrate check --to fleetnet\n  fleetnet migrate to-go west --dry-run"
    )]
    Migrate(Box<migrate::Options>),

    /// Write an archive with objects, Events, logs and metrics of fleetnet, for a maintainer. Secrets are never in it.
    #[command(after_help = "Examples:\n  fleetnet gather --since 1h --redact-addresses")]
    Gather(Box<gather::Options>),

    /// Print the completion script of a shell.
    #[command(after_help = "Examples:\n  fleetnet completion bash > /etc/bash_completion.d/fleetnet")]
    Completion(completion::Options),

    /// Show the fleet on a page for a browser, live.
    ///
    /// Prints the address of the page and serves it until Ctrl-C. The page only reads, with the rights of the
    /// kubeconfig, and loads nothing from elsewhere. Only users who know the address can open it.
    #[command(after_help = "Examples:\n  fleetnet ui\n  fleetnet ui --listen 127.0.0.1:8080 --interval 10s")]
    Ui(Box<ui::Options>),

    /// Show the versions of this program and of the agents.
    #[command(after_help = "Examples:\n  fleetnet version -o json")]
    Version(version::Options),
}

/// Options of the sandbox.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of members of the fleet [default: 2, with --packets 3]. The hub is not a member.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=i64::from(MEMBERS_MAX)))]
    pub(crate) members: Option<u16>,

    /// End after the scenario, or after --changes changes. The exit code is 0 if all imports are correct, else 1.
    /// With --packets, end after a rolling update. The exit code is 0 if no request was lost, else 1.
    #[arg(long)]
    pub(crate) once: bool,

    /// Number of changes that --once makes without a scenario. It ends at the first change that does not arrive.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, requires = "once", conflicts_with = "scenario", value_parser = clap::value_parser!(u32).range(1..=i64::from(CHANGES_MAX)))]
    pub(crate) changes: u32,

    /// Maximum number of endpoint changes in a second [default: 2, with --once 20].
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = rate)]
    pub(crate) changes_per_second: Option<f64>,

    /// Print each event as one JSON object on its own line. docs/reference/sandbox-json.md describes the objects.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a kubeconfig for every cluster into this folder, to use kubectl while the sandbox runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) kubeconfigs: Option<PathBuf>,

    /// Port of the hub. The members use the ports after it. Default: free ports. Needs --kubeconfigs.
    #[arg(long, value_name = "PORT", requires = "kubeconfigs", conflicts_with = "real", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Run on real control planes (etcd and kube-apiserver, built with Go the first time). Needs a build with
    /// --features real.
    #[arg(long)]
    pub(crate) real: bool,

    /// Run on real control planes with real traffic: pods, kube-proxy, and a client that sends requests all the time.
    ///
    /// The last member imports a Service of all others. Each second has a line with the requests, the lost ones, and
    /// the answers of each cluster. Needs root, nftables, iproute2 and util-linux, and a build with --features real.
    /// Everything is in namespaces of its own, which the kernel removes.
    #[arg(long, conflicts_with_all = ["real", "scenario", "api", "changes", "changes_per_second"])]
    pub(crate) packets: bool,

    /// Number of requests in a second, 500 at most. Needs --packets.
    #[arg(long, value_name = "N", default_value_t = 200, allow_negative_numbers = true, requires = "packets", value_parser = clap::value_parser!(u32).range(1..=i64::from(REQUESTS_MAX)))]
    pub(crate) requests_per_second: u32,

    /// Failure to simulate.
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) scenario: Option<Scenario>,

    /// API by which the members export and import.
    #[arg(long, value_name = "API", value_enum, default_value_t)]
    pub(crate) api: Api,
}

/// API by which the members of the sandbox export and import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// ServiceExport and MultiClusterService of networking.fleet.azure.com.
    #[default]
    Fleet,
    /// ServiceExport and ServiceImport of multicluster.x-k8s.io, the standard API.
    #[value(name = "multicluster")]
    Mcs,
}

impl Api {
    /// Returns the name of the API, as a user writes it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Mcs => "multicluster",
        }
    }
}

/// Failures that the sandbox can simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The hub is unreachable for a while: imports stay as they are, and missed changes arrive when it is back.
    HubDown,
    /// A member's agent is killed: the new agent waits until the Leases expire, and makes up for missed changes.
    AgentKilled,
    /// A member sends no heartbeats: its endpoints are used only if no other endpoint is ready, until it sends
    /// heartbeats again.
    MemberSilent,
    /// Two members export a Service with different ports: the first one wins, and the second one gets the condition
    /// Conflict until its ports are the same.
    Conflict,
    /// Many slices change many times at once: the last change of each arrives, and outdated changes are skipped.
    SliceStorm,
}

impl Scenario {
    /// Returns the name of the scenario, as a user writes it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HubDown => "hub-down",
            Self::AgentKilled => "agent-killed",
            Self::MemberSilent => "member-silent",
            Self::Conflict => "conflict",
            Self::SliceStorm => "slice-storm",
        }
    }

    /// Returns the smallest number of members that the scenario needs.
    fn members_min(self) -> u16 {
        match self {
            Self::Conflict | Self::AgentKilled | Self::MemberSilent => 2,
            Self::HubDown | Self::SliceStorm => 1,
        }
    }
}

impl Options {
    /// Returns the number of members of the fleet.
    pub(crate) fn members(&self) -> u16 {
        self.members.unwrap_or(if self.packets { 3 } else { 2 })
    }

    /// Checks combinations of options that clap cannot check. The error is one line.
    fn check(&self) -> Result<(), String> {
        self.check_servers()?;
        let members = self.members();
        if let Some(port) = self.port
            && port.checked_add(members).is_none()
        {
            return Err(format!("--port {port} leaves fewer than {members} ports above it for the members"));
        }
        if let Some(path) = &self.kubeconfigs {
            let shown = path.display().to_string();
            if path.to_str().is_none() || shown.contains(char::is_control) {
                return Err(format!(
                    "--kubeconfigs {}: the name must be UTF-8 without control characters",
                    shown.escape_debug()
                ));
            }
        }
        if self.once && self.scenario.is_some() && self.changes_per_second.is_some() {
            return Err("--changes-per-second has no effect with --once and --scenario: remove it".to_owned());
        }
        match self.scenario {
            Some(scenario) if members < scenario.members_min() => Err(format!(
                "--scenario {} needs at least {} members, not {members}",
                scenario.name(),
                scenario.members_min(),
            )),
            _ => Ok(()),
        }
    }

    /// Checks that this build has the servers, and that the fleet fits on them. The error is one line.
    fn check_servers(&self) -> Result<(), String> {
        let (option, missing) = match (self.real, self.packets) {
            (true, _) => ("--real", NO_REAL),
            (false, true) => ("--packets", NO_PACKETS),
            (false, false) => return Ok(()),
        };
        let members = self.members();
        if !cfg!(feature = "real") {
            return Err(missing.to_owned());
        }
        if members > REAL_MEMBERS_MAX {
            return Err(format!("--members {members} is too many for {option}: use at most {REAL_MEMBERS_MAX}"));
        }
        if self.packets && members < 2 {
            return Err("--packets needs at least 2 members: one exports, and the other one imports".to_owned());
        }
        Ok(())
    }
}

/// Parses a command line whose first argument is the program. Prints errors on one line, and the help if there is no
/// command.
///
/// # Errors
/// Returns an exit code if there is no command to run: 0 after `--help`, 2 after an error.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = match try_parse(&arguments) {
        Ok(command) => command,
        // Printing fails if the output is closed, for example by `fleetnet --help | head`.
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return Err(ExitCode::SUCCESS);
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return Err(ExitCode::from(USAGE_EXIT_CODE));
        }
        Err(error) => return Err(exit_with_error(&usage_message(&error, &arguments))),
    };
    if let Command::Sandbox(options) = &command {
        options.check().map_err(|why| exit_with_error(&why))?;
    }
    Ok(command)
}

/// Returns the definition of the command line.
pub(crate) fn command() -> clap::Command {
    Arguments::command()
}

/// Parses a command line. The usage text of a plugin of kubectl begins with `kubectl fleetnet`.
fn try_parse(arguments: &[OsString]) -> Result<Command, clap::Error> {
    let name = program(arguments);
    let command = if name == "fleetnet" { command() } else { command().name(name).bin_name(name) };
    let mut matches = command.try_get_matches_from(arguments)?;
    Arguments::from_arg_matches_mut(&mut matches).map(|arguments| arguments.command)
}

/// Returns the words that run this program.
fn program(arguments: &[OsString]) -> &'static str {
    let is_plugin = arguments.first().is_some_and(|it| Path::new(it).file_stem().is_some_and(|it| it == PLUGIN));
    if is_plugin { "kubectl fleetnet" } else { "fleetnet" }
}

/// Returns the command line that shows the help of the command that the user wanted.
fn help_of(arguments: &[OsString]) -> String {
    let mut words = vec![program(arguments).to_owned()];
    let mut command = command();
    for argument in arguments.iter().skip(1) {
        let found = argument.to_str().and_then(|name| command.find_subcommand(name)).cloned();
        let Some(found) = found else { break };
        words.push(found.get_name().to_owned());
        command = found;
    }
    format!("{} --help", words.join(" "))
}

/// Returns clap's error message on one line, with the nearest name and the help to read. clap itself prints these in
/// separate paragraphs.
fn usage_message(error: &clap::Error, arguments: &[OsString]) -> String {
    let line = one_line(error);
    let suggested = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let nearest = suggested.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.clone()),
        // clap sorts them: the last one is the most similar.
        Some(ContextValue::Strings(names)) => names.last().cloned(),
        _ => None,
    });
    let help = help_of(arguments);
    match (error.kind(), error.get(ContextKind::ValidValue), nearest) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid)), _) if !valid.is_empty() => {
            let line = line.split(" [possible values").next().unwrap_or_default();
            format!("{line}: use one of {}", valid.join(", "))
        }
        (_, _, Some(nearest)) => format!("{line}: did you mean {nearest}? See `{help}`"),
        (_, _, None) => format!("{line}: see `{help}`"),
    }
}

fn rate(written: &str) -> Result<f64, String> {
    match written.parse::<f64>() {
        Ok(rate) if (0.01..=1000.0).contains(&rate) => Ok(rate),
        _ => Err("not a number from 0.01 to 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests;
