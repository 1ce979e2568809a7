//! Counter of the steps that the rules take, for the tests of their running time (`work_tests.rs`). A member can write as much
//! data as its quota allows, so each rule takes at most O(n log n) time. Outside of tests nothing is counted.

/// Counts one visit of something that a member wrote: an object, a name in an index, an endpoint.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    crate::work_tests::count();
}
