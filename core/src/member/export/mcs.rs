//! Export of a Service by the standard API: what its InternalServiceExport has for this API, and the conditions of the
//! ServiceExport.
//!
//! The ServiceExport of the standard API has no finalizer. So an InternalServiceExport that only this API requests is
//! removed when its ServiceExport is gone, also after a restart of the agent.

use super::in_hub::{cannot_begin, exports_in_hub, has_earlier_export, live_exports};
use super::weight::weight;
use crate::conditions::{self, CONFLICT, ConditionValue, DesiredCondition, READY, VALID};
use crate::features::Feature;
use crate::limits::PORTS_MAX;
use crate::member::derived::is_derived;
use crate::member::view::{Leaving, McsApi, Reader};
use crate::model::{
    ClusterSelector, Condition, ExportedBy, InternalServiceExport, Kind, McsExport, McsProperties, McsServiceExport,
    Meta, Service, ServiceType,
};
use crate::names;
use crate::plan::{BlockingReason, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Timestamp, WatchState};
use std::sync::Arc;

const COMPONENT: &str = "multicluster-serviceexport-controller";

/// Request for the export of a Service by the standard API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// Not known now. An existing export stays as it is.
    Unknown,
    None,
    Export(&'a McsServiceExport, &'a Service),
}

/// Returns the request for the export of a Service. For an undecodable Service, the answer does not count: no plan acts
/// on it.
pub(super) fn request<'a>(view: Reader<'a>, service: &ObjectName, now: Timestamp) -> Request<'a> {
    if view.settings().mcs_api == McsApi::Off {
        return Request::None;
    }
    match view.leaving(now) {
        Leaving::Yes => return Request::None,
        Leaving::Unknown(_) => return Request::Unknown,
        Leaving::No => {}
    }
    let is_known = view.complete(&[Kind::McsServiceExport]) && !view.is_undecodable(Kind::McsServiceExport, service);
    let Some(hub) = view.hub_features(now).filter(|_| is_known) else { return Request::Unknown };
    let Some(export) = view.mcs_exports().live(service) else { return Request::None };
    let Some(source) = view.services().live(service) else { return Request::None };
    if source.service_type == ServiceType::ExternalName {
        return Request::None;
    }
    if is_derived(view, source) {
        return Request::None;
    }
    let has_api = hub.has(Feature::McsApi);
    if !has_api && !hub.is_assumed() {
        return Request::None;
    }
    if !has_api || source.ports.len() > PORTS_MAX {
        return Request::Unknown;
    }
    Request::Export(export, source)
}

/// True if it is not known whether the standard API still exports a Service that it has exported. The export in the hub
/// shows that it has. If the hub has lost the export, only the outcome in the ServiceExport shows it, and perhaps
/// nobody can read that now.
pub(super) fn is_unknown(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> bool {
    let is_unread = || {
        view.is_undecodable(Kind::McsServiceExport, service)
            || view.watch_of(Kind::McsServiceExport) == WatchState::Incomplete
    };
    let is_lost = || exports_in_hub(view, service).next().is_none() && is_unread();
    request(view, service, now) == Request::Unknown
        && (exports_in_hub(view, service).any(|it| it.mcs.is_some()) || is_lost())
}

/// Returns the time at which the features of the hub agent change without an event, or a member leaves.
pub(super) fn again(view: Reader<'_>, now: Timestamp) -> Option<Timestamp> {
    if view.settings().mcs_api == McsApi::Off {
        return None;
    }
    let leaves = match view.leaving(now) {
        Leaving::Unknown(until) => until,
        Leaving::Yes | Leaving::No => None,
    };
    let features = view.hub_features(now).and_then(|hub| hub.again(Some(())));
    features.into_iter().chain(leaves).min()
}

/// Returns the part of an InternalServiceExport for the standard API. `present` is the existing InternalServiceExport.
pub(super) fn part(
    view: Reader<'_>,
    service: &ObjectName,
    present: Option<&InternalServiceExport>,
    exported_by: ExportedBy,
    now: Timestamp,
) -> Option<Arc<McsExport>> {
    let present = present.and_then(|present| present.mcs.as_deref());
    let part = match request(view, service, now) {
        Request::None => return None,
        Request::Export(export, source) => McsExport {
            exported_by,
            properties: properties(export, source),
            export_created: Some(export.meta.created),
            is_recreated: present.map_or_else(|| shows_outcome(view, service), |present| present.is_recreated),
            cluster_selectors: cluster_selectors(view, export, source, present, now),
        },
        Request::Unknown => McsExport { exported_by, ..present?.clone() },
    };
    Some(Arc::new(part))
}

/// True if this cluster tells the hub agent the cluster selectors and weights of its Services.
pub(super) fn sends_selection(view: Reader<'_>, now: Timestamp) -> bool {
    view.settings().cluster_selection.is_some()
        && view.hub_features(now).is_some_and(|hub| hub.has(Feature::ClusterSelection))
}

/// Returns the cluster selectors of an export. The last valid ones stay while those of the user are malformed.
fn cluster_selectors(
    view: Reader<'_>,
    export: &McsServiceExport,
    source: &Service,
    present: Option<&McsExport>,
    now: Timestamp,
) -> Vec<ClusterSelector> {
    if !sends_selection(view, now) {
        return Vec::new();
    }
    let written = export.cluster_selectors.as_ref().ok().filter(|written| written.is_empty() || !source.headless);
    written.or(present.map(|present| &present.cluster_selectors)).cloned().unwrap_or_default()
}

/// Returns the condition `Valid` of a ServiceExport whose cluster selectors or weight are malformed.
fn invalid_selection(view: Reader<'_>, export: &McsServiceExport, source: &Service) -> Option<ConditionValue> {
    view.settings().cluster_selection.as_ref()?;
    let (name, cluster) = (&export.meta.name, &view.settings().cluster);
    match &export.cluster_selectors {
        Err(why) => Some(ConditionValue::cluster_selectors_malformed("ServiceExport", name, cluster, why)),
        Ok(written) if source.headless && !written.is_empty() => {
            Some(ConditionValue::headless_cluster_selectors(name, cluster))
        }
        Ok(_) => weight(export.weight.as_deref()).err().map(|error| ConditionValue::invalid_weight(name, &error)),
    }
}

/// True if an InternalServiceExport has the desired part for the standard API. An export of an earlier version has no
/// creation time. It gets one with its next write, because a hub with an older CRD drops the time.
pub(super) fn is_part(present: Option<&McsExport>, desired: Option<&McsExport>) -> bool {
    present == desired
        || present
            .zip(desired)
            .is_some_and(|(present, desired)| *present == McsExport { export_created: None, ..desired.clone() })
}

/// True if the ServiceExport shows that the hub agent has merged the present export of the Service. The member agent
/// removes the outcome before it replaces the export of an earlier Service, and while the export is withdrawn or
/// denied.
pub(super) fn shows_outcome(view: Reader<'_>, service: &ObjectName) -> bool {
    let export = view.mcs_exports().live(service);
    export.is_some_and(|export| conditions::has_outcome(&export.conditions))
        && !view.is_undecodable(Kind::McsServiceExport, service)
}

fn properties(export: &McsServiceExport, source: &Service) -> McsProperties {
    McsProperties {
        families: source.families.clone(),
        internal_traffic_policy: source.internal_traffic_policy.clone(),
        traffic_distribution: source.traffic_distribution.clone(),
        labels: names::exported_labels(&export.labels),
        annotations: names::exported_annotations(&export.annotations),
    }
}

/// Returns the metadata of the ServiceExport with which the standard API exports the slices of a Service. The slices
/// are exported once the hub agent has merged the export, also if it is in conflict. If the hub has lost the export or
/// its outcome, the outcome in the ServiceExport counts.
pub(super) fn exportable<'a>(view: Reader<'a>, service: &ObjectName, now: Timestamp) -> Option<&'a Meta> {
    if request(view, service, now) == Request::None {
        return None;
    }
    let export = view.mcs_exports().live(service)?;
    let source = view.services().live(service)?;
    let is_replaced = has_earlier_export(view, source);
    let has_answer = |it: &&InternalServiceExport| verdict(it).is_some() || is_denied(it);
    let is_merged = match live_exports(view, source).find(has_answer) {
        Some(answered) => !is_denied(answered),
        None => shows_outcome(view, service),
    };
    (is_merged && !is_replaced).then_some(&export.meta)
}

/// Returns the outcome of the merge, as the hub agent wrote it.
fn verdict(internal: &InternalServiceExport) -> Option<&Condition> {
    internal.mcs.as_ref()?;
    conditions::merge_outcome(&internal.conditions)
}

fn is_denied(internal: &InternalServiceExport) -> bool {
    conditions::find_denial(&internal.conditions).is_some()
}

/// Plans the conditions of the ServiceExport. `rejection` is the message of the hub, if the plan repeats a write that
/// the hub rejected.
pub(super) fn plan_conditions(view: Reader<'_>, service: &ObjectName, rejection: Option<&str>, now: Timestamp) -> Plan {
    if view.settings().mcs_api == McsApi::Off || view.is_undecodable(Kind::McsServiceExport, service) {
        return Plan::default();
    }
    let Some(export) = view.mcs_exports().live(service) else { return Plan::default() };
    let wanted = desired_conditions(view, export, rejection, now);
    let (kind, meta) = (Kind::McsServiceExport, &export.meta);
    let changed = conditions::change(kind, meta, &export.conditions, &wanted, now);
    Plan::of(
        changed.map(|(list, events)| Write::patch(meta, Patch::McsServiceExportConditions(list)).with_events(events)),
    )
}

/// Returns the desired conditions of the ServiceExport.
fn desired_conditions(
    view: Reader<'_>,
    export: &McsServiceExport,
    rejection: Option<&str>,
    now: Timestamp,
) -> Vec<DesiredCondition> {
    let service = &export.meta.name;
    let Some(source) = view.services().live(service) else {
        return invalid(export, ConditionValue::no_service(service));
    };
    if source.service_type == ServiceType::ExternalName {
        return invalid(export, ConditionValue::invalid_service_type(service));
    }
    let valid = invalid_selection(view, export, source).map(|value| condition(VALID, value));
    let valid = valid.unwrap_or_else(|| condition(VALID, ConditionValue::mcs_export_is_valid(service)).without_event());
    if view.leaving(now) == Leaving::Yes {
        let message = format!(
            "the fleet manager has asked cluster {} to leave, so it exports nothing. Delete this ServiceExport, or \
             let the cluster join again",
            view.settings().cluster
        );
        let ready = condition(READY, ConditionValue::not_exported(Reason::MemberLeaves, message));
        return [valid, ready].into_iter().chain(no_outcome(export)).collect();
    }
    if is_derived(view, source) {
        return invalid(export, ConditionValue::imported_service(service));
    }
    let outcome = live_exports(view, source).find_map(verdict);
    let state = state(view, export, outcome, problem(view, source, rejection, now));
    let is_denied = live_exports(view, source).any(is_denied);
    let is_withdrawn = request(view, service, now) == Request::None;
    let conflict = if is_denied || is_withdrawn || has_earlier_export(view, source) {
        no_outcome(export)
    } else {
        outcome.map(|outcome| condition(CONFLICT, ConditionValue::outcome_of_merge(outcome)))
    };
    [Some(valid), state, conflict].into_iter().flatten().collect()
}

fn condition(condition_type: &'static str, value: ConditionValue) -> DesiredCondition {
    DesiredCondition::new(condition_type, value, COMPONENT)
}

/// Returns the conditions of a ServiceExport whose Service cannot be exported.
fn invalid(export: &McsServiceExport, valid: ConditionValue) -> Vec<DesiredCondition> {
    let ready = ConditionValue::not_exported(valid.reason, valid.message.clone());
    let mut wanted = vec![condition(VALID, valid), condition(READY, ready).without_event()];
    wanted.extend(no_outcome(export));
    wanted
}

/// Returns the condition that removes the outcome of the merge from a ServiceExport. `None` if it shows no outcome.
fn no_outcome(export: &McsServiceExport) -> Option<DesiredCondition> {
    let pending = || ConditionValue::pending_conflict_resolution(&export.meta.name);
    conditions::has_outcome(&export.conditions).then(|| condition(CONFLICT, pending()).without_event())
}

/// Returns why the hub does not have the export of a valid Service: reason and message. `None` if nothing prevents it.
fn problem(view: Reader<'_>, source: &Service, rejection: Option<&str>, now: Timestamp) -> Option<(Reason, String)> {
    let name = &source.meta.name;
    if source.ports.len() > PORTS_MAX {
        return Some((Reason::TooManyPorts, ConditionValue::too_many_ports(name, source.ports.len()).message));
    }
    let hub = view.hub_features(now)?;
    if !hub.has(Feature::McsApi) && !hub.is_assumed() {
        let message = "the hub agent does not announce the standard API. Upgrade it, and apply the CRDs in the hub";
        return Some((Reason::NotUnderstood, message.to_owned()));
    }
    let denial = live_exports(view, source).find_map(|it| conditions::find_denial(&it.conditions));
    if let Some(denial) = denial {
        return Some((Reason::ExporterNotAllowed, denial.message.to_string()));
    }
    if let Some(message) = rejection {
        return Some((Reason::WriteRefused, message.to_owned()));
    }
    cannot_begin(view, source).map(|BlockingReason { reason, message }| (reason, message))
}

/// Returns the condition `Ready`. `None` while the hub's answer is not known and the condition exists.
fn state(
    view: Reader<'_>,
    export: &McsServiceExport,
    outcome: Option<&Condition>,
    problem: Option<(Reason, String)>,
) -> Option<DesiredCondition> {
    let name = &export.meta.name;
    if let Some((reason, message)) = problem {
        return Some(condition(READY, ConditionValue::not_exported(reason, message)));
    }
    if outcome.is_some() {
        let left_out = left_out(export);
        return Some(condition(READY, ConditionValue::exported(name, &left_out)).without_event());
    }
    let is_known = view.complete(&[Kind::InternalServiceExport]);
    let is_new = conditions::find(&export.conditions, READY).is_none();
    (is_known || is_new).then(|| condition(READY, ConditionValue::export_pending(name)).without_event())
}

/// Returns the names of labels and annotations that are not exported.
fn left_out(export: &McsServiceExport) -> Vec<&str> {
    let (labels, annotations) =
        (names::exported_labels(&export.labels), names::exported_annotations(&export.annotations));
    let labels = export.labels.keys().filter(|name| !labels.contains_key(*name));
    let annotations = export.annotations.keys().filter(|name| !annotations.contains_key(*name));
    labels.chain(annotations).map(|name| &**name).collect()
}
