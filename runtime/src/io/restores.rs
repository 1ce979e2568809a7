//! Restores of one server from a backup, as its watches and writes notice them.
//!
//! After a restore without a higher revision, a server is behind the versions that its watches have seen. A watch that
//! connects late may not notice this, because later writes have raised the revision above its version. So each watch
//! relies on all watches of the server, and on the writes. When one has noticed a restore, each watch lists again at
//! once, but not more than once a second.
//!
//! Meanwhile some kinds are listed after the restore and others are not. An agent that compares them would undo what
//! its peers have just written again. So the engine treats kinds as unknown from the first list that was requested
//! after the restore was noticed, each until such a list of it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Number of restores of one server that were noticed. Clones share the number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restores(Arc<Noticed>);

#[derive(Debug, Default)]
struct Noticed {
    count: AtomicU64,
    changed: Notify,
}

impl Restores {
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Counts a restore that a watch or a write noticed, unless another has counted one since it read `count`.
    pub(crate) fn noticed(&self, count: u64) {
        if self.0.count.compare_exchange(count, count + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.0.changed.notify_waiters();
        }
    }

    /// Waits until a restore was noticed since this watch read `count`.
    pub(crate) async fn noticed_since(&self, count: u64) {
        loop {
            let changed = self.0.changed.notified();
            if self.count() != count {
                return;
            }
            changed.await;
        }
    }
}
