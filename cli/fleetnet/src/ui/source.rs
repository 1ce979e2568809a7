//! Clusters that the page shows: those of kubeconfigs, or those of the sandbox in this process.

use super::side::Side;
use crate::cli::contexts::ClusterFlags;
use crate::cli::exit::Stop;
use crate::cli::fleet::{Breadth, Fleet};
use crate::cli::output::progress::Progress;
use crate::limits::UI_FIND_AGAIN;
use diagnosis::Snapshot;
use diagnosis::agents::AgentNamespaces;
use diagnosis::read::{Limits, Scope, Target, read};
#[cfg(test)]
use diagnosis::snapshot::{Failure, FailureClass};
use kube::Client;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
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

    /// Returns a client for each cluster to which a context leads.
    pub(super) fn clients(&self) -> Vec<(Side, &Client)> {
        let member = |(id, client): (&str, _)| (Side::Member(id.to_owned()), client);
        match self {
            Self::Fleet(fleet) => {
                let (hub, members) = fleet.clients();
                std::iter::once((Side::Hub, hub)).chain(members.map(member)).collect()
            }
            Self::Sandbox(targets) => {
                let members = targets.members.iter().map(|(id, target)| (Side::Member(id.clone()), target));
                let all = std::iter::once((Side::Hub, &targets.hub)).chain(members);
                all.filter_map(|(side, target)| Some((side, target.client.as_ref().ok()?))).collect()
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

/// Result of a search, with its time.
type SearchResult = Result<(Instant, Arc<Clusters>), Stop>;

/// Finds the clusters, and remembers them for a while.
pub(super) struct Finder {
    source: Source,
    /// Result of the last search.
    found: watch::Sender<Option<SearchResult>>,
}

impl Finder {
    pub(super) fn new(source: Source) -> Self {
        Self { source, found: watch::Sender::new(None) }
    }

    /// Returns the namespaces of the agents.
    pub(super) fn agents(&self) -> AgentNamespaces {
        match &self.source {
            Source::Kubeconfigs(flags) => flags.agents(),
            Source::Sandbox(_) => AgentNamespaces::default(),
        }
    }

    /// Waits until the clusters of the sandbox run, or until it has ended.
    pub(super) async fn started(&self) {
        if let Source::Sandbox(targets) = &self.source {
            // The next search returns an error if the sandbox has ended.
            let _ = targets.clone().wait_for(Option::is_some).await;
        }
    }

    /// Returns the clusters of the last search, also while the next search runs. Waits for the first search.
    ///
    /// # Errors
    /// As [`Finder::search`].
    pub(super) async fn clusters(&self) -> Result<Arc<Clusters>, Stop> {
        let mut found = self.found.subscribe();
        let last = found.wait_for(Option::is_some).await.ok().and_then(|last| last.clone());
        let last = last.unwrap_or_else(|| Err(Stop::fault("the search for the clusters has ended")));
        last.map(|(_, clusters)| clusters)
    }

    /// Returns the clusters. Searches for them again after a while, because members join and leave. In the sandbox,
    /// waits until the clusters run.
    ///
    /// # Errors
    /// If a kubeconfig or the hub's context is wrong, or the sandbox has ended.
    pub(super) async fn search(&self) -> Result<Arc<Clusters>, Stop> {
        if let Some(Ok((since, clusters))) = &*self.found.borrow()
            && since.elapsed() < UI_FIND_AGAIN
        {
            return Ok(Arc::clone(clusters));
        }
        self.begin(&Progress::quiet()).await
    }

    /// Searches for the clusters now. A wrong command line ends the command by the error of the first search.
    ///
    /// # Errors
    /// As [`Finder::search`].
    pub(super) async fn begin(&self, progress: &Progress) -> Result<Arc<Clusters>, Stop> {
        let found = self.find(progress).await.map(Arc::new);
        self.found.send_replace(Some(found.clone().map(|clusters| (Instant::now(), clusters))));
        found
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

#[cfg(test)]
impl Targets {
    /// Returns the clusters of a sandbox whose hub cannot be reached, for tests.
    pub(super) fn unreachable() -> Self {
        let class = FailureClass::Tcp;
        let failure = Failure { class, host: String::new(), port: None, detail: String::new() };
        let (context, server_url) = (None, String::new());
        let hub = Target { context, server_url, authority: None, proxy: None, client: Err(failure) };
        Self { hub, members: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn the_clusters_of_the_last_search_are_there_while_the_next_one_runs() {
        let targets = Arc::new(Targets::unreachable());
        let source = watch::Sender::new(Some(Arc::clone(&targets)));
        let finder = Finder::new(Source::Sandbox(source.subscribe()));
        let first = finder.search().await.unwrap();
        tokio::time::advance(UI_FIND_AGAIN).await;
        source.send_replace(None);
        let mut search = Box::pin(finder.search());
        assert!(timeout(UI_FIND_AGAIN, &mut search).await.is_err(), "the search waits for the clusters");
        let last = timeout(UI_FIND_AGAIN, finder.clusters()).await.expect("waited for the last clusters").unwrap();
        assert!(Arc::ptr_eq(&last, &first));
        source.send_replace(Some(targets));
        assert!(!Arc::ptr_eq(&search.await.unwrap(), &first));
    }
}
