//! Changes of one address type before hints and recycling ([`Draft`]), and the trait [`AssignHints`], which sets the hints.

use crate::model::{AddressType, Endpoint, EndpointSlice, Service};
use crate::names::ANNOTATION_TRIGGER_TIME;
use jiff::Timestamp;
use std::sync::Arc;

/// Changes of the slices of one address type.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Type of the addresses.
    pub address_type: AddressType,
    /// Slices to create. They have no name yet.
    pub creates: Vec<EndpointSlice>,
    /// Slices to update.
    pub updates: Vec<Update>,
    /// Slices to delete.
    pub deletes: Vec<Arc<EndpointSlice>>,
    /// Slices that stay as they are.
    pub unchanged: Vec<Arc<EndpointSlice>>,
}

impl Draft {
    /// Returns the slices that will be written and may still be changed: creates, then updates.
    pub fn written_mut(&mut self) -> impl Iterator<Item = &mut EndpointSlice> {
        let updates = self.updates.iter_mut().map(|update| &mut update.after);
        self.creates.iter_mut().chain(updates)
    }

    /// Sets the trigger-time annotation on every slice that is written, or removes it with `None`.
    pub fn set_trigger_time(&mut self, time: Option<Timestamp>) {
        let time = time.map(|time| time.to_string());
        for slice in self.written_mut() {
            match &time {
                Some(time) => slice.metadata.annotations.insert(ANNOTATION_TRIGGER_TIME, time.as_str()),
                None => slice.metadata.annotations.remove(ANNOTATION_TRIGGER_TIME),
            };
        }
    }

    /// Gives new endpoints to unchanged slices, which makes them updates. `revise` returns `None` for a slice that can stay as
    /// it is. The order of the other slices is kept.
    pub fn revise_unchanged(&mut self, mut revise: impl FnMut(&EndpointSlice) -> Option<Vec<Endpoint>>) {
        let updates = &mut self.updates;
        self.unchanged.retain(|slice| {
            let Some(endpoints) = revise(slice) else { return true };
            updates.push(Update::of(slice, endpoints));
            false
        });
    }
}

/// Change of an existing slice.
#[derive(Clone, Debug)]
pub struct Update {
    /// Slice before the update.
    pub before: Arc<EndpointSlice>,
    /// Complete slice after the update.
    pub after: EndpointSlice,
    /// True if the update reuses a slice that would have been deleted for one that would have been created.
    pub recycled: bool,
}

impl Update {
    /// Returns an update of `slice` to these endpoints.
    #[must_use]
    pub fn of(slice: &Arc<EndpointSlice>, endpoints: Vec<Endpoint>) -> Self {
        let EndpointSlice { metadata, address_type, ports, .. } = &**slice;
        let (metadata, address_type, ports) = (metadata.clone(), address_type.clone(), ports.clone());
        let after = EndpointSlice { metadata, address_type, endpoints, ports };
        Self { before: Arc::clone(slice), after, recycled: false }
    }
}

/// Step of a plan that sets the endpoints' hints. It runs after packing and placeholders, and before recycling, as in
/// kube-controller-manager.
pub trait AssignHints {
    /// Sets the hints of the endpoints in a draft, and removes wrong ones.
    ///
    /// Endpoints of creates and updates have no hints yet, except those of slices that only got more endpoints.
    fn assign(&mut self, service: &Service, draft: &mut Draft);

    /// True if the hints of a slice of `service` depend only on that slice and the Service. Only then can one slice be planned
    /// without the others. Otherwise every change needs a full plan.
    fn is_local(&self, service: &Service) -> bool {
        let _ = service;
        false
    }
}

/// Assigns no hints: new endpoints have none, and a difference in hints alone never causes a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaveHints;

impl AssignHints for LeaveHints {
    fn assign(&mut self, _service: &Service, _draft: &mut Draft) {}

    fn is_local(&self, _service: &Service) -> bool {
        true
    }
}
