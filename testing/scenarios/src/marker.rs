//! Marker: an additional Service in a scenario. When the importer has a change of the marker, the agents have handled
//! all earlier changes.

use crate::environment::{Backend, Environment};
use anyhow::ensure;
use harness::audit::Ledger;
use harness::user::{Consume, User};

const MARKER: &str = "marker";
/// Number of writes for one change of the marker: for the exported slice, the distributed slice and the imported slice.
const CHANGE: usize = 3;

/// Additional Service, to detect that the agents have handled all earlier changes. The first member exports the
/// Service, and the second member imports it.
pub struct Marker {
    exporter: User,
    importer: User,
    changes: usize,
}

impl Marker {
    /// Creates the marker's Service in the users' namespace, exports it and imports it.
    pub async fn make(env: &Environment<impl Backend>) -> anyhow::Result<Self> {
        let (exporter, importer) = (env.user(0), env.user(1));
        exporter.create_service(MARKER).await?;
        exporter.create_slice(MARKER, MARKER, &["10.9.0.0"]).await?;
        exporter.export(MARKER).await?;
        importer.import(MARKER, MARKER, Consume::ClusterIp).await?;
        importer.sees(MARKER, &["10.9.0.0"]).await?;
        importer.sees_import(MARKER, "True").await?;
        Ok(Self { exporter, importer, changes: 0 })
    }

    /// Changes the marker's Service and waits until the importer has this change. Then the agents have handled all
    /// earlier changes too.
    pub async fn change(&mut self) -> anyhow::Result<()> {
        self.changes += 1;
        let address = format!("10.9.{}.{}", self.changes / 250, self.changes % 250 + 1);
        self.exporter.set_endpoints(MARKER, &[&address]).await?;
        self.importer.sees(MARKER, &[&address]).await.map(drop)
    }

    /// Checks that a change of the marker costs `CHANGE` writes and that there are no other writes, so the fleet has
    /// settled.
    pub async fn is_settled(&mut self, env: &Environment<impl Backend>) -> anyhow::Result<()> {
        // Agents may still be making writes for earlier actions. These writes are done when the importer has the
        // change.
        self.change().await?;
        let mark = env.backend.mark().await?;
        self.change().await?;
        let ledger = env.backend.since(&mark).await?.objects();
        ensure!(ledger.clusters().map(Ledger::count).sum::<usize>() == CHANGE, "the fleet is not settled:\n{ledger}");
        Ok(())
    }
}
