//! Way of the last change of each source slice of a Service, from its exporter to each importer.
//!
//! The generation of the source slice, which the objects on the way carry, shows which of them have the last change.

use crate::explain::Filter;
use crate::explain::{
    Stop, Walk, clock_of, distributed_reach, export_of, is_imported, of_slice, of_slice_export, pairs_of, ready_reach,
    written,
};
use crate::limits::CLOCK_MILLISECONDS;
use crate::report::{Point, Span, Way, WayState, WayStep};
use crate::snapshot::Snapshot;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use fleetnet_api::names::annotations::LAST_OBSERVED_GENERATION;
use fleetnet_types::ObjectName;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use std::cmp::Reverse;

/// Annotation of an EndpointSlice with the time of the change of a pod or Service that led to its last change.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Returns the ways by pair. Within a pair, ways that are not complete come first, and then the newest changes.
#[must_use]
pub fn ways(snapshot: &Snapshot, service: &ObjectName) -> Vec<Way> {
    let pairs = pairs_of(snapshot, service, &Filter::default());
    pairs.iter().flat_map(|ends| of_pair(&Walk::new(snapshot, service, ends))).collect()
}

/// Keeps at most this number of ways, of each pair the first ones. Returns the number of the others too.
#[must_use]
pub fn limited(ways: Vec<Way>, max: usize) -> (Vec<Way>, usize) {
    let pair = |way: &Way| (way.api, way.exporter.clone(), way.importer.clone());
    let pairs = ways.chunk_by(|one, two| pair(one) == pair(two));
    let of_pair = max.checked_div(pairs.clone().count()).unwrap_or_default().max(1);
    let kept: Vec<Way> = pairs.flat_map(|ways| ways.iter().take(of_pair)).take(max).cloned().collect();
    let left_out = ways.len() - kept.len();
    (kept, left_out)
}

/// Source slice and its EndpointSliceExport. One of them can be missing.
#[derive(Clone, Copy)]
struct Slice<'a> {
    source: Option<&'a EndpointSlice>,
    export: Option<&'a EndpointSliceExport>,
}

fn of_pair(walk: &Walk<'_>) -> Vec<Way> {
    let exports = walk.slice_exports();
    let exported = exports.as_deref().unwrap_or_default();
    let slices: Vec<Slice<'_>> = match walk.source_slices() {
        Ok(sources) => {
            let with_export = |source| Slice { source: Some(source), export: export_of(source, exported) };
            sources.into_iter().map(with_export).collect()
        }
        // The hub has the last known state of an exporter that was not read.
        Err(_) => exported.iter().map(|export| Slice { source: None, export: Some(export) }).collect(),
    };
    let distributed = walk.distributed_slices();
    let mut ways: Vec<(Option<Timestamp>, Way)> =
        slices.into_iter().filter_map(|slice| way(walk, slice, exports.is_ok(), distributed.as_deref())).collect();
    let is_complete = |way: &Way| way.steps.iter().all(|step| step.state != WayState::NotYet);
    ways.sort_by_key(|(last, way)| (is_complete(way), Reverse(*last), way.slice.clone()));
    ways.into_iter().map(|(_, way)| way).collect()
}

/// Time that an object shows: any time from `from` until `width` later.
#[derive(Clone, Copy)]
struct Moment {
    from: Timestamp,
    width: SignedDuration,
}

impl Moment {
    fn exact(from: Timestamp) -> Self {
        Self { from, width: SignedDuration::ZERO }
    }

    /// Moment of a time without a fraction of a second.
    fn of_second(from: Timestamp) -> Self {
        Self { from, width: SignedDuration::from_secs(1) }
    }

    fn to_text(self) -> String {
        if self.width.is_zero() { format!("{:.6}", self.from) } else { self.from.to_string() }
    }
}

/// State of a step, with its time.
type Found = (WayState, Option<Moment>);

/// Returns the way of a slice, with the time of its last step that has one. `None` if neither the source slice nor its
/// export has a generation.
fn way(
    walk: &Walk<'_>,
    slice: Slice<'_>,
    are_exports_known: bool,
    distributed: Result<&[&EndpointSliceImport], &Stop>,
) -> Option<(Option<Timestamp>, Way)> {
    let (exporter, importer) = (walk.exporter?, walk.importer?);
    let generation = last_generation(slice)?;
    let reference = slice.export.map(|export| &export.spec.endpoint_slice_reference);
    let uid = slice.source.and_then(|source| source.metadata.uid.clone()).or(reference.map(|it| it.uid.clone()))?;
    let name = slice.source.map(|source| source.name_any()).or(reference.map(|it| it.name.clone()))?;
    let in_hub =
        distributed.map(|all| all.iter().find(|it| it.spec.slice.endpoint_slice_reference.uid == uid).copied());
    let exported = match reference {
        None if !are_exports_known => WayState::Unknown,
        reference => reached(reference.map(|it| it.generation), generation),
    };
    let of_export = |moment: Option<Moment>| {
        (exported, moment.filter(|_| reference.is_some_and(|reference| reference.generation == generation)))
    };
    let seen = reference.and_then(|reference| Some(Moment::exact(reference.exported_since.as_ref()?.0)));
    let found: [(Point, &str, Found); 5] = [
        (Point::Changed, &exporter.id, changed(slice, generation)),
        (Point::Seen, &exporter.id, of_export(seen)),
        (Point::Exported, "hub", of_export(slice.export.and_then(|it| written(it, "f:spec")).map(Moment::of_second))),
        (Point::Distributed, "hub", distribution(in_hub, generation)),
        (Point::Imported, &importer.id, import(walk, in_hub, generation)),
    ];
    let last = found.iter().filter_map(|(_, _, (_, moment))| Some((*moment)?.from)).max();
    let (steps, whole) = timed(walk.snapshot, found);
    let (exporter, importer) = (exporter.id.clone(), importer.id.clone());
    Some((last, Way { api: walk.api, exporter, importer, slice: name, steps, whole }))
}

/// Returns the generation of the last change that importers need. An agent does not export a change that clients do
/// not see, such as one of a label.
fn last_generation(slice: Slice<'_>) -> Option<i64> {
    let exported = slice.export.map(|export| export.spec.endpoint_slice_reference.generation);
    let own = slice.source.and_then(|source| source.metadata.generation);
    let (Some(source), Some(export)) = (slice.source, slice.export) else { return own.or(exported) };
    let contents = (of_slice(source), of_slice_export(export));
    let is_same = matches!(&contents, (Some(own), Some(exported)) if ready_reach(own) == ready_reach(exported));
    if is_same { exported } else { own.max(exported) }
}

/// Returns the state of a step whose object has this generation of the source slice.
fn reached(generation: Option<i64>, wanted: i64) -> WayState {
    if generation.is_some_and(|generation| generation >= wanted) { WayState::Done } else { WayState::NotYet }
}

/// Returns the change itself. Only the source slice shows its time.
fn changed(slice: Slice<'_>, generation: i64) -> Found {
    let Some(source) = slice.source else { return (WayState::Unknown, None) };
    let is_this = source.metadata.generation == Some(generation);
    let text = source.annotations().get(TRIGGER_TIME).filter(|_| is_this);
    let moment = text.and_then(|text| text.parse::<Timestamp>().ok()).map(|time| match time.subsec_nanosecond() {
        0 => Moment::of_second(time),
        _ => Moment::exact(time),
    });
    (WayState::Done, moment)
}

fn distribution(slice: Result<Option<&EndpointSliceImport>, &Stop>, wanted: i64) -> Found {
    let Ok(slice) = slice else { return (WayState::Unknown, None) };
    let generation = slice.map(|slice| slice.spec.slice.endpoint_slice_reference.generation);
    let moment = slice.filter(|_| generation == Some(wanted)).and_then(|slice| written(slice, "f:spec"));
    (reached(generation, wanted), moment.map(Moment::of_second))
}

fn import(walk: &Walk<'_>, distributed: Result<Option<&EndpointSliceImport>, &Stop>, wanted: i64) -> Found {
    let unknown = (WayState::Unknown, None);
    let Ok(distributed) = distributed else { return unknown };
    let Some(distributed) = distributed else { return (WayState::NotYet, None) };
    let Ok(slice) = walk.imported_slice(&distributed.name_any()) else { return unknown };
    let Some(slice) = slice.filter(|slice| is_imported(slice)) else { return (WayState::NotYet, None) };
    // A Go agent writes no generation.
    let observed = slice.annotations().get(LAST_OBSERVED_GENERATION).and_then(|text| text.parse::<i64>().ok());
    let Some(observed) = observed else { return unknown };
    let state = reached(Some(observed), wanted);
    let is_current = distributed.spec.slice.endpoint_slice_reference.generation >= wanted;
    if state == WayState::NotYet && is_current {
        let present = of_slice(slice).map(|content| ready_reach(&content));
        if present.is_some() && present == distributed_reach(walk, distributed).ok() {
            return (WayState::NotNeeded, None);
        }
    }
    let moment = written(slice, "f:endpoints").filter(|_| observed == wanted);
    (state, moment.map(Moment::of_second))
}

/// Returns the steps with the time since the step before, and the time of the whole way.
fn timed(snapshot: &Snapshot, found: [(Point, &str, Found); 5]) -> (Vec<WayStep>, Option<Span>) {
    let mut first: Option<(&str, Moment)> = None;
    let mut before: Option<(&str, Moment)> = None;
    let (mut steps, mut whole) = (Vec::new(), None);
    for (point, cluster, (state, moment)) in found {
        let now = moment.map(|moment| (cluster, moment));
        let since = before.zip(now).map(|(before, now)| span(snapshot, before, now));
        whole = first.zip(now).and_then(|(first, now)| span(snapshot, first, now));
        steps.push(WayStep {
            point,
            cluster: cluster.to_owned(),
            state,
            time: moment.map(Moment::to_text),
            since: since.flatten(),
            clocks_differ: since == Some(None),
        });
        first = first.or(now);
        before = now.or(before);
    }
    (steps, whole)
}

/// Returns the time between two moments, each with the cluster whose clock gives it. `None` if the clocks differ.
fn span(snapshot: &Snapshot, (one, start): (&str, Moment), (other, end): (&str, Moment)) -> Option<Span> {
    let offset =
        |cluster: &str| if cluster == "hub" { Some(SignedDuration::ZERO) } else { clock_of(snapshot, cluster) };
    let by_two_clocks = one != other;
    if let (true, Some(one), Some(other)) = (by_two_clocks, offset(one), offset(other))
        && (one - other).abs() > SignedDuration::from_millis(CLOCK_MILLISECONDS)
    {
        return None;
    }
    let between = end.from.duration_since(start.from);
    let (least, most) = (between - start.width, between + end.width);
    let milliseconds = |duration: SignedDuration| duration.as_secs_f64() * 1_000.0;
    (most >= SignedDuration::ZERO).then(|| Span {
        at_least_milliseconds: milliseconds(least.max(SignedDuration::ZERO)),
        at_most_milliseconds: milliseconds(most),
        by_two_clocks,
    })
}

#[cfg(test)]
#[path = "way_tests.rs"]
mod tests;
