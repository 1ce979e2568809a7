//! Reports of cluster selection: an Event and a count for each failover and failback.

use crate::metrics::SELECTION_SWITCHES;
use fleetnet_core::member::{Direction, Switch};
use fleetnet_core::reasons::Reason;
use prometheus::{IntCounterVec, Registry};
use std::fmt::Write as _;

/// Counter of failovers and failbacks.
#[derive(Clone)]
pub struct Switches {
    count: IntCounterVec,
}

impl Switches {
    /// Creates and registers the metric.
    ///
    /// # Errors
    /// If the registry has a metric of this name already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let count = SELECTION_SWITCHES.counters(registry)?;
        for direction in Direction::ALL {
            count.with_label_values(&[direction.as_str()]);
        }
        Ok(Self { count })
    }

    /// Counts a switch. Returns the reason and the message of its Event.
    pub(crate) fn report(&self, switch: &Switch, importer: &str) -> (Reason, String) {
        let Switch { service, port, direction, clusters, .. } = switch;
        self.count.with_label_values(&[direction.as_str()]).inc();
        let mut at = format!("service {service}");
        if !port.is_empty() {
            let _ = write!(at, ", port {port}");
        }
        let clusters: Vec<&str> = clusters.iter().map(|cluster| &**cluster).collect();
        let clusters = clusters.join(", ");
        match direction {
            Direction::Failover => (
                Reason::ClusterFailover,
                format!(
                    "{at}: cluster {importer} sends requests to {clusters}, because the clusters that its selectors prefer have no \
                     ready endpoint left, or are silent"
                ),
            ),
            Direction::Failback => (
                Reason::ClusterFailback,
                format!("{at}: cluster {importer} sends requests to {clusters} again, which its selectors prefer"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_types::ObjectName;

    #[test]
    fn a_switch_is_counted_and_its_event_says_where_requests_go_and_why() {
        let registry = Registry::new();
        let switches = Switches::new(&registry).expect("the only one");
        let mut switch = Switch {
            namespace: "fleet-system".into(),
            service: ObjectName::new("work", "app"),
            port: "http".into(),
            direction: Direction::Failover,
            clusters: ["east".into(), "north".into()].into(),
        };
        let (reason, message) = switches.report(&switch, "west");
        assert_eq!(reason, Reason::ClusterFailover);
        assert_eq!(
            message,
            "service work/app, port http: cluster west sends requests to east, north, because the clusters that its selectors prefer \
             have no ready endpoint left, or are silent"
        );
        (switch.direction, switch.port, switch.clusters) = (Direction::Failback, "".into(), ["west".into()].into());
        let (reason, message) = switches.report(&switch, "west");
        assert_eq!(reason, Reason::ClusterFailback);
        assert_eq!(message, "service work/app: cluster west sends requests to west again, which its selectors prefer");
        for direction in Direction::ALL {
            assert_eq!(switches.count.with_label_values(&[direction.as_str()]).get(), 1);
        }
    }
}
