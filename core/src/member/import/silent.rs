//! Imported slices of a silent member: its endpoints are draining or withdrawn, unless no other member has ready
//! endpoints of the Service. The condition `ExporterSilent` shows it.

use crate::conditions::{self, DesiredCondition};
use crate::member::view::Reader;
use crate::member::view::serving::{Clients, Served};
use crate::model::{HubSlice, MultiClusterService, SliceContent, Treatment};
use fleetnet_types::{ObjectName, Timestamp};
use std::borrow::Cow;

/// Returns the content of a distributed slice to import for these clients of a Service. `content` is its content for a
/// member that is not silent.
pub(super) fn content<'a>(
    view: Reader<'_>,
    distributed: &HubSlice,
    content: Cow<'a, SliceContent>,
    (clients, service): (Clients, &ObjectName),
    now: Timestamp,
) -> Cow<'a, SliceContent> {
    let treatment = view.treatment_of(&distributed.spec.reference.cluster, now);
    // A draining member counts as serving for a withdrawn one.
    let is_served = |it| view.exporters_that_serve(it).any(|other| view.treatment_of(other, now) < treatment);
    let are_served = || Served::by(clients, service, &content).into_iter().all(is_served);
    let Some(treatment) = treatment.filter(|_| are_served()) else { return content };
    let mut content = content.into_owned();
    let endpoints = std::mem::take(&mut content.endpoints);
    match treatment {
        Treatment::Draining => drop(content.draining.splice(..0, endpoints)),
        Treatment::Withdrawn => content.draining.clear(),
    }
    Cow::Owned(content)
}

/// Returns the time at which the list of silent members does not count any more, because no hub agent maintains it.
pub(super) fn again(view: Reader<'_>, distributed: &HubSlice, now: Timestamp) -> Option<Timestamp> {
    view.treatment_of(&distributed.spec.reference.cluster, now)?;
    view.hub_features(now)?.again(Some(()))
}

/// Returns the desired condition `ExporterSilent` of a MultiClusterService.
pub(super) fn condition(
    view: Reader<'_>,
    request: &MultiClusterService,
    component: &'static str,
    now: Timestamp,
) -> Option<DesiredCondition> {
    if !view.knows_member_agent() {
        return None; // it is not known yet which exporters are silent
    }
    let import =
        view.imports().live(&ObjectName::new(request.meta.name.namespace.clone(), request.import_name.clone()));
    let exporters = import.map_or(&[][..], |import| &import.status.clusters);
    let silent: Vec<_> = exporters.iter().filter(|exporter| view.treatment_of(exporter, now).is_some()).collect();
    conditions::exporter_silent(exporters, &silent, &request.conditions, component)
}
