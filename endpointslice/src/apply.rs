//! Carrying out a plan.
//!
//! ```text
//!  each address type:  creates ─► updates ─► deletes       a phase begins when the one before it went well
//!  all went well:      deletes of address types that the Service does not have any more
//! ```
//!
//! So nothing is removed if an addition failed. The writes of one phase do not depend on one another: some of them are
//! under way at once, and one that fails does not keep the others from being made.

use crate::model::{AddressType, EndpointSlice};
use crate::plan::{Draft, Plan, ServiceName, Update};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use thiserror::Error;

/// What writes slices: an API server's client, or memory in a test.
pub trait SliceWriter: Sync {
    /// Why a write failed.
    type Error: std::error::Error + Send + 'static;

    /// Creates `slice`, which has `generateName` instead of a name, and answers what was stored.
    fn create(&self, slice: &EndpointSlice) -> impl Future<Output = Result<EndpointSlice, Self::Error>> + Send;

    /// Makes the slice as `update` says and answers what was stored: with [`Update::merge_patch`], which leaves alone
    /// what others wrote on it meanwhile, or by replacing it with [`Update::after`].
    fn update(&self, update: &Update) -> impl Future<Output = Result<EndpointSlice, Self::Error>> + Send;

    /// Deletes `slice`; its UID is the precondition. Whether one that is gone already is an error is the writer's to say.
    fn delete(&self, slice: &EndpointSlice) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Whether a create failed because its namespace is being deleted (cause `NamespaceTerminating`): nothing can be
    /// created there any more and what is there goes by itself.
    fn is_namespace_terminating(&self, error: &Self::Error) -> bool;
}

/// What came of a plan.
#[derive(Debug)]
pub struct Applied<E> {
    /// The writes that were made.
    pub written: Vec<Written>,
    /// The address types for which everything was done.
    pub completed: Vec<AddressType>,
    /// Whether it was given up because the namespace is being deleted, which is no error.
    pub namespace_terminating: bool,
    /// The writes that failed.
    pub errors: Vec<ApplyError<E>>,
}

impl<E> Default for Applied<E> {
    fn default() -> Self {
        Self { written: Vec::new(), completed: Vec::new(), namespace_terminating: false, errors: Vec::new() }
    }
}

/// A write that was made.
#[derive(Clone, Debug)]
pub enum Written {
    /// A slice was created; what was stored.
    Created(EndpointSlice),
    /// A slice was updated; what was stored.
    Updated(EndpointSlice),
    /// A slice was deleted; what it was.
    Deleted(Arc<EndpointSlice>),
}

/// A write that failed. The texts are kube-controller-manager's, which people look for in events.
#[derive(Debug, Error)]
pub enum ApplyError<E> {
    /// A slice could not be created.
    #[error("failed to create EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Create {
        /// The Service.
        service: ServiceName,
        /// Why.
        cause: E,
    },
    /// A slice could not be updated.
    #[error("failed to update {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Update {
        /// The slice's name.
        slice: crate::Text,
        /// The Service.
        service: ServiceName,
        /// Why.
        cause: E,
    },
    /// A slice could not be deleted.
    #[error("failed to delete {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Delete {
        /// The slice's name.
        slice: crate::Text,
        /// The Service.
        service: ServiceName,
        /// Why.
        cause: E,
    },
    /// A slice of an address type that the Service does not have any more could not be deleted.
    #[error("error deleting {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    DeleteUnsupported {
        /// The slice's name.
        slice: crate::Text,
        /// The Service.
        service: ServiceName,
        /// Why.
        cause: E,
    },
}

impl<E> Applied<E> {
    /// Whether everything was done, as far as it can be.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.errors.is_empty()
    }

    fn absorb(&mut self, other: Self) {
        self.written.extend(other.written);
        self.completed.extend(other.completed);
        self.namespace_terminating |= other.namespace_terminating;
        self.errors.extend(other.errors);
    }
}

/// Carries out `plan`, with at most `parallelism` writes of each address type under way at once.
pub async fn apply<W: SliceWriter>(plan: &Plan, writer: &W, parallelism: NonZeroUsize) -> Applied<W::Error> {
    let run = Run { service: &plan.service, writer, parallelism: parallelism.get() };
    let mut applied = Applied::default();
    for family in join_all(plan.families.iter().map(|family| run.family(&family.draft))).await {
        applied.absorb(family);
    }
    // The slices of another address type may be all that consumers have until the new ones are there.
    if applied.is_success() && !applied.namespace_terminating {
        applied.absorb(run.unsupported(&plan.unsupported).await);
    }
    applied
}

/// One application of a plan.
struct Run<'a, W> {
    service: &'a ServiceName,
    writer: &'a W,
    parallelism: usize,
}

impl<W: SliceWriter> Run<'_, W> {
    /// The phases of one address type.
    async fn family(&self, draft: &Draft) -> Applied<W::Error> {
        let mut applied = self.creates(&draft.creates).await;
        if !applied.is_success() || applied.namespace_terminating {
            return applied;
        }
        applied.absorb(self.updates(&draft.updates).await);
        if !applied.is_success() {
            return applied;
        }
        let deletes = self.deletes(&draft.deletes).await;
        for (slice, outcome) in deletes {
            let failed = |cause| ApplyError::Delete { slice: name(&slice), service: self.service.clone(), cause };
            match outcome {
                Ok(()) => applied.written.push(Written::Deleted(slice)),
                Err(cause) => applied.errors.push(failed(cause)),
            }
        }
        if applied.is_success() {
            applied.completed.push(draft.address_type.clone());
        }
        applied
    }

    async fn creates(&self, slices: &[EndpointSlice]) -> Applied<W::Error> {
        let mut applied = Applied::default();
        let calls: Vec<_> = slices.iter().map(|slice| self.writer.create(slice)).collect();
        let mut outcomes = stream::iter(calls).buffered(self.parallelism);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(stored) => applied.written.push(Written::Created(stored)),
                Err(cause) if self.writer.is_namespace_terminating(&cause) => applied.namespace_terminating = true,
                Err(cause) => applied.errors.push(ApplyError::Create { service: self.service.clone(), cause }),
            }
        }
        applied
    }

    async fn updates(&self, updates: &[Update]) -> Applied<W::Error> {
        let mut applied = Applied::default();
        let calls: Vec<_> = updates.iter().map(|update| self.writer.update(update)).collect();
        let mut outcomes = stream::iter(calls).buffered(self.parallelism).zip(stream::iter(updates));
        while let Some((outcome, update)) = outcomes.next().await {
            let (slice, service) = (name(&update.before), self.service.clone());
            match outcome {
                Ok(stored) => applied.written.push(Written::Updated(stored)),
                Err(cause) => applied.errors.push(ApplyError::Update { slice, service, cause }),
            }
        }
        applied
    }

    async fn unsupported(&self, slices: &[Arc<EndpointSlice>]) -> Applied<W::Error> {
        let mut applied = Applied::default();
        for (slice, outcome) in self.deletes(slices).await {
            let (name, service) = (name(&slice), self.service.clone());
            match outcome {
                Ok(()) => applied.written.push(Written::Deleted(slice)),
                Err(cause) => applied.errors.push(ApplyError::DeleteUnsupported { slice: name, service, cause }),
            }
        }
        applied
    }

    async fn deletes(&self, slices: &[Arc<EndpointSlice>]) -> Vec<(Arc<EndpointSlice>, Result<(), W::Error>)> {
        let calls: Vec<_> = slices.iter().map(|slice| self.writer.delete(slice)).collect();
        let outcomes: Vec<_> = stream::iter(calls).buffered(self.parallelism).collect().await;
        slices.iter().cloned().zip(outcomes).collect()
    }
}

fn name(slice: &EndpointSlice) -> crate::Text {
    slice.metadata.name.clone()
}
