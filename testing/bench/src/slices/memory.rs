//! Simulated API server in memory that responds immediately, with the bookkeeping of a controller.

use anyhow::Context as _;
use endpointslice::apply::Written;
use endpointslice::metrics::{Metrics, SyncResult};
use endpointslice::model::{EndpointSlice, Service};
use endpointslice::plan::{Plan, Update};
use endpointslice::tracker::{SharedTracker, SliceTracker, TrackedWriter};
use endpointslice::{Config, SliceWriter, apply};
use futures::FutureExt as _;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Simulated API server and controller: executes plans, tracks the writes and updates metrics, as the reconciler of
/// `k8s.io/endpointslice` does.
#[derive(Debug)]
pub struct Memory {
    tracker: Tracker,
    metrics: Metrics,
    /// Number in the name of the next slice to create. It starts above the highest number in the names of the initial
    /// slices.
    created: u64,
}

impl Memory {
    /// Returns a server that stores these slices.
    pub fn new(config: &Config, existing: &[Arc<EndpointSlice>]) -> anyhow::Result<Self> {
        let metrics = Metrics::new(&prometheus::Registry::new(), config)?;
        Ok(Self { tracker: Tracker::default(), metrics, created: highest_number(existing) })
    }

    /// Executes a plan. Created slices get the same names in every run, so that runs are comparable.
    pub fn apply(&mut self, service: &Service, plan: &Plan) -> anyhow::Result<Vec<Written>> {
        self.metrics.planned(service, plan);
        let server = Server { created: self.created.into() };
        let writer = TrackedWriter::new(&server, &self.tracker, service);
        let applied = apply(plan, &writer, NonZeroUsize::MIN).now_or_never().context("memory answers at once")?;
        self.metrics.applied(service, plan, &applied);
        self.metrics.synced(SyncResult::Success);
        Ok(applied.written)
    }
}

/// Returns the highest number at the end of a slice's name.
fn highest_number(slices: &[Arc<EndpointSlice>]) -> u64 {
    let number = |slice: &Arc<EndpointSlice>| {
        let name = slice.metadata.name.as_str();
        name[name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len()..].parse().ok()
    };
    // Ignore names with a number near the maximum, because no higher numbers would be left for new names. The bench
    // itself does not create such names.
    slices.iter().filter_map(number).filter(|number: &u64| *number < u64::MAX / 2).max().unwrap_or_default()
}

#[derive(Debug, Default)]
struct Tracker(Mutex<SliceTracker>);

impl SharedTracker for Tracker {
    fn with<T>(&self, act: impl FnOnce(&mut SliceTracker) -> T) -> T {
        act(&mut self.0.lock())
    }
}

/// Simulated API server: responds to a write with the slice, its name and its generation.
#[derive(Debug)]
struct Server {
    created: AtomicU64,
}

impl SliceWriter for Server {
    type Error = Infallible;

    async fn create(&self, slice: &EndpointSlice) -> Result<EndpointSlice, Infallible> {
        let number = 1 + self.created.fetch_add(1, Ordering::Relaxed);
        let mut stored = slice.clone();
        stored.metadata.name = format!("{}{number:05}", slice.metadata.generate_name).into();
        stored.metadata.uid = stored.metadata.name.clone();
        stored.metadata.generation = 1;
        Ok(stored)
    }

    async fn update(&self, update: &Update) -> Result<EndpointSlice, Infallible> {
        let mut stored = update.after.clone();
        stored.metadata.generation += 1;
        Ok(stored)
    }

    async fn delete(&self, _slice: &EndpointSlice) -> Result<(), Infallible> {
        Ok(())
    }

    fn is_namespace_terminating(&self, _error: &Infallible) -> bool {
        false
    }
}

/// Returns all slices after these writes, ordered by name.
#[must_use]
pub fn slices(existing: &[Arc<EndpointSlice>], written: Vec<Written>) -> Vec<Arc<EndpointSlice>> {
    let name = |slice: &EndpointSlice| slice.metadata.name.to_string();
    let mut slices: BTreeMap<_, _> = existing.iter().map(|slice| (name(slice), Arc::clone(slice))).collect();
    for write in written {
        match write {
            Written::Created(slice) | Written::Updated(slice) => slices.insert(name(&slice), Arc::new(slice)),
            Written::Deleted(slice) => slices.remove(&name(&slice)),
        };
    }
    slices.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::full;
    use crate::slices::scenario::fixtures::{pod, settled};

    /// Adds two pods to a Service whose slices have these names and two endpoints each. Returns the length of each
    /// slice afterwards.
    fn lengths_after(existing: &[&str]) -> Vec<(String, usize)> {
        let mut scenario = settled(2 * existing.len(), 2);
        for (slice, name) in scenario.existing.iter_mut().zip(existing) {
            Arc::make_mut(slice).metadata.name = (*name).into();
        }
        scenario.pods.extend([pod(90), pod(91)]);
        let (slices, counts) = full::reconcile(&scenario).unwrap();
        assert_eq!((counts.creates, counts.updates, counts.deletes), (1, 0, 0));
        slices.iter().map(|slice| (slice.metadata.name.to_string(), slice.endpoints.len())).collect()
    }

    #[test]
    fn a_slice_that_is_created_takes_no_name_that_there_is() {
        let lengths = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 2)).collect::<Vec<_>>();
        assert_eq!(lengths_after(&["web-00002"]), lengths(&["web-00002", "web-00003"]));
        assert_eq!(lengths_after(&["web-00003", "web-00004"]), lengths(&["web-00003", "web-00004", "web-00005"]));
        assert_eq!(lengths_after(&["web-x7k2p"]), lengths(&["web-00001", "web-x7k2p"]));
        assert_eq!(lengths_after(&["web-9z", "web-00001"]), lengths(&["web-00001", "web-00002", "web-9z"]));
    }
}
