//! Blocking reasons: causes that stop the progress of a key until a user acts. This module logs each new or changed
//! blocking reason once. A metric shows the present number of blocking reasons.

use crate::metrics;
use fleetnet_api::resources;
use fleetnet_core::model::Kind;
use fleetnet_core::plan::BlockingReason;
use prometheus::{IntGauge, IntGaugeVec, Registry};
use std::collections::BTreeMap;
use std::fmt::Debug;
use tracing::warn;

/// Current blocking reasons of all keys.
#[derive(Debug)]
pub struct BlockingReasons<K> {
    reported: BTreeMap<K, Vec<BlockingReason>>,
    number: IntGaugeVec,
}

impl<K: Clone + Debug + Ord> BlockingReasons<K> {
    /// Creates an empty set of blocking reasons, and registers the metric that counts them.
    ///
    /// # Errors
    /// If the registry already has a metric with this name.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self { reported: BTreeMap::new(), number: metrics::HINDRANCES.gauges(registry)? })
    }

    /// Replaces the blocking reasons of a key with the blocking reasons of the newest plan of this key. Logs the new
    /// reasons and returns their number. `kind` is the kind of the object that the key plans, always the same for one
    /// key.
    pub fn note(&mut self, key: &K, kind: Kind, blocking_reasons: Vec<BlockingReason>) -> usize {
        let before = self.reported.remove(key).unwrap_or_default();
        before.iter().for_each(|blocking_reason| self.number_of(kind, blocking_reason).dec());
        blocking_reasons.iter().for_each(|blocking_reason| self.number_of(kind, blocking_reason).inc());
        let mut news = 0;
        for blocking_reason in blocking_reasons.iter().filter(|blocking_reason| !before.contains(blocking_reason)) {
            warn!(?key, reason = blocking_reason.reason.as_str(), "{}", blocking_reason.message);
            news += 1;
        }
        if !blocking_reasons.is_empty() {
            self.reported.insert(key.clone(), blocking_reasons);
        }
        news
    }

    fn number_of(&self, kind: Kind, blocking_reason: &BlockingReason) -> IntGauge {
        self.number.with_label_values(&[resources::resource(kind).kind, blocking_reason.reason.as_str()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::reasons::Reason;

    fn blocking_reason(reason: Reason, message: &str) -> BlockingReason {
        BlockingReason { reason, message: message.to_owned() }
    }

    /// Rule G4: A key is blocked until somebody acts
    /// Then: The agent logs a new blocking reason once. `fleetnet_hindrances{kind,reason}` counts the present blocking
    /// reasons
    ///
    /// Rule R10: An agent can make no progress with a key, and no object records that the agent reported the blocking
    /// reason
    /// Then: The agent logs the blocking reason once. `fleetnet_hindrances` counts the blocking reason until the agent
    /// can make progress
    #[test]
    fn a_blocking_reason_is_logged_once_and_again_when_it_changes() {
        let mut blocking_reasons = BlockingReasons::new(&Registry::new()).expect("a new registry");
        let mut logged_lines = |messages: &[&str]| {
            let reasons = messages.iter().map(|message| blocking_reason(Reason::NameHeldByAnother, message)).collect();
            blocking_reasons.note(&"key", Kind::ServiceImport, reasons)
        };
        assert_eq!(logged_lines(&["a label"]), 1);
        assert_eq!(logged_lines(&["a label"]), 0);
        assert_eq!(logged_lines(&["a label", "a name"]), 1);
        assert_eq!(logged_lines(&["a name"]), 0);
        assert_eq!(logged_lines(&[]), 0);
        assert_eq!(logged_lines(&["a name"]), 1, "it was out of the way in between");
    }

    /// Also rules G4, R10.
    #[test]
    fn a_metric_counts_blocked_objects_by_the_same_reason() {
        let registry = Registry::new();
        let mut blocking_reasons = BlockingReasons::new(&registry).expect("a new registry");
        let name = || vec![blocking_reason(Reason::NameHeldByAnother, "a name")];
        blocking_reasons.note(&"one", Kind::ServiceImport, name());
        blocking_reasons.note(&"other", Kind::EndpointSliceExport, name());
        let port = || vec![blocking_reason(Reason::PortRefused, "a port")];
        blocking_reasons.note(&"other", Kind::EndpointSliceExport, port());
        blocking_reasons.note(&"third", Kind::EndpointSliceExport, port());
        blocking_reasons.note(&"one", Kind::ServiceImport, name());
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        for (kind, reason, number) in [
            ("ServiceImport", "NameHeldByAnother", 1),
            ("EndpointSliceExport", "NameHeldByAnother", 0),
            ("EndpointSliceExport", "PortRefused", 2),
        ] {
            let sample = format!("fleetnet_hindrances{{kind=\"{kind}\",reason=\"{reason}\"}} {number}\n");
            assert!(text.contains(&sample), "{text}");
        }
    }
}
