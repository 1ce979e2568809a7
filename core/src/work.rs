//! Work of the rules on what members write, counted in the tests of this crate (`work_tests.rs`). A member writes as much as
//! its quota lets it, so no rule takes more than linear time (with a logarithm) in that. Outside of tests nothing is counted.

/// Counts one look at one thing that a member wrote: an object, a name in an index, an endpoint.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    crate::work_tests::count();
}
