//! Leader election on Lease objects, by the rules of client-go. If an election needs several Leases, the leader holds
//! all of them.
//!
//! A process regards the Lease of another holder as expired after the process has *itself* seen no change of the Lease
//! for the lease duration, on its local monotonic clock. Wrong wall clocks therefore do not matter.
//!
//! A leader stops writing when it has not renewed for the renew deadline, counted from the time at which it sent its
//! last successful renewal. The renew deadline is shorter than the lease duration, so the leader stops before another
//! process may take over. A process that did not run for a while (SIGSTOP, a frozen machine) may handle other events
//! first when it goes on. So everything that writes asks [`Leadership::may_write`], which knows the deadline. Unlike a
//! program with client-go, the process does not end: it is a candidate again, and its views stay in memory.
//!
//! With several Leases, a candidate first reads all of them. If all Leases are free, the candidate takes them in the
//! order of their names. If another process takes one of the Leases first, the candidate releases the Leases that it
//! has taken. So two candidates never wait for each other.
//!
//! The replicas of an agent have the same Leases, so the first one decides between them. It lives as long as the
//! settings say. The others only keep agents of another kind away. They live longer, and are renewed less often: 5
//! Leases would otherwise cost 10 writes a second. When the first Lease of a holder has expired, its others are free
//! too.
//!
//! A process that starts in the same pod after a crash takes the Leases of the crashed process at once. A replica in
//! another pod waits until they expire.
//!
//! A candidate watches the Leases, so it knows when the holder renewed them last. It reads them when one expires, when
//! one is released, and again and again while no watch shows a change.

mod changes;
mod config;
mod record;

use std::time::Duration;

use futures::future::{self, FutureExt as _, join_all};
use futures::stream::{BoxStream, SelectAll, StreamExt as _, select_all};
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    backoff::Jitter,
    clock::Clock,
    engine::leadership::{Holder, Leadership},
    engine::logic::FlowId,
    limits::LEASE_RETRY_JITTER,
    metrics::Metrics,
};

use config::of_others;
pub use config::{LeaseConfig, LeaseError, POD_UID, hostname, identity};
use record::{Lease, RecordError, Renewal};

/// Waits until this process leads. Returns false if the election has ended without that.
pub async fn leads(leadership: &mut watch::Receiver<Leadership>) -> bool {
    leadership.wait_for(Leadership::may_write).await.is_ok()
}

/// Waits until this process does not lead. Waits forever if the election has ended, because the process then ends too.
pub async fn no_longer_leads(leadership: &mut watch::Receiver<Leadership>) {
    if leadership.wait_for(|state| !state.may_write()).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Starts a task that takes part in an election until `release` is sent or dropped.
///
/// On `release`, the task releases the Leases that it holds. If `release` is dropped unsent, the task ends, but does
/// not release the Leases. A process that stops with writes in flight must not let others start early.
///
/// # Errors
/// If the settings are invalid.
pub fn elect(
    config: LeaseConfig,
    clock: &Clock,
    metrics: Metrics,
    release: oneshot::Receiver<()>,
) -> Result<(watch::Receiver<Leadership>, JoinHandle<()>), LeaseError> {
    config.validate()?;
    let (state, receiver) = watch::channel(Leadership::Waiting { holder: None });
    let mut names = config.names.clone();
    names.sort();
    names.dedup();
    let times = |place: usize| if place == 0 { config.times } else { of_others(config.times) };
    let leases = names.iter().enumerate().map(|(place, name)| Lease::new(&config, name, times(place), clock)).collect();
    let jitter = Jitter::new(FlowId::of(&config.identity).0);
    let election = Election { leases, jitter, deposed: None, logged: None, config, metrics, state };
    Ok((receiver, tokio::spawn(election.run(release))))
}

struct Election {
    config: LeaseConfig,
    /// Leases that the leader must hold, in the order of their names.
    leases: Vec<Lease>,
    /// Last process that the first Lease named as its holder, if it had lost it then: by the expiry or by its end. It
    /// holds no other Lease any more.
    deposed: Option<String>,
    metrics: Metrics,
    state: watch::Sender<Leadership>,
    jitter: Jitter,
    /// Last logged reason for waiting. The agent logs a reason only once in a row.
    logged: Option<String>,
}

/// Changes of the Leases at these places, from their watches. `None` after a deletion.
type Changes = SelectAll<BoxStream<'static, (usize, Option<Value>)>>;

impl Election {
    async fn run(mut self, mut release: oneshot::Receiver<()>) {
        self.show(false);
        let released = loop {
            tokio::select! {
                biased;
                released = &mut release => break released,
                () = self.acquire() => {}
            }
            self.show(true);
            self.state.send_replace(leading(&self.deadlines()));
            tracing::info!(leases = ?self.config.names, identity = self.config.identity, "leading");
            let (lease, cause) = tokio::select! {
                biased;
                released = &mut release => break released,
                lost = self.keep() => lost,
            };
            self.state.send_replace(Leadership::Waiting { holder: None });
            self.show(false);
            self.leases.iter_mut().for_each(Lease::lose);
            tracing::warn!(
                lease = format!("{}/{lease}", self.config.namespace),
                cause,
                "leadership was lost: this process writes nothing until it leads again"
            );
        };
        self.show(false);
        if released.is_ok() {
            self.release_all().await;
        }
    }

    /// Waits until this process holds all Leases.
    async fn acquire(&mut self) {
        let mut changes: Option<Changes> = None;
        loop {
            let tried = self.try_all().await;
            let is_failed = tried.is_err();
            let holder = match tried {
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
            let changes = changes.get_or_insert_with(|| self.watch());
            let pause = self.config.times.retry_period.mul_f64(1.0 + LEASE_RETRY_JITTER * self.jitter.fraction());
            if is_failed {
                // Changes must not shorten the pause after a failure: they may be those of the attempt itself.
                sleep(pause).await;
            } else {
                self.wait(changes, pause).await;
            }
        }
    }

    /// Waits until the Leases must be read: one expires or is released, or no watch has shown a change for a while.
    async fn wait(&mut self, changes: &mut Changes, pause: Duration) {
        let mut read_at = Instant::now() + pause;
        loop {
            let now = Instant::now();
            let expiry = self.leases.iter().filter_map(Lease::expires_at).filter(|at| *at > now).min();
            tokio::select! {
                biased;
                () = sleep_until(expiry.map_or(read_at, |at| at.min(read_at))) => return,
                Some((place, lease)) = changes.next() => {
                    self.leases[place].see(lease);
                    if self.leases[place].is_free() {
                        return;
                    }
                    read_at = Instant::now() + pause;
                }
            }
        }
    }

    /// Watches the Leases that existed at the last read, from that read.
    fn watch(&self) -> Changes {
        let LeaseConfig { client, namespace, .. } = &self.config;
        let watch = |(place, lease): (usize, &Lease)| {
            let changes = changes::of(client.clone(), namespace, &lease.name, lease.version());
            changes.map(move |lease| (place, lease)).boxed()
        };
        select_all(self.leases.iter().enumerate().map(watch))
    }

    /// Takes all Leases or none. Returns `None` if this process has taken all Leases, or the other process that holds
    /// one of them. An error has the name of the Lease whose read or write failed.
    async fn try_all(&mut self) -> Result<Option<Holder>, (String, RecordError)> {
        // Read all Leases, even if another process holds the first one: the expiry of a Lease counts from the first
        // read of that Lease.
        let looks = join_all(self.leases.iter_mut().map(Lease::look)).await;
        for (lease, look) in self.leases.iter().zip(looks) {
            look.map_err(|error| (lease.name.clone(), error))?;
        }
        if let Some(first) = self.leases.first()
            && let Some(named) = first.named()
        {
            self.deposed = first.other_holder().is_none().then(|| named.to_owned());
        }
        for lease in &self.leases {
            let is_deposed = |holder: &str| self.deposed.as_deref() == Some(holder);
            if let Some(identity) = lease.other_holder().filter(|holder| !is_deposed(holder)) {
                return Ok(Some(Holder { lease: lease.name.clone(), identity: identity.to_owned() }));
            }
        }
        let Some((first, others)) = self.leases.split_first_mut() else { return Ok(None) };
        let mut taken = vec![first.take().await];
        if taken.iter().all(Result::is_ok) {
            taken.extend(join_all(others.iter_mut().map(Lease::take)).await);
        }
        if let Some((index, error)) = taken.into_iter().enumerate().find_map(|(index, it)| Some((index, it.err()?))) {
            let name = self.leases[index].name.clone();
            self.release_all().await;
            return Err((name, error));
        }
        Ok(None)
    }

    /// Renews the Leases as long as possible, each one for itself: a slow answer about one of them delays no other.
    /// Returns the Lease with which leadership was lost, and the cause.
    async fn keep(&mut self) -> (String, String) {
        let (retry, state) = (self.config.times.retry_period, &self.state);
        let deadlines = watch::Sender::new(self.deadlines());
        let keep = async |(place, lease): (usize, &mut Lease)| loop {
            // Leadership ends at the renew deadline, also while a renewal waits for a response.
            let deadline = deadlines.borrow()[place];
            let renewal = tokio::select! {
                biased;
                () = sleep_until(deadline) => return (lease.name.clone(), "not renewed in time".to_owned()),
                renewal = lease.renew_when_due(retry) => renewal,
            };
            match renewal {
                Renewal::Renewed => {}
                Renewal::Taken(holder) => return (lease.name.clone(), format!("{holder} has taken it")),
                Renewal::Failed(error) => {
                    tracing::warn!(lease = lease.name, %error, "a Lease could not be renewed; the agent retries");
                }
            }
            deadlines.send_modify(|all| all[place] = lease.deadline().unwrap_or(all[place]));
            // Wakes nobody: the later deadline matters only to those who ask.
            state.send_if_modified(|state| {
                *state = leading(&deadlines.borrow());
                false
            });
        };
        future::select_all(self.leases.iter_mut().enumerate().map(|lease| keep(lease).boxed())).await.0
    }

    /// Returns the time at which leadership ends for each Lease without another renewal of it, in the order of the
    /// Leases.
    fn deadlines(&self) -> Vec<Instant> {
        self.leases.iter().filter_map(Lease::deadline).collect()
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

/// Returns the state of a leader whose Leases have these deadlines.
fn leading(deadlines: &[Instant]) -> Leadership {
    let until = deadlines.iter().min().copied();
    Leadership::Leading { until: Some(until.expect("a leader holds all Leases: the names are not empty")) }
}

/// Returns the agent kind in a holder's identity, if it differs from this agent's kind. Then an agent of another kind
/// competes for this Lease by mistake.
///
/// Identities of client-go have two parts (`<hostname>_<uuid>`, and no hostname has an underscore). Identities of
/// fleetnet have three parts.
fn other_kind<'a>(holder: &'a str, ours: &str) -> Option<&'a str> {
    let kind = |identity: &'a str| {
        let mut parts = identity.split('_');
        let kind = parts.next()?;
        (parts.count() == 2).then_some(kind)
    };
    kind(holder).filter(|kind| Some(*kind) != ours.split('_').next())
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
#[path = "lease_tests.rs"]
mod tests;
