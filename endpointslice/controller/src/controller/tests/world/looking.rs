//! Queries of the cluster for tests.

use super::{Done, World};
use crate::serving::Serving;
use crate::writes::Operation;
use endpointslice::model::{Endpoint, EndpointSlice};
use endpointslice::{Text, names};
use fleetnet_runtime::{Event, Logic};
use fleetnet_types::Timestamp;
use memkube::MemKube;
use memkube::registry::ResourceId;
use serde_json::Value;
use std::time::Duration;

impl World {
    /// Runs everything that is due now. Returns the Services that are planned.
    pub(crate) fn requeue(&mut self) -> Vec<String> {
        self.run();
        std::mem::take(&mut self.seen.lock().planned).iter().map(|key| key.name.to_string()).collect()
    }

    /// Returns the slices of a Service that have a write in flight.
    pub(crate) fn flights_of(&self, service: &str) -> Vec<String> {
        self.gate.flights_of(service)
    }

    /// Returns all slices, by name.
    pub(crate) fn slices(&self) -> Vec<EndpointSlice> {
        slices(&self.server)
    }

    /// Returns the time of the last foreign write since the last call.
    pub(crate) fn take_foreign_change(&mut self) -> Option<Timestamp> {
        self.seen.lock().foreign_change.take()
    }

    /// Returns the writes that succeeded since the last call.
    pub(crate) fn done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.gate.traffic.lock().done)
    }

    /// Returns the Events since the last call.
    pub(crate) fn events(&mut self) -> Vec<Event<<Serving as Logic>::Source>> {
        std::mem::take(&mut self.seen.lock().events)
    }

    /// Returns the operations of the writes executed since the last call, in order.
    pub(crate) fn take_done(&mut self) -> Vec<Operation> {
        self.done().into_iter().map(|done| done.operation).collect()
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
        let reported = self.events().into_iter();
        reported.map(|event| format!("{} {}: {}", event.severity.as_str(), event.reason, event.message)).collect()
    }

    /// Returns this controller's slices of a Service, by name. Omits slices that are being deleted.
    pub(crate) fn slices_of(&self, service: &str) -> Vec<EndpointSlice> {
        let slices = self.slices().into_iter();
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

    /// Returns the value of a metric with that name and labels, as Prometheus scrapes it.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = prometheus::TextEncoder::new().encode_to_string(&self.registry.gather()).expect("metrics are text");
        let name = format!("endpoint_slice_controller_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
    }
}

pub(crate) fn slices(server: &MemKube) -> Vec<EndpointSlice> {
    let stored = server.peek_all(&ResourceId::new("discovery.k8s.io", "endpointslices"));
    stored.into_iter().map(|slice| serde_json::from_value(Value::Object(slice)).expect("a slice")).collect()
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
