//! Previews: contents of distributed slices that the slice stream delivers before the hub agent writes the objects.
//!
//! While a preview is valid, the table of distributed slices has the content of the preview in place of the object's.
//! So no rule knows about previews, and an import of a preview is an import like any other. A preview never replaces an
//! object that does not exist, and only the object shows a deletion.

use super::stream_server::StreamEnd;
use super::stream_state::SliceStreamUse;
use super::{Effects, View, value::Value};
use crate::model::{HubSlice, HubSliceSpec, Kind};
use fleetnet_types::{ObjectName, Text};

/// True if a preview is a newer state of the source slice than the object has.
fn precedes(preview: &HubSliceSpec, object: &HubSliceSpec) -> bool {
    preview.reference.generation > object.reference.generation && preview.is_of_same_slice(object)
}

impl View {
    /// Stores a preview of the distributed slice with this name, unless the object or an earlier preview is as new.
    pub(in crate::member) fn show_preview(&mut self, name: &Text, preview: HubSliceSpec, effects: &mut Effects) {
        let Some(shown) = self.distributed_slices.get(&self.in_hub(name.clone())) else { return };
        if !precedes(&preview, &shown.spec) {
            return;
        }
        let (object, shown) = (shown.spec.clone(), HubSlice { spec: preview, ..shown.clone() });
        self.previews.entry(name.clone()).or_insert(object);
        self.show(shown, effects);
    }

    /// Drops all previews. The objects are valid again. If a hub agent ended the stream, each object has what the hub
    /// agent wants, or will have it.
    pub(in crate::member) fn drop_previews(&mut self, end: StreamEnd, effects: &mut Effects) {
        for (name, spec) in std::mem::take(&mut self.previews) {
            let Some(shown) = self.distributed_slices.get(&self.in_hub(name.clone())) else { continue };
            if end == StreamEnd::ByHub {
                self.written.extend(self.imports_of_slice(&name, &shown.spec.owner));
            }
            self.show(HubSlice { spec, ..shown.clone() }, effects);
        }
    }

    fn show(&mut self, slice: HubSlice, effects: &mut Effects) {
        let name = slice.meta.name.clone();
        if self.store_distributed_slice(slice, effects) {
            effects.values.push(Value::Object(Kind::EndpointSliceImport, name));
        }
    }

    /// Returns the new state of a distributed slice with the content of its preview, if this content is still newer.
    pub(super) fn with_preview(&mut self, mut slice: HubSlice) -> HubSlice {
        let name = &slice.meta.name;
        let uses_streams = self.slice_stream.chosen != SliceStreamUse::Off;
        if let Some(known) = self.distributed_slices.get(name).filter(|_| uses_streams) {
            let object = self.previews.get(&name.name).unwrap_or(&known.spec);
            // Each write that follows a preview raises the generation. Such a write may be older than the last preview.
            // An object of a restored hub has an older resource version.
            let is_raised = slice.spec.reference.generation > object.reference.generation;
            let is_restored = slice.meta.resource_version < known.meta.resource_version;
            let imports = self.imports_of_slice(&name.name, &known.spec.owner);
            if *object != slice.spec && !is_raised {
                self.written.extend(imports.clone());
            }
            if is_restored {
                self.written.retain(|at| !imports.contains(at));
            }
        }
        let Some(object) = self.previews.get_mut(&name.name) else { return slice };
        let shown = self.distributed_slices.get(name).filter(|shown| shown.meta.uid == slice.meta.uid);
        match shown.filter(|shown| precedes(&shown.spec, &slice.spec)) {
            Some(shown) => *object = std::mem::replace(&mut slice.spec, shown.spec.clone()),
            None => drop(self.previews.remove(&name.name)),
        }
        slice
    }

    /// True if this process has seen that a hub agent wrote the distributed slice after the last change of this
    /// imported slice.
    pub(super) fn was_written(&self, imported: &ObjectName) -> bool {
        self.written.contains(imported)
    }

    /// The imported slice has the state of another generation of its source.
    pub(super) fn imported_other_generation(&mut self, imported: &ObjectName) {
        self.written.remove(imported);
    }

    /// True if the table has the content of a preview for this distributed slice.
    pub(crate) fn has_preview(&self, name: &Text) -> bool {
        self.previews.contains_key(name)
    }
}
