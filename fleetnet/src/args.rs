//! Command line of `fleetnet`, and the checks of its options. These checks have no side effects.

use crate::cli::{
    check, completion, explain, gather, join, latency, leave, migrate, rotate, services, status, version,
};
use crate::limits::{CHANGES_MAX, MEMBERS_MAX, REAL_MEMBERS_MAX, REQUESTS_MAX};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use fleetnet_agent::flags::{exit_with_error, one_line};
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
/// Exit codes: 0 healthy or done, 1 fault found or not done, 2 usage, 3 not everything could be read, 4 timeout of --wait.
#[derive(Debug, Parser)]
#[command(name = "fleetnet", version)]
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
    /// Service and imports it from all members, itself included. Endpoints change all the time: each change costs one write
    /// for the export and two for each importer. Ctrl-C ends the sandbox, which removes everything that it created.
    /// The environment variable RUST_LOG, such as RUST_LOG=info, shows the agents' logs on standard error.
    Sandbox(Options),

    /// Show the state of the members and of the hub agent.
    Status(Box<status::Options>),

    /// List the exported and imported Services of the fleet.
    Services(Box<services::Options>),

    /// Find the first broken step on the way of a Service from each exporter to each importer.
    ///
    /// Each step has a fault code. A step that could not be read is unknown, never broken.
    Explain(Box<explain::Options>),

    /// Check the installation and the members.
    Check(Box<check::Options>),

    /// Show how long changes take from each member to each other member.
    ///
    /// Each value is the time from a change in the member of its row until the change is imported in the member of its column.
    Latency(Box<latency::Options>),

    /// Print or apply what a hub and a member need for the member to be part of the fleet.
    ///
    /// Without --apply, no request is sent: the output is manifests for the hub, and comments with values of the member's chart
    /// and the commands for the member's token.
    Join(Box<join::Options>),

    /// Take a member out of the fleet.
    ///
    /// Deletes the ServiceExports and MultiClusterServices of the member, and removes the label fleetnet/import from its namespaces.
    /// Waits until the agents have removed everything that they made for them. Then removes the member's Secret and its namespace
    /// in the hub. A namespace with objects of others stays.
    /// --dry-run shows the objects. Without --yes, the command asks before it deletes them.
    Leave(Box<leave::Options>),

    /// Revoke all tokens of a member for the hub, and give the member a new one.
    ///
    /// Deletes the ServiceAccount of the member in the hub and creates it again, so that nobody can use an old token. Then writes the
    /// Secret of the member with a new token.
    Rotate(Box<rotate::Options>),

    /// Change between the Go agents of Azure/fleet-networking and fleetnet.
    Migrate(Box<migrate::Options>),

    /// Write an archive with objects, Events, logs and metrics of fleetnet, for a maintainer. Secrets are never in it.
    Gather(Box<gather::Options>),

    /// Print the completion script of a shell.
    Completion(completion::Options),

    /// Show the versions of this program and of the agents.
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

    /// Print each event as one JSON object on its own line. docs/sandbox.md describes the objects.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a kubeconfig for every cluster into this folder, to use kubectl while the sandbox runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) kubeconfigs: Option<PathBuf>,

    /// Port of the hub. The members use the ports after it. Default: free ports. Needs --kubeconfigs.
    #[arg(long, value_name = "PORT", requires = "kubeconfigs", conflicts_with = "real", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Run on real control planes (etcd and kube-apiserver, built with Go the first time). Needs a build with --features real.
    #[arg(long)]
    pub(crate) real: bool,

    /// Run on real control planes with real traffic: pods, kube-proxy, and a client that sends requests all the time.
    ///
    /// The last member imports a Service of all others. Each second has a line with the requests, the lost ones, and the answers of
    /// each cluster. Needs root, nftables, iproute2 and util-linux, and a build with --features real. Everything is in namespaces of
    /// its own, which the kernel removes.
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
    Multicluster,
}

impl Api {
    /// Returns the name of the API, as a user writes it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Multicluster => "multicluster",
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
    /// A member sends no heartbeats: its endpoints are used only if no other endpoint is ready, until it sends heartbeats again.
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

/// Parses a command line whose first argument is the program. Prints errors on one line.
///
/// # Errors
/// Returns an exit code if there is no command to run: 0 after `--help`, 2 after an error.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, ExitCode> {
    let command = match try_parse(arguments) {
        Ok(command) => command,
        Err(error) if !error.use_stderr() => {
            // Printing fails if the output is closed, for example by `fleetnet --help | head`.
            let _ = error.print();
            return Err(ExitCode::SUCCESS);
        }
        Err(error) => return Err(exit_with_error(&usage_message(&error))),
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
fn try_parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let mut arguments = arguments.into_iter().peekable();
    let is_plugin =
        arguments.peek().is_some_and(|program| Path::new(program).file_stem().is_some_and(|it| it == PLUGIN));
    let command = if is_plugin { command().name("kubectl fleetnet").bin_name("kubectl fleetnet") } else { command() };
    let mut matches = command.try_get_matches_from(arguments)?;
    Arguments::from_arg_matches_mut(&mut matches).map(|arguments| arguments.command)
}

/// Returns clap's error message on one line. clap itself prints the possible values in a separate paragraph.
fn usage_message(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            "a command is missing: use `fleetnet --help`".to_owned()
        }
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid))) if !valid.is_empty() => {
            let line = one_line(error);
            let line = line.split(" [possible values").next().unwrap_or_default();
            format!("{line}: use one of {}", valid.join(", "))
        }
        _ => one_line(error),
    }
}

fn rate(written: &str) -> Result<f64, String> {
    match written.parse::<f64>() {
        Ok(rate) if (0.01..=1000.0).contains(&rate) => Ok(rate),
        _ => Err("not a number from 0.01 to 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &str) -> Result<Options, String> {
        let all = std::iter::once("fleetnet").chain(arguments.split_whitespace());
        let command = try_parse(all.map(OsString::from)).map_err(|error| usage_message(&error))?;
        let Command::Sandbox(options) = command else { panic!("{arguments:?} is no sandbox") };
        options.check()?;
        Ok(options)
    }

    #[test]
    fn the_sandbox_needs_no_options() {
        let options = line("sandbox").unwrap();
        assert_eq!((options.members(), options.once, options.json, options.real), (2, false, false, false));
        assert_eq!((options.scenario, options.kubeconfigs, options.api), (None, None, Api::Fleet));
    }

    #[test]
    #[cfg(feature = "real")]
    fn a_fleet_with_real_traffic_has_three_members_and_its_own_options() {
        let options = line("sandbox --packets").unwrap();
        assert_eq!((options.members(), options.requests_per_second), (3, 200));
        let options = line("sandbox --packets --members 2 --once --json --kubeconfigs x --port 8001").unwrap();
        assert_eq!((options.members(), options.once, options.json, options.port), (2, true, true, Some(8001)));
    }

    #[test]
    fn scenarios_are_named_as_in_the_help() {
        for scenario in Scenario::value_variants() {
            let options = line(&format!("sandbox --scenario {}", scenario.name())).unwrap();
            assert_eq!(options.scenario, Some(*scenario));
        }
    }

    #[test]
    fn what_is_wrong_is_named_on_one_line() {
        let table = [
            ("sandbox --members 0", "--members"),
            ("sandbox --members 10000", "1..=50"),
            ("sandbox --members 6 --real", if cfg!(feature = "real") { "at most 5" } else { "--features real" }),
            ("sandbox --packets --members 6", if cfg!(feature = "real") { "at most 5" } else { "--features real" }),
            ("sandbox --packets --members 1", if cfg!(feature = "real") { "at least 2" } else { "--features real" }),
            ("sandbox --packets --real", "--real"),
            ("sandbox --packets --scenario conflict", "--scenario"),
            ("sandbox --packets --api fleet", "--api"),
            ("sandbox --packets --once --changes 5", "--changes"),
            ("sandbox --packets --changes-per-second 5", "--changes-per-second"),
            ("sandbox --packets --port 8001", "--kubeconfigs"),
            ("sandbox --packets --requests-per-second 501", "1..=500"),
            ("sandbox --requests-per-second 5", "--packets"),
            ("sandbox --scenario flood", "hub-down, agent-killed, member-silent, conflict, slice-storm"),
            ("sandbox --scenario conflict --members 1", "at least 2"),
            ("sandbox --api standard", "fleet, multicluster"),
            ("sandbox --changes-per-second 0", "0.01 to 1000"),
            ("sandbox --changes-per-second NaN", "0.01 to 1000"),
            ("sandbox --port 8001", "--kubeconfigs"),
            ("sandbox --kubeconfigs", "none was supplied"),
            ("sandbox --kubeconfigs=", "--kubeconfigs"),
            ("sandbox --once --changes -1", "1..=10000"),
            ("sandbox --changes 5", "--once"),
            ("sandbox --once --scenario conflict --changes 5", "--scenario"),
            ("sandbox --once --scenario conflict --changes-per-second 5", "has no effect"),
            ("sandbox --port 65535 --kubeconfigs x", "fewer than 2 ports"),
            ("sandbox --nonsense", "--nonsense"),
            ("", "fleetnet --help"),
        ];
        for (arguments, named) in table {
            let error = line(arguments).unwrap_err();
            assert!(error.contains(named), "{arguments:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(!error.contains("one of ") || error.contains("hub-down") || error.contains("fleet"), "{error}");
        }
    }

    #[test]
    fn the_usage_text_of_a_plugin_of_kubectl_names_kubectl() {
        let usage = |program: &str, command: &str| {
            let arguments = [program, command, "--help"].into_iter().filter(|argument| !argument.is_empty());
            try_parse(arguments.map(OsString::from)).unwrap_err().to_string()
        };
        assert!(usage("/usr/bin/kubectl-fleetnet", "").contains("Usage: kubectl fleetnet <COMMAND>"));
        assert!(usage("kubectl-fleetnet", "version").contains("Usage: kubectl fleetnet version [OPTIONS]"));
        assert!(usage("./fleetnet", "version").contains("Usage: fleetnet version [OPTIONS]"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_folder_that_does_not_fit_on_one_line_is_rejected_on_one() {
        use std::os::unix::ffi::OsStringExt as _;
        for (path, named) in [(&b"a\nb/c"[..], "a\\nb/c"), (&b"a\xff"[..], "UTF-8"), (&b"\x1b[31m"[..], "\\u{1b}")] {
            let arguments = ["fleetnet", "sandbox", "--kubeconfigs"].map(OsString::from).into_iter();
            let arguments = arguments.chain([OsString::from_vec(path.to_vec())]);
            let Command::Sandbox(options) = try_parse(arguments).unwrap() else { panic!("a sandbox") };
            let error = options.check().unwrap_err();
            assert!(error.contains(named) && !error.contains(char::is_control), "{error:?}");
        }
    }
}
