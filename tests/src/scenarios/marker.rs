//! A Service whose changes show that all that came before has been seen.

use crate::audit::Ledger;
use crate::environment::{Backend, Environment};
use crate::user::{Consume, User};
use anyhow::ensure;

pub const MARKER: &str = "marker";
/// Writes of a change: one in the hub for the export, one in the hub for the import, one in the importer.
const CHANGE: usize = 3;

/// The Service, exported by the first member and imported by the second.
pub struct Marker {
    exporter: User,
    importer: User,
    changes: usize,
}

impl Marker {
    /// Creates it in the users' namespace.
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

    /// Changes it and waits until that has arrived.
    #[allow(clippy::missing_errors_doc)]
    pub async fn change(&mut self) -> anyhow::Result<()> {
        self.changes += 1;
        let address = format!("10.9.{}.{}", self.changes / 250, self.changes % 250 + 1);
        self.exporter.set_endpoints(MARKER, &[&address]).await?;
        self.importer.sees(MARKER, &[&address]).await.map(drop)
    }

    /// Checks that a change makes its own writes and no others.
    pub async fn is_settled(&mut self, env: &Environment<impl Backend>) -> anyhow::Result<()> {
        // Effects of earlier actions may still be under way: they are over once a change has come after them.
        self.change().await?;
        let mark = env.backend.mark().await?;
        self.change().await?;
        let ledger = env.backend.since(&mark).await?.objects();
        ensure!(ledger.clusters().map(Ledger::count).sum::<usize>() == CHANGE, "the fleet is not settled:\n{ledger}");
        Ok(())
    }
}
