//! [`Memory`]: a writer that answers at once, and what came of its answers.

use anyhow::Context as _;
use endpointslice::apply::Written;
use endpointslice::model::EndpointSlice;
use endpointslice::plan::{Plan, Update};
use endpointslice::{SliceWriter, apply};
use futures::FutureExt as _;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers what an API server would store: the slice with a name and a generation of its own.
#[derive(Debug, Default)]
pub struct Memory {
    created: AtomicU64,
}

impl Memory {
    /// Carries out `plan`.
    ///
    /// # Errors
    /// None that memory makes: it answers at once and refuses nothing.
    pub fn apply(&self, plan: &Plan) -> anyhow::Result<Vec<Written>> {
        let applied = apply(plan, self, NonZeroUsize::MIN).now_or_never().context("memory answers at once")?;
        Ok(applied.written)
    }
}

impl SliceWriter for Memory {
    type Error = Infallible;

    async fn create(&self, slice: &EndpointSlice) -> Result<EndpointSlice, Infallible> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
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

/// The slices that there are after `written`, by name.
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
