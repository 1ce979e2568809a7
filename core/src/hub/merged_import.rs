//! MergedServiceImports: the merged import of a Service for each member that imports Services of the standard API. The
//! exports show the outcome of the merge in a condition.
//!
//! A member that announces the feature `MulticlusterApi` gets the MergedServiceImport of each Service in its member
//! namespace. The namespace of a Service in the hub may deny the member the right to import. This namespace does not
//! have to exist, unless the hub agent runs with `--namespace-policy=strict`.

use crate::conditions::{self, ConditionValue, DesiredCondition, MCS_CONFLICT, VALID};
use crate::features::Feature;
use crate::hub::claims;
use crate::hub::conflict::EXPORT_COMPONENT;
use crate::hub::leaving;
use crate::hub::merge::{self, Exported, Merge, precedence};
use crate::hub::rights::{self, Right};
use crate::hub::selection;
use crate::hub::view::reader::{Reader, live};
use crate::limits::MERGED_CLUSTERS_MAX;
use crate::model::{
    ClusterSelection, Condition, InternalServiceExport, Kind, MergedCluster, MergedImport, MergedServiceImport,
    ServedPort,
};
use crate::names;
use crate::plan::{BlockingReason, Desired, Patch, Plan, Write};
use fleetnet_types::{ClusterId, ConditionStatus, MemberNamespace, ObjectName, Timestamp};
use std::sync::Arc;

const REQUIRED: [Kind; 2] = [Kind::InternalServiceExport, Kind::MergedServiceImport];

/// Merges the exports of a Service. `None` if no cluster with the right to export it does so by the standard API.
pub(super) fn merge_of(view: Reader<'_>, service: &ObjectName) -> Option<Merge> {
    let exports: Vec<_> = with_clusters(view.mcs_exports(service)).collect();
    let exported = || {
        exports.iter().filter_map(|(cluster, export)| {
            let mcs = export.mcs.as_deref()?;
            let exported = Exported { cluster, export, mcs };
            (rights::of_exporter(view, service, cluster) == Right::Granted).then_some(exported)
        })
    };
    let (import, conflicts, places) = merge::merge(exported().collect())?;
    let oldest = exported().find(|it| places.first().is_some_and(|place| place.cluster == *it.cluster));
    let selectors = oldest.map(|it| it.mcs.cluster_selectors.clone()).unwrap_or_default();
    let weights = selection::weights(exports.iter().map(|(_, export)| *export));
    Some(Merge { import: Arc::new(import), conflicts, places, selectors, weights })
}

/// Plans the MergedServiceImport of a Service in the member namespace `importer`.
pub(super) fn plan_import(view: Reader<'_>, service: &ObjectName, importer: &MemberNamespace, now: Timestamp) -> Plan {
    let at = ObjectName::new(importer, names::merged_import_name(service));
    if !view.complete(&REQUIRED) || !view.knows_features() || view.is_undecodable(Kind::MergedServiceImport, &at) {
        return Plan::default();
    }
    let present = view.merged_import(&at);
    let present = present.as_ref();
    let features = view.features_of(importer, now);
    let mut plan = Plan::default();
    plan.plan_again_at(features.again(present));
    if let Some(present) = present {
        plan.join(leaving::release(view, Kind::MergedServiceImport, &present.meta, now));
    }
    plan.join(remove_misnamed(view, service, &at));
    let right = claims::right(view, service, importer);
    if features.is_assumed() || right == Right::Unknown {
        return plan; // the member keeps what it has
    }
    let may_import = features.has(Feature::McsApi) && right == Right::Granted;
    let wanted = view.merge_of(service).map(|merge| &merge.import).filter(|_| may_import);
    let wanted = match present {
        Some(present) if may_import => with_lost(view, service, present, wanted),
        _ => wanted.cloned(),
    };
    let selected = wanted.as_ref().map(|import| {
        let present = present.map(|present| present.selection.clone()).unwrap_or_default();
        if features.has(Feature::ClusterSelection) {
            select(view, service, importer, import, present)
        } else {
            Default::default()
        }
    });
    let (selection, blocked) = selected.unwrap_or_default();
    plan.join(write(view, service, at, present, wanted.map(|import| (import, selection))));
    plan.blocked_by(blocked)
}

/// Returns the selection of an importer. It stays as at `present` while all exporters are lost.
fn select(
    view: Reader<'_>,
    service: &ObjectName,
    importer: &MemberNamespace,
    import: &MergedImport,
    present: ClusterSelection,
) -> (ClusterSelection, Option<BlockingReason>) {
    let Some(Merge { selectors, weights, .. }) = view.merge_of(service) else { return (present, None) };
    let clusters: Vec<&ClusterId> = import.clusters.iter().map(|part| &part.cluster).collect();
    selection::Request { selectors, clusters: &clusters, weights }.select(view, importer, &present)
}

/// Plans the write that makes the `present` object the wanted one.
fn write(
    view: Reader<'_>,
    service: &ObjectName,
    at: ObjectName,
    present: Option<&MergedServiceImport>,
    wanted: Option<(Arc<MergedImport>, ClusterSelection)>,
) -> Plan {
    match (present, wanted) {
        (None, None) => Plan::default(),
        (None, Some(_)) if !may_fan_out(view, service) => Plan::default(), // the keys of the exporters report it
        (None, Some((import, selection))) if names::can_be_service(service) => {
            let desired = Desired::MergedServiceImport { service: service.clone(), import, selection };
            Plan::one(Write::create(at, desired))
        }
        (None, Some(_)) => Plan::default(), // no Service can have this name
        (Some(present), _) if present.meta.deleting => Plan::default(), // this key is requeued when it is gone
        (Some(present), None) => Plan::one(Write::delete(Kind::MergedServiceImport, &present.meta)),
        (Some(present), Some((import, selection)))
            if present.import == import && present.selection == selection && present.service == *service =>
        {
            Plan::default()
        }
        (Some(present), Some((import, selection))) => {
            let patch = Patch::MergedServiceImport { service: service.clone(), import, selection };
            Plan::one(Write::patch(&present.meta, patch))
        }
    }
}

/// True if one of the exporters of a Service may cause further objects in other member namespaces.
fn may_fan_out(view: Reader<'_>, service: &ObjectName) -> bool {
    let mut exports = view.mcs_exports(service);
    exports.any(|export| view.may_fan_out(&export.meta.name.member_namespace()))
}

/// Deletes MergedServiceImports of a Service that have another name. Another writer changed the Service in such an
/// object.
fn remove_misnamed(view: Reader<'_>, service: &ObjectName, at: &ObjectName) -> Plan {
    let mut plan = Plan::default();
    let others = view.merged_imports_in(service, &at.member_namespace()).filter(|name| name != at);
    for other in others.filter_map(|name| view.merged_import(&name)) {
        if !other.meta.deleting {
            plan.push(Write::delete(Kind::MergedServiceImport, &other.meta));
        } else if other.meta.finalizers.ours {
            // The member agent does not know which import the object was for.
            plan.push(Write::remove_finalizer(Kind::MergedServiceImport, &other.meta));
        }
    }
    plan
}

/// Returns the merged import together with the clusters of the present one that are lost only for now. They keep their
/// places, so that nothing is written if they are back soon. Of their ports, those stay that other clusters serve too.
fn with_lost(
    view: Reader<'_>,
    service: &ObjectName,
    present: &MergedServiceImport,
    wanted: Option<&Arc<MergedImport>>,
) -> Option<Arc<MergedImport>> {
    let is_kept =
        |cluster: &ClusterId| wanted.is_some_and(|import| import.clusters.iter().any(|kept| kept.cluster == *cluster));
    let clusters = present.import.clusters.iter().enumerate().filter(|(_, it)| !is_kept(&it.cluster));
    let lost: Vec<_> = clusters.filter(|(_, it)| is_lost_for_now(view, service, &it.cluster)).collect();
    let (Some(wanted), false) = (wanted, lost.is_empty()) else {
        return if lost.is_empty() { wanted.cloned() } else { Some(Arc::clone(&present.import)) };
    };
    let mut import = (**wanted).clone();
    let is_port = |port: &ServedPort| wanted.ports.iter().any(|merged| merged.name == port.name);
    let free = MERGED_CLUSTERS_MAX.saturating_sub(wanted.clusters.len());
    for (place, entry) in lost.into_iter().take(free) {
        let ports = entry.ports.as_ref().map(|ports| ports.iter().filter(|port| is_port(port)).cloned().collect());
        let entry = MergedCluster { ports, ..entry.clone() };
        import.clusters.insert(place.min(import.clusters.len()), entry);
    }
    Some(Arc::new(import))
}

/// True if a cluster without a decodable InternalServiceExport of a Service perhaps still exports the Service, or will
/// do so again. It is not denied the right to export. Either it has an undecodable InternalServiceExport, or it has
/// slices of the Service: the Service was created again, and its export will be.
fn is_lost_for_now(view: Reader<'_>, service: &ObjectName, cluster: &ClusterId) -> bool {
    let namespace = names::member_namespace(cluster);
    let exports_slices = || view.has_slice_exports_of(service, &namespace);
    let may_export_slices =
        || !view.complete(&[Kind::EndpointSliceExport]) || view.has_undecodable(Kind::EndpointSliceExport, &namespace);
    (view.has_undecodable(Kind::InternalServiceExport, &namespace) || exports_slices() || may_export_slices())
        && rights::of_exporter(view, service, cluster) != Right::Denied
        && live(view.internal_exports(), view.internal_exports_in(service, &namespace)).next().is_none()
}

/// Sets the outcome of the merge as a condition of each export of the standard API. `beside` has the other writes of
/// the same plan. An export that one of them writes waits for a later plan, because a plan writes each object at most
/// once.
pub(super) fn set_verdicts(view: Reader<'_>, service: &ObjectName, beside: &Plan, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if !view.complete(&[Kind::InternalServiceExport]) {
        return plan;
    }
    let exports = || with_clusters(live(view.internal_exports(), view.internal_exports_of(service)));
    // An export of a cluster whose right is not known may disagree.
    let is_unknown = |cluster: &ClusterId| rights::of_exporter(view, service, cluster) == Right::Unknown;
    if exports().any(|(cluster, _)| is_unknown(&cluster)) {
        return plan;
    }
    let merge = view.merge_of(service).map(|merge| (merge, outcome(service, merge)));
    let has_undecodable_part = has_undecodable_part(view, service);
    for (cluster, export) in exports() {
        // An export that is undecodable may disagree. Exports without an outcome get one, because their slices wait for
        // it.
        let waits = has_undecodable_part && conditions::merge_outcome(&export.conditions).is_some();
        if !waits && beside.writes.iter().all(|write| write.at != export.meta.name) {
            let part = merge.as_ref().filter(|(merge, _)| merge.has_member(&export.meta.name.member_namespace()));
            plan.writes.extend(set_verdict(service, &cluster, export, part, now));
        }
    }
    plan
}

/// Returns exports of a Service, in the order of their names, with their clusters. The cluster comes from the member
/// namespace, because a member can forge the reference in the object. If a member namespace has several exports of the
/// Service, only the first counts.
fn with_clusters<'a>(
    exports: impl Iterator<Item = &'a InternalServiceExport>,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> {
    let mut seen: Option<ClusterId> = None;
    exports.filter_map(move |export| {
        let cluster = names::cluster_of(&export.meta.name.namespace)?;
        let is_first = seen.replace(cluster.clone()).is_none_or(|seen| seen != cluster);
        is_first.then_some((cluster, export))
    })
}

/// Returns the write of the outcome to one export. `part` is the merge that the export is part of.
fn set_verdict(
    service: &ObjectName,
    cluster: &ClusterId,
    export: &InternalServiceExport,
    part: Option<&(&Merge, ConditionValue)>,
    now: Timestamp,
) -> Option<Write> {
    let was_denied = part.is_some() && conditions::find_denial(&export.conditions).is_some();
    let allowed = DesiredCondition::new(VALID, ConditionValue::exporter_allowed(service), EXPORT_COMPONENT);
    let condition = verdict(service, &export.conditions, part.map(|(_, value)| value.clone()));
    let wanted: Vec<_> = condition.into_iter().chain(was_denied.then_some(allowed)).collect();
    let changed = conditions::change(Kind::InternalServiceExport, &export.meta, &export.conditions, &wanted, now);
    let precedence = part.map(|(merge, _)| precedence::record(&export.precedence, &merge.places, cluster));
    // A place is recorded together with an outcome, so that it costs no write. A CRD that is older than the field drops
    // it. Only a record that the server has kept is corrected.
    let is_outdated = precedence.as_ref().is_some_and(|record| precedence::is_outdated(&export.precedence, record));
    let (conditions, events) = changed.or_else(|| is_outdated.then(|| (export.conditions.clone(), Vec::new())))?;
    let patch = match precedence {
        Some(precedence) => Patch::InternalServiceExportMerge { conditions, precedence },
        None => Patch::InternalServiceExportConditions(conditions),
    };
    Some(Write::patch(&export.meta, patch).with_events(events))
}

/// True if a member has an undecodable InternalServiceExport with the usual name for this Service, and importers have
/// the Service from it. Other members could hold back all outcomes by such an object.
fn has_undecodable_part(view: Reader<'_>, service: &ObjectName) -> bool {
    let Some(name) = names::joined(&service.namespace, &service.name) else { return false };
    let is_part = |cluster: &ClusterId| {
        let at = |importer: &MemberNamespace| ObjectName::new(importer, names::merged_import_name(service));
        let mut present = view.mcs_importers(service).filter_map(|importer| view.merged_import(&at(importer)));
        present.any(|present| present.import.clusters.iter().any(|part| part.cluster == *cluster))
    };
    let undecodable = view.undecodable_named(Kind::InternalServiceExport, &name);
    undecodable.filter_map(|at| names::cluster_of(&at.namespace)).any(|cluster| is_part(&cluster))
}

/// Returns the outcome of the merge, for all exports.
fn outcome(service: &ObjectName, Merge { import, conflicts, .. }: &Merge) -> ConditionValue {
    if conflicts.is_empty() {
        return ConditionValue::no_merge_conflict(service);
    }
    let reasons: Vec<&str> = conflicts.iter().map(|property| property.reason()).collect();
    ConditionValue::merge_conflict(&reasons, merge::conflict_message(service, import, conflicts))
}

/// Returns the condition of one export. `value` is the outcome of the merge; `None` if the export is no part of it. The
/// Event tells the begin and the end of a conflict. A first merge without conflict is none.
fn verdict(service: &ObjectName, existing: &[Condition], value: Option<ConditionValue>) -> Option<DesiredCondition> {
    let shown = conditions::find(existing, MCS_CONFLICT).map(|it| it.status);
    let Some(value) = value else {
        shown.filter(|status| *status != ConditionStatus::Unknown)?;
        let pending = ConditionValue::pending_conflict_resolution(service);
        return Some(DesiredCondition::new(MCS_CONFLICT, pending, EXPORT_COMPONENT).without_event());
    };
    let (was_in_conflict, is_in_conflict) =
        (shown == Some(ConditionStatus::True), value.status == ConditionStatus::True);
    let condition = DesiredCondition::new(MCS_CONFLICT, value, EXPORT_COMPONENT);
    Some(if is_in_conflict != was_in_conflict { condition } else { condition.without_event() })
}
