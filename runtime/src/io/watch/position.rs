//! The position of a watch: the version up to which every change has been reported. If the server's data may have gone
//! back in time, the position is dropped and the watch starts with a list.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Connection, End, Watcher};
use crate::engine::logic::Logic;
use crate::engine::message::WatchEvent;
use crate::limits::{RAISED_REVISION, RESTORE_PAUSE};

/// True if a server that had the version `before` was restored from a backup with a higher revision
/// ([`RAISED_REVISION`]).
fn is_raised(before: u64, now: u64) -> bool {
    now.saturating_sub(before) >= RAISED_REVISION
}

impl<L: Logic> Watcher<L> {
    /// Forgets the position if the server may have other objects than the engine knows. The watch then starts with a
    /// list. There are two reasons: another watch has noticed a restore of the server, or the watch failed before it
    /// reported an own write.
    pub(super) async fn drop_doubtful_position(&mut self) {
        if self.restores != self.spec.cluster.restores.count() {
            sleep(self.pause_before_restore_list()).await;
        }
        let restores = self.spec.cluster.restores.count();
        let is_restored = self.restores != restores;
        if let Some(position) = self.position {
            let is_unconfirmed = self.unchecked && self.progress.is_ahead_of(position);
            if is_restored || is_unconfirmed {
                self.restarted(if is_unconfirmed { "unconfirmed" } else { "went_back" });
                self.position = None;
            }
        }
        if self.position.is_none() {
            self.follows_restore |= is_restored;
            self.restores = restores;
        }
    }

    /// Returns how long a list that follows a restore must wait ([`RESTORE_PAUSE`]), and records the list.
    pub(super) fn pause_before_restore_list(&mut self) -> Duration {
        let now = Instant::now();
        let earliest = self.restore_listed.map_or(now, |last| now.max(last + RESTORE_PAUSE));
        self.restore_listed = Some(earliest);
        earliest - now
    }

    /// Compares the server's revision with the newest version that is known of it. Ends with [`End::WentBack`] if the
    /// server is behind, or was restored from a backup with a higher revision.
    ///
    /// A server that was restored from a backup may not have reached the watch's version yet. A watch from this version
    /// would receive nothing until the server reaches the version, and would miss every change before it. A list would
    /// bring older objects into the view of this kind, while the views of the other kinds still look current.
    pub(super) async fn check_revision(&mut self) -> Result<(), End> {
        let known = match self.position {
            Some(position) if self.unchecked => position,
            None if !self.follows_restore => self.progress.mark().version,
            _ => 0,
        };
        if known == 0 {
            return Ok(());
        }
        let revision = self.revision().await?;
        if revision < known || is_raised(known, revision) {
            return Err(End::WentBack);
        }
        self.unchecked = false;
        Ok(())
    }

    /// Advances the version to continue from. Not during a list, because initial events are not ordered by version.
    pub(super) fn advance(&mut self, resource_version: u64, connection: &mut Connection) -> Result<(), End> {
        if connection.live_since.is_none() {
            return Ok(());
        }
        connection.heard = true;
        match self.position {
            Some(position) if resource_version < position => Err(End::WentBack),
            _ => {
                self.position = Some(resource_version);
                Ok(())
            }
        }
    }

    pub(super) async fn listed(&mut self, resource_version: u64) -> Result<(), End> {
        self.follows_restore = false;
        self.position = Some(resource_version);
        self.pages_next = false;
        self.lost_touch = false;
        self.unchecked = false;
        self.emit(WatchEvent::ListEnded { resource_version }).await
    }
}
