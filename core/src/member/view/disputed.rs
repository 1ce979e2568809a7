//! Disputes: writes of this member agent that another writer undoes. The condition `Disputed` of ServiceExports and
//! MultiClusterServices shows them.

use super::{Key, View};
use crate::conditions::{ConditionValue, DISPUTED, DesiredCondition};
use crate::disputes;
use crate::model::{Kind, MultiClusterService, ServiceExport};
use fleetnet_types::{ConditionStatus, ObjectName};

impl View {
    /// Records that another writer undoes this agent's writes to the object `over`. `message` is the text for the user; `None`
    /// if the other writer stopped. `about` is the ServiceExport or MultiClusterService that the write belongs to; without it,
    /// no condition shows the dispute.
    pub fn disputed(
        &mut self,
        about: Option<(Kind, ObjectName)>,
        over: (Kind, ObjectName),
        message: Option<String>,
        requeue: &mut Vec<Key>,
    ) {
        let about = about.and_then(|(kind, name)| match kind {
            Kind::ServiceExport => Some(Key::Export(name)),
            Kind::MultiClusterService => Some(Key::MultiClusterService(name)),
            _ => None,
        });
        requeue.extend(self.disputes.note(about, over, message));
    }

    /// Returns the desired condition `Disputed` of a ServiceExport. The condition shows a dispute of this member agent, or
    /// else a dispute that the hub agent reports on the InternalServiceExport.
    pub(crate) fn disputed_export(&self, export: &ServiceExport, component: &'static str) -> Option<DesiredCondition> {
        let name = &export.meta.name;
        let of_hub = self.internal_exports_of.get(name).filter_map(|internal| self.internal_exports.live(internal));
        // fault R15.3: next ~> filter(|_| false).next
        let in_hub = of_hub.filter_map(|internal| disputes::is_disputed(&internal.conditions)).next();
        let here = self.disputes.condition(&Key::Export(name.clone()), &export.conditions, component);
        match (here, in_hub) {
            // fault R15.6: == ~> !=
            (Some(here), _) if here.value().status == ConditionStatus::True => Some(here),
            (_, Some(in_hub)) => {
                let value = ConditionValue::writes_undone(in_hub.message.to_string());
                Some(DesiredCondition::new(DISPUTED, value, component).without_event())
            }
            (here, None) => here,
        }
    }

    /// Returns the desired condition `Disputed` of a MultiClusterService.
    pub(crate) fn disputed_import(
        &self,
        mcs: &MultiClusterService,
        component: &'static str,
    ) -> Option<DesiredCondition> {
        let about = Key::MultiClusterService(mcs.meta.name.clone());
        // fault R15.1: component) } ~> component).filter(|_| false) }
        self.disputes.condition(&about, &mcs.conditions, component)
    }
}
