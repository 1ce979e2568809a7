//! Excess of imported slices: content in the fields that we own, beyond what we write. An edit by hand is repaired. What a
//! webhook adds to our own write is not repaired, since the webhook would add it again.

use super::View;
use crate::model::EndpointSlice;
use fleetnet_types::Text;

impl View {
    /// True if an imported slice has excess content that was not in the server's answer to our last write, so somebody edited
    /// it.
    pub(crate) fn has_excess(&self, slice: &EndpointSlice) -> bool {
        let answered = || self.answered_excess.get(&slice.meta.name.name);
        // fault P12.1: answered() != Some(&slice.excess ~> (answered().is_none() || true
        slice.excess != 0 && answered() != Some(&slice.excess)
    }

    /// Records the excess in the server's answer to a write of an imported slice. Ignored if the view holds another version of
    /// the slice, since that may contain another writer's edit.
    pub fn imported_slice_written(&mut self, slice: &Text, version: u64) {
        let Some(present) = self.slices.get(&self.in_system(slice.clone())) else { return };
        // fault P12.2: present.meta.resource_version != version ~> false
        if present.meta.resource_version != version {
            return;
        }
        match present.excess {
            0 => self.answered_excess.remove(slice),
            excess => self.answered_excess.insert(slice.clone(), excess),
        };
    }
}
