//! Hooks: what a controller may do to a plan before it is carried out.

use super::Plan;
use super::draft::Update;
use crate::model::{EndpointSlice, Metadata};
use crate::text::Text;
use std::sync::Arc;

/// A write of a plan.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// A slice to create.
    Create(&'a EndpointSlice),
    /// A slice to update.
    Update(&'a Update),
    /// A slice to delete.
    Delete(&'a EndpointSlice),
}

/// What a hook says of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Veto {
    /// It may be made.
    Allow,
    /// It may not, for this reason.
    Refuse(Text),
}

/// A write that a hook has taken out of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Vetoed {
    /// The name of the slice, or what it would begin with.
    pub slice: Text,
    /// Why.
    pub reason: Text,
}

impl Plan {
    /// Lets `change` change the metadata of every slice that will be created or updated: the step between computing and
    /// applying that KEP-3685 asks for. Labels that it adds belong in [`crate::Config::foreign_labels`]; otherwise the
    /// next plan takes them off again.
    pub fn change_metadata(&mut self, mut change: impl FnMut(&mut Metadata)) {
        for family in &mut self.families {
            for slice in family.draft.written_mut() {
                change(&mut slice.metadata);
            }
        }
    }

    /// Asks `judge` about every write and takes out what it refuses. Where a create or update is refused, deletes of
    /// the same address type that nothing would make up for are taken out too, and so are those of address types that
    /// the Service does not have any more.
    pub fn veto(&mut self, mut judge: impl FnMut(Write<'_>) -> Veto) {
        const HELD: &str = "an addition was refused";
        let mut vetoed = Vec::new();
        let mut refuses = |write: Write<'_>, held: bool| {
            let reason = match judge(write) {
                Veto::Refuse(reason) => reason,
                Veto::Allow if held => HELD.into(),
                Veto::Allow => return false,
            };
            vetoed.push(Vetoed { slice: write.name().clone(), reason });
            true
        };
        let mut any_refused = false;
        for family in &mut self.families {
            let draft = &mut family.draft;
            let additions = draft.creates.len() + draft.updates.len();
            draft.creates.retain(|slice| !refuses(Write::Create(slice), false));
            draft.updates.retain(|update| !refuses(Write::Update(update), false));
            let refused = draft.creates.len() + draft.updates.len() < additions;
            draft.deletes.retain(|slice| !refuses(Write::Delete(slice), refused));
            any_refused |= refused;
        }
        self.unsupported.retain(|slice: &Arc<EndpointSlice>| !refuses(Write::Delete(slice), any_refused));
        self.vetoed.extend(vetoed);
    }
}

impl<'a> Write<'a> {
    /// The slice as it should be, or as it is if it should go.
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
