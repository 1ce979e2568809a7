//! Hooks: changes that a controller makes to a plan before the plan is applied.

use super::draft::Update;
use super::{Plan, Vetoed};
use crate::model::{EndpointSlice, Metadata};
use crate::text::Text;
use std::sync::Arc;

/// Write of a plan, as the input of a hook.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// A slice to create.
    Create(&'a EndpointSlice),
    /// A slice to update.
    Update(&'a Update),
    /// A slice to delete.
    Delete(&'a EndpointSlice),
}

/// Decision of a hook about a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Veto {
    /// The write may be made.
    Allow,
    /// The write must not be made, for this reason.
    Deny(Text),
}

impl Plan {
    /// Calls `change` with the metadata of every slice that will be created or updated. KEP-3685 proposes such a step
    /// between computing and applying a plan.
    ///
    /// If `change` adds labels, list their keys in [`crate::Config::foreign_labels`]. Otherwise the next plan removes
    /// these labels.
    pub fn change_metadata(&mut self, mut change: impl FnMut(&mut Metadata)) {
        for family in &mut self.families {
            for slice in family.draft.written_mut() {
                change(&mut slice.metadata);
            }
        }
    }

    /// Calls `judge` for every write and removes the writes that `judge` denies.
    ///
    /// If a create or update is denied, the deletes of the same address type are removed too. The deletes of slices of
    /// address types that the Service no longer has are also removed.
    pub fn veto(&mut self, mut judge: impl FnMut(Write<'_>) -> Veto) {
        const KEPT: &str = "an addition was refused";
        let mut vetoed = Vec::new();
        let mut is_denied = |write: Write<'_>, keep: bool| {
            let reason = match judge(write) {
                Veto::Deny(reason) => reason,
                Veto::Allow if keep => KEPT.into(),
                Veto::Allow => return false,
            };
            vetoed.push(Vetoed { slice: write.name().clone(), reason });
            true
        };
        let mut any_denied = false;
        for family in &mut self.families {
            let draft = &mut family.draft;
            let additions = draft.creates.len() + draft.updates.len();
            draft.creates.retain(|slice| !is_denied(Write::Create(slice), false));
            draft.updates.retain(|update| !is_denied(Write::Update(update), false));
            let has_denied = draft.creates.len() + draft.updates.len() < additions;
            draft.deletes.retain(|slice| !is_denied(Write::Delete(slice), has_denied));
            any_denied |= has_denied;
        }
        self.unsupported.retain(|slice: &Arc<EndpointSlice>| !is_denied(Write::Delete(slice), any_denied));
        self.vetoed.extend(vetoed);
    }
}

impl<'a> Write<'a> {
    /// Returns the slice after the write. For a delete, returns the existing slice.
    #[must_use]
    pub const fn slice(self) -> &'a EndpointSlice {
        match self {
            Self::Create(slice) | Self::Delete(slice) => slice,
            Self::Update(update) => &update.after,
        }
    }

    fn name(self) -> &'a Text {
        let metadata = &self.slice().metadata;
        metadata.name.non_empty().unwrap_or(&metadata.generate_name)
    }
}
