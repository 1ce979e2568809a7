//! Reports of the member agent to operators: metrics and blocking reasons.

use crate::latency::Latencies;
use crate::switches::Switches;
use fleetnet_agent::blocking_reasons::BlockingReasons;
use fleetnet_core::member::Key;
use fleetnet_core::model::Kind;
use prometheus::Registry;

/// Reports of the agent to operators.
pub struct Reports {
    pub latencies: Latencies,
    pub switches: Switches,
    pub blocking_reasons: BlockingReasons<Key>,
}

impl Reports {
    /// Creates and registers the metrics of a cluster.
    ///
    /// # Errors
    /// If the registry has a metric of one of these names already.
    pub fn new(cluster: &str, registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            latencies: Latencies::new(cluster, registry)?,
            switches: Switches::new(registry)?,
            blocking_reasons: BlockingReasons::new(registry)?,
        })
    }
}

/// Returns the kind of the user's object that this key plans. A condition of this object reports rejected writes.
/// `None` for keys that plan other objects.
pub(crate) fn reporting_kind(key: &Key) -> Option<Kind> {
    match key {
        Key::Export(_) => Some(Kind::ServiceExport),
        Key::MultiClusterService(_) => Some(Kind::MultiClusterService),
        Key::McsImport(_) => Some(Kind::McsServiceImport),
        Key::SliceExport(_) | Key::Import(_) | Key::SliceImport(_) | Key::Heartbeat | Key::Membership => None,
    }
}

/// Returns the kind of the object that a key plans, for metrics.
pub(crate) fn planned_kind(key: &Key) -> Kind {
    match key {
        Key::Export(_) => Kind::ServiceExport,
        Key::SliceExport(_) => Kind::EndpointSlice,
        Key::MultiClusterService(_) => Kind::MultiClusterService,
        Key::Import(_) => Kind::ServiceImport,
        Key::McsImport(_) => Kind::McsServiceImport,
        Key::SliceImport(_) => Kind::EndpointSliceImport,
        Key::Heartbeat => Kind::MemberAgent,
        Key::Membership => Kind::InternalMemberCluster,
    }
}
