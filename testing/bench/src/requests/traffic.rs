//! Clients in both clusters, and their counts: [`Traffic`].

use super::report::{Counts, Side};
use crate::limits::REQUESTS_CHECK;
use anyhow::Context as _;
use futures::future::try_join_all;
use harness::eventually::Deadline;
use packets::image::result::Totals;
use packets::limits::SETTLED;
use packets::workload::Client;

/// Running clients in the order of [`Side::ALL`], with their counts at the start of the measurement.
pub struct Traffic {
    clients: [Client; 2],
    before: Vec<Totals>,
}

impl Traffic {
    /// Starts the measurement.
    pub(super) async fn of(clients: [Client; 2]) -> anyhow::Result<Self> {
        let mut traffic = Self { clients, before: Vec::new() };
        traffic.before = traffic.totals().await?;
        Ok(traffic)
    }

    /// Returns the present counts of each client.
    pub async fn totals(&self) -> anyhow::Result<Vec<Totals>> {
        try_join_all(self.clients.iter().map(Client::totals)).await
    }

    /// Waits until each client has an answer of this pod. Returns the counts of each client.
    pub async fn has_answers_of(&self, pod: &str) -> anyhow::Result<Vec<Totals>> {
        let deadline = Deadline::start();
        loop {
            let totals = self.totals().await?;
            if totals.iter().all(|totals| totals.servers.contains_key(pod)) {
                return Ok(totals);
            }
            deadline.check().with_context(|| format!("not each client has an answer of {pod}: {totals:?}"))?;
            tokio::time::sleep(REQUESTS_CHECK).await;
        }
    }

    /// Waits until each server that had answered before has answered again.
    pub(super) async fn answers_again(&self, before: &[Totals]) -> anyhow::Result<()> {
        let deadline = Deadline::start();
        loop {
            let totals = self.totals().await?;
            let silent = before.iter().zip(&totals).flat_map(|(before, now)| {
                let is_silent = |server: &&String| now.servers[*server].answers == before.servers[*server].answers;
                before.servers.keys().filter(is_silent)
            });
            let silent: Vec<&String> = silent.collect();
            if silent.is_empty() {
                return Ok(());
            }
            deadline.check().with_context(|| format!("these servers have no requests again: {silent:?}"))?;
            tokio::time::sleep(REQUESTS_CHECK).await;
        }
    }

    /// Ends the measurement. Returns the counts of each client from its start to its end.
    pub async fn stop(&self) -> anyhow::Result<[(Side, Counts); 2]> {
        // The last rules of kube-proxy are part of the measurement.
        tokio::time::sleep(SETTLED).await;
        let after = try_join_all(self.clients.iter().map(Client::stop)).await?;
        Ok(counts(&self.before, &after))
    }
}

/// Returns the counts of each client between two points in time.
pub(super) fn counts(before: &[Totals], after: &[Totals]) -> [(Side, Counts); 2] {
    Side::ALL.map(|side| (side, Counts::between(&before[side.index()], &after[side.index()])))
}
