//! Metrics that both agents export, in addition to the metrics of the runtime (`runtime/src/metrics.rs`). Other metrics
//! are in `member-agent/src/metrics.rs` (member agent) and in `endpointslice/src/metrics.rs` (EndpointSlice library).

use fleetnet_runtime::metrics::{Definition, Kind};
use prometheus::{PullingGauge, Registry};
use tokio::runtime::Handle;

pub(crate) const HINDRANCES: Definition = Definition {
    name: "fleetnet_hindrances",
    kind: Kind::Gauge,
    labels: &["kind", "reason"],
    help: "Number of blocking reasons now, by the kind of the blocked object and by reason. A blocking reason stops progress until somebody acts.",
};

pub(crate) const BUILD_INFO: Definition = Definition {
    name: "fleetnet_build_info",
    kind: Kind::Gauge,
    labels: &["version", "revision"],
    help: "Always 1. The labels are the version of the agent, and the value of FLEETNET_REVISION at its build (unknown if \
           unset).",
};

pub(crate) const TASKS: Definition = Definition {
    name: "fleetnet_tasks",
    kind: Kind::Gauge,
    labels: &[],
    help: "Number of tasks of the agent that run or wait.",
};

pub(crate) const SPANS: Definition = Definition {
    name: "fleetnet_spans_total",
    kind: Kind::Counter,
    labels: &["result"],
    help: "Number of spans that were sent to the collector. result: ok if it took them, else failed.",
};

/// All metrics of this crate.
pub const ALL: &[Definition] = &[BUILD_INFO, HINDRANCES, SPANS, TASKS];

/// Registers the metric of the tasks of this process, on these runtimes.
///
/// # Errors
/// If the registry already has the metric.
pub(crate) fn register_tasks(registry: &Registry, runtimes: [Handle; 2]) -> Result<(), prometheus::Error> {
    #[expect(clippy::cast_precision_loss, reason = "no process has so many tasks")]
    let alive = move || runtimes.iter().map(|runtime| runtime.metrics().num_alive_tasks()).sum::<usize>() as f64;
    registry.register(Box::new(PullingGauge::new(TASKS.name, TASKS.help, Box::new(alive))?))
}

#[cfg(test)]
mod tests {
    use super::register_tasks;
    use prometheus::{Registry, TextEncoder};
    use tokio::runtime::Handle;

    #[tokio::test]
    async fn tasks_are_counted_while_they_live() {
        let registry = Registry::new();
        let other = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        register_tasks(&registry, [Handle::current(), other.handle().clone()]).expect("a new registry");
        let shows = |number: usize| {
            let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
            assert!(text.contains(&format!("fleetnet_tasks {number}\n")), "{number}: {text}");
        };
        shows(0);
        let task = tokio::spawn(std::future::pending::<()>());
        shows(1);
        other.spawn(std::future::pending::<()>());
        shows(2);
        other.shutdown_background();
        shows(1);
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        shows(0);
    }
}
