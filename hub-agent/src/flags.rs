//! Command line of the hub agent: the flags of the Go hub manager and our own.

use crate::limits::{MEMBER_FAN_OUT, MEMBER_MEMORY_MIB, OBJECT_LAG_MAX, SILENCE_BETWEEN_MIN, SILENCE_SOFT_MIN};
use clap::{Parser, ValueEnum};
use fleetnet_agent::flags::CommonFlags;
use fleetnet_agent::go_flags::parse_duration;
use fleetnet_core::hub::{NamespacePolicy, SilenceLimits};
use std::path::PathBuf;
use std::time::Duration;

/// Resolves the exports of all members and distributes their slices to importers.
///
/// Every address serves /metrics, /healthz and /readyz. Equal addresses are bound once. The address ":0" stands for any
/// free port, which the agent logs. The address "0" turns a listener off.
#[derive(Clone, Debug, Parser)]
#[command(name = "hub-agent", version, args_override_self = true)]
pub struct Flags {
    /// Flags that both agents have.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Address of metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: String,

    /// Address of metrics and probes.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,

    /// Use of the annotations `networking.fleet.azure.com/exporters` and `networking.fleet.azure.com/importers` on
    /// namespaces of the hub, which list the clusters that may export and import.
    #[arg(long, value_name = "POLICY", default_value = "enforce", value_enum)]
    pub namespace_policy: NamespacePolicyFlag,

    /// Address of the slice stream, over which member agents get changes of imported slices before the objects are
    /// written.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub slice_stream_bind_address: String,

    /// Address at which member agents reach the slice stream, as HOST:PORT. The hub agent writes it to the status of
    /// each MemberAgent, with the authorities of its certificate. Default: none; then each member agent needs
    /// --slice-stream-address.
    #[arg(long, value_name = "ADDRESS")]
    pub slice_stream_advertise_address: Option<String>,

    /// Folder with the certificate of the slice stream: tls.crt, tls.key and, if the certificate is not self-signed,
    /// ca.crt. They may be replaced at any time. Default: a self-signed certificate, which needs
    /// --slice-stream-advertise-address.
    #[arg(long, value_name = "FOLDER")]
    pub slice_stream_cert_path: Option<PathBuf>,

    /// Longest time for which the hub agent delays the object of a slice that its importer got over the slice stream:
    /// at most 30s.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_object_lag)]
    pub object_lag: Duration,

    /// Time without a heartbeat after which importers use the endpoints of a member only while no other member has
    /// ready endpoints. At least 30s. 0 turns it off, also --silence-hard.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub silence_soft: Duration,

    /// Time without a heartbeat after which importers withdraw the endpoints of a member, unless no other member has
    /// ready endpoints. At least a minute more than --silence-soft.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub silence_hard: Duration,

    /// Memory that the exports and claims of one member may take in the hub agent, in MiB. The hub agent does not use
    /// objects above it, until there is room. 0 turns it off.
    #[arg(long, value_name = "MIB", default_value_t = MEMBER_MEMORY_MIB)]
    pub member_memory: u32,

    /// Number of objects that the hub agent creates in the namespaces of other members for the exports of one member:
    /// distributed slices and imports of the standard API. At this number, those that exist stay, and no further ones
    /// are created. 0 turns it off.
    #[arg(long, value_name = "OBJECTS", default_value_t = MEMBER_FAN_OUT)]
    pub member_fan_out: u32,

    /// Accepted for compatibility with the Go agent. Has no effect: this agent does not poll.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, hide = true)]
    pub internalserviceexport_retry_interval: Option<Duration>,

    /// Time that a member agent has after the deletion of its MemberCluster to remove what it imported. Then the hub
    /// agent removes the finalizers that nobody else will remove.
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration)]
    pub force_delete_wait_time: Duration,
}

impl Flags {
    /// Returns the limits of silence; `None` if no member is judged.
    ///
    /// # Errors
    /// If a limit is too short.
    pub(crate) fn silence_limits(&self) -> Result<Option<SilenceLimits>, String> {
        if self.silence_soft.is_zero() {
            return Ok(None);
        }
        if self.silence_soft < SILENCE_SOFT_MIN {
            return Err(format!(
                "--silence-soft is {:?}: use at least {SILENCE_SOFT_MIN:?}, because members send a heartbeat every 10 s, or 0 to \
                 turn it off",
                self.silence_soft
            ));
        }
        let least = self.silence_soft + SILENCE_BETWEEN_MIN;
        if self.silence_hard < least {
            return Err(format!(
                "--silence-hard is {:?}: use at least {least:?}, a minute more than --silence-soft",
                self.silence_hard
            ));
        }
        let micros = |limit: Duration| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX);
        Ok(Some(SilenceLimits { soft_micros: micros(self.silence_soft), hard_micros: micros(self.silence_hard) }))
    }
}

fn parse_object_lag(written: &str) -> Result<Duration, String> {
    let lag = parse_duration(written)?;
    if lag > OBJECT_LAG_MAX {
        return Err(format!("use at most {OBJECT_LAG_MAX:?}: importers rely on objects that are not older"));
    }
    Ok(lag)
}

/// Value of the flag for [`NamespacePolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NamespacePolicyFlag {
    /// Only listed clusters may export and import. Without the right to list and watch namespaces, the agent is not
    /// ready and grants nothing new.
    Enforce,
    /// The annotations work as with `enforce`. No cluster may export or import Services of a namespace that does not
    /// exist in the hub. If somebody deletes the namespace, the imports of its Services end.
    Strict,
    /// Only clusters that an annotation of an existing namespace lists may export or import. A namespace without the
    /// annotation denies every cluster. Recommended if you do not trust every member.
    Listed,
    /// The annotations have no effect: every member may export and import.
    Off,
}

impl From<NamespacePolicyFlag> for NamespacePolicy {
    fn from(flag: NamespacePolicyFlag) -> Self {
        match flag {
            NamespacePolicyFlag::Enforce => Self::Enforce,
            NamespacePolicyFlag::Strict => Self::Strict,
            NamespacePolicyFlag::Listed => Self::Listed,
            NamespacePolicyFlag::Off => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SILENCE;

    #[test]
    fn limits_of_silence_have_minimums() {
        let limits = |flags: &[&str]| {
            let flags = Flags::try_parse_from([&["hub-agent"], flags].concat()).expect("flags");
            flags.silence_limits().map(|it| it.map(|it| (it.soft_micros / 1_000_000, it.hard_micros / 1_000_000)))
        };
        assert_eq!(limits(&[]), Ok(Some((SILENCE.soft_micros / 1_000_000, SILENCE.hard_micros / 1_000_000))));
        assert_eq!(limits(&["--silence-soft=0"]), Ok(None));
        assert_eq!(limits(&["--silence-soft=30s", "--silence-hard=90s"]), Ok(Some((30, 90))));
        for (flags, named) in [
            (["--silence-soft=29s", "--silence-hard=10m"], "--silence-soft is 29s"),
            (["--silence-soft=60s", "--silence-hard=119s"], "--silence-hard is 119s"),
        ] {
            let error = limits(&flags).expect_err("too short");
            assert!(error.starts_with(named), "{error}");
        }
    }

    /// Also rule J20.
    #[test]
    fn objects_lag_by_half_a_minute_at_most() {
        assert_eq!(parse_object_lag("30s"), Ok(Duration::from_secs(30)));
        let error = parse_object_lag("31s").expect_err("too long");
        assert!(error.contains("at most 30s"), "{error}");
    }
}
