//! Member, as its pods see it.

/// Annotation of a pod. The pod is not ready while the value is `false`.
pub(super) const READY: &str = "sandbox.fleetnet/ready";

/// Member, as its pods see it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Number of the member. The addresses of its pods are `10.244.<number>.x`.
    pub(super) number: u8,
    /// Name of the member's only Node.
    pub(super) node: String,
}

/// Returns the address of a member's Node.
pub(super) fn host(number: u8) -> String {
    format!("10.243.{number}.1")
}
