//! Record of the imported slices whose latency this process has measured, each with the generation of its source slice.
//!
//! The annotation of an imported slice also has this generation. If somebody deletes the slice, the agent creates the
//! slice again without the annotation. This record prevents a second sample for the same generation.

use fleetnet_types::Text;
use std::collections::BTreeMap;

/// Generation of the source slice whose latency was measured, by the name of the imported slice. Kept while the hub
/// distributes the slice.
#[derive(Debug, Default)]
pub(crate) struct Observed(BTreeMap<Text, i64>);

/// Earlier content of the record about a slice. Returned when a new generation of the slice is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The record had nothing about the slice.
    Nothing,
    /// The record had another generation of the slice.
    Slice,
    /// The record had the same generation of the slice.
    Generation,
}

impl Observed {
    /// Records that the latency of this generation was measured. Returns what the record had about the slice before.
    pub(crate) fn note(&mut self, slice: &Text, generation: i64) -> Recorded {
        match self.0.insert(slice.clone(), generation) {
            None => Recorded::Nothing,
            Some(before) if before == generation => Recorded::Generation,
            Some(_) => Recorded::Slice,
        }
    }

    /// Forgets a slice that the hub no longer distributes. A later slice with the same name is a different slice.
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

    /// Also rule L5.
    #[test]
    fn a_generation_is_known_until_the_hub_gives_the_slice_no_more() {
        let mut observed = Observed::default();
        let slice: Text = "member-1-work-app-1-0abcd".into();
        assert_eq!(observed.note(&slice, 3), Recorded::Nothing);
        assert_eq!(observed.note(&slice, 3), Recorded::Generation);
        assert_eq!(observed.note(&slice, 4), Recorded::Slice);
        observed.forget(&slice);
        assert_eq!(observed.note(&slice, 4), Recorded::Nothing);
    }
}
