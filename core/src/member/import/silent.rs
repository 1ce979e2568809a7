//! Imported slices of a silent member: its endpoints are draining or withdrawn, unless no other member has ready endpoints of the
//! Service. The condition `ExporterSilent` shows it.

use crate::conditions::{self, DesiredCondition};
use crate::member::view::Reader;
use crate::model::{AddressType, HubSlice, MultiClusterService, SliceContent, Treatment};
use fleetnet_types::ObjectName;
use std::borrow::Cow;

/// Returns the content to import of a distributed slice, after its validation.
pub(super) fn content<'a>(view: Reader<'a>, distributed: &'a HubSlice) -> Cow<'a, SliceContent> {
    let admitted = view.admitted(distributed).content;
    let Some(treatment) = view.treatment_of(&distributed.spec.reference.cluster) else {
        return Cow::Borrowed(admitted);
    };
    // fault O20.1: !is_served_by_others(view, &distributed.spec.owner, &admitted.address_type) ~> false
    if !is_served_by_others(view, &distributed.spec.owner, &admitted.address_type) {
        return Cow::Borrowed(admitted);
    }
    let mut content = admitted.clone();
    let endpoints = std::mem::take(&mut content.endpoints);
    match treatment {
        // fault O20.2: content.draining.splice(..0, endpoints) ~> content.draining.splice(..0, endpoints.into_iter().take(0))
        Treatment::Draining => drop(content.draining.splice(..0, endpoints)),
        // fault O20.3: content.draining.clear() ~> drop(content.draining.splice(..0, endpoints))
        Treatment::Withdrawn => content.draining.clear(),
    }
    Cow::Owned(content)
}

/// True if this member has imported ready endpoints of the Service, with addresses of this type, from a member that is not silent.
fn is_served_by_others(view: Reader<'_>, service: &ObjectName, address_type: &AddressType) -> bool {
    let slices = view.distributed_slices_of(service).filter_map(|name| view.distributed_slices().live(name));
    let of_others = slices.filter(|other| view.treatment_of(&other.spec.reference.cluster).is_none());
    // fault O20.4: other.spec.content.address_type == *address_type ~> { let _ = (other, address_type); true }
    let mut of_type = of_others.filter(|other| other.spec.content.address_type == *address_type);
    of_type.any(|other| {
        let imported = view.slices().live(&view.in_system(other.meta.name.name.clone()));
        imported.is_some_and(|imported| imported.imported && !imported.content.endpoints.is_empty())
    })
}

/// Returns the desired condition `ExporterSilent` of a MultiClusterService.
pub(super) fn condition(
    view: Reader<'_>,
    mcs: &MultiClusterService,
    component: &'static str,
) -> Option<DesiredCondition> {
    let import = view.imports().live(&ObjectName::new(mcs.meta.name.namespace.clone(), mcs.import_name.clone()));
    let exporters = import.map_or(&[][..], |import| &import.status.clusters);
    let silent: Vec<_> = exporters.iter().filter(|exporter| view.treatment_of(exporter).is_some()).collect();
    conditions::exporter_silent(exporters, &silent, &mcs.conditions, component)
}
