//! MergedServiceImports: the merged import of a Service for each member that imports Services of the standard API. The exports show
//! the outcome of the merge in a condition.
//!
//! A member gets the MergedServiceImport of a Service in its member namespace if it announces the feature `MulticlusterApi`, and if the
//! namespace of the Service in the hub does not deny it the right to import. The namespace does not have to exist in the hub.

use crate::conditions::{self, ConditionValue, DesiredCondition, MULTICLUSTER_CONFLICT, VALID};
use crate::features::Feature;
use crate::hub::claims;
use crate::hub::conflict::{EXPORT_COMPONENT, exports_by_cluster};
use crate::hub::merge::{self, Exported};
use crate::hub::rights::{self, Right};
use crate::hub::view::merged::Merged;
use crate::hub::view::reader::Reader;
use crate::model::{InternalServiceExport, Kind, MergedImport, MergedServiceImport};
use crate::names;
use crate::plan::{Desired, Patch, Plan, Write};
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use std::sync::Arc;

const REQUIRED: [Kind; 2] = [Kind::InternalServiceExport, Kind::MergedServiceImport];

/// Merges the exports of a Service. `None` if the standard API does not export it.
pub(super) fn merged(view: Reader<'_>, service: &ObjectName) -> Option<Merged> {
    let exports: Vec<(ClusterId, &InternalServiceExport)> =
        exports_by_cluster(view, service).filter(|(_, export)| export.multicluster.is_some()).collect();
    let right = |cluster: &ClusterId| rights::of_exporter(view, service, cluster);
    // fault MC3.1: right(cluster) == Right::Unknown ~> false
    if exports.iter().any(|(cluster, _)| right(cluster) == Right::Unknown) {
        return Some(Merged::Undecided);
    }
    let exported = exports.iter().filter_map(|(cluster, export)| {
        let multicluster = export.multicluster.as_deref()?;
        // fault MC3.2: right(cluster) == Right::Granted ~> true
        (right(cluster) == Right::Granted).then_some(Exported { cluster, export, multicluster })
    });
    let (import, conflicts) = merge::merge(&exported.collect::<Vec<_>>())?;
    Some(Merged::Of { import: Arc::new(import), conflicts })
}

/// Plans the MergedServiceImport of a Service in the member namespace `importer`.
pub(super) fn plan_import(view: Reader<'_>, service: &ObjectName, importer: &Text, now: Timestamp) -> Plan {
    let at = ObjectName { namespace: importer.clone(), name: names::merged_import_name(service) };
    // fault MC2.1: !view.complete(&REQUIRED) ~> false
    if !view.complete(&REQUIRED) || !view.knows_features() || view.is_undecodable(Kind::MergedServiceImport, &at) {
        return Plan::default();
    }
    let present = view.merged_imports().get(&at);
    let features = view.features_of(importer, now);
    let mut plan = Plan::default();
    plan.plan_again_at(features.again(present));
    let right = claims::right(view, service, importer);
    let wanted = match view.merged(service) {
        Some(Merged::Undecided) => return plan,
        Some(Merged::Of { import, .. }) => Some(import),
        None => None,
    };
    // fault MC3.3: right == Right::Unknown ~> false
    if features.is_assumed() || right == Right::Unknown {
        return plan; // the member keeps what it has
    }
    // fault MC3.4: right == Right::Granted ~> true
    let wanted = wanted.filter(|_| features.has(Feature::MulticlusterApi) && right == Right::Granted);
    plan.join(match (present, wanted) {
        (None, None) => Plan::default(),
        (None, Some(import)) if names::can_be_service(service) => {
            let desired = Desired::MergedServiceImport { service: service.clone(), import: Arc::clone(import) };
            Plan::one(Write::create(at, desired))
        }
        (None, Some(_)) => Plan::default(), // no Service can have this name
        (Some(present), _) if present.meta.deleting => Plan::default(), // this key is requeued when it is gone
        (Some(present), wanted) if loses_undecodable(view, present, wanted) => Plan::default(),
        (Some(present), None) => Plan::one(Write::delete(Kind::MergedServiceImport, &present.meta)),
        (Some(present), Some(import)) if present.import == *import && present.service == *service => Plan::default(),
        (Some(present), Some(import)) => {
            let patch = Patch::MergedServiceImport { service: service.clone(), import: Arc::clone(import) };
            Plan::one(Write::patch(&present.meta, patch))
        }
    });
    plan
}

/// True if a change would remove a cluster whose export may be undecodable: the cluster has an undecodable export, is not denied the
/// right to export, and has no decodable export of this Service.
fn loses_undecodable(view: Reader<'_>, present: &MergedServiceImport, wanted: Option<&Arc<MergedImport>>) -> bool {
    let is_kept =
        |cluster: &ClusterId| wanted.is_some_and(|import| import.clusters.iter().any(|kept| kept.cluster == *cluster));
    present.import.clusters.iter().map(|it| &it.cluster).filter(|cluster| !is_kept(cluster)).any(|cluster| {
        let namespace = names::member_namespace(cluster);
        // fault MC2.2: view.has_undecodable(Kind::InternalServiceExport, &namespace) ~> false
        view.has_undecodable(Kind::InternalServiceExport, &namespace)
            && rights::of_exporter(view, &present.service, cluster) != Right::Denied
            && view.internal_exports_of(&present.service).all(|export| export.namespace != namespace)
    })
}

/// Sets the outcome of the merge as a condition of each export of the standard API. `beside` has the other writes of the same plan. An
/// export that one of them writes waits for a later plan, because a plan writes each object at most once.
pub(super) fn set_verdicts(view: Reader<'_>, service: &ObjectName, beside: &Plan, now: Timestamp) -> Plan {
    if !view.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let Some(Merged::Of { import, conflicts }) = view.merged(service) else { return Plan::default() };
    let value = if conflicts.is_empty() {
        ConditionValue::no_merge_conflict(service)
    } else {
        let reasons: Vec<&str> = conflicts.keys().map(|property| property.reason()).collect();
        ConditionValue::merge_conflict(&reasons, merge::conflict_message(service, import, conflicts))
    };
    let mut plan = Plan::default();
    for (cluster, export) in exports_by_cluster(view, service) {
        let is_part = import.clusters.iter().any(|part| part.cluster == cluster);
        let is_written = beside.writes.iter().any(|write| write.at == export.meta.name);
        if !is_part || is_written {
            continue;
        }
        let was_denied = conditions::find_denial(&export.conditions).is_some();
        let allowed = DesiredCondition::new(VALID, ConditionValue::exporter_allowed(service), EXPORT_COMPONENT);
        let wanted: Vec<_> = [verdict(&export.conditions, value.clone())]
            .into_iter()
            // fault MC3.5: was_denied.then_some(allowed) ~> was_denied.then_some(allowed).filter(|_| false)
            .chain(was_denied.then_some(allowed))
            .collect();
        let (meta, kind) = (&export.meta, Kind::InternalServiceExport);
        if let Some((list, events)) = conditions::change(kind, meta, &export.conditions, &wanted, now) {
            plan.push(Write::patch(meta, Patch::InternalServiceExportConditions(list)).with_events(events));
        }
    }
    plan
}

/// Returns the condition of one export. An export without conflict gets an Event only if it was in conflict before.
fn verdict(existing: &[crate::model::Condition], value: ConditionValue) -> DesiredCondition {
    use fleetnet_types::ConditionStatus::True;
    let was_in_conflict = conditions::find(existing, MULTICLUSTER_CONFLICT).is_some_and(|it| it.status == True);
    let is_in_conflict = value.status == True;
    let condition = DesiredCondition::new(MULTICLUSTER_CONFLICT, value, EXPORT_COMPONENT);
    if is_in_conflict || was_in_conflict { condition } else { condition.without_event() }
}
