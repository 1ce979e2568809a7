//! Fleet of an exporting and an importing member, with two replicas of each agent: [`Pair`].

use crate::replicas::Replicas;
use crate::{Fleet, Settings};
use harness::user::User;

/// Running fleet of two members. The fields are dropped in order, so the agents end before their API servers.
pub struct Pair {
    /// Replicas of the hub agent, of the exporter's agent, and of the importer's agent.
    pub agents: Vec<Replicas>,
    pub exporter: User,
    pub importer: User,
    pub fleet: Fleet,
}

impl Pair {
    /// Starts the fleet and its agents. The users have a namespace of their own.
    pub async fn start(namespace: &str) -> anyhow::Result<Self> {
        let fleet = Fleet::start(Settings::default()).await?;
        let namespace = fleet.servers.namespace(namespace).await?;
        let agents = fleet.start_replicas().await?;
        let [exporter, importer] = [0, 1].map(|index| fleet.user(index, &namespace));
        Ok(Self { agents, exporter, importer, fleet })
    }

    /// Returns the cluster id of the exporter.
    #[must_use]
    pub fn exporting(&self) -> &str {
        &self.fleet.servers.members[0].cluster_id
    }
}
