//! Source generations of imported slices whose latency this process has measured.
//!
//! An imported slice that somebody deletes is created again, without its annotations. This record keeps the agent from
//! measuring the same generation twice.

use fleetnet_types::Text;
use std::collections::BTreeMap;

/// Measured generation by slice name, kept while the hub distributes the slice.
#[derive(Debug, Default)]
pub(crate) struct Observed(BTreeMap<Text, i64>);

/// What the record had about a slice before a generation was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing about this slice.
    Nothing,
    /// Another generation of this slice.
    Slice,
    /// The same generation of this slice.
    Generation,
}

impl Observed {
    /// Records a measured generation and returns what was known before.
    pub(crate) fn note(&mut self, slice: &Text, generation: i64) -> Known {
        match self.0.insert(slice.clone(), generation) {
            None => Known::Nothing,
            // fault L5.3: before == generation ~> false
            Some(before) if before == generation => Known::Generation,
            Some(_) => Known::Slice,
        }
    }

    /// Forgets a slice that the hub no longer distributes. A later slice of that name is a new one.
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
