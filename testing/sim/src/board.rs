//! A value that tasks read and wait for. Waiting tasks continue in the order in which they began to wait, so a run that
//! is repeated is the same. The watch channel of tokio wakes them in a random order.

use parking_lot::RwLock;
use std::fmt;
use tokio::sync::Notify;

#[derive(Default)]
pub struct Board<T> {
    value: RwLock<T>,
    changed: Notify,
}

impl<T> Board<T> {
    pub fn new(value: T) -> Self {
        Self { value: RwLock::new(value), changed: Notify::new() }
    }

    /// Passes the value to `look`, which must not change it.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.read())
    }

    /// Changes the value, and wakes all tasks that wait.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.write());
        self.changed.notify_waiters();
    }

    /// Waits until `look` is true for the value.
    pub async fn wait_for(&self, mut look: impl FnMut(&T) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Waits for changes from now on, so that no change is missed.
            changed.as_mut().enable();
            if self.read(&mut look) {
                return;
            }
            changed.await;
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Board<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|value| value.fmt(formatter))
    }
}
