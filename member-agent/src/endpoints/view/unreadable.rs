//! Pods and Nodes that are there and cannot be read: they are not absent, so nothing is taken away for want of them.
//!
//! What is known of such a pod is what slices show of it. That stays, in every Service that shows it, until the pod can be
//! read or is gone; all else of those Services goes on. Of such a Node slices show the zone, and its pods stay published.
//! A pod or Node that slices do not show yet waits.

use super::{Known, Namespace, Touched, View};
use endpointslice::Text;
use endpointslice::model::{Metadata, Node};
use endpointslice::names::LABEL_ZONE;
use std::collections::BTreeSet;

impl View {
    /// A pod is there that cannot be read.
    pub(in super::super) fn note_pod(&mut self, namespace: &str, name: &str) {
        self.namespaces.entry(namespace.into()).or_default().unreadable_pods.insert(name.into());
    }

    /// The same of a Node.
    pub(in super::super) fn note_node(&mut self, name: &str) {
        self.unreadable_nodes.insert(name.into());
    }

    /// All is told that can be: what slices show of what cannot be read is what is known of it. Answers the Services whose
    /// endpoints that concerns.
    pub(in super::super) fn keep_unreadable(&mut self) -> Touched {
        let mut touched = Touched::new();
        for name in self.unreadable_nodes.clone() {
            let mut node = Node { metadata: Metadata { name: name.clone(), ..Metadata::default() }, ..Node::default() };
            if let Some(zone) = self.shown_zone(&name) {
                node.metadata.labels.insert(LABEL_ZONE, zone);
            }
            let moved = self.zones.insert(&node);
            touched.extend(self.after_node(&name, moved, false));
        }
        for held in self.namespaces.values_mut().filter(|held| !held.unreadable_pods.is_empty()) {
            held.services.values_mut().for_each(|known| known.keep(&held.unreadable_pods));
        }
        touched
    }

    /// The zone of a Node, from the endpoints on it.
    fn shown_zone(&self, node: &str) -> Option<Text> {
        let slices = self.namespaces.values().flat_map(|held| held.slices.values().flatten());
        let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
        endpoints.find(|endpoint| endpoint.node_name.as_deref() == Some(node) && endpoint.zone.is_some())?.zone.clone()
    }
}

impl Namespace {
    /// A pod can be read, or is gone. Answers the Services that kept its endpoints.
    pub(super) fn read(&mut self, pod: &str) -> BTreeSet<Text> {
        if !self.unreadable_pods.remove(pod) {
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

impl Known {
    /// Keeps what its slices show of these pods.
    pub(super) fn keep(&mut self, pods: &BTreeSet<Text>) {
        for pod in pods {
            if self.state.keep_pod(pod) {
                self.kept.insert(pod.clone());
            }
        }
    }
}
