//! Command-line flags that both agents have. The other flags are in `hub-agent/src/flags.rs`,
//! `member-agent/src/flags.rs` and `member-agent/src/endpoint_flags.rs`.
//!
//! A wrong flag ends the process with exit code 2 and one line that names the flag.

use crate::go_flags::{self, parse_bool, parse_duration};
use crate::host_port::HostPort;
use clap::{ArgAction, Args, Parser};
use fleetnet_core::names;
use fleetnet_runtime::limits::LeaseTimes;
use fleetnet_runtime::process::lease::LeaseConfig;
use fleetnet_runtime::process::logging::LogFormat;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Exit code for a wrong setting. The Go agents use the same exit code.
// no limit: this number is an exit code
pub const USAGE_EXIT_CODE: u8 = 2;

/// Flags that both agents have.
#[derive(Args, Clone, Debug)]
pub struct CommonFlags {
    /// Kubeconfig of the agent's own cluster. Default: the file that KUBECONFIG names, the pod's service account, or
    /// ~/.kube/config, in this order.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Write only while this process holds the Leases, so that only one of several replicas writes.
    #[arg(long, value_name = "BOOL", default_value = "true", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub leader_elect: bool,

    /// Namespace of the Leases.
    #[arg(long, value_name = "NAMESPACE", default_value = "fleet-system")]
    pub leader_election_namespace: String,

    /// Time without a change of a Lease after which another replica may take it.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    pub leader_election_lease_duration: Duration,

    /// Time without a successful renewal after which the leader stops writing.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub leader_election_renew_deadline: Duration,

    /// Time between two attempts to acquire or renew a Lease.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_duration)]
    pub leader_election_retry_period: Duration,

    /// Follow the members of the fleet that a manager defines in the hub: InternalMemberCluster (member agent) and
    /// MemberCluster (hub agent). Without these kinds in the hub, the flag has no effect.
    #[arg(long, value_name = "BOOL", default_value = "true", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub enable_v1beta1_apis: bool,

    /// Not supported: with true the agent does not start. Run the Go agent beside this one for Azure Traffic Manager.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub enable_traffic_manager_feature: bool,

    /// Accepted for compatibility with the Go agents. Has no effect: only Azure Traffic Manager needs it.
    #[arg(long, value_name = "FILE", hide = true)]
    pub cloud_config: Option<PathBuf>,

    /// Serve metrics over TLS, and only to clients that this cluster's API server accepts: a bearer token of a user who
    /// may get the non-resource URL /metrics. Probes stay on their own addresses in plain HTTP. The agent needs the
    /// rights in deploy/metrics-auth.yaml.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub metrics_secure: bool,

    /// Folder with the certificate of --metrics-secure (tls.crt) and its key (tls.key). The files may be replaced at
    /// any time. Default: a self-signed certificate.
    #[arg(long, value_name = "FOLDER")]
    pub metrics_cert_path: Option<PathBuf>,

    /// Collector of the spans of sampled changes, as a URL of OTLP over gRPC without TLS, such as
    /// http://collector.monitoring:4317. Default: none; then the agent takes no part in traces.
    #[arg(long, value_name = "URL")]
    pub tracing_endpoint: Option<String>,

    /// Number of changes of a million that are sampled. The exporting member decides.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(SAMPLED_OF)))]
    pub tracing_sampling_rate_per_million: u32,

    /// Log level, as in klog. Levels 0 and 1 log starts, failures and Events. Levels 2 and 3 add each write and each
    /// latency sample. Level 4 and higher levels add watch events, queued keys, and each plan with its duration.
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    pub v: u8,

    /// Format of log lines.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// Error in the settings, because of which the agent cannot start. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl CommonFlags {
    /// Checks rules that clap cannot check, such as rules between flags. `go_binary` is the name of the Go agent that
    /// supports Azure Traffic Manager, for the error message.
    pub fn check(&self, go_binary: &str) -> Result<(), UsageError> {
        if self.enable_traffic_manager_feature {
            return Err(UsageError(format!(
                "--enable-traffic-manager-feature=true is not supported: run the Go {go_binary} beside this agent for \
                 Azure Traffic Manager, and remove the flag here"
            )));
        }
        check_namespace("--leader-election-namespace", &self.leader_election_namespace)?;
        if self.metrics_cert_path.is_some() && !self.metrics_secure {
            return Err(UsageError(
                "--metrics-cert-path needs --metrics-secure=true: metrics are in plain HTTP".to_owned(),
            ));
        }
        if let Some(endpoint) = &self.tracing_endpoint {
            check_tracing_endpoint(endpoint)?;
        }
        if self.leader_elect {
            let (lease, renew, retry) = (
                self.leader_election_lease_duration,
                self.leader_election_renew_deadline,
                self.leader_election_retry_period,
            );
            // Same rules as in client-go. The renew deadline is shorter than the lease duration, so a leader stops
            // before another replica may take the Lease. The renew deadline is longer than 1.2 times the retry period,
            // so a leader tries to renew more than once before it stops.
            if lease <= renew || renew <= retry.mul_f64(1.2) || retry.is_zero() {
                return Err(UsageError(format!(
                    "--leader-election-lease-duration ({lease:?}) must be longer than --leader-election-renew-deadline \
                     ({renew:?}), and that longer than 1.2 times --leader-election-retry-period ({retry:?})"
                )));
            }
        }
        Ok(())
    }

    /// Returns the settings of the leader election; `None` if leader election is off or the agent needs no Lease.
    pub fn lease(&self, client: kube::Client, names: Vec<String>, identity: String) -> Option<LeaseConfig> {
        (self.leader_elect && !names.is_empty()).then(|| LeaseConfig {
            client,
            namespace: self.leader_election_namespace.clone(),
            names,
            identity,
            times: LeaseTimes {
                duration: self.leader_election_lease_duration,
                renew_deadline: self.leader_election_renew_deadline,
                retry_period: self.leader_election_retry_period,
            },
        })
    }
}

/// Checks the URL of a collector.
fn check_tracing_endpoint(endpoint: &str) -> Result<(), UsageError> {
    if !cfg!(feature = "otlp") {
        return Err(UsageError("--tracing-endpoint: this build of the agent sends no spans".to_owned()));
    }
    let address = endpoint.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    if address.is_some_and(|address| address.parse::<HostPort>().is_ok()) {
        return Ok(());
    }
    Err(UsageError(format!(
        "--tracing-endpoint {endpoint:?} is not http://HOST:PORT. The agent sends spans without TLS: name a collector in \
         its cluster, which can send them on with TLS"
    )))
}

/// Checks that a flag has a valid name of a namespace, because the name becomes part of URLs.
///
/// # Errors
/// If the name is invalid. The error names the flag, its value and the valid characters.
pub fn check_namespace(flag: &str, namespace: &str) -> Result<(), UsageError> {
    if names::is_dns_1123_label(namespace) {
        return Ok(());
    }
    Err(UsageError(format!(
        "{flag} {namespace:?} is not the name of a namespace: use at most 63 lower-case letters, digits and dashes, \
         with a letter or digit first and last"
    )))
}

/// Result of [`parse`].
pub enum Parsed<F> {
    /// Parsed flags, and the names of klog flags that were ignored.
    Flags(F, Vec<String>),
    /// Exit code of the process, after it has printed `--help`, `--version` or an error.
    Exit(ExitCode),
}

/// Parses a Go-style command line.
pub fn parse<F: Parser>(arguments: impl IntoIterator<Item = String>) -> Parsed<F> {
    let line = go_flags::command_line(arguments);
    match F::try_parse_from(&line.arguments) {
        Ok(flags) => Parsed::Flags(flags, line.ignored),
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            Parsed::Exit(ExitCode::SUCCESS)
        }
        Err(error) => Parsed::Exit(exit_with_error(&one_line(&error))),
    }
}

/// Prints one line to standard error: the reason why the process cannot start. Returns the exit code.
pub fn exit_with_error(why: &dyn std::fmt::Display) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "error: {why}");
    ExitCode::from(USAGE_EXIT_CODE)
}

/// Returns clap's error message as one line that names the flag, without clap's further explanation.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let head = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    head.trim_start_matches("error: ").to_owned()
}

/// Returns one warning that names all ignored klog flags; `None` if there are none.
pub fn klog_warning(ignored: &[String]) -> Option<String> {
    let flags: Vec<String> = ignored.iter().map(|flag| format!("--{flag}")).collect();
    (!flags.is_empty()).then(|| format!("klog flags are ignored: {}; use --v and --log-format", flags.join(", ")))
}

/// Returns a log line for each flag that is accepted but has no effect.
pub fn notes(common: &CommonFlags) -> Vec<String> {
    let mut notes = Vec::new();
    if common.cloud_config.is_some() {
        notes.push("--cloud-config has no effect: only Azure Traffic Manager needs it".to_owned());
    }
    notes
}

/// Number of changes of which [`crate::traces::Sampling::per_million`] are sampled.
// no limit: this number is a unit
pub const SAMPLED_OF: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(args_override_self = true)]
    struct Flags {
        #[command(flatten)]
        common: CommonFlags,
    }

    fn flags(arguments: &[&str]) -> Result<CommonFlags, String> {
        let line = go_flags::command_line(["agent"].iter().chain(arguments).map(|argument| (*argument).to_owned()));
        let flags = Flags::try_parse_from(line.arguments).map_err(|error| one_line(&error))?;
        flags.common.check("go-agent").map_err(|error| error.to_string())?;
        Ok(flags.common)
    }

    #[test]
    fn defaults_are_those_of_the_go_agents() {
        let common = flags(&[]).expect("defaults are valid");
        assert!(common.leader_elect && common.enable_v1beta1_apis && !common.enable_traffic_manager_feature);
        assert_eq!(common.leader_election_namespace, "fleet-system");
        assert_eq!(common.leader_election_lease_duration, Duration::from_secs(3));
        assert_eq!(common.leader_election_renew_deadline, Duration::from_secs(2));
        assert_eq!(common.leader_election_retry_period, Duration::from_millis(500));
        let LeaseTimes { duration, renew_deadline, retry_period } = LeaseTimes::default();
        assert_eq!(common.leader_election_lease_duration, duration);
        assert_eq!(common.leader_election_renew_deadline, renew_deadline);
        assert_eq!(common.leader_election_retry_period, retry_period);
    }

    #[test]
    fn go_spellings_are_taken() {
        let common = flags(&["-leader-elect=F", "-v=4", "--leader-election-lease-duration", "1m0s"]).expect("valid");
        assert!(!common.leader_elect);
        assert_eq!((common.v, common.leader_election_lease_duration), (4, Duration::from_secs(60)));
    }

    #[test]
    fn of_a_repeated_flag_the_last_value_counts_as_in_go() {
        let common = flags(&["--v=2", "-v=4", "--leader-elect=false", "--leader-elect"]).expect("valid");
        assert_eq!((common.v, common.leader_elect), (4, true));
    }

    /// Also rule G1.
    #[test]
    fn a_wrong_setting_is_named_on_one_line() {
        let table = [
            (vec!["--leader-elect=maybe"], "--leader-elect"),
            (vec!["--leader-election-lease-duration=5"], "--leader-election-lease-duration"),
            (vec!["--leader-election-lease-duration=2s"], "--leader-election-renew-deadline"),
            (vec!["--enable-traffic-manager-feature"], "run the Go go-agent"),
            (vec!["--leader-election-namespace="], "--leader-election-namespace \"\" is not the name of a namespace"),
            (vec!["--leader-election-namespace=a b"], "--leader-election-namespace \"a b\" is not"),
            (vec!["--leader-election-namespace=a\nb"], r#"--leader-election-namespace "a\nb" is not"#),
            (vec!["--leader-election-namespace=../pods"], "--leader-election-namespace"),
            (vec!["--leader-election-namespace=Fleet"], "use at most 63 lower-case letters"),
            (vec!["--nonsense"], "--nonsense"),
            (vec!["--v=loud"], "--v"),
            (vec!["--log-format=xml"], "--log-format"),
            (vec!["--tracing-endpoint=collector:4317"], "\"collector:4317\" is not http://HOST:PORT"),
            (vec!["--tracing-endpoint=https://collector:4317"], "sends spans without TLS: name a collector"),
            (vec!["--tracing-endpoint=http://collector"], "is not http://HOST:PORT"),
            (vec!["--tracing-sampling-rate-per-million=1000001"], "--tracing-sampling-rate-per-million"),
        ];
        for (arguments, named) in table {
            let error = flags(&arguments).expect_err("must be refused");
            assert!(error.contains(named), "{arguments:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn klog_flags_are_warned_of_by_name_and_ours_are_not() {
        let ignored = |arguments: &[&str]| {
            let line = ["agent"].iter().chain(arguments).map(|argument| (*argument).to_owned());
            match parse::<Flags>(line) {
                Parsed::Flags(_, ignored) => klog_warning(&ignored),
                Parsed::Exit(code) => panic!("{arguments:?}: {code:?}"),
            }
        };
        assert_eq!(ignored(&[]), None);
        assert_eq!(ignored(&["--v=4", "--log-format=text", "-leader-elect=false"]), None);
        assert_eq!(
            ignored(&["--logtostderr", "-stderrthreshold=0", "--vmodule", "a=2", "--v=2"]).as_deref(),
            Some("klog flags are ignored: --logtostderr, --stderrthreshold, --vmodule; use --v and --log-format")
        );
    }

    #[test]
    fn what_is_taken_and_does_nothing_is_noted() {
        let noted = |arguments: &[&str]| notes(&flags(arguments).expect("valid"));
        let cloud = "--cloud-config has no effect: only Azure Traffic Manager needs it";
        assert_eq!(noted(&[]), Vec::<String>::new());
        assert_eq!(noted(&["--cloud-config=/etc/azure.json"]), [cloud]);
        assert_eq!(noted(&["--cloud-config", "/etc/azure.json"]), [cloud]);
    }
}
