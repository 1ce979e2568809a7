//! Supply: what one importer gets of an exported slice. Each API decides for its own imports, and the importer gets the
//! greater supply. So an import by one API never takes a slice from an import by the other.

use crate::conditions::{self, CONFLICT};
use crate::hub::claims;
use crate::hub::rights::Right;
use crate::hub::view::is_among;
use crate::hub::view::reader::{Reader, live};
use crate::model::{HubSlice, InternalServiceExport, Kind};
use crate::names;
use fleetnet_types::{ConditionStatus, MemberNamespace, ObjectName, Timestamp};

/// Part of an exported slice that one importer gets, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Supply {
    /// Nothing. An existing distributed slice is withdrawn.
    Nothing,
    /// An existing distributed slice stays as it is, because the hub agent cannot decide yet.
    Unchanged,
    /// Changes of an existing distributed slice.
    Changes,
    /// The slice.
    Slice,
}

/// Returns what an importer gets of an exported slice. `distributed` is its distributed slice, if it exists.
pub(super) fn supply(
    view: Reader<'_>,
    export: &HubSlice,
    importer: &MemberNamespace,
    distributed: Option<&HubSlice>,
    now: Timestamp,
) -> Supply {
    match by_claim(view, export, importer, distributed, now) {
        Supply::Slice => Supply::Slice, // most slices need no further reads
        supply => supply.max(by_merged_import(view, export, importer, distributed)),
    }
}

/// Returns what an importer gets of the other slices of an exporter after its distributed slice `removed` is gone.
pub(super) fn of_replacement(view: Reader<'_>, export: &HubSlice, removed: &HubSlice, now: Timestamp) -> Supply {
    let importer = &removed.meta.name.member_namespace();
    let owner = &export.spec.owner;
    let exporters = view.exporters(owner);
    let is_recorded = |_| view.is_recorded(owner, importer) || regains(view, owner, importer, now);
    let may_claim = || view.is_undecodable(Kind::ServiceImport, owner);
    let by_claim = if exporters.map_or_else(may_claim, is_recorded) {
        // A ServiceImport without exporters was created again, and will list them again.
        let is_accepted =
            exporters.is_none_or(|exporters| exporters.is_empty() || is_among(exporters, &export.meta.name));
        if is_accepted { Supply::Slice } else { Supply::Changes }
    } else {
        Supply::Nothing
    };
    by_claim.max(by_merged_import(view, export, importer, Some(removed)))
}

/// The supply by the claim of the importer, which the hub's ServiceImport records.
fn by_claim(
    view: Reader<'_>,
    export: &HubSlice,
    importer: &MemberNamespace,
    distributed: Option<&HubSlice>,
    now: Timestamp,
) -> Supply {
    let owner = &export.spec.owner;
    if !view.mcs_export_in(owner, &export.meta.name.member_namespace()).is_none_or(is_for_claims) {
        return Supply::Nothing;
    }
    let Some(exporters) = view.exporters(owner) else {
        let is_kept = distributed.is_some_and(|distributed| keeps_without_import(view, export, distributed));
        return if is_kept { Supply::Unchanged } else { Supply::Nothing };
    };
    let is_recorded = view.is_recorded(owner, importer);
    // An importer in the record keeps its distributed slice even without a claim, until the record is updated.
    if is_recorded && !claims::is_claiming(view, owner, importer) {
        return Supply::Unchanged;
    }
    let is_granted = is_recorded || distributed.is_some() && regains(view, owner, importer, now);
    if !is_granted {
        return Supply::Nothing;
    }
    // New slices are distributed only for an accepted exporter. For others, existing ones are updated. An exporter is
    // not accepted while its export is in conflict, or after the ServiceImport was created again.
    if is_among(exporters, &export.meta.name) { Supply::Slice } else { Supply::Changes }
}

/// True if importers with a claim may get the slices of an export that is also, or only, one of the standard API. If
/// the export is in conflict by the rules of the fleet's API, the member exports its slices for the standard API only.
fn is_for_claims(export: &InternalServiceExport) -> bool {
    let conflict = conditions::find(&export.conditions, CONFLICT);
    export.is_of_fleet_api() && conflict.is_none_or(|it| it.status != ConditionStatus::True)
}

/// True if a distributed slice of a Service without a ServiceImport stays. Only the ServiceImport records which claims
/// are granted. So all importers with a claim keep their distributed slices until the record exists again.
///
/// Distributed slices of another Service stay too: another writer changed the Service in the export, and the exporting
/// member repairs the export.
fn keeps_without_import(view: Reader<'_>, export: &HubSlice, distributed: &HubSlice) -> bool {
    let (owner, importer) = (&export.spec.owner, &distributed.meta.name.member_namespace());
    let is_claimed = || live(view.claims(), view.claims_in(owner, importer)).next().is_some();
    distributed.spec.owner != *owner || is_claimed() || claims::may_be(view, owner, importer)
}

/// True if the claim of an importer that the ServiceImport does not record will be granted again. A ServiceImport that
/// is being deleted, or that was created again, records no claims. The importer keeps its distributed slices.
fn regains(view: Reader<'_>, owner: &ObjectName, importer: &MemberNamespace, now: Timestamp) -> bool {
    let may_be_undecodable =
        || claims::may_be(view, owner, importer) && claims::right(view, owner, importer) != Right::Denied;
    claims::grants(view, owner, now).importers.contains_key(importer) || may_be_undecodable()
}

/// The supply by the merged import of the Service. The finalizer of the member agent on its MergedServiceImport shows
/// that the member imports the Service.
fn by_merged_import(
    view: Reader<'_>,
    export: &HubSlice,
    importer: &MemberNamespace,
    distributed: Option<&HubSlice>,
) -> Supply {
    let (owner, exporter) = (&export.spec.owner, &export.meta.name.member_namespace());
    let right = claims::right(view, owner, importer);
    if right == Right::Denied {
        return Supply::Nothing;
    }
    if !view.imports_by_mcs_api(owner, importer) {
        return match distributed {
            Some(_) if may_import(view, export, importer) => Supply::Unchanged,
            _ => Supply::Nothing,
        };
    }
    if view.mcs_export_in(owner, exporter).is_none() {
        // Without any InternalServiceExport, one will be created: the Service was created again, for example.
        let is_exported_otherwise = view.internal_exports_in(owner, exporter).next().is_some();
        return if is_exported_otherwise { Supply::Nothing } else { Supply::Changes };
    }
    if right == Right::Granted && view.is_merged(export) { Supply::Slice } else { Supply::Changes }
}

/// True if an importer may have a merged import that the hub agent does not know, because the MergedServiceImports are
/// not listed or that of the importer is undecodable. Only slices that the standard API exports count.
fn may_import(view: Reader<'_>, export: &HubSlice, importer: &MemberNamespace) -> bool {
    let (owner, exporter) = (&export.spec.owner, &export.meta.name.member_namespace());
    let is_mcs = view.mcs_export_in(owner, exporter).is_some();
    let may_be_mcs = || !view.complete(&[Kind::InternalServiceExport]);
    let at = ObjectName::new(importer, names::merged_import_name(owner));
    (is_mcs || may_be_mcs())
        && (!view.complete(&[Kind::MergedServiceImport]) || view.is_undecodable(Kind::MergedServiceImport, &at))
}
