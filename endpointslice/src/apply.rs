//! Application of a plan: creates, updates and deletes slices.
//!
//! ```text
//!  each address type:  creates ─► updates ─► deletes       a phase begins if the phase before it succeeded
//!  all succeeded:      deletes of address types that the Service does not have any more
//! ```
//!
//! So no slice is deleted if a create or update failed. The writes of one phase do not depend on one another, so
//! several run at once. A failed write does not stop the other writes of its phase.

use crate::model::{AddressType, EndpointSlice};
use crate::plan::{Draft, Plan, ServiceName, Update};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use thiserror::Error;

/// Writer of slices, for example with a client of an API server. A test can write to memory.
pub trait SliceWriter: Sync {
    /// Error of a failed write.
    type Error: std::error::Error + Send + 'static;

    /// Creates `slice`, which has `generateName` instead of a name. Returns the stored slice.
    fn create(&self, slice: &EndpointSlice) -> impl Future<Output = Result<EndpointSlice, Self::Error>> + Send;

    /// Updates a slice to the content of `update`. Returns the stored slice.
    ///
    /// Either send [`Update::merge_patch`], which keeps what other writers changed on the slice since the plan, or
    /// replace the slice with [`Update::after`].
    fn update(&self, update: &Update) -> impl Future<Output = Result<EndpointSlice, Self::Error>> + Send;

    /// Deletes `slice` with its UID as the precondition. If the slice does not exist any more, the writer may return
    /// success or an error.
    fn delete(&self, slice: &EndpointSlice) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// True if a create failed because its namespace is being deleted (cause `NamespaceTerminating`). Nothing can be
    /// created in that namespace any more, and the existing objects are removed with it.
    fn is_namespace_terminating(&self, error: &Self::Error) -> bool;
}

/// Result of applying a plan.
#[derive(Debug)]
pub struct Applied<E> {
    /// Writes that succeeded.
    pub written: Vec<Written>,
    /// Address types for which every write succeeded.
    pub completed: Vec<AddressType>,
    /// True if [`apply`] stopped because the namespace is being deleted. This is not an error.
    pub namespace_terminating: bool,
    /// Writes that failed.
    pub errors: Vec<ApplyError<E>>,
}

impl<E> Default for Applied<E> {
    fn default() -> Self {
        Self { written: Vec::new(), completed: Vec::new(), namespace_terminating: false, errors: Vec::new() }
    }
}

/// Write that succeeded.
#[derive(Clone, Debug)]
pub enum Written {
    /// A slice was created; the value is the stored slice.
    Created(EndpointSlice),
    /// A slice was updated; the value is the stored slice.
    Updated(EndpointSlice),
    /// A slice was deleted; the value is the slice before the delete.
    Deleted(Arc<EndpointSlice>),
}

/// Failed write. The messages are those of kube-controller-manager, because people search for them in Events.
#[derive(Debug, Error)]
pub enum ApplyError<E> {
    /// A slice could not be created.
    #[error("failed to create EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Create {
        /// Service that the slice was planned for.
        service: ServiceName,
        /// Error of the [`SliceWriter`].
        cause: E,
    },
    /// A slice could not be updated.
    #[error("failed to update {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Update {
        /// Name of the slice.
        slice: crate::Text,
        /// Service of the slice.
        service: ServiceName,
        /// Error of the [`SliceWriter`].
        cause: E,
    },
    /// A slice could not be deleted.
    #[error("failed to delete {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    Delete {
        /// Name of the slice.
        slice: crate::Text,
        /// Service of the slice.
        service: ServiceName,
        /// Error of the [`SliceWriter`].
        cause: E,
    },
    /// A slice of an address type that the Service no longer has could not be deleted.
    #[error("error deleting {slice} EndpointSlice for Service {}/{}: {cause}", service.namespace, service.name)]
    DeleteUnsupported {
        /// Name of the slice.
        slice: crate::Text,
        /// Service of the slice.
        service: ServiceName,
        /// Error of the [`SliceWriter`].
        cause: E,
    },
}

impl<E> Applied<E> {
    /// True if no write failed. A plan that stopped because its namespace is being deleted is a success too.
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

/// Writes `plan` through `writer`, with at most `parallelism` writes of each address type at once.
pub async fn apply<W: SliceWriter>(plan: &Plan, writer: &W, parallelism: NonZeroUsize) -> Applied<W::Error> {
    let run = Run { service: &plan.service, writer, parallelism: parallelism.get() };
    let mut applied = Applied::default();
    for family in join_all(plan.families.iter().map(|family| run.family(&family.draft))).await {
        applied.absorb(family);
    }
    // Slices of address types that the Service no longer has are deleted last: until the new slices exist, clients may
    // need the old slices.
    if applied.is_success() && !applied.namespace_terminating {
        applied.absorb(run.unsupported(&plan.unsupported).await);
    }
    applied
}

struct Run<'a, W> {
    service: &'a ServiceName,
    writer: &'a W,
    parallelism: usize,
}

impl<W: SliceWriter> Run<'_, W> {
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
