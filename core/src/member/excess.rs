//! Excess of imported slices: what their owned fields say beyond what we write. An edit by hand is repaired; what a webhook
//! makes of our own write is not, since it would make the same of the next.

use super::View;
use crate::ids::Text;
use crate::model::EndpointSlice;

impl View {
    /// True if an imported slice says more than we write, and that is not what a webhook made of our last write.
    pub(crate) fn has_excess(&self, slice: &EndpointSlice) -> bool {
        let answered = || self.answered_excess.get(&slice.meta.name.name);
        // fault P12.1: answered() != Some(&slice.excess ~> (answered().is_none() || true
        slice.excess != 0 && answered() != Some(&slice.excess)
    }

    /// A write to an imported slice was answered with the slice at this version. Nothing follows where the view has moved on:
    /// what it holds may be somebody else's doing.
    pub fn imported_slice_written(&mut self, slice: &Text, version: u64) {
        let Some(held) = self.slices.get(&self.in_system(slice.clone())) else { return };
        // fault P12.2: held.meta.resource_version != version ~> false
        if held.meta.resource_version != version {
            return;
        }
        match held.excess {
            0 => self.answered_excess.remove(slice),
            excess => self.answered_excess.insert(slice.clone(), excess),
        };
    }
}
