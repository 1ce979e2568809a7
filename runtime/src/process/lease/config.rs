//! Settings of a leader election, and the identity of a candidate.

use kube::Client;
use uuid::Uuid;

use crate::limits::{LEASE_RETRY_JITTER, LeaseTimes, OTHER_LEASES};

/// Environment variable with the UID of this process's pod. The manifests set it by the downward API.
pub const POD_UID: &str = "POD_UID";

/// Settings of a leader election.
#[derive(Clone)]
pub struct LeaseConfig {
    /// Client for the cluster that has the Leases.
    pub client: Client,
    pub namespace: String,
    /// Names of the Leases. This process is the leader while it holds all of these Leases.
    pub names: Vec<String>,
    /// Identity of this process, which must be unique. See [`identity`].
    pub identity: String,
    pub times: LeaseTimes,
}

/// Settings with which no election is possible.
#[derive(Debug, thiserror::Error)]
#[error("leader election is not possible: {0}")]
pub struct LeaseError(&'static str);

impl LeaseConfig {
    /// Checks the settings by the rules of client-go.
    ///
    /// # Errors
    /// If a Lease name or the identity is missing, or the retry period is zero. If the renew deadline is at most 1.2
    /// times the retry period, or the lease duration is at most the renew deadline.
    pub fn validate(&self) -> Result<(), LeaseError> {
        if self.names.is_empty() || self.names.iter().any(String::is_empty) {
            return Err(LeaseError("a Lease needs a name"));
        }
        if self.identity.is_empty() {
            return Err(LeaseError("a candidate needs an identity"));
        }
        if self.times.retry_period.is_zero() {
            return Err(LeaseError("the retry period (--leader-election-retry-period) must be above zero"));
        }
        if self.times.renew_deadline <= self.times.retry_period.mul_f64(LEASE_RETRY_JITTER) {
            return Err(LeaseError(
                "the renew deadline (--leader-election-renew-deadline) must be above 1.2 times the retry period \
                 (--leader-election-retry-period)",
            ));
        }
        if self.times.duration <= self.times.renew_deadline {
            return Err(LeaseError(
                "the lease duration (--leader-election-lease-duration) must be above the renew deadline \
                 (--leader-election-renew-deadline)",
            ));
        }
        Ok(())
    }
}

/// Returns an identity that no other process has: `<kind>_<hostname>_<uuid>`, or `<kind>_<hostname>_<pod UID>.<uuid>`
/// in a pod that tells its UID in the environment variable [`POD_UID`].
///
/// The kind shows whether agents of different kinds compete for the same Lease by mistake. Identities of client-go have
/// no kind.
#[must_use]
pub fn identity(kind: &str) -> String {
    let pod = std::env::var(POD_UID).ok().filter(|uid| Uuid::try_parse(uid).is_ok());
    let pod = pod.map_or_else(String::new, |uid| format!("{uid}."));
    format!("{kind}_{}_{pod}{}", hostname(), Uuid::new_v4())
}

/// True if a holder was an earlier process of this agent in the same pod. This process has ended: the kubelet starts a
/// container again only when its last process is gone. So its Lease is free.
pub(super) fn is_earlier_process(holder: &str, ours: &str) -> bool {
    let pod = |identity: &str| {
        let (agent, process) = identity.rsplit_once('_')?;
        Some((agent.to_owned(), process.rsplit_once('.')?.0.to_owned()))
    };
    holder != ours && pod(holder).is_some() && pod(holder) == pod(ours)
}

/// Returns the host name of this machine or pod, with the characters of DNS names only.
pub fn hostname() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let name: String = name.chars().filter(|char| char.is_ascii_alphanumeric() || "-.".contains(*char)).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns the durations of the Leases after the first one. None is shorter than that of the first.
pub(super) fn of_others(first: LeaseTimes) -> LeaseTimes {
    LeaseTimes {
        duration: first.duration.max(OTHER_LEASES.duration),
        renew_deadline: first.renew_deadline.max(OTHER_LEASES.renew_deadline),
        retry_period: first.retry_period.max(OTHER_LEASES.retry_period),
    }
}
