//! Changes of the slices of one address type ([`Draft`]), before the last steps of a plan. The trait [`AssignHints`]
//! sets the hints in a draft.

use crate::model::{AddressType, Endpoint, EndpointSlice, Service};
use crate::names::ANNOTATION_TRIGGER_TIME;
use jiff::Timestamp;
use std::sync::Arc;

/// Changes of the slices of one address type.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Address type of the slices.
    pub address_type: AddressType,
    /// Slices to create. They have a name prefix and no name yet.
    pub creates: Vec<EndpointSlice>,
    /// Slices to update.
    pub updates: Vec<Update>,
    /// Slices to delete.
    pub deletes: Vec<Arc<EndpointSlice>>,
    /// Existing slices that need no write.
    pub unchanged: Vec<Arc<EndpointSlice>>,
}

impl Draft {
    /// Returns the slices to create, then the slices to update, so that the caller can change them before they are
    /// written.
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

    /// Calls `revise` for each unchanged slice. If it returns new endpoints, the slice gets an update to these
    /// endpoints. If it returns `None`, the slice stays unchanged. Keeps the order of the slices.
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
    /// True if the update recycles the slice: without recycling, this slice would be deleted and a new slice would be
    /// created.
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

/// Step of a plan that sets the endpoints' hints. This step runs after endpoints are assigned to slices and before
/// slices are recycled, as in kube-controller-manager.
pub trait AssignHints {
    /// Sets the hints of the endpoints in a draft, and removes wrong hints.
    ///
    /// Endpoints of slices to create or update have no hints yet. Exception: in a slice that only gets more endpoints,
    /// the old endpoints still have their hints.
    fn assign(&mut self, service: &Service, draft: &mut Draft);

    /// True if the hints of a slice of `service` depend only on that slice and the Service. Only then can a slice be
    /// planned without the other slices of the Service. Otherwise every change needs a plan over all slices.
    fn is_local(&self, service: &Service) -> bool {
        let _ = service;
        false
    }
}
