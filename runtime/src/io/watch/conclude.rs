//! Consequences of the end of a list or a watch: what to send to the engine, log and count, and how long to wait.

use std::time::Duration;

use http::StatusCode;

use super::{End, Watcher};
use crate::backoff::{Backoff, retry_after_wait};
use crate::engine::logic::Logic;
use crate::engine::message::WatchEvent;
use crate::io::source::SourceSpec;

impl<L: Logic> Watcher<L> {
    /// Handles the end of a list or watch. Returns the wait before the next attempt, or `None` if the watch must stop.
    pub(super) async fn after(&mut self, end: End) -> Option<Duration> {
        match end {
            End::EngineGone => None,
            End::InTime { heard, early, soon } => {
                self.restarted("ended");
                // Check the server's revision before the next watch if the ended watch was silent or ended early. A
                // server that was restored from a backup ends watches early, and is silent about versions that it has
                // not reached yet.
                self.unchecked = !heard || early;
                Some(if soon && !heard { self.next_wait() } else { Duration::ZERO })
            }
            End::Expired => {
                self.restarted("expired");
                tracing::info!(
                    side = self.spec.cluster.name,
                    kind = self.spec.resource.kind,
                    "the server no longer has the version of the watch: listing again"
                );
                self.position = None;
                Some(self.next_wait())
            }
            End::WentBack => Some(self.relist_after_going_back()),
            // The position is dropped before the next attempt.
            End::Restored => Some(Duration::ZERO),
            End::StreamingRejected => {
                self.restarted("streaming_refused");
                self.streams_lists = false;
                Some(Duration::ZERO)
            }
            End::NotServed { status, message } => self.after_not_served(status, message).await,
            End::Failed { reason, message, retry_after } => self.after_failure(reason, message, retry_after).await,
        }
    }

    fn relist_after_going_back(&mut self) -> Duration {
        self.restarted("went_back");
        self.spec.cluster.restores.noticed(self.restores);
        // A restore that this watch noticed itself does not end its wait.
        self.restores = self.spec.cluster.restores.count();
        self.follows_restore = true;
        tracing::warn!(
            side = self.spec.cluster.name,
            kind = self.spec.resource.kind,
            position = self.position,
            "the server's data went back in time (was it restored from a backup?): listing again"
        );
        self.position = None;
        // The server answers again, so earlier failures do not make the wait longer.
        self.failures = 0;
        self.next_wait().max(self.pause_before_restore_list())
    }

    async fn after_not_served(&mut self, status: u16, message: String) -> Option<Duration> {
        // The absence of an optional kind is no failure.
        self.restarted(if self.spec.optional && self.position.is_none() { "absent" } else { "not_served" });
        let is_frozen = self.spec.freezes_when_forbidden && status == StatusCode::FORBIDDEN.as_u16();
        if is_frozen || status == StatusCode::NOT_FOUND.as_u16() {
            // After a 404, a kind that reappears has a new history, so start with a list. After a 403 that made the
            // state of the view unknown, a list makes the view current again.
            self.position = None;
        }
        self.denials = self.denials.saturating_add(1);
        self.log_not_served(status, &message);
        self.lost_touch = true;
        self.unchecked = true;
        self.emit(WatchEvent::NotServed { status, message }).await.ok()?;
        Some(Backoff::SLOW.wait(self.denials, &mut self.jitter))
    }

    fn log_not_served(&self, status: u16, message: &str) {
        let SourceSpec { cluster, resource, optional, .. } = &*self.spec;
        let remedy = if status == StatusCode::FORBIDDEN.as_u16() {
            format!("grant this agent get, list and watch on {}", resource.plural)
        } else {
            format!("install the CRD of {} ({})", resource.kind, resource.api_version())
        };
        match (optional, self.denials) {
            (false, _) => tracing::warn!(side = cluster.name, kind = resource.kind, message, remedy, "cannot watch"),
            (true, 1) => tracing::info!(
                side = cluster.name,
                kind = resource.kind,
                message,
                remedy,
                "an optional kind cannot be watched: features that need it are off"
            ),
            (true, _) => tracing::debug!(side = cluster.name, kind = resource.kind, message, "still cannot watch"),
        }
    }

    async fn after_failure(
        &mut self,
        reason: &'static str,
        message: String,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        self.restarted(reason);
        tracing::warn!(
            side = self.spec.cluster.name,
            kind = self.spec.resource.kind,
            failures = self.failures,
            message,
            "a watch failed; the agent retries"
        );
        self.lost_touch = true;
        self.unchecked = true;
        self.emit(WatchEvent::Failed { message }).await.ok()?;
        let requested = retry_after.map_or(Duration::ZERO, |requested| retry_after_wait(requested, &mut self.jitter));
        Some(self.next_wait().max(requested))
    }

    fn next_wait(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        Backoff::ORDINARY.wait(self.failures, &mut self.jitter)
    }
}
