//! Blocking reasons: what stops the progress of a key until a user acts. A new or changed reason is logged once, and a metric
//! counts them.

use fleetnet_core::plan::Hindrance;
use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};
use std::collections::BTreeMap;
use std::fmt::Debug;
use tracing::warn;

/// Current blocking reasons, by key.
#[derive(Debug)]
pub struct Hindrances<K> {
    held: BTreeMap<K, Vec<Hindrance>>,
    number: IntGaugeVec,
}

impl<K: Clone + Debug + Ord> Hindrances<K> {
    /// Creates and registers the metric.
    ///
    /// # Errors
    /// If the registry has a metric of that name already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = Opts::new("fleetnet_hindrances", "What stands in the way until somebody mends it, by reason.");
        let number = IntGaugeVec::new(opts, &["reason"])?;
        registry.register(Box::new(number.clone()))?;
        Ok(Self { held: BTreeMap::new(), number })
    }

    /// Replaces the blocking reasons of a key by those of its newest plan. Returns how many of them are new.
    pub fn note(&mut self, key: &K, hindrances: Vec<Hindrance>) -> usize {
        let before = self.held.remove(key).unwrap_or_default();
        before.iter().for_each(|hindrance| self.number_of(hindrance).dec());
        hindrances.iter().for_each(|hindrance| self.number_of(hindrance).inc());
        let mut news = 0;
        for hindrance in hindrances.iter().filter(|hindrance| !before.contains(hindrance)) {
            warn!(?key, reason = hindrance.reason.as_str(), "{}", hindrance.message);
            news += 1;
        }
        if !hindrances.is_empty() {
            self.held.insert(key.clone(), hindrances);
        }
        news
    }

    fn number_of(&self, hindrance: &Hindrance) -> IntGauge {
        self.number.with_label_values(&[hindrance.reason.as_str()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::reasons::Reason;

    fn hindrance(reason: Reason, message: &str) -> Hindrance {
        Hindrance { reason, message: message.to_owned() }
    }

    #[test]
    fn what_stands_in_the_way_is_said_once_and_again_when_it_is_something_else() {
        let mut hindrances = Hindrances::new(&Registry::new()).expect("a new registry");
        let mut says = |why: &[&str]| {
            let why = why.iter().map(|why| hindrance(Reason::NameHeldByAnother, why)).collect();
            hindrances.note(&"key", why)
        };
        assert_eq!(says(&["a label"]), 1);
        assert_eq!(says(&["a label"]), 0);
        assert_eq!(says(&["a label", "a name"]), 1);
        assert_eq!(says(&["a name"]), 0);
        assert_eq!(says(&[]), 0);
        assert_eq!(says(&["a name"]), 1, "it was out of the way in between");
    }

    #[test]
    fn a_metric_tells_how_much_stands_in_the_way_under_the_same_reason() {
        let registry = Registry::new();
        let mut hindrances = Hindrances::new(&registry).expect("a new registry");
        let name = || vec![hindrance(Reason::NameHeldByAnother, "a name")];
        hindrances.note(&"one", name());
        hindrances.note(&"other", name());
        hindrances.note(&"other", vec![hindrance(Reason::PortRefused, "a port")]);
        hindrances.note(&"one", name());
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        for (reason, number) in [("NameHeldByAnother", 1), ("PortRefused", 1)] {
            assert!(text.contains(&format!("fleetnet_hindrances{{reason=\"{reason}\"}} {number}\n")), "{text}");
        }
    }
}
