//! Flags of the EndpointSlice controller: the flags that kube-controller-manager has for its controller, and additional
//! flags of fleetnet.

use crate::limits::CONCURRENT_SYNCS;
use clap::{Args, ValueEnum};
use endpointslice::names::CONTROLLER_NAME;
use endpointslice::{Config, MAX_ENDPOINTS_RANGE};
use endpointslice_controller::{Mode, Settings, Timing};
use fleetnet_agent::flags::UsageError;
use fleetnet_agent::go_flags::parse_duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Flags of the EndpointSlice controller.
#[derive(Clone, Debug, Args)]
pub struct EndpointFlags {
    /// Mode of the EndpointSlice controller, which makes this cluster's EndpointSlices from its pods.
    #[arg(long = "endpointslices", value_name = "MODE", default_value = "auto", value_enum)]
    pub mode: ModeFlag,

    /// Name of the controller in the label endpointslice.kubernetes.io/managed-by of its slices. The agent changes only
    /// slices with this name. The default is the name of kube-controller-manager, so that the agent and
    /// kube-controller-manager can take over each other's slices.
    #[arg(long = "endpointslices-managed-by", value_name = "NAME", default_value = CONTROLLER_NAME)]
    pub managed_by: String,

    /// With --endpointslices=auto, the controller becomes active if for this time kube-controller-manager does not
    /// renew its Lease, and no other client writes slices with the name of --endpointslices-managed-by.
    #[arg(long = "endpointslices-takeover-after", value_name = "DURATION", default_value = "3m", value_parser = parse_duration)]
    pub takeover_after: Duration,

    /// Maximum number of endpoints in one EndpointSlice, from 1 to 1000. A higher number makes fewer and larger writes.
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    pub max_endpoints_per_slice: usize,

    /// Maximum number of writes of EndpointSlices in flight, from 1 to 50.
    #[arg(long, value_name = "NUMBER", default_value = "5")]
    pub concurrent_service_endpoint_syncs: usize,

    /// Time to collect changes of pods, from the first change, before the slices of their Service are written. A longer
    /// time makes fewer and later writes.
    #[arg(long = "endpointslice-updates-batch-period", value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub batch_period: Duration,
}

/// Value of `--endpointslices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeFlag {
    /// Active while kube-controller-manager does not renew its Lease, and nobody else changes slices. Inactive without
    /// a Lease.
    Auto,
    /// Always active.
    On,
    /// Never active. The agent watches nothing for it.
    Off,
}

impl EndpointFlags {
    /// Checks the flags. Returns `None` if the EndpointSlice controller is off.
    ///
    /// # Errors
    /// If a flag is out of range. The message names the first such flag.
    pub fn settings(&self) -> Result<Option<Settings>, UsageError> {
        let mode = match self.mode {
            ModeFlag::Auto => Mode::Auto,
            ModeFlag::On => Mode::On,
            ModeFlag::Off => Mode::Off,
        };
        let (most_endpoints, syncs) = (self.max_endpoints_per_slice, self.concurrent_service_endpoint_syncs);
        within("--max-endpoints-per-slice", most_endpoints, &MAX_ENDPOINTS_RANGE)?;
        within("--concurrent-service-endpoint-syncs", syncs, &CONCURRENT_SYNCS)?;
        let config = Config::new(self.managed_by.as_str())
            .and_then(|config| config.with_max_endpoints_per_slice(most_endpoints))
            .map_err(|error| UsageError(format!("--endpointslices-managed-by: {error}")))?;
        let settings = Settings {
            mode,
            takeover_after: self.takeover_after,
            config,
            timing: Timing::with_batch_period(self.batch_period),
            concurrent_syncs: syncs,
        };
        Ok((mode != Mode::Off).then_some(settings))
    }
}

/// Checks that a flag's number is in its range, with kube-controller-manager's error message.
fn within(flag: &str, number: usize, range: &RangeInclusive<usize>) -> Result<(), UsageError> {
    let (bound, wrong) = match number {
        _ if range.contains(&number) => return Ok(()),
        _ if number < *range.start() => (range.start(), "less"),
        _ => (range.end(), "more"),
    };
    Err(UsageError(format!("{flag} must not be {wrong} than {bound}, but got {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        endpoints: EndpointFlags,
    }

    fn settings(arguments: &[&str]) -> Result<Option<Settings>, String> {
        let line = CommandLine::try_parse_from(["agent"].iter().chain(arguments)).map_err(|error| error.to_string())?;
        line.endpoints.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_kube_controller_managers_and_serve_while_it_does_not() {
        let settings = settings(&[]).expect("valid").expect("may serve");
        assert_eq!((settings.mode, settings.takeover_after), (Mode::Auto, Duration::from_secs(180)));
        assert_eq!(settings.takeover_after, fleetnet_core::limits::SLICES_TAKEOVER, "as the CLI explains it");
        assert_eq!(settings.takeover_after, Settings::with_mode(Mode::Auto).takeover_after);
        assert_eq!(settings.config.controller_name(), "endpointslice-controller.k8s.io");
        assert_eq!((settings.config.max_endpoints_per_slice(), settings.concurrent_syncs), (100, 5));
        assert_eq!(settings.timing.batch_period, Duration::ZERO);
    }

    #[test]
    fn who_runs_without_flags_has_their_defaults() {
        let (of_flags, without) = (settings(&[]).expect("valid").expect("may serve"), Settings::with_mode(Mode::Auto));
        assert_eq!((of_flags.mode, of_flags.takeover_after), (without.mode, without.takeover_after));
        assert_eq!((of_flags.timing, of_flags.concurrent_syncs), (without.timing, without.concurrent_syncs));
        assert_eq!(format!("{:?}", of_flags.config), format!("{:?}", without.config));
    }

    #[test]
    fn off_is_nothing_at_all() {
        assert!(settings(&["--endpointslices=off"]).expect("valid").is_none());
        assert_eq!(settings(&["--endpointslices=on"]).expect("valid").map(|settings| settings.mode), Some(Mode::On));
    }

    /// Also rule G1.
    #[test]
    fn a_number_out_of_range_is_named_with_its_bound() {
        let table = [
            (
                "--concurrent-service-endpoint-syncs=0",
                "--concurrent-service-endpoint-syncs must not be less than 1, but got 0",
            ),
            (
                "--concurrent-service-endpoint-syncs=51",
                "--concurrent-service-endpoint-syncs must not be more than 50, but got 51",
            ),
            ("--max-endpoints-per-slice=0", "--max-endpoints-per-slice must not be less than 1, but got 0"),
            ("--max-endpoints-per-slice=1001", "--max-endpoints-per-slice must not be more than 1000, but got 1001"),
            ("--endpointslices-managed-by=not a label value", "--endpointslices-managed-by"),
            ("--endpointslices=maybe", "--endpointslices"),
            ("--endpointslices-takeover-after=3", "--endpointslices-takeover-after"),
        ];
        for (argument, named) in table {
            let error = settings(&[argument]).expect_err("must be rejected");
            assert!(error.contains(named), "{argument}: {error}");
        }
    }
}
