//! Random faults: replicas that are killed, stopped or frozen, connections to the hub that are cut, and servers that do
//! not answer.

use super::Size;
use super::replicas::Replicas;
use fastrand::Rng;
use harness::fleet::Fleet;
use harness::gate::Gate;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(super) struct Trouble {
    /// Number of faults of each kind so far.
    pub(super) counts: BTreeMap<&'static str, usize>,
    until: Instant,
    calm: Duration,
    rng: Rng,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A replica is killed.
    Kill,
    /// A replica stops on request, so that the other one takes over.
    Stop,
    /// A replica does not run for a while, perhaps longer than its Leases last.
    Freeze,
    /// The connections between a member and the hub end.
    Shut,
    /// The connections between a member and the hub stay open and carry nothing.
    Silence,
    /// An API server does not answer for a while.
    Hang,
}

const KINDS: [Kind; 6] = [Kind::Kill, Kind::Stop, Kind::Freeze, Kind::Shut, Kind::Silence, Kind::Hang];

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "replica killed",
            Self::Stop => "replica stopped",
            Self::Freeze => "replica frozen",
            Self::Shut => "connections to the hub cut",
            Self::Silence => "connections to the hub silent",
            Self::Hang => "API server hangs",
        }
    }
}

impl Trouble {
    pub(super) fn new(size: Size, rng: Rng) -> Self {
        let until = Instant::now() + Duration::from_secs(size.seconds.into());
        Self { counts: BTreeMap::new(), until, calm: Duration::from_secs(size.calm.into()), rng }
    }

    /// True until the time is over and each kind of fault has occurred.
    pub(super) fn goes_on(&self) -> bool {
        Instant::now() < self.until || self.counts.len() < KINDS.len()
    }

    /// Waits for a random time, plays one fault until its end, and starts agents again that ended.
    pub(super) async fn one(&mut self, fleet: &Fleet, replicas: &mut Replicas) -> anyhow::Result<()> {
        sleep(self.calm.mul_f64(self.rng.f64())).await;
        let missing = KINDS.into_iter().find(|kind| !self.counts.contains_key(kind.name()));
        let kind = missing.unwrap_or(KINDS[self.rng.usize(..KINDS.len())]);
        *self.counts.entry(kind.name()).or_default() += 1;
        let number = self.rng.usize(..replicas.all.len());
        let replica = &mut replicas.all[number];
        let gate = &replicas.gates[self.rng.usize(..replicas.gates.len())];
        match kind {
            Kind::Kill => {
                replica.kill().await?;
                sleep(self.seconds(6)).await;
            }
            Kind::Stop => replica.terminate().await?,
            Kind::Freeze => {
                if let Some(agent) = &replica.agent {
                    agent.freeze().await?;
                    sleep(self.seconds(25)).await;
                    agent.thaw().await?;
                }
            }
            Kind::Shut | Kind::Silence => {
                gate.set_state(if matches!(kind, Kind::Shut) { Gate::Shut } else { Gate::Silent });
                sleep(self.seconds(25)).await;
                gate.set_state(Gate::Open);
            }
            Kind::Hang => {
                let member = self.rng.usize(..=fleet.members.len());
                let server = fleet.members.get(member).map_or(&fleet.hub, |member| &member.control_plane);
                server.freeze().await?;
                sleep(self.seconds(12)).await;
                server.thaw().await?;
            }
        }
        for replica in &mut replicas.all {
            replica.restart_if_ended().await?;
        }
        Ok(())
    }

    /// Returns a random time up to this number of seconds, or a tenth of it in a run with little calm.
    fn seconds(&mut self, most: u64) -> Duration {
        let most = Duration::from_secs(most).min(self.calm * 2);
        most.mul_f64(self.rng.f64())
    }
}
