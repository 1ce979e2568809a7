//! Restores of one server from a backup, as its watches notice them.
//!
//! After a restore without a higher revision, a server is behind the versions that its watches have seen. A watch that connects late
//! may not notice this, because later writes have raised the revision above its version. So each watch relies on all watches of
//! the server: when one has noticed a restore, each of them lists again before it continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of restores that the watches of one server have noticed. Clones share the number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restores(Arc<AtomicU64>);

impl Restores {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a restore that a watch noticed, unless another watch has counted one since this watch read `count`.
    pub(crate) fn noticed(&self, count: u64) {
        let _ = self.0.compare_exchange(count, count + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}
