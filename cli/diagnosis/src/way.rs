//! Way of the last change of each source slice of a Service, from its exporter to each importer.
//!
//! The generation of the source slice, which the objects on the way carry, shows which of them have the last change.
//! The time of an object is that of its last write, which can be later than the one with the change.

use crate::explain::{
    Filter, Stop, Walk, clock_of, created, distributed_reach, export_of, is_imported, of_slice, of_slice_export,
    pairs_of, ready_reach, written,
};
use crate::limits::{CLOCK_MILLISECONDS, SETTLED_SECONDS, WAY_SECONDS};
use crate::report::{Api, Point, Span, Way, WayState, WayStep};
use crate::sides::is_left_out;
use crate::snapshot::Snapshot;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use fleetnet_api::names::annotations::{LAST_CHANGE_TRIGGER_TIME, LAST_OBSERVED_GENERATION};
use fleetnet_types::ObjectName;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Resource, ResourceExt as _};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Returns at most this number of ways by pair, and the number of the others. Of each pair, ways that are not complete
/// come first, and then the newest changes. If there are too many, each of the first pairs has its first ways.
#[must_use]
pub fn ways(snapshot: &Snapshot, service: &ObjectName, max: usize) -> (Vec<Way>, usize) {
    let mut pairs = pairs_of(snapshot, service, &Filter::default());
    pairs.retain(|ends| ends.exporter.is_some() && ends.importer.is_some());
    let of_pair = max.checked_div(pairs.len()).unwrap_or_default().max(1);
    // Many importers have the same exporter, and its slices are decoded once.
    let mut exported: BTreeMap<(Api, &str), Exported<'_>> = BTreeMap::new();
    let (mut ways, mut left_out) = (Vec::new(), 0);
    for ends in &pairs {
        let walk = Walk::new(snapshot, service, ends);
        let Some(exporter) = walk.exporter.filter(|_| !walk.is_leftover) else { continue };
        let exported = exported.entry((walk.api, &exporter.id)).or_insert_with(|| Exported::of(&walk));
        let kept = of_pair.min(max - ways.len());
        left_out += exported.slices.len();
        if kept > 0 {
            let first = self::of_pair(&walk, exported).into_iter().take(kept);
            let before = ways.len();
            ways.extend(first);
            left_out -= ways.len() - before;
        }
    }
    (ways, left_out)
}

/// Slices of one exporter.
struct Exported<'a> {
    slices: Vec<Slice<'a>>,
    /// True if the exports in the hub were read.
    are_exports_known: bool,
}

/// Source slice and its EndpointSliceExport. One of them can be missing.
#[derive(Clone, Copy)]
struct Slice<'a> {
    source: Option<&'a EndpointSlice>,
    export: Option<&'a EndpointSliceExport>,
    /// Generation of the last change that importers need.
    generation: i64,
    uid: &'a str,
    name: &'a str,
}

impl<'a> Slice<'a> {
    /// Returns a slice; `None` if neither the source slice nor its export has a generation, a uid and a name.
    fn of(source: Option<&'a EndpointSlice>, export: Option<&'a EndpointSliceExport>) -> Option<Self> {
        let generation = last_generation(source, export)?;
        let reference = export.map(|export| &export.spec.endpoint_slice_reference);
        let own = source.map(|source| &source.metadata);
        let uid = own.and_then(|own| own.uid.as_deref()).or(reference.map(|it| it.uid.as_str()))?;
        let name = own.and_then(|own| own.name.as_deref()).or(reference.map(|it| it.name.as_str()))?;
        Some(Self { source, export, generation, uid, name })
    }
}

impl<'a> Exported<'a> {
    fn of(walk: &Walk<'a>) -> Self {
        let exports = walk.slice_exports();
        let (are_exports_known, exports) = (exports.is_ok(), exports.unwrap_or_default());
        let slices = match walk.source_slices() {
            Ok(sources) => sources.into_iter().filter_map(|it| Slice::of(Some(it), export_of(it, &exports))).collect(),
            // The hub has the last known state of an exporter that was not read.
            Err(_) => exports.into_iter().filter_map(|export| Slice::of(None, Some(export))).collect(),
        };
        Self { slices, are_exports_known }
    }
}

fn of_pair(walk: &Walk<'_>, exported: &Exported<'_>) -> Vec<Way> {
    let distributed = walk.distributed_slices();
    let mut ways: Vec<(Option<Timestamp>, Way)> = exported
        .slices
        .iter()
        .filter_map(|slice| way(walk, slice, exported.are_exports_known, distributed.as_deref()))
        .collect();
    let is_complete = |way: &Way| way.steps.iter().all(|step| step.state != WayState::NotYet);
    if !ways.iter().all(|(_, way)| is_complete(way)) && is_left_out(walk) {
        let steps = ways.iter_mut().flat_map(|(_, way)| &mut way.steps);
        steps.filter(|step| step.state == WayState::NotYet).for_each(|step| step.state = WayState::LeftOut);
    }
    ways.sort_by_key(|(last, way)| (is_complete(way), Reverse(*last), way.slice.clone()));
    ways.into_iter().map(|(_, way)| way).collect()
}

/// Time that an object shows: any time from `from` until `width` later.
#[derive(Clone, Copy)]
struct Moment {
    from: Timestamp,
    width: SignedDuration,
    /// True if the time may be that of a later write of the same change. It is shown, and not compared.
    may_be_rewrite: bool,
}

impl Moment {
    fn exact(from: Timestamp) -> Self {
        Self { from, width: SignedDuration::ZERO, may_be_rewrite: false }
    }

    /// Moment of a time without a fraction of a second.
    fn of_second(from: Timestamp) -> Self {
        Self { from, width: SignedDuration::from_secs(1), may_be_rewrite: false }
    }

    fn to_text(self) -> String {
        if self.width.is_zero() { format!("{:.6}", self.from) } else { self.from.to_string() }
    }
}

/// State of a step, with its time.
type TimedState = (WayState, Option<Moment>);

/// Time at which the exporter's agent saw a change, by the clock of the hub as far as the difference is known. Without
/// it, the time of the change.
#[derive(Clone, Copy)]
struct Origin<'a> {
    snapshot: &'a Snapshot,
    time: Option<Timestamp>,
}

impl<'a> Origin<'a> {
    fn of(snapshot: &'a Snapshot, exporter: &str, moment: Option<Moment>) -> Self {
        Self { snapshot, time: moment.map(|moment| by_hub(snapshot, exporter, moment.from)) }
    }

    /// Returns the last write of a field of an object with the change. An object that was created long after the
    /// change, for example for a new importer, or that was written long after it, for example at the end of a silence,
    /// does not show when the change arrived.
    fn written<K: Resource>(self, cluster: &str, object: &K, field: &str) -> Option<Moment> {
        let write = written(object, field)?;
        let is_late = |time: Timestamp, seconds: i64| {
            let limit = SignedDuration::from_secs(seconds);
            self.time.is_some_and(|origin| by_hub(self.snapshot, cluster, time).duration_since(origin) > limit)
        };
        let may_be_rewrite =
            is_late(write, WAY_SECONDS) || created(object).is_some_and(|created| is_late(created, SETTLED_SECONDS));
        Some(Moment { may_be_rewrite, ..Moment::of_second(write) })
    }
}

/// Returns how far the clock of a cluster is ahead of that of the hub. `None` if that is not known.
fn ahead(snapshot: &Snapshot, cluster: &str) -> Option<SignedDuration> {
    if cluster == "hub" { Some(SignedDuration::ZERO) } else { clock_of(snapshot, cluster) }
}

/// Returns a time of a cluster by the clock of the hub.
fn by_hub(snapshot: &Snapshot, cluster: &str, time: Timestamp) -> Timestamp {
    time.checked_sub(ahead(snapshot, cluster).unwrap_or_default()).unwrap_or(time)
}

/// Returns the way of a slice, with the time of its last step that has one.
fn way(
    walk: &Walk<'_>,
    slice: &Slice<'_>,
    are_exports_known: bool,
    distributed: Result<&[&EndpointSliceImport], &Stop>,
) -> Option<(Option<Timestamp>, Way)> {
    let (exporter, importer) = (walk.exporter?, walk.importer?);
    let generation = slice.generation;
    let reference = slice.export.map(|export| &export.spec.endpoint_slice_reference);
    let in_hub =
        distributed.map(|all| all.iter().find(|it| it.spec.slice.endpoint_slice_reference.uid == slice.uid).copied());
    let exported = match reference {
        None if !are_exports_known => WayState::Unknown,
        reference => reached(reference.map(|it| it.generation), generation),
    };
    let of_export = |moment: Option<Moment>| {
        (exported, moment.filter(|_| reference.is_some_and(|reference| reference.generation == generation)))
    };
    let changed = changed(slice);
    let seen = of_export(reference.and_then(|reference| Some(Moment::exact(reference.exported_since.as_ref()?.0))));
    let origin = Origin::of(walk.snapshot, &exporter.id, seen.1.or(changed.1));
    let written = slice.export.and_then(|export| origin.written("hub", export, "f:spec"));
    let found: [(Point, &str, TimedState); 5] = [
        (Point::Changed, &exporter.id, changed),
        (Point::Seen, &exporter.id, seen),
        (Point::Exported, "hub", of_export(written)),
        (Point::Distributed, "hub", distribution(in_hub, generation, origin)),
        (Point::Imported, &importer.id, import(walk, in_hub, generation, origin)),
    ];
    let last = found.iter().filter_map(|(_, _, (_, moment))| Some((*moment)?.from)).max();
    let (steps, whole) = timed(walk.snapshot, found);
    let (exporter, importer, slice) = (exporter.id.clone(), importer.id.clone(), slice.name.to_owned());
    Some((last, Way { api: walk.api, exporter, importer, slice, steps, whole }))
}

/// Returns the generation of the last change that importers need. An agent does not export a change that clients do
/// not see, such as one of a label.
fn last_generation(source: Option<&EndpointSlice>, export: Option<&EndpointSliceExport>) -> Option<i64> {
    let exported = export.map(|export| export.spec.endpoint_slice_reference.generation);
    let own = source.and_then(|source| source.metadata.generation);
    let (Some(source), Some(export)) = (source, export) else { return own.or(exported) };
    let contents = (of_slice(source), of_slice_export(export));
    let is_same = matches!(&contents, (Some(own), Some(exported)) if ready_reach(own) == ready_reach(exported));
    if is_same { exported } else { own.max(exported) }
}

/// Returns the state of a step whose object has this generation of the source slice.
fn reached(generation: Option<i64>, wanted: i64) -> WayState {
    if generation.is_some_and(|generation| generation >= wanted) { WayState::Done } else { WayState::NotYet }
}

/// Returns the change itself. Only the source slice shows its time.
fn changed(slice: &Slice<'_>) -> TimedState {
    let Some(source) = slice.source else { return (WayState::Unknown, None) };
    let is_this = source.metadata.generation == Some(slice.generation);
    let text = source.annotations().get(LAST_CHANGE_TRIGGER_TIME).filter(|_| is_this);
    let moment = text.and_then(|text| text.parse::<Timestamp>().ok()).map(|time| match time.subsec_nanosecond() {
        0 => Moment::of_second(time),
        _ => Moment::exact(time),
    });
    (WayState::Done, moment)
}

fn distribution(slice: Result<Option<&EndpointSliceImport>, &Stop>, wanted: i64, origin: Origin<'_>) -> TimedState {
    let Ok(slice) = slice else { return (WayState::Unknown, None) };
    let generation = slice.map(|slice| slice.spec.slice.endpoint_slice_reference.generation);
    let moment = slice.filter(|_| generation == Some(wanted)).and_then(|slice| origin.written("hub", slice, "f:spec"));
    (reached(generation, wanted), moment)
}

fn import(
    walk: &Walk<'_>,
    distributed: Result<Option<&EndpointSliceImport>, &Stop>,
    wanted: i64,
    origin: Origin<'_>,
) -> TimedState {
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
    let importer = walk.importer.map_or("", |importer| &importer.id);
    (state, origin.written(importer, slice, "f:endpoints").filter(|_| observed == wanted))
}

/// Returns the steps with the time since the step before, and the time of the whole way.
fn timed(snapshot: &Snapshot, found: [(Point, &str, TimedState); 5]) -> (Vec<WayStep>, Option<Span>) {
    let mut first: Option<(&str, Moment)> = None;
    let mut before: Option<(&str, Moment)> = None;
    let (mut steps, mut whole) = (Vec::new(), None);
    for (point, cluster, (state, moment)) in found {
        let now = moment.filter(|moment| !moment.may_be_rewrite).map(|moment| (cluster, moment));
        let since = before.zip(now).map(|(before, now)| span(snapshot, before, now));
        whole = first.zip(now).and_then(|(first, now)| span(snapshot, first, now).ok().flatten());
        steps.push(WayStep {
            point,
            cluster: cluster.to_owned(),
            state,
            time: moment.map(Moment::to_text),
            since: since.and_then(|since| since.ok().flatten()),
            clocks_differ: matches!(since, Some(Err(ClocksDiffer))),
        });
        first = first.or(now);
        before = now.or(before);
    }
    (steps, whole)
}

/// Two times cannot be compared, because the clocks of their clusters differ.
#[derive(Clone, Copy)]
struct ClocksDiffer;

/// Returns the time between two moments, each with the cluster whose clock gives it. `None` if the second one does not
/// follow from the first one: it is earlier by the same clock, or much later. For example, an agent saw the oldest
/// change that the hub does not have, and the source slice shows the time of the newest one.
fn span(
    snapshot: &Snapshot,
    (one, start): (&str, Moment),
    (other, end): (&str, Moment),
) -> Result<Option<Span>, ClocksDiffer> {
    let by_two_clocks = one != other;
    if let (true, Some(one), Some(other)) = (by_two_clocks, ahead(snapshot, one), ahead(snapshot, other))
        && (one - other).abs() > SignedDuration::from_millis(CLOCK_MILLISECONDS)
    {
        return Err(ClocksDiffer);
    }
    let between = end.from.duration_since(start.from);
    let (least, most) = (between - start.width, between + end.width);
    if most < SignedDuration::ZERO && by_two_clocks {
        return Err(ClocksDiffer);
    }
    if most < SignedDuration::ZERO || least > SignedDuration::from_secs(WAY_SECONDS) {
        return Ok(None);
    }
    let milliseconds = |duration: SignedDuration| duration.as_secs_f64() * 1_000.0;
    Ok(Some(Span {
        at_least_milliseconds: milliseconds(least.max(SignedDuration::ZERO)),
        at_most_milliseconds: milliseconds(most),
        by_two_clocks,
    }))
}

#[cfg(test)]
#[path = "way_tests.rs"]
mod tests;
