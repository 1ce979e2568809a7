//! Plans of Services from the view, and the outcome of their writes.

use super::super::writes::{Operation, SliceReceipt};
use super::View;
use crate::limits::FOREIGN_LABELS_MAX;
use endpointslice::Text;
use endpointslice::hints::HintEvent;
use endpointslice::plan::Plan;
use fleetnet_runtime::Verb;
use fleetnet_types::ObjectName;
use std::sync::Arc;

impl View {
    /// Plans a Service. The plan carries the time of the oldest change that its writes publish for the first time.
    pub(in super::super) fn plan(&mut self, namespace: &str, name: &str) -> Option<(Plan, Vec<HintEvent>)> {
        let held = self.namespaces.get_mut(namespace)?;
        let known = held.services.get_mut(name)?;
        if !known.is_timed {
            let pods = known.pods.iter().filter_map(|pod| held.pods.get(pod));
            self.times.observe(known.state.service(), pods);
            known.is_timed = true;
        }
        let mut plan = known.state.plan(None, &mut self.hints);
        plan.set_trigger_time(self.times.planned(&plan));
        Some((plan, self.hints.take_events()))
    }

    /// Notes that a write is sent: it is publishing its changes.
    pub(in super::super) fn write_begun(&mut self, service: &ObjectName, slice: &ObjectName, receipt: &SliceReceipt) {
        if receipt.operation != Operation::Delete {
            let sent = self.times.send(&service.namespace, &service.name, Arc::clone(&receipt.pods));
            self.sent.insert(slice.clone(), sent);
        }
    }

    /// Notes the end of a write.
    pub(in super::super) fn write_ended(&mut self, service: &ObjectName, slice: &ObjectName, is_done: bool) {
        if let Some(sent) = self.sent.remove(slice) {
            self.times.ended(&service.namespace, &service.name, sent, is_done);
        }
    }

    /// Attributes additional labels of a written slice to webhooks. From then on, such labels are foreign on every
    /// slice, as annotations are.
    pub(in super::super) fn keep_what_was_added(&mut self, slice: &ObjectName, answered: Option<u64>, verb: &Verb) {
        let (Verb::Create { body } | Verb::Replace { body, .. }) = verb else { return };
        let Some(held) =
            self.namespaces.get(&*slice.namespace).and_then(|held| held.slices.get(&*slice.name)?.as_ref())
        else {
            return;
        };
        if held.metadata.resource_version.parse().ok() != answered {
            return;
        }
        let asked = &body["metadata"]["labels"];
        let added = held.metadata.labels.iter().map(|(key, _)| key).filter(|key| asked.get(key.as_str()).is_none());
        let room = FOREIGN_LABELS_MAX.saturating_sub(self.config.foreign_labels.len());
        let added: Vec<Text> = added.take(room).cloned().collect();
        if !added.is_empty() {
            Arc::make_mut(&mut self.config).foreign_labels.extend(added);
            let services = self.namespaces.values_mut().flat_map(|held| held.services.values_mut());
            services.for_each(|known| known.state.set_foreign_labels(Arc::clone(&self.config)));
        }
    }
}
