//! Undecodable pods and Nodes. They exist, so no endpoint is removed because of them.
//!
//! The only known state of an undecodable pod is in the slices. The endpoints of the pod stay as they are until the pod
//! is decodable or deleted. Other endpoints of its Services are updated as usual. If no slice has an endpoint of the
//! undecodable pod, the pod gets an endpoint only when it is decodable. The zone of an undecodable Node is taken from
//! the slices, and the endpoints of its pods stay.

use super::{Namespace, ServiceState, Touched, View};
use endpointslice::Text;
use endpointslice::model::{Metadata, Node};
use endpointslice::names::LABEL_ZONE;
use std::collections::BTreeSet;

impl View {
    /// Records an undecodable pod.
    pub(in super::super) fn note_pod(&mut self, namespace: &str, name: &str) {
        self.namespaces.entry(namespace.into()).or_default().undecodable_pods.insert(name.into());
    }

    /// Records an undecodable Node.
    pub(in super::super) fn note_node(&mut self, name: &str) {
        self.undecodable_nodes.insert(name.into());
    }

    /// Restores the endpoints of undecodable pods and the zones of undecodable Nodes from the slices, once all inputs
    /// are listed. Returns the Services whose endpoints change because of a Node.
    pub(in super::super) fn keep_undecodable(&mut self) -> Touched {
        let mut touched = Touched::new();
        for name in self.undecodable_nodes.clone() {
            let mut node = Node { metadata: Metadata { name: name.clone(), ..Metadata::default() }, ..Node::default() };
            if let Some(zone) = self.shown_zone(&name) {
                node.metadata.labels.insert(LABEL_ZONE, zone);
            }
            if self.zones.insert(&node) {
                touched.extend(self.node_moved(&name));
            }
        }
        for objects in self.namespaces.values_mut().filter(|objects| !objects.undecodable_pods.is_empty()) {
            objects.services.values_mut().for_each(|known| known.keep(&objects.undecodable_pods));
        }
        touched
    }

    /// Returns the zone of a Node, taken from an endpoint on this Node in any slice.
    fn shown_zone(&self, node: &str) -> Option<Text> {
        let slices = self.namespaces.values().flat_map(|objects| objects.slices.values().flatten());
        let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
        endpoints.find(|endpoint| endpoint.node_name.as_deref() == Some(node) && endpoint.zone.is_some())?.zone.clone()
    }
}

impl Namespace {
    /// Records that a pod is no longer undecodable: it is decodable or deleted. Removes the old endpoints that were
    /// kept for the pod. Returns the Services that had such endpoints.
    pub(super) fn read(&mut self, pod: &str) -> BTreeSet<Text> {
        if !self.undecodable_pods.remove(pod) {
            return BTreeSet::new();
        }
        let keeping = self.services.iter_mut().filter_map(|(name, known)| {
            known.kept.remove(pod).then(|| {
                known.state.remove_pod(pod);
                name.clone()
            })
        });
        keeping.collect()
    }
}

impl ServiceState {
    /// Keeps the endpoints of these undecodable pods, as the slices of the Service contain them.
    pub(super) fn keep(&mut self, pods: &BTreeSet<Text>) {
        for pod in pods {
            if self.state.keep_pod(pod) {
                self.kept.insert(pod.clone());
            }
        }
    }
}
