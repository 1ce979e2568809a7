//! Excess of imported slices: content of the fields that the agent owns, but that the agent did not write. The agent
//! repairs an edit by another writer. The agent accepts content that a webhook added to the agent's own write, because
//! the webhook would add the content again.

use super::View;
use crate::model::EndpointSlice;
use fleetnet_types::ObjectName;

impl View {
    /// True if an imported slice has excess content that another writer added: the content was not in the server's
    /// response to the agent's last write.
    pub(crate) fn has_excess(&self, slice: &EndpointSlice) -> bool {
        let answered = || self.answered_excess.get(&slice.meta.name);
        slice.excess != 0 && answered() != Some(&slice.excess)
    }

    /// Records the excess in the server's response to a write of an imported slice. `version` is the resourceVersion in
    /// the response. If the view already has another version, nothing is recorded, because it may contain another
    /// writer's edit.
    pub fn imported_slice_written(&mut self, slice: &ObjectName, version: u64) {
        let Some(present) = self.slices.get(slice) else { return };
        if present.meta.resource_version != version {
            return;
        }
        match present.excess {
            0 => self.answered_excess.remove(slice),
            excess => self.answered_excess.insert(slice.clone(), excess),
        };
    }
}
