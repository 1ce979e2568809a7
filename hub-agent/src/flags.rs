//! Command line of the hub agent: the flags of the Go hub manager and our own.

use clap::{Parser, ValueEnum};
use fleetnet_agent::flags::CommonFlags;
use fleetnet_agent::go::parse_duration;
use fleetnet_core::hub::rights::NamespacePolicy;
use std::time::Duration;

/// Resolves the exports of all members and distributes their slices to importers.
///
/// Every address serves /metrics, /healthz and /readyz; equal addresses are bound once, ":0" takes a free port and logs
/// it, "0" turns one off.
#[derive(Clone, Debug, Parser)]
#[command(name = "hub-agent", version, args_override_self = true)]
pub struct Flags {
    /// What every agent takes.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Address of metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: String,

    /// Address of metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,

    /// What the annotations exporters and importers of the hub's namespaces decide: enforce (who may export from the namespace
    /// and import from it; without the right to list and watch namespaces the agent is not ready and grants nothing new), or
    /// off (nothing: every member may do both).
    #[arg(long, value_name = "POLICY", default_value = "enforce", value_enum)]
    pub namespace_policy: NamespacePolicyFlag,

    /// Taken for the Go agent's sake: nothing is polled here.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, hide = true)]
    pub internalserviceexport_retry_interval: Option<Duration>,

    /// Taken for the Go agent's sake: membership is not handled by this version.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub force_delete_wait_time: Option<Duration>,
}

/// Value of the flag for [`NamespacePolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NamespacePolicyFlag {
    /// Namespaces decide.
    Enforce,
    /// Every member may do everything.
    Off,
}

impl From<NamespacePolicyFlag> for NamespacePolicy {
    fn from(flag: NamespacePolicyFlag) -> Self {
        match flag {
            NamespacePolicyFlag::Enforce => Self::Enforce,
            NamespacePolicyFlag::Off => Self::Off,
        }
    }
}
