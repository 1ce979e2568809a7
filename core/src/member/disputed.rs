//! Condition `Disputed` of ServiceExports and MultiClusterServices: another writer undoes the writes of this member
//! agent.

use crate::conditions::{ConditionValue, DISPUTED, DesiredCondition};
use crate::disputes;
use crate::member::view::{Key, Reader};
use crate::model::{MultiClusterService, ServiceExport};
use fleetnet_types::ConditionStatus;

/// Returns the desired condition `Disputed` of a ServiceExport. The condition shows a dispute of this member agent, or
/// else a dispute that the hub agent reports on the InternalServiceExport.
pub(crate) fn of_export(view: Reader<'_>, export: &ServiceExport, component: &'static str) -> Option<DesiredCondition> {
    let name = &export.meta.name;
    let of_hub = view.internal_exports_of(name).filter_map(|internal| view.internal_exports().live(internal));
    let in_hub = of_hub.filter_map(|internal| disputes::is_disputed(&internal.conditions)).next();
    let here = view.disputes().condition(&Key::Export(name.clone()), &export.conditions, component);
    match (here, in_hub) {
        (Some(here), _) if here.value().status == ConditionStatus::True => Some(here),
        (_, Some(in_hub)) => {
            let value = ConditionValue::writes_undone(in_hub.message.to_string());
            Some(DesiredCondition::new(DISPUTED, value, component).without_event())
        }
        (here, None) => here,
    }
}

/// Returns the desired condition `Disputed` of a MultiClusterService.
pub(crate) fn of_import(
    view: Reader<'_>,
    request: &MultiClusterService,
    component: &'static str,
) -> Option<DesiredCondition> {
    let about = Key::MultiClusterService(request.meta.name.clone());
    view.disputes().condition(&about, &request.conditions, component)
}
