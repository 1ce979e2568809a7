//! Holders of the name and the source of an exported slice. If two members use one name or claim one source slice, only one
//! export is distributed. The other is accepted without further action when the holder is gone.

use crate::hub::rights::{self, Right};
use crate::hub::{Source, View};
use crate::model::{HubSlice, Kind};
use crate::names;
use crate::plan::{self, Event, Hindrance, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp};

const COMPONENT: &str = "endpointsliceexport-controller";

/// Returns the export that is distributed under a name.
pub(super) fn holder<'a>(view: &'a View, name: &Text) -> Option<&'a HubSlice> {
    let holds_source = |export: &&HubSlice| same_member(export, holder_of_source(view, export));
    exports(view, name)
        // fault T4.1: && holds_source(export) ~>
        .filter(|export| may_hold(view, export) && holds_source(export))
        .min_by_key(|export| by_name(export))
}

/// Returns all exports with a name.
pub(super) fn exports<'a>(view: &'a View, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.slice_exports_named.get(name).filter_map(|export| view.slice_exports.get(export))
}

/// True if the export's cluster is a member with the right to export.
fn may_hold(view: &View, export: &HubSlice) -> bool {
    names::cluster_of(&export.meta.name.namespace)
        // fault T2.1: is_some_and ~> is_none_or
        // fault T11.1: Refused) ~> Refused || true)
        .is_some_and(|cluster| rights::of_exporter(view, &export.spec.owner, &cluster) != Right::Refused)
}

/// Order of the exports with one name. Names contain the cluster id, and exports with their own cluster's id come first, so a
/// member cannot squat another cluster's name. Among those the oldest comes first.
fn by_name(export: &HubSlice) -> (bool, Timestamp, Text) {
    let ObjectName { namespace, name } = &export.meta.name;
    let named_after =
        names::cluster_of(namespace).is_some_and(|cluster| names::is_slice_export_name_of(name, &cluster));
    // fault T6.1: !named_after ~> false
    // fault D8.1: export.meta.created ~> Timestamp(0)
    (!named_after, export.meta.created, namespace.clone())
}

/// Returns the export that holds a name, without regard to the holder of its source slice.
pub(crate) fn holder_of_name<'a>(view: &'a View, name: &Text) -> Option<&'a HubSlice> {
    // fault T6.4: min_by_key ~> max_by_key
    exports(view, name).filter(|export| may_hold(view, export)).min_by_key(|export| by_name(export))
}

/// Returns the export that holds the source slice of `export`; [`crate::hub::View`] maintains the order.
fn holder_of_source<'a>(view: &'a View, export: &'a HubSlice) -> &'a HubSlice {
    let holder = Source::of(export).and_then(|source| view.slice_exports.get(view.holders.of(&source)?));
    holder.unwrap_or(export)
}

/// True if the cluster of an export is in the list.
pub(crate) fn is_among(clusters: &[Text], export: &HubSlice) -> bool {
    names::cluster_of(&export.meta.name.namespace).is_some_and(|cluster| clusters.contains(&cluster))
}

fn same_member(one: &HubSlice, other: &HubSlice) -> bool {
    // fault T7.1: .namespace == other.meta.name.namespace ~> == other.meta.name
    one.meta.name.namespace == other.meta.name.namespace
}

/// Plans the exports with a name that are not distributed, together with `plan` for the distributed slices of that name. Their
/// deletion is never blocked. Each emits one Event: with the write that removes its distributed slices, or with its finalizer,
/// which then shows that the Event was emitted.
pub(super) fn refuse(view: &View, name: &Text, holder: Option<&HubSlice>, mut plan: Plan) -> Plan {
    let refused = exports(view, name).filter(|export| holder.is_none_or(|holder| holder.meta.name != export.meta.name));
    for export in refused {
        let Some((reason, held_by)) = held_by_another(view, export, holder) else {
            plan.join(unmark(export)); // the condition of its InternalServiceExport says why, if there is one
            continue;
        };
        // fault T5.1: if export.meta.deleting { plan.join(unmark(export)); continue; } ~>
        if export.meta.deleting {
            plan.join(unmark(export));
            continue;
        }
        let event = refusal(export, reason, held_by);
        plan.hindrances.push(Hindrance { reason: event.reason, message: event.message.clone() });
        let takes_away = |write: &&mut Write| write.kind == Kind::EndpointSliceImport && is_copy(view, write, export);
        match plan.writes.iter_mut().find(takes_away) {
            // fault T4.2: withdrawal) => withdrawal.events.push ~> _) => drop
            Some(withdrawal) => withdrawal.events.push(event),
            // fault T3.2: None if export.meta.finalizers.ours => {} ~>
            None if export.meta.finalizers.ours => {}
            // fault T3.1: .telling([event]) ~>
            None => plan.push(Write::finalizer(Kind::EndpointSliceExport, &export.meta, true).telling([event])),
        }
    }
    plan
}

/// True if a write concerns a distributed slice of an export.
fn is_copy(view: &View, write: &Write, export: &HubSlice) -> bool {
    let cluster = names::cluster_of(&export.meta.name.namespace);
    view.slice_imports.get(&write.at).is_some_and(|copy| Some(&copy.spec.reference.cluster) == cluster.as_ref())
}

fn unmark(export: &HubSlice) -> Plan {
    if !export.meta.finalizers.ours {
        return Plan::default();
    }
    Plan::one(Write::finalizer(Kind::EndpointSliceExport, &export.meta, false))
}

/// Returns why an export is not distributed, and the export that has its name or source.
fn held_by_another<'a>(
    view: &'a View,
    export: &'a HubSlice,
    holder: Option<&'a HubSlice>,
) -> Option<(Reason, &'a HubSlice)> {
    if !may_hold(view, export) {
        return None;
    }
    let of_source = holder_of_source(view, export);
    if same_member(export, of_source) {
        Some((Reason::NameHeldByAnother, holder?))
    } else {
        Some((Reason::SliceHeldByAnother, of_source))
    }
}

fn refusal(export: &HubSlice, reason: Reason, held_by: &HubSlice) -> Event {
    let cluster = |export: &HubSlice| names::cluster_of(&export.meta.name.namespace).unwrap_or_default();
    let (mine, theirs) = (cluster(export), cluster(held_by));
    let source = &export.spec.reference.source;
    let message = match reason {
        Reason::NameHeldByAnother => format!(
            "EndpointSlice {source} of cluster {mine} is not distributed: EndpointSliceExport {} of cluster {theirs} holds the \
             name. Delete the one that does not belong there",
            held_by.meta.name
        ),
        _ => format!(
            "EndpointSlice {source} (uid {}) of cluster {mine} is not distributed: cluster {theirs} exports it already, as \
             EndpointSliceExport {}. If one cluster has joined the fleet under two names, take one of them out; otherwise one \
             of the two claims a slice that is not its own",
            export.spec.reference.uid, held_by.meta.name
        ),
    };
    plan::event(COMPONENT, Kind::EndpointSliceExport, &export.meta, reason, message)
}
