//! Which generation of each imported slice was observed by this process: an imported slice that somebody deletes is made
//! anew, and with it goes what it remembered; the same generation must not be measured twice.

use fleetnet_core::ids::Text;
use std::collections::BTreeMap;

/// Generations by the name of the slice, for as long as the hub gives it.
#[derive(Debug, Default)]
pub(crate) struct Observed(BTreeMap<Text, i64>);

/// What was known of a slice before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// Another generation.
    Slice,
    /// This very generation.
    Generation,
}

impl Observed {
    /// Notes a generation and tells what was known.
    pub(crate) fn note(&mut self, slice: &Text, generation: i64) -> Known {
        match self.0.insert(slice.clone(), generation) {
            None => Known::Nothing,
            Some(before) if before == generation => Known::Generation,
            Some(_) => Known::Slice,
        }
    }

    /// The hub does not give the slice any more: one of that name that comes later is another.
    pub(crate) fn forget(&mut self, slice: &str) {
        self.0.remove(slice);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_known_until_the_hub_gives_the_slice_no_more() {
        let mut observed = Observed::default();
        let slice: Text = "member-1-work-app-1-0abcd".into();
        assert_eq!(observed.note(&slice, 3), Known::Nothing);
        assert_eq!(observed.note(&slice, 3), Known::Generation);
        assert_eq!(observed.note(&slice, 4), Known::Slice);
        observed.forget(&slice);
        assert_eq!(observed.note(&slice, 4), Known::Nothing);
    }
}
