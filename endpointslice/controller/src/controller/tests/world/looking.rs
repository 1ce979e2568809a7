//! Queries of the simulated cluster for tests.

use super::World;
use crate::Operation;
use endpointslice::model::{Endpoint, EndpointSlice};
use endpointslice::{Text, names};
use std::time::Duration;

impl World {
    /// Returns the Services that wait for a plan.
    pub(crate) fn requeue(&self) -> Vec<String> {
        self.requeue.iter().map(|key| key.name.to_string()).collect()
    }

    /// Returns the slices of a Service that have a write in flight.
    pub(crate) fn flights_of(&self, service: &str) -> Vec<String> {
        let flights = self.flights.iter().filter(|flight| *flight.key.name == *service);
        flights.map(|flight| flight.write.name.to_string()).collect()
    }

    /// Returns the operations of the writes executed since the last call, in order.
    pub(crate) fn take_done(&mut self) -> Vec<Operation> {
        std::mem::take(&mut self.done).into_iter().map(|done| done.operation).collect()
    }

    /// Runs everything that is due now. Returns the operations as [`World::take_done`] does.
    pub(crate) fn done_now(&mut self) -> Vec<Operation> {
        self.settle();
        self.take_done()
    }

    /// Advances the simulated time. Returns the operations as [`World::take_done`] does.
    pub(crate) fn done_after(&mut self, duration: Duration) -> Vec<Operation> {
        self.advance(duration);
        self.take_done()
    }

    /// Returns reasons and messages of the Events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        let reported = std::mem::take(&mut self.events);
        reported
            .into_iter()
            .map(|event| format!("{} {}: {}", event.severity.as_str(), event.reason, event.message))
            .collect()
    }

    /// Returns this controller's slices of a Service, by name. Omits slices that are being deleted.
    pub(crate) fn slices_of(&self, service: &str) -> Vec<EndpointSlice> {
        let slices = self.server.slices().into_iter();
        slices.filter(|slice| is_of(slice, service) && !slice.metadata.is_terminating()).collect()
    }

    pub(crate) fn only_slice_of(&self, service: &str) -> EndpointSlice {
        let mut slices = self.slices_of(service);
        assert_eq!(slices.len(), 1, "{slices:?}");
        slices.remove(0)
    }

    /// Returns the published endpoints of a Service as sorted lines: pod, addresses, and the conditions that are true.
    /// A line starts with the address type if the type is not IPv4.
    pub(crate) fn endpoints_of(&self, service: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for slice in self.slices_of(service) {
            lines.extend(slice.endpoints.iter().map(|endpoint| line(&slice, endpoint)));
        }
        lines.sort();
        lines
    }

    /// True if no write is in flight, no retry waits and no plan is delayed.
    pub(crate) fn is_settled(&self) -> bool {
        let is_waiting = self.troubles.iter().any(|(_, until)| until.is_none_or(|until| until > self.now));
        let is_quiet = self.requeue.is_empty() && self.flights.is_empty() && !is_waiting;
        let is_seen = !self.watch_is_paused && self.server.watch.is_empty();
        is_quiet && is_seen && self.again.is_empty() && self.retries.is_empty() && self.controller.is_ready()
    }

    /// Returns the value of a metric with that name and labels, as Prometheus scrapes it.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = prometheus::TextEncoder::new().encode_to_string(&self.registry.gather()).expect("metrics are text");
        let name = format!("endpoint_slice_controller_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
    }
}

fn line(slice: &EndpointSlice, endpoint: &Endpoint) -> String {
    let pod = endpoint.target_ref.as_ref().map_or("", |target| target.name.as_str());
    let mut line = format!("{pod} {}", endpoint.addresses.join(","));
    let conditions = endpoint.conditions;
    for (is, word) in
        [(conditions.ready, "ready"), (conditions.serving, "serving"), (conditions.terminating, "terminating")]
    {
        if is == Some(true) {
            line += &format!(" {word}");
        }
    }
    if slice.address_type.as_str() == "IPv4" { line } else { format!("{} {line}", slice.address_type) }
}

fn is_of(slice: &EndpointSlice, service: &str) -> bool {
    let label = |key| slice.metadata.labels.get(key).map(Text::as_str);
    label(names::LABEL_SERVICE_NAME) == Some(service) && label(names::LABEL_MANAGED_BY) == Some(names::CONTROLLER_NAME)
}
