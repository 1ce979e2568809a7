//! Reads of the objects of fights, which find the name of the other writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};

use super::fights::Turn;
use super::logic::{Fight, Logic};
use super::slots::{ClusterIndex, Target};
use super::state::Engine;
use crate::io::events::Occasion;
use crate::io::source::SourceSpec;
use crate::io::writer;
use crate::limits::INQUIRIES_PER_CLUSTER;
use crate::tasks::unless_panicked;

/// Result of a GET that looked up the other writer in a fight: index of the cluster, the fight, and the name of that
/// writer.
pub(crate) type Inquired<L> = (ClusterIndex, Turn<<L as Logic>::Key, <L as Logic>::Source>, String);

/// Fight with another writer, whose name the agent has not looked up yet: the source of the object, and the agent's key
/// that writes the object.
type Waiting<L> = (Arc<SourceSpec<L>>, <L as Logic>::Key);

/// GETs that find the name of the other writer in a fight. At most [`INQUIRIES_PER_CLUSTER`] run at once in one
/// cluster, because each GET needs a connection.
pub(crate) struct Inquiries<L: Logic> {
    under_way: JoinSet<Inquired<L>>,
    of_clusters: Vec<OfCluster<L>>,
}

struct OfCluster<L: Logic> {
    under_way: usize,
    /// Fights that wait for their GET, by object. The GET finds the name of the other writer.
    waiting: BTreeMap<Target<L::Source>, Waiting<L>>,
}

impl<L: Logic> Inquiries<L> {
    pub(crate) fn new(clusters: usize) -> Self {
        let of_cluster = |_| OfCluster { under_way: 0, waiting: BTreeMap::new() };
        Self { under_way: JoinSet::new(), of_clusters: (0..clusters).map(of_cluster).collect() }
    }

    /// Looks up the other writer in a fight with a GET: now, or when an earlier lookup in this cluster has ended.
    pub(crate) fn ask(&mut self, cluster: ClusterIndex, spec: Arc<SourceSpec<L>>, turn: Turn<L::Key, L::Source>) {
        self.of_clusters[cluster].waiting.insert(turn.target, (spec, turn.key));
        self.begin(cluster);
    }

    fn begin(&mut self, cluster: ClusterIndex) {
        let of_cluster = &mut self.of_clusters[cluster];
        if of_cluster.under_way == INQUIRIES_PER_CLUSTER {
            return;
        }
        let Some((target, (spec, key))) = of_cluster.waiting.pop_first() else { return };
        of_cluster.under_way += 1;
        self.under_way.spawn(async move {
            let rivals = writer::rivals(spec, &target).await;
            (cluster, Turn { key, target }, rivals)
        });
    }

    /// Starts the next waiting GET of this cluster after another GET has ended.
    fn ended(&mut self, cluster: ClusterIndex) {
        self.of_clusters[cluster].under_way -= 1;
        self.begin(cluster);
    }

    /// Cancels the GET for a fight that is over. Returns true if the GET had not started, so the start of this fight
    /// was never reported.
    fn cancel(&mut self, cluster: ClusterIndex, target: &Target<L::Source>) -> bool {
        self.of_clusters[cluster].waiting.remove(target).is_some()
    }

    pub(crate) fn try_join_next(&mut self) -> Option<Result<Inquired<L>, JoinError>> {
        self.under_way.try_join_next()
    }

    pub(crate) async fn join_next(&mut self) -> Option<Result<Inquired<L>, JoinError>> {
        self.under_way.join_next().await
    }
}

impl<L: Logic> Engine<L> {
    pub(crate) fn on_inquired(&mut self, joined: Result<Inquired<L>, JoinError>) {
        match unless_panicked(joined) {
            Ok((cluster, turn, by)) => {
                self.inquiries.ended(cluster);
                self.report_fight(turn, Some(by));
            }
            Err(error) => tracing::error!(%error, "a look at an object was cancelled"),
        }
    }

    /// Reports to the agent that these fights with other writers are over. Skips a fight whose start was never
    /// reported.
    pub(crate) fn fights_are_over(&mut self, over: Vec<Turn<L::Key, L::Source>>) {
        for turn in over {
            let cluster = self.sources.get(&turn.target.source).map(|source| source.cluster);
            if !cluster.is_some_and(|cluster| self.inquiries.cancel(cluster, &turn.target)) {
                self.report_fight(turn, None);
            }
        }
    }

    /// Reports to the agent that a fight has begun or is over. `by` is the name of the other writer, or `None` if the
    /// fight is over.
    fn report_fight(&mut self, Turn { key, target }: Turn<L::Key, L::Source>, by: Option<String>) {
        let Some(source) = self.sources.get(&target.source) else { return };
        let Target { source: id, name } = target;
        let (cluster, kind) = (source.spec.cluster.name.clone(), source.spec.resource.kind);
        let (namespace_of, name_of) = (&*name.namespace, &*name.name);
        match &by {
            None => tracing::info!(
                side = cluster,
                kind,
                namespace = namespace_of,
                name = name_of,
                "no other writer undoes the agent's writes to this object any more"
            ),
            Some(by) => tracing::warn!(
                side = cluster,
                kind,
                namespace = namespace_of,
                name = name_of,
                by,
                "another writer undoes the agent's writes to this object, so the agent repairs it once a minute only; \
                 stop that writer (the audit log has its requests)"
            ),
        }
        let fight = Fight { source: id, cluster, kind, name: name.clone(), by };
        let mut keys = Vec::new();
        for record in self.logic.fight(&key, &fight, &mut keys) {
            self.record(&record, Occasion::NotDone);
        }
        self.requeue(keys);
    }
}
