//! All limits of this crate.

/// Maximum number of slices with a waiting message in one mailbox. A further message is dropped, and the object follows
/// after a second instead.
pub const MAILBOX_SLICES: usize = 10_000;
/// Maximum number of bytes of a host name, as in DNS (RFC 1035).
pub(crate) const HOST_BYTES_MAX: usize = 253;
