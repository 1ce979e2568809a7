//! Clusters that the page shows: those of kubeconfigs, or those of the sandbox in this process.

use crate::cli::contexts::ClusterFlags;
use crate::cli::exit::Stop;
use crate::cli::fleet::{Breadth, Fleet};
use crate::cli::output::progress::Progress;
use crate::limits::UI_FIND_AGAIN;
use diagnosis::Snapshot;
use diagnosis::agents::AgentNamespaces;
use diagnosis::read::{Limits, Scope, Target, read};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// Source of the clusters.
pub(crate) enum Source {
    /// Contexts of kubeconfigs, as the user chooses them.
    Kubeconfigs(Box<ClusterFlags>),
    /// Clusters of the sandbox. `None` until they run.
    Sandbox(watch::Receiver<Option<Arc<Targets>>>),
}

/// Clusters of the sandbox.
pub(crate) struct Targets {
    pub(crate) hub: Target,
    /// Members by cluster id.
    pub(crate) members: BTreeMap<String, Target>,
}

/// Clusters that were found.
pub(super) enum Clusters {
    Fleet(Box<Fleet>),
    Sandbox(Arc<Targets>),
}

impl Clusters {
    /// Reads the objects for a question.
    pub(super) async fn snapshot(&self, scope: &Scope) -> Snapshot {
        match self {
            Self::Fleet(fleet) => Box::pin(fleet.snapshot(scope, &Progress::quiet())).await,
            Self::Sandbox(targets) => {
                let (hub, agents) = (Some(&targets.hub), AgentNamespaces::default());
                Box::pin(read(hub, &targets.members, &agents, scope, Limits::default())).await
            }
        }
    }

    /// Returns the contexts that the user named and that are not in a snapshot.
    pub(super) fn remarks(&self) -> Vec<String> {
        match self {
            Self::Fleet(fleet) => fleet.remarks(),
            Self::Sandbox(_) => Vec::new(),
        }
    }
}

/// Finds the clusters, and remembers them for a while.
pub(super) struct Finder {
    source: Source,
    found: Mutex<Option<(Instant, Arc<Clusters>)>>,
}

impl Finder {
    pub(super) fn new(source: Source) -> Self {
        Self { source, found: Mutex::default() }
    }

    /// Returns the namespaces of the agents.
    pub(super) fn agents(&self) -> AgentNamespaces {
        match &self.source {
            Source::Kubeconfigs(flags) => flags.agents(),
            Source::Sandbox(_) => AgentNamespaces::default(),
        }
    }

    /// Returns the clusters. Looks for them again after a while, because members join and leave. In the sandbox, waits
    /// until the clusters run.
    ///
    /// # Errors
    /// If a kubeconfig or the hub's context is wrong, or the sandbox has ended.
    pub(super) async fn clusters(&self) -> Result<Arc<Clusters>, Stop> {
        let mut found = self.found.lock().await;
        if let Some((since, clusters)) = &*found
            && since.elapsed() < UI_FIND_AGAIN
        {
            return Ok(Arc::clone(clusters));
        }
        let clusters = Arc::new(self.find(&Progress::quiet()).await?);
        *found = Some((Instant::now(), Arc::clone(&clusters)));
        Ok(clusters)
    }

    /// Finds the clusters for the first time, so that a wrong command line ends the command.
    ///
    /// # Errors
    /// As [`Finder::clusters`].
    pub(super) async fn begin(&self, progress: &Progress) -> Result<(), Stop> {
        let clusters = Arc::new(self.find(progress).await?);
        *self.found.lock().await = Some((Instant::now(), clusters));
        Ok(())
    }

    async fn find(&self, progress: &Progress) -> Result<Clusters, Stop> {
        match &self.source {
            Source::Kubeconfigs(flags) => {
                let whole = Limits::default().whole;
                let fleet = Box::pin(Fleet::find(flags, Breadth::All, whole, progress)).await?;
                Ok(Clusters::Fleet(Box::new(fleet)))
            }
            Source::Sandbox(targets) => {
                let mut targets = targets.clone();
                let running =
                    targets.wait_for(Option::is_some).await.map_err(|_| Stop::fault("the sandbox has ended"))?;
                let targets = running.as_ref().map(Arc::clone);
                targets.map(Clusters::Sandbox).ok_or_else(|| Stop::fault("the sandbox does not run yet"))
            }
        }
    }
}
