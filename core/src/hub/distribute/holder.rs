//! Holder: the one export that is distributed if several exports have the same name or the same source slice. When the
//! holder is gone, the next of these exports becomes the holder.

use crate::hub::rights::{self, Right};
use crate::hub::view::holders::Rank;
use crate::hub::view::is_among;
use crate::hub::view::reader::Reader;
use crate::hub::view::value::Source;
use crate::message::{self, value};
use crate::model::{HubSlice, Kind};
use crate::names;
use crate::plan::{self, BlockingReason, Event, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp};

const COMPONENT: &str = "endpointsliceexport-controller";

/// Returns the holder: the one export with this name that is distributed.
pub(super) fn holder<'a>(view: Reader<'a>, name: &Text) -> Option<&'a HubSlice> {
    let holds_source = |export: &&HubSlice| same_member(export, holder_of_source(view, export));
    exports(view, name)
        .filter(|export| may_hold(view, export) && holds_source(export))
        .min_by_key(|export| by_name(export))
}

/// Returns all exports with this name. There are several such exports only if several members use the same name.
pub(super) fn exports<'a>(view: Reader<'a>, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.slice_exports_named(name).filter_map(move |export| view.slice_exports().get(export))
}

/// Returns all distributed slices with this name.
pub(super) fn distributed_slices<'a>(view: Reader<'a>, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.distributed_slices_named(name).filter_map(move |slice| view.distributed_slices().get(slice))
}

/// True if the export is in a member namespace, and the member is not denied the right to export the Service.
fn may_hold(view: Reader<'_>, export: &HubSlice) -> bool {
    names::cluster_of(&export.meta.name.namespace)
        .is_some_and(|cluster| rights::of_exporter(view, &export.spec.owner, &cluster) != Right::Denied)
}

/// Sort key for exports with the same name; the first export is the holder. An export whose name contains the id of its
/// own cluster comes first, so a member cannot take the names of another cluster. After that, the oldest export comes
/// first.
fn by_name(export: &HubSlice) -> (bool, Timestamp, Text) {
    let ObjectName { namespace, name } = &export.meta.name;
    let named_after =
        names::cluster_of(namespace).is_some_and(|cluster| names::is_slice_export_name_of(name, &cluster));
    (!named_after, export.meta.created, namespace.clone())
}

/// Returns the holder of this name: the first export in the order of `by_name` whose member is not denied the right to
/// export. It is distributed only if it is also the holder of its source slice.
fn holder_of_name<'a>(view: Reader<'a>, name: &Text) -> Option<&'a HubSlice> {
    exports(view, name).filter(|export| may_hold(view, export)).min_by_key(|export| by_name(export))
}

/// Returns the name of the holder of the source slice of `export`: one of the exports with this source slice.
fn holder_of_source<'a>(view: Reader<'a>, export: &'a HubSlice) -> &'a ObjectName {
    Source::of(export).and_then(|source| view.holder(&source)).unwrap_or(&export.meta.name)
}

/// Returns the source slice and the rank of the export that is the holder of this name. `None` if the name has no
/// holder, or the holder has no UID of a source slice.
pub(crate) fn place_of(view: Reader<'_>, name: &Text) -> Option<(Source, Rank)> {
    let export = holder_of_name(view, name)?;
    let accepted = is_accepted(view, export);
    Some((Source::of(export)?, (!accepted, export.meta.created, export.meta.name.clone())))
}

/// True if an API accepted the export of the Service from the cluster of this slice.
pub(super) fn is_accepted(view: Reader<'_>, export: &HubSlice) -> bool {
    view.exporters(&export.spec.owner).is_some_and(|exporters| is_among(exporters, &export.meta.name))
        || view.is_merged(export)
}

fn same_member(export: &HubSlice, other: &ObjectName) -> bool {
    export.meta.name.namespace == other.namespace
}

/// Adds to `plan` the writes for exports with this name that are not distributed. If such an export is being deleted,
/// its finalizer is removed at once.
///
/// Otherwise the export gets one Event, which says why it is not distributed. The Event is emitted with the write of
/// the export's finalizer, which records that the Event was emitted. If the export was distributed before, it has the
/// finalizer already: then the Event is emitted with the write that changes its first distributed slice
/// ([`announce_loss`]).
pub(super) fn add_undistributed(view: Reader<'_>, name: &Text, holder: Option<&HubSlice>, mut plan: Plan) -> Plan {
    for export in undistributed(view, name, holder) {
        let Some((reason, held_by)) = held_by_another(view, export, holder) else {
            // No Event: if the member is denied the right to export, its InternalServiceExport shows the denial in a
            // condition.
            plan.join(unmark(export));
            continue;
        };
        if export.meta.deleting {
            plan.join(unmark(export));
            continue;
        }
        let event = not_distributed_event(export, reason, held_by);
        plan.blocking_reasons.push(BlockingReason { reason: event.reason, message: event.message.clone() });
        if !export.meta.finalizers.ours {
            plan.push(Write::add_finalizer(Kind::EndpointSliceExport, &export.meta).with_events([event]));
        }
    }
    plan
}

/// Adds to `plan`, which changes a distributed slice, the Event of an export that is not distributed any more.
/// `distributed` is the present state of this distributed slice. One Event is enough, so only the first distributed
/// slice of the export has it.
pub(super) fn announce_loss(view: Reader<'_>, distributed: &HubSlice, holder: Option<&HubSlice>, plan: &mut Plan) {
    let Some(write) = plan.writes.first_mut() else { return };
    for export in undistributed(view, &distributed.meta.name.name, holder) {
        let cluster = names::cluster_of(&export.meta.name.namespace);
        let is_of_export = |slice: &&HubSlice| Some(&slice.spec.reference.cluster) == cluster.as_ref();
        if !export.meta.finalizers.ours || export.meta.deleting || !is_of_export(&distributed) {
            continue;
        }
        let Some((reason, held_by)) = held_by_another(view, export, holder) else { continue };
        let first = distributed_slices(view, &distributed.meta.name.name).find(is_of_export);
        if first.is_some_and(|first| first.meta.name == distributed.meta.name) {
            write.events.push(not_distributed_event(export, reason, held_by));
        }
    }
}

/// Returns the exports with this name that are not distributed.
fn undistributed<'a>(
    view: Reader<'a>,
    name: &Text,
    holder: Option<&'a HubSlice>,
) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    exports(view, name).filter(move |export| holder.is_none_or(|holder| holder.meta.name != export.meta.name))
}

fn unmark(export: &HubSlice) -> Plan {
    if !export.meta.finalizers.ours {
        return Plan::default();
    }
    Plan::one(Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta))
}

/// Returns why an export is not distributed, and which export is the holder of its name or source slice instead.
fn held_by_another<'a>(
    view: Reader<'a>,
    export: &'a HubSlice,
    holder: Option<&'a HubSlice>,
) -> Option<(Reason, &'a ObjectName)> {
    if !may_hold(view, export) {
        return None;
    }
    let of_source = holder_of_source(view, export);
    if same_member(export, of_source) {
        Some((Reason::NameHeldByAnother, &holder?.meta.name))
    } else {
        Some((Reason::SliceHeldByAnother, of_source))
    }
}

fn not_distributed_event(export: &HubSlice, reason: Reason, held_by: &ObjectName) -> Event {
    let cluster = |name: &ObjectName| names::cluster_of(&name.namespace).unwrap_or_default();
    let (mine, theirs) = (cluster(&export.meta.name), cluster(held_by));
    let source = message::name(&export.spec.reference.source);
    let message = match reason {
        Reason::NameHeldByAnother => format!(
            "EndpointSlice {source} of cluster {mine} is not distributed: EndpointSliceExport {} of cluster {theirs} \
             already uses the name. Delete the one that does not belong there",
            held_by
        ),
        _ => format!(
            "EndpointSlice {source} (uid {}) of cluster {mine} is not distributed: cluster {theirs} already exports \
             it, as EndpointSliceExport {}. If one cluster joined the fleet under two ids, remove one of them. \
             Otherwise one of the two clusters exports a slice of the other",
            value(&export.spec.reference.uid),
            held_by
        ),
    };
    plan::event(COMPONENT, Kind::EndpointSliceExport, &export.meta, reason, message)
}
