//! [`Draft`]: what is to become of the slices of one address type, while it is still being decided; and the seam where
//! hints come in.

use crate::model::{AddressType, Endpoint, EndpointSlice, Service};
use crate::names::ANNOTATION_TRIGGER_TIME;
use jiff::Timestamp;
use std::sync::Arc;

/// What is to become of the slices of one address type.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The type of their addresses.
    pub address_type: AddressType,
    /// Slices that there should be beside the existing ones. They have no name yet.
    pub creates: Vec<EndpointSlice>,
    /// Slices that should become other than they are.
    pub updates: Vec<Update>,
    /// Slices that should go.
    pub deletes: Vec<Arc<EndpointSlice>>,
    /// Slices that are as they should be.
    pub unchanged: Vec<Arc<EndpointSlice>>,
}

impl Draft {
    /// The slices that will be written and may still be changed: creates, then updates.
    pub fn written_mut(&mut self) -> impl Iterator<Item = &mut EndpointSlice> {
        let updates = self.updates.iter_mut().map(|update| &mut update.after);
        self.creates.iter_mut().chain(updates)
    }

    /// Every slice that is written says when the change was made that this publishes, or says nothing of that.
    pub fn set_trigger_time(&mut self, time: Option<Timestamp>) {
        let time = time.map(|time| time.to_string());
        for slice in self.written_mut() {
            match &time {
                Some(time) => slice.metadata.annotations.insert(ANNOTATION_TRIGGER_TIME, time.as_str()),
                None => slice.metadata.annotations.remove(ANNOTATION_TRIGGER_TIME),
            };
        }
    }

    /// Gives unchanged slices other endpoints, which makes updates of them: `revise` answers none for a slice that can
    /// stay as it is. The order of the others is kept.
    pub fn revise_unchanged(&mut self, mut revise: impl FnMut(&EndpointSlice) -> Option<Vec<Endpoint>>) {
        let updates = &mut self.updates;
        self.unchanged.retain(|slice| {
            let Some(endpoints) = revise(slice) else { return true };
            updates.push(Update::of(slice, endpoints));
            false
        });
    }
}

/// A slice that should become other than it is.
#[derive(Clone, Debug)]
pub struct Update {
    /// As it is.
    pub before: Arc<EndpointSlice>,
    /// As it should be, whole.
    pub after: EndpointSlice,
    /// Whether it is a slice that was to be deleted and takes the place of one that was to be created.
    pub recycled: bool,
}

impl Update {
    /// `slice` with other endpoints.
    #[must_use]
    pub fn of(slice: &Arc<EndpointSlice>, endpoints: Vec<Endpoint>) -> Self {
        let EndpointSlice { metadata, address_type, ports, .. } = &**slice;
        let (metadata, address_type, ports) = (metadata.clone(), address_type.clone(), ports.clone());
        let after = EndpointSlice { metadata, address_type, endpoints, ports };
        Self { before: Arc::clone(slice), after, recycled: false }
    }
}

/// Who decides about the hints of endpoints. It comes after endpoints have their slices and placeholders are decided, and
/// before slices are recycled, as upstream.
pub trait AssignHints {
    /// Gives the endpoints of `draft` the hints that they should have, and takes away those that they should not have.
    /// Endpoints of creates and updates come without hints, save for those of slices that merely got more endpoints.
    fn assign(&mut self, service: &Service, draft: &mut Draft);

    /// Whether the hints of a slice of `service` depend on that slice and the Service alone. Only then can one slice be
    /// planned without the others; otherwise every change is planned in full.
    fn is_local(&self, service: &Service) -> bool {
        let _ = service;
        false
    }
}

/// Leaves hints alone: endpoints that are written anew have none, and no slice is written because of its hints.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaveHints;

impl AssignHints for LeaveHints {
    fn assign(&mut self, _service: &Service, _draft: &mut Draft) {}

    fn is_local(&self, _service: &Service) -> bool {
        true
    }
}
