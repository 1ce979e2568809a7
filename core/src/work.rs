//! Counter of the steps that the rules take, for the tests of the rules' running time (`work_tests.rs`). A member can
//! write as much data as its quota allows, so each rule may take at most O(n log n) time. Only tests count steps.

/// Counts one step: a visit of an object, of a name in an index, or of an endpoint that a member wrote.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    crate::work_tests::count();
}
