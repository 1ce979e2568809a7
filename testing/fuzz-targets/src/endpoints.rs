//! Target for the objects of the EndpointSlice controller.

use crate::message::check_message;
use endpointslice::hints::ServiceHints;
use endpointslice::model::{EndpointSlice, Node, Pod, Service};
use endpointslice::trigger::TriggerTimes;
use endpointslice::{Config, NodeZones, PlanRequest, plan_pods};
use endpointslice_controller::fuzzing::{controller_manager_lease, endpoint_object};
use endpointslice_controller::{Input, Object};
use std::sync::Arc;

/// Objects that the lines of an input describe.
#[derive(Default)]
struct Objects {
    services: Vec<Service>,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    slices: Vec<Arc<EndpointSlice>>,
}

/// Decodes each line of the input as a Service, a Pod, a Node, an EndpointSlice and a Lease, and plans the slices of
/// each Service.
///
/// An undecodable object names the reason. The written form of a slice is the same slice. A plan names no endpoint
/// twice in a slice.
pub fn endpoint_objects(bytes: &[u8]) {
    let config = Config::default();
    let mut objects = Objects::default();
    for line in bytes.split(|byte| *byte == b'\n').take(8) {
        for input in Input::ALL {
            match endpoint_object(input, config.controller_name(), line) {
                Ok(observed) => objects.take(observed.object),
                Err(undecodable) => check_message(&undecodable.why),
            }
        }
        if let Err(undecodable) = controller_manager_lease(line) {
            check_message(&undecodable.why);
        }
    }
    objects.plan(&config);
}

impl Objects {
    fn take(&mut self, object: Object) {
        match object {
            Object::Service(service) => self.services.push(service),
            Object::Pod(pod) => self.pods.push(pod),
            Object::Node(node) => self.nodes.push(node),
            Object::EndpointSlice(slice) => {
                same_slice(&slice);
                self.slices.push(Arc::new(slice));
            }
        }
    }

    fn plan(&self, config: &Config) {
        let zones: NodeZones = self.nodes.iter().collect();
        let mut hints = ServiceHints::new();
        let _replan = hints.set_nodes(&self.nodes);
        let mut times = TriggerTimes::default();
        for service in &self.services {
            let trigger_time = times.observe(service, &self.pods);
            let request = PlanRequest { service, existing: &self.slices, trigger_time, config };
            let plan = plan_pods(&request, &self.pods, &zones, &mut hints);
            let printed = plan.to_string();
            assert_eq!(plan.is_empty(), printed.is_empty(), "a plan is not printed: {printed}");
        }
    }
}

fn same_slice(slice: &EndpointSlice) {
    let written = serde_json::to_vec(slice).expect("a slice is JSON");
    let read: EndpointSlice = serde_json::from_slice(&written).expect("a written slice is a slice");
    assert_eq!(&read, slice, "{} is another slice", String::from_utf8_lossy(&written));
}
