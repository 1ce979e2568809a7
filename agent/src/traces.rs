//! Traces of changes of slices (KEP-5915): one span in each agent for a sampled change.
//!
//! ```text
//! exporter: span "export"  ── annotation of the EndpointSliceExport ──> hub: span "distribute", with a link
//!                                                                        │
//!    importer: span "import", with a link  <── annotation of the EndpointSliceImport, or field of the Preview
//! ```
//!
//! Spans of other clusters are only linked to, because nobody has checked their ids. All spans of a change have the
//! trace id of the exporter's span as the attribute [`CHANGE`].
//!
//! A plan stays a pure function: ids are hashes of the change, and the hash also decides if the change is sampled. The
//! views of `core` do not have the annotations. [`Traces`] keeps those that are there.

#[cfg(feature = "otlp")]
mod otlp;
mod span;

use crate::flags::{CommonFlags, SAMPLED_OF};
use crate::limits::{NEW_OBJECT, TRIGGER_AGE};
use fleetnet_api::encode::TraceChange;
use fleetnet_core::model::{EndpointSlice, HubSliceSpec, Kind, Object, SliceContent};
use fleetnet_runtime::process::listeners::Listeners;
use fleetnet_types::{Change, ObjectName, Text, Timestamp, Traced, Traceparent};
use prometheus::Registry;
use sha2::{Digest as _, Sha256};
pub use span::{Service, Sink, Span};
use std::collections::HashMap;
use std::fmt::Debug;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;

/// Attribute with the trace id of the exporter's span, which all spans of a change have.
pub const CHANGE: &str = "fleetnet.change.trace_id";
/// Traces of a process that takes part in them.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Sampled changes of a million changes.
    pub per_million: u32,
    pub sink: Arc<dyn Sink>,
}

/// Part of one write in a trace.
#[derive(Debug, Default)]
pub struct Step {
    pub annotation: TraceChange,
    /// Span that ends with the write.
    pub span: Option<Box<Span>>,
}

/// Traceparent of a slice on its way, as this agent saw it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub traceparent: Traceparent,
    /// Generation of the source slice. The traceparent is of this generation only: an agent that does not take part
    /// leaves it on the object.
    pub generation: i64,
    pub since: Timestamp,
}

/// Change of the content of a source slice, as this agent saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceChange {
    generation: i64,
    annotations: Traced,
    seen: Timestamp,
}

/// Annotations for traces of the objects in a view. Without [`Sampling`], only those of objects that this agent writes
/// or carries on are kept, so that later writes remove them.
#[derive(Debug, Default)]
pub struct Traces {
    sampling: Option<Sampling>,
    causes: HashMap<(Kind, ObjectName), Cause>,
    /// Causes of the previews of distributed slices, by the names of the objects.
    previews: HashMap<ObjectName, Cause>,
    /// Last changes of source slices.
    changes: HashMap<ObjectName, SourceChange>,
}

impl Sampling {
    /// Returns the traces that the flags request; `None` for none. The connection to the collector belongs to the
    /// thread of the listeners.
    ///
    /// # Errors
    /// If the URL of the collector is malformed.
    #[cfg(feature = "otlp")]
    pub fn of_flags(
        flags: &CommonFlags,
        service: Service<'_>,
        registry: &Registry,
        listeners: &Listeners,
    ) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &flags.tracing_endpoint else { return Ok(None) };
        let sink = Arc::new(otlp::Otlp::start(endpoint, service, registry, listeners.runtime())?);
        Ok(Some(Self { per_million: flags.tracing_sampling_rate_per_million, sink }))
    }

    /// Returns `None`: this build sends no spans.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(feature = "otlp"))]
    pub fn of_flags(_: &CommonFlags, _: Service<'_>, _: &Registry, _: &Listeners) -> anyhow::Result<Option<Self>> {
        Ok(None)
    }
}

impl Traces {
    #[must_use]
    pub fn new(sampling: Option<Sampling>) -> Self {
        Self { sampling, ..Self::default() }
    }

    /// True if this agent makes spans.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.sampling.is_some()
    }

    /// Takes the annotations out of a changed object. `known` is the content of a source slice in the view; `None` if
    /// the view does not have it.
    pub fn observe(&mut self, kind: Kind, change: &mut Change<Object>, known: Option<&SliceContent>, at: Timestamp) {
        match change {
            Change::Applied(Object::EndpointSlice(slice)) => {
                let annotations = slice.traced.take().map(|traced| *traced).unwrap_or_default();
                if slice.imported {
                    let generation = slice.observed_generation.unwrap_or_default();
                    self.observe_cause(kind, &slice.meta.name, annotations.traceparent, generation, at);
                } else {
                    self.observe_source(slice, annotations, known, at);
                }
            }
            Change::Applied(Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice)) => {
                let traceparent = slice.traced.take().and_then(|traced| traced.traceparent);
                let (name, generation) = (&slice.meta.name, slice.spec.reference.generation);
                self.observe_cause(kind, name, traceparent, generation, at);
                if self.previews.get(name).is_some_and(|preview| preview.generation <= generation) {
                    self.previews.remove(name);
                }
            }
            Change::Applied(_) => {}
            Change::Removed { name, .. } | Change::Undecodable { name } => {
                self.observe_cause(kind, name, None, 0, at);
                if kind == Kind::EndpointSlice {
                    self.changes.remove(name);
                } else {
                    self.previews.remove(name);
                }
            }
        }
    }

    fn observe_cause(
        &mut self,
        kind: Kind,
        name: &ObjectName,
        traceparent: Option<Traceparent>,
        generation: i64,
        since: Timestamp,
    ) {
        if traceparent.is_none() && self.causes.is_empty() {
            return; // nearly always
        }
        let key = (kind, name.clone());
        match traceparent {
            None => drop(self.causes.remove(&key)),
            Some(traceparent) if self.causes.get(&key).is_none_or(|known| known.traceparent != traceparent) => {
                self.causes.insert(key, Cause { traceparent, generation, since });
            }
            Some(_) => {}
        }
    }

    /// Records a change of the content of a source slice. A slice that is old at its first sight has not changed.
    fn observe_source(
        &mut self,
        slice: &EndpointSlice,
        annotations: Traced,
        known: Option<&SliceContent>,
        seen: Timestamp,
    ) {
        let is_changed = match known {
            Some(known) => *known != slice.content,
            None => is_new(slice.meta.created, seen),
        };
        if self.is_on() && is_changed {
            let change = SourceChange { generation: slice.meta.generation, annotations, seen };
            self.changes.insert(slice.meta.name.clone(), change);
        }
    }

    /// Records that the view has a preview of a distributed slice.
    pub fn preview(&mut self, object: ObjectName, traceparent: Option<Traceparent>, generation: i64, since: Timestamp) {
        match traceparent {
            None => drop(self.previews.remove(&object)),
            Some(traceparent) => drop(self.previews.insert(object, Cause { traceparent, generation, since })),
        }
    }

    /// Records that the view has no previews any more.
    pub fn drop_previews(&mut self) {
        self.previews.clear();
    }

    /// Moves the times of the local clock by `micros`, after it was set by this duration.
    pub fn clock_set(&mut self, micros: i64) {
        let causes = self.causes.values_mut().chain(self.previews.values_mut()).map(|cause| &mut cause.since);
        let times = causes.chain(self.changes.values_mut().map(|change| &mut change.seen));
        times.for_each(|time| *time = time.plus_micros(micros));
    }

    /// Returns the cause of this generation of a slice.
    #[must_use]
    pub fn cause(&self, kind: Kind, object: &ObjectName, generation: i64) -> Option<Cause> {
        let of_object = self.causes.get(&(kind, object.clone()));
        let of_preview = self.previews.get(object).filter(|_| kind == Kind::EndpointSliceImport);
        of_object.into_iter().chain(of_preview).find(|cause| cause.generation == generation).copied()
    }

    /// Returns the part of a write that gives this generation to a slice, with the span that ends with it.
    #[must_use]
    pub fn step(&self, (kind, at, generation): (Kind, &ObjectName, i64), span: Option<Span>) -> Step {
        let present = self.causes.get(&(kind, at.clone()));
        let annotation = match &span {
            Some(span) => TraceChange::Set(span.change),
            None if present.is_some_and(|present| present.generation < generation) => TraceChange::Remove,
            None => TraceChange::Keep,
        };
        Step { annotation, span: span.map(Box::new) }
    }

    /// Returns the span of an exporter, if its write brings a change that this agent saw and that is sampled. `present`
    /// is the generation that the hub has.
    #[must_use]
    pub fn export(&self, spec: &HubSliceSpec, present: Option<i64>) -> Option<Span> {
        let sampling = self.sampling.as_ref()?;
        let reference = &spec.reference;
        let change = self.changes.get(&reference.source)?;
        let ids = Ids::of(spec, &[]);
        if present.is_some_and(|present| change.generation <= present) || ids.chance >= sampling.per_million {
            return None;
        }
        let start = change.start(reference.exported_since);
        Some(span("export", ids, change.annotations.traceparent, start, ids.context, spec))
    }

    /// Returns the span of an agent that continues a change for one importer. `at` is the slice that gets the change.
    #[must_use]
    pub fn follow(
        &self,
        name: &'static str,
        cause: Cause,
        (at, importer): (&ObjectName, &str),
        spec: &HubSliceSpec,
    ) -> Option<Span> {
        self.sampling.as_ref()?;
        let ids = Ids::of(spec, &[&cause.traceparent.to_string(), name, importer, &at.namespace, &at.name]);
        let mut span = span(name, ids, Some(cause.traceparent), cause.since, cause.traceparent, spec);
        span.attributes.push(("fleetnet.importer", importer.into()));
        Some(span)
    }

    /// Ends a span.
    pub fn end(&self, span: Span, end: Timestamp) {
        if let Some(sampling) = &self.sampling {
            sampling.sink.take(span, end);
        }
    }
}

impl SourceChange {
    /// Returns the start of the change: its trigger, if that is of this change. `exported_since` is the time at which
    /// this agent saw the oldest change that the hub lacks.
    fn start(&self, exported_since: Option<Timestamp>) -> Timestamp {
        let seen = exported_since.unwrap_or(self.seen);
        let is_of_change = |triggered: &Timestamp| self.seen >= seen && seen.since(*triggered) <= TRIGGER_AGE;
        self.annotations.triggered.filter(is_of_change).map_or(seen, |triggered| seen.min(triggered))
    }
}

/// True if an object is so new that its first slice in another cluster is part of the same change. Later, it is a
/// repair, or for a new importer.
#[must_use]
pub fn is_new(created: Timestamp, now: Timestamp) -> bool {
    now.since(created) <= NEW_OBJECT
}

fn span(
    name: &'static str,
    ids: Ids,
    link: Option<Traceparent>,
    start: Timestamp,
    change: Traceparent,
    spec: &HubSliceSpec,
) -> Span {
    let HubSliceSpec { reference, owner, .. } = spec;
    let attributes = vec![
        (CHANGE, Text::from(format!("{:032x}", change.trace))),
        ("k8s.namespace.name", owner.namespace.clone()),
        ("k8s.service.name", owner.name.clone()),
        ("fleetnet.exporter", Text::from(&*reference.cluster)),
        ("fleetnet.slice", reference.source.name.clone()),
        ("fleetnet.generation", reference.generation.to_string().into()),
    ];
    Span { name, context: ids.context, link, change, start, attributes }
}

/// Ids of a span, and the number that decides if a change is sampled.
#[derive(Clone, Copy, Debug)]
struct Ids {
    context: Traceparent,
    /// Less than [`SAMPLED_OF`].
    chance: u32,
}

impl Ids {
    /// Returns the ids of the span of a change with these names. No other cluster can choose them: they depend on the
    /// exporter.
    fn of(spec: &HubSliceSpec, names: &[&str]) -> Self {
        let reference = &spec.reference;
        let generation = reference.generation.to_string();
        let change: [&str; 3] = [&reference.cluster, &reference.uid, &generation];
        let mut hash = Sha256::new();
        for name in change.iter().chain(names) {
            hash.update(name.len().to_be_bytes());
            hash.update(name);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        let narrow = |number: u128| u64::try_from(number).unwrap_or_default();
        // An id is not zero.
        let trace = NonZeroU128::new(number(&hash[..16])).unwrap_or(NonZeroU128::MIN);
        let span = NonZeroU64::new(narrow(number(&hash[16..24]))).unwrap_or(NonZeroU64::MIN);
        let chance = narrow(number(&hash[24..])) % u64::from(SAMPLED_OF);
        Self { context: Traceparent { trace, span }, chance: u32::try_from(chance).unwrap_or_default() }
    }
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
