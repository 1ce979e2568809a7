//! Leader election on Lease objects, by the rules of client-go. If an election needs several Leases, the leader holds all of
//! them.
//!
//! A process regards the Lease of another holder as expired after the process has *itself* seen no change of the Lease for the
//! lease duration, on its local monotonic clock. Wrong wall clocks therefore do not matter.
//!
//! A leader stops when it has not renewed for the renew deadline, counted from the time at which it sent its last successful
//! renewal. The renew deadline is shorter than the lease duration, so the leader stops before another process may take over. A
//! process that did not run for a while (SIGSTOP, a frozen machine) may handle other events first when it goes on. So everything that
//! writes asks [`Leadership::may_write`], which knows the deadline.
//!
//! With several Leases, a candidate first reads all of them. If all Leases are free, the candidate takes them in the order of
//! their names. If another process takes one of the Leases first, the candidate releases the Leases that it has taken. So two
//! candidates never wait for each other.
//!
//! A process that starts in the same pod after a crash takes the Leases of the crashed process at once. A replica in another pod waits
//! until they expire.
//!
//! A candidate reads the Leases again and again, as client-go does. It also watches them, so it reads them at once when their holder
//! releases them.

mod record;
mod release;

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, select_all};
use kube::Client;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use uuid::Uuid;

use crate::{
    backoff::Jitter,
    clock::Clock,
    limits::{LEASE_RETRY_JITTER, LEASE_WATCH_PAUSE},
    logic::FlowId,
    metrics::Metrics,
};

use record::{Lease, RecordError, Renewal};

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
    /// Time without a renewal after which other processes may take the Lease. 15 s by default.
    pub lease_duration: Duration,
    /// Time without a renewal after which a leader stops writing. 10 s by default; shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between two renewals, and the shortest time between two attempts to acquire. 2 s by default.
    pub retry_period: Duration,
}

/// Leadership state of this process. Only a leader writes to clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    Waiting {
        /// Present holder of a Lease that this process waits for. `None` before the first read and while the server does not
        /// respond.
        holder: Option<Holder>,
    },
    Leading {
        /// Time at which leadership ends if the Leases are not renewed before. `None` for a process without Leases.
        until: Option<Instant>,
    },
    /// This process has lost leadership. It never becomes the leader again and must end.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub lease: String,
    pub identity: String,
}

impl Leadership {
    /// True if this process may write at this moment.
    #[must_use]
    pub fn may_write(&self) -> bool {
        match self {
            // fault K3.2: Instant::now() < until ~> true
            Self::Leading { until } => until.is_none_or(|until| Instant::now() < until),
            // fault K6.1: false ~> true
            Self::Waiting { .. } | Self::Lost => false,
        }
    }
}

/// Error that ends an election. An election that releases the Leases on request ends without an error.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("leader election is not possible: {0}")]
    Settings(&'static str),
    #[error("leadership was lost: Lease {namespace}/{lease}: {cause}")]
    Lost { namespace: String, lease: String, cause: String },
}

impl LeaseConfig {
    /// Checks the settings by the rules of client-go.
    ///
    /// # Errors
    /// If a Lease name or the identity is missing, or the retry period is zero. If the renew deadline is at most 1.2 times the
    /// retry period, or the lease duration is at most the renew deadline.
    pub fn validate(&self) -> Result<(), LeaseError> {
        if self.names.is_empty() || self.names.iter().any(String::is_empty) {
            return Err(LeaseError::Settings("a Lease needs a name"));
        }
        if self.identity.is_empty() {
            return Err(LeaseError::Settings("a candidate needs an identity"));
        }
        if self.retry_period.is_zero() {
            return Err(LeaseError::Settings("the retry period (--leader-election-retry-period) must be above zero"));
        }
        if self.renew_deadline <= self.retry_period.mul_f64(LEASE_RETRY_JITTER) {
            return Err(LeaseError::Settings(
                "the renew deadline (--leader-election-renew-deadline) must be above 1.2 times the retry period \
                 (--leader-election-retry-period)",
            ));
        }
        // fault K7.1: <= ~> <
        if self.lease_duration <= self.renew_deadline {
            return Err(LeaseError::Settings(
                "the lease duration (--leader-election-lease-duration) must be above the renew deadline \
                 (--leader-election-renew-deadline)",
            ));
        }
        Ok(())
    }
}

/// Returns an identity that no other process has: `<kind>_<hostname>_<uuid>`, or `<kind>_<hostname>_<pod UID>.<uuid>` in a pod that
/// tells its UID in the environment variable [`POD_UID`].
///
/// The kind shows whether agents of different kinds compete for the same Lease by mistake. Identities of client-go have no kind.
#[must_use]
pub fn identity(kind: &str) -> String {
    let pod = std::env::var(POD_UID).ok().filter(|uid| Uuid::try_parse(uid).is_ok());
    let pod = pod.map_or_else(String::new, |uid| format!("{uid}."));
    format!("{kind}_{}_{pod}{}", hostname(), Uuid::new_v4())
}

/// True if a holder was an earlier process of this agent in the same pod. This process has ended: the kubelet starts a container again
/// only when its last process is gone. So its Lease is free.
fn is_earlier_process(holder: &str, ours: &str) -> bool {
    let pod = |identity: &str| {
        let (agent, process) = identity.rsplit_once('_')?;
        Some((agent.to_owned(), process.rsplit_once('.')?.0.to_owned()))
    };
    // fault K18.1: pod(holder).is_some() && pod(holder) == pod(ours) ~> pod(holder) == pod(ours)
    holder != ours && pod(holder).is_some() && pod(holder) == pod(ours)
}

/// Starts a task that takes part in an election until leadership is lost or `release` is sent.
///
/// On `release`, the task releases the Leases that it holds and ends with `Ok`. If `release` is dropped unsent, the task also
/// ends, but does not release the Leases. A process that stops with writes in flight must not let others start early.
///
/// The task ends with an error when leadership is lost, or immediately if the settings are invalid.
pub fn elect(
    config: LeaseConfig,
    clock: &Clock,
    metrics: Metrics,
    release: oneshot::Receiver<()>,
) -> (watch::Receiver<Leadership>, JoinHandle<Result<(), LeaseError>>) {
    let (state, receiver) = watch::channel(Leadership::Waiting { holder: None });
    let mut names = config.names.clone();
    names.sort();
    names.dedup();
    let election = Election {
        leases: names.iter().map(|name| Lease::new(&config, name, clock)).collect(),
        jitter: Jitter::new(FlowId::of(&config.identity).0),
        logged: None,
        config,
        metrics,
        state,
    };
    (receiver, tokio::spawn(election.run(release)))
}

struct Election {
    config: LeaseConfig,
    /// Leases that the leader must hold, in the order of their names.
    leases: Vec<Lease>,
    metrics: Metrics,
    state: watch::Sender<Leadership>,
    jitter: Jitter,
    /// Last logged reason for waiting. The agent logs a reason only once in a row.
    logged: Option<String>,
}

impl Election {
    async fn run(mut self, mut release: oneshot::Receiver<()>) -> Result<(), LeaseError> {
        self.config.validate()?;
        self.show(false);
        let released = tokio::select! {
            biased;
            released = &mut release => Some(released),
            () = self.acquire() => None,
        };
        let result = match released {
            Some(released) => Ok(released),
            None => {
                self.show(true);
                self.state.send_replace(self.leading());
                tracing::info!(leases = ?self.config.names, identity = self.config.identity, "leading");
                tokio::select! {
                    biased;
                    released = &mut release => Ok(released),
                    error = self.keep() => Err(error),
                }
            }
        };
        self.show(false);
        match result {
            // fault K5.1: self.release_all().await ~> {}
            Ok(Ok(())) => self.release_all().await,
            Ok(Err(_)) => {}
            Err(error) => {
                self.state.send_replace(Leadership::Lost);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until this process holds all Leases. Tries again after each failed attempt, at the latest when the wait is over, and at
    /// once when a holder releases its Lease.
    async fn acquire(&mut self) {
        let mut released: Option<BoxFuture<'static, ()>> = None;
        let mut pause = Duration::ZERO;
        loop {
            let holder = match self.try_all().await {
                Ok(None) => return,
                Ok(Some(holder)) => {
                    self.log_holder(&holder);
                    Some(holder)
                }
                Err((lease, error)) => {
                    self.log_failed(&lease, &error);
                    None
                }
            };
            let waiting = Leadership::Waiting { holder };
            self.state.send_if_modified(|state| {
                let changed = *state != waiting;
                *state = waiting;
                changed
            });
            let wait = self.config.retry_period.mul_f64(1.0 + LEASE_RETRY_JITTER * self.jitter.fraction());
            released = released.or_else(|| self.released(pause));
            let watched = async {
                match &mut released {
                    Some(released) => released.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = sleep(wait) => {}
                // fault K5.9 (lease_tests::a_released_lease_is_taken_at_once): () = watched => ~> () = std::future::pending() =>
                () = watched => {
                    released = None;
                    // A read after a release may still show the holder: another replica was faster, or the read is old. Without
                    // a pause, old reads would let this replica read and watch in an endless loop.
                    // fault K5.10 (lease_tests::a_release_that_reads_do_not_show_is_looked_at_once_a_second): LEASE_WATCH_PAUSE ~> Duration::ZERO
                    pause = LEASE_WATCH_PAUSE;
                }
            }
        }
    }

    /// Watches the Leases that existed at the last read, after a pause. The future returns when one of them is released.
    fn released(&self, pause: Duration) -> Option<BoxFuture<'static, ()>> {
        let LeaseConfig { client, namespace, .. } = &self.config;
        let watch = |lease: &Lease| {
            let after = lease.version()?.to_owned();
            Some(release::released(client.clone(), namespace.clone(), lease.name.clone(), after).boxed())
        };
        let watches: Vec<_> = self.leases.iter().filter_map(watch).collect();
        (!watches.is_empty()).then(|| sleep(pause).then(|()| select_all(watches)).map(drop).boxed())
    }

    /// Takes all Leases or none. Returns `None` if this process has taken all Leases, or the other process that holds one of
    /// them. An error has the name of the Lease whose read or write failed.
    async fn try_all(&mut self) -> Result<Option<Holder>, (String, RecordError)> {
        // Read all Leases, even if another process holds the first one: the expiry of a Lease counts from the first read of that
        // Lease.
        let looks = join_all(self.leases.iter_mut().map(Lease::look)).await;
        for (lease, look) in self.leases.iter().zip(looks) {
            look.map_err(|error| (lease.name.clone(), error))?;
        }
        // fault K4.1: &self.leases ~> self.leases.iter().take(1)
        for lease in &self.leases {
            if let Some(identity) = lease.other_holder() {
                return Ok(Some(Holder { lease: lease.name.clone(), identity: identity.to_owned() }));
            }
        }
        for index in 0..self.leases.len() {
            if let Err(error) = self.leases[index].take().await {
                let name = self.leases[index].name.clone();
                // fault K4.2: self.release_all().await ~>
                self.release_all().await;
                return Err((name, error));
            }
        }
        Ok(None)
    }

    /// Renews the Leases as long as possible. Returns the reason why leadership was lost.
    async fn keep(&mut self) -> LeaseError {
        let mut next_round = Instant::now() + self.config.retry_period;
        loop {
            // Leadership ends at the renew deadline, also while a renewal waits for a response.
            let (deadline, lease) = self.deadline();
            let missed = self.lost(&lease, format!("not renewed for {:?}", self.config.renew_deadline));
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return missed,
                () = sleep_until(next_round) => {}
            }
            next_round = Instant::now() + self.config.retry_period;
            let renewals = tokio::select! {
                biased;
                () = sleep_until(deadline) => return missed,
                renewals = join_all(self.leases.iter_mut().map(Lease::renew)) => renewals,
            };
            for (lease, renewal) in self.leases.iter().zip(renewals) {
                match renewal {
                    Renewal::Renewed => {}
                    // fault K3.1: return self.lost(&lease.name, format!("{holder} has taken it")) ~> drop(holder)
                    Renewal::Taken(holder) => return self.lost(&lease.name, format!("{holder} has taken it")),
                    Renewal::Failed(error) => {
                        tracing::warn!(lease = lease.name, %error, "a Lease could not be renewed; the agent retries");
                    }
                }
            }
            // Wakes nobody: the later deadline matters only to those who ask.
            self.state.send_if_modified(|state| {
                *state = self.leading();
                false
            });
        }
    }

    /// Returns the time at which leadership ends without another renewal, and the Lease with the earliest such time.
    fn deadline(&self) -> (Instant, String) {
        let since = |lease: &Lease| lease.acquired_since();
        let oldest = self.leases.iter().filter_map(|lease| Some((since(lease)?, &lease.name))).min();
        let (since, name) = oldest.expect("a leader holds at least one Lease: the names are not empty");
        // fault K2.2: renew_deadline ~> lease_duration
        (since + self.config.renew_deadline, name.clone())
    }

    fn leading(&self) -> Leadership {
        Leadership::Leading { until: Some(self.deadline().0) }
    }

    fn lost(&self, lease: &str, cause: String) -> LeaseError {
        LeaseError::Lost { namespace: self.config.namespace.clone(), lease: lease.to_owned(), cause }
    }

    async fn release_all(&mut self) {
        let results = join_all(self.leases.iter_mut().map(Lease::release)).await;
        for (lease, result) in self.leases.iter().zip(results) {
            if let Err(error) = result {
                tracing::warn!(lease = lease.name, %error, "a Lease could not be released; it expires by itself");
            }
        }
    }

    fn show(&self, leads: bool) {
        for lease in &self.leases {
            self.metrics.leader(&lease.name, leads);
        }
    }

    fn log_holder(&mut self, holder: &Holder) {
        let Holder { lease, identity } = holder;
        let namespace = &self.config.namespace;
        let text = format!("{lease} {identity}");
        if self.logged.as_ref() == Some(&text) {
            return;
        }
        match other_kind(identity, &self.config.identity) {
            Some(kind) => tracing::error!(
                lease = format!("{namespace}/{lease}"),
                holder = identity,
                "an agent of another kind ({kind}) holds the Lease that this agent needs, so this agent would wait \
                 forever: give one of them another --leader-election-namespace"
            ),
            None => {
                tracing::info!(
                    lease = format!("{namespace}/{lease}"),
                    holder = identity,
                    "waiting for the leader to stop"
                );
            }
        }
        self.logged = Some(text);
    }

    fn log_failed(&mut self, lease: &str, error: &RecordError) {
        let text = format!("{lease} {error}");
        if self.logged.as_ref() != Some(&text) {
            let lease = format!("{}/{lease}", self.config.namespace);
            tracing::warn!(lease, %error, "a Lease could not be acquired; the agent retries");
            self.logged = Some(text);
        }
    }
}

/// Returns the agent kind in a holder's identity, if it differs from this agent's kind. Then an agent of another kind competes
/// for this Lease by mistake.
///
/// Identities of client-go have two parts (`<hostname>_<uuid>`, and no hostname has an underscore). Identities of fleetnet have
/// three parts.
fn other_kind<'a>(holder: &'a str, ours: &str) -> Option<&'a str> {
    let kind = |identity: &'a str| {
        let mut parts = identity.split('_');
        let kind = parts.next()?;
        // fault A11.1: parts.count() == 2 ~> true
        (parts.count() == 2).then_some(kind)
    };
    // fault A11.2: Some(*kind) != ours.split('_').next() ~> true
    kind(holder).filter(|kind| Some(*kind) != ours.split('_').next())
}

/// Returns the host name of this machine or pod, with the characters of DNS names only.
pub fn hostname() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let name: String = name.chars().filter(|char| char.is_ascii_alphanumeric() || "-.".contains(*char)).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
#[path = "lease_tests.rs"]
mod tests;
