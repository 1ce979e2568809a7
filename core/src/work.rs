//! Work of the rules on data that members write, counted in the tests of this crate (`work_tests.rs`). A member can write as
//! much as its quota allows, so each rule takes at most O(n log n) time. Outside of tests nothing is counted.

/// Counts one visit of one thing that a member wrote: an object, a name in an index, an endpoint.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    crate::work_tests::count();
}
