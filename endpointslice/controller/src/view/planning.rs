//! Plans of Services from the view, and the record of their writes.

use super::super::writes::{Operation, SliceReceipt};
use super::{Namespace, ServiceState, View};
use crate::limits::FOREIGN_LABELS_MAX;
use endpointslice::hints::{HintEvent, ServiceHints};
use endpointslice::model::Pod;
use endpointslice::{Proposal, Text};
use fleetnet_runtime::Verb;
use fleetnet_types::ObjectName;
use std::sync::Arc;

/// Plan of a Service, and the resulting state of topology hints.
#[derive(Debug)]
pub(in super::super) struct Draft {
    pub(in super::super) proposal: Proposal,
    /// State of the Service's topology hints after the plan.
    pub(in super::super) hints: ServiceHints,
    /// Changes of the Service's topology hints, to report as Events.
    pub(in super::super) events: Vec<HintEvent>,
}

impl Namespace {
    fn pods_of<'a>(&'a self, known: &'a ServiceState) -> impl Iterator<Item = &'a Pod> {
        known.pods.iter().filter_map(|pod| self.pods.get(pod))
    }
}

impl ServiceState {
    fn names(&self) -> (&Text, &Text) {
        let metadata = &self.state.service().metadata;
        (&metadata.namespace, &metadata.name)
    }
}

impl View {
    /// Plans a Service. The plan has the trigger time: the time of the oldest change that the plan's writes publish.
    pub(in super::super) fn plan(&self, namespace: &str, name: &str) -> Option<Draft> {
        let objects = self.namespaces.get(namespace)?;
        let known = objects.services.get(name)?;
        let (namespace, name) = known.names();
        let mut hints = self.hints.for_service(namespace, name);
        let mut proposal = known.state.propose(None, &mut hints);
        let oldest = if known.is_timed {
            self.times.oldest(&proposal.plan)
        } else {
            let mut times = self.times.for_service(namespace, name);
            times.observe(known.state.service(), objects.pods_of(known));
            times.oldest(&proposal.plan)
        };
        proposal.plan.set_trigger_time(oldest);
        let events = hints.take_events();
        Some(Draft { proposal, hints, events })
    }

    /// Stores the state after a Service's plan. The view must not have changed since the plan was made.
    pub(in super::super) fn planned(&mut self, namespace: &str, name: &str, proposal: &Proposal, hints: ServiceHints) {
        let Some(objects) = self.namespaces.get_mut(namespace) else { return };
        let Namespace { services, pods, .. } = objects;
        let Some(known) = services.get_mut(name) else { return };
        if !known.is_timed {
            let pods = known.pods.iter().filter_map(|pod| pods.get(pod));
            self.times.observe(known.state.service(), pods);
            known.is_timed = true;
        }
        known.state.accept(proposal);
        self.times.planned(&proposal.plan);
        let (namespace, name) = known.names();
        self.hints.record(namespace, name, hints);
    }

    /// Records that a write is sent, with the changes that the write publishes.
    pub(in super::super) fn write_begun(&mut self, service: &ObjectName, slice: &ObjectName, receipt: &SliceReceipt) {
        if receipt.operation != Operation::Delete {
            let sent = self.times.send(&service.namespace, &service.name, Arc::clone(&receipt.pods));
            self.sent.insert(slice.clone(), sent);
        }
    }

    /// Records the end of a write.
    pub(in super::super) fn write_ended(&mut self, service: &ObjectName, slice: &ObjectName, is_done: bool) {
        if let Some(sent) = self.sent.remove(slice) {
            self.times.ended(&service.namespace, &service.name, sent, is_done);
        }
    }

    /// Finds the labels that webhooks have added to a written slice: labels of the stored slice that the request did
    /// not have. From then on, the controller keeps labels with these keys on all slices, as it keeps annotations.
    /// `answered` is the resourceVersion in the response. If the view has another version of the slice, this function
    /// does nothing.
    pub(in super::super) fn keep_what_was_added(&mut self, slice: &ObjectName, answered: Option<u64>, verb: &Verb) {
        let (Verb::Create { body } | Verb::Replace { body, .. }) = verb else { return };
        let Some(stored) =
            self.namespaces.get(&*slice.namespace).and_then(|objects| objects.slices.get(&*slice.name)?.as_ref())
        else {
            return;
        };
        if stored.metadata.resource_version.parse().ok() != answered {
            return;
        }
        let requested = &body["metadata"]["labels"];
        let added =
            stored.metadata.labels.iter().map(|(key, _)| key).filter(|key| requested.get(key.as_str()).is_none());
        let room = FOREIGN_LABELS_MAX.saturating_sub(self.config.foreign_labels.len());
        let added: Vec<Text> = added.take(room).cloned().collect();
        if !added.is_empty() {
            Arc::make_mut(&mut self.config).foreign_labels.extend(added);
            let services = self.namespaces.values_mut().flat_map(|objects| objects.services.values_mut());
            services.for_each(|known| known.state.set_foreign_labels(Arc::clone(&self.config)));
        }
    }
}
