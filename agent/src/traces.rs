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

use crate::flags::CommonFlags;
use crate::limits::{NEW_OBJECT, TRIGGER_AGE};
use fleetnet_api::encode::TraceChange;
use fleetnet_core::model::{HubSliceSpec, Kind, Object};
use fleetnet_runtime::listeners::Listeners;
use fleetnet_types::{Change, ObjectName, Text, Timestamp, Traced, Traceparent};
use prometheus::Registry;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Debug;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;

/// Attribute with the trace id of the exporter's span, which all spans of a change have.
pub const CHANGE: &str = "fleetnet.change.trace_id";
/// Number of changes of which [`Sampling::per_million`] are sampled.
// no limit: this number is a unit
pub const SAMPLED_OF: u32 = 1_000_000;

/// Span of an agent, from its cause to its write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub name: &'static str,
    /// Ids of this span, which is the first one of its trace.
    pub context: Traceparent,
    /// Span of the cause.
    pub link: Option<Traceparent>,
    pub start: Timestamp,
    pub attributes: Vec<(&'static str, Text)>,
}

/// Receiver of finished spans.
pub trait Sink: Debug + Send + Sync {
    /// Takes a span that ended at this time.
    fn take(&self, span: Span, end: Timestamp);
}

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

/// Traceparent of an object, with the time at which this agent saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub traceparent: Traceparent,
    pub since: Timestamp,
}

/// Annotations for traces of the objects in a view. Without [`Sampling`], only traceparents are kept, so that later
/// writes remove them.
#[derive(Debug, Default)]
pub struct Traces {
    sampling: Option<Sampling>,
    causes: HashMap<(Kind, ObjectName), Cause>,
    /// Time of a source slice's last trigger, with the time at which this agent saw it.
    triggers: HashMap<ObjectName, (Timestamp, Timestamp)>,
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

/// Process that makes spans.
#[derive(Clone, Copy, Debug)]
pub struct Service<'a> {
    /// Name of the agent.
    pub name: &'a str,
    /// Id of the member whose slices the agent exports and imports, or `hub`.
    pub cluster: &'a str,
    /// Identity of the process.
    pub instance: &'a str,
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

    /// Takes the annotations out of a changed object.
    pub fn observe(&mut self, kind: Kind, change: &mut Change<Object>, at: Timestamp) {
        let (name, traced) = match change {
            Change::Applied(Object::EndpointSlice(slice)) => (&slice.meta.name, slice.traced.take()),
            Change::Applied(Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice)) => {
                (&slice.meta.name, slice.traced.take())
            }
            Change::Applied(_) => return,
            Change::Removed { name, .. } | Change::Undecodable { name } => (&*name, None),
        };
        let Traced { traceparent, triggered } = traced.map(|traced| *traced).unwrap_or_default();
        self.caused(kind, name, traceparent, at);
        if kind == Kind::EndpointSlice {
            match triggered.filter(|_| self.is_on()) {
                None => drop(self.triggers.remove(name)),
                Some(triggered) if self.triggers.get(name).is_none_or(|(last, _)| *last != triggered) => {
                    self.triggers.insert(name.clone(), (triggered, at));
                }
                Some(_) => {}
            }
        }
    }

    /// Records the traceparent of an object, or of a Preview of it; `None` for none.
    pub fn caused(&mut self, kind: Kind, name: &ObjectName, traceparent: Option<Traceparent>, at: Timestamp) {
        if traceparent.is_none() && self.causes.is_empty() {
            return; // nearly always
        }
        let key = (kind, name.clone());
        match traceparent {
            None => drop(self.causes.remove(&key)),
            Some(traceparent) if self.cause(kind, name).is_none_or(|known| known.traceparent != traceparent) => {
                self.causes.insert(key, Cause { traceparent, since: at });
            }
            Some(_) => {}
        }
    }

    /// Returns the traceparent of an object.
    #[must_use]
    pub fn cause(&self, kind: Kind, name: &ObjectName) -> Option<Cause> {
        if self.causes.is_empty() {
            return None; // nearly always
        }
        self.causes.get(&(kind, name.clone())).copied()
    }

    /// Returns the part of a write that brings a change to an object. `carried` is the traceparent that the object
    /// gets.
    #[must_use]
    pub fn step(&self, kind: Kind, at: &ObjectName, carried: Option<Traceparent>, span: Option<Span>) -> Step {
        let annotation = match (carried, self.cause(kind, at)) {
            (Some(carried), _) => TraceChange::Set(carried),
            (None, Some(_)) => TraceChange::Remove,
            (None, None) => TraceChange::None,
        };
        Step { annotation, span: span.map(Box::new) }
    }

    /// Returns the span of an exporter for a change of a source slice, if the change is sampled.
    #[must_use]
    pub fn export(&self, spec: &HubSliceSpec, now: Timestamp) -> Option<Span> {
        let sampling = self.sampling.as_ref()?;
        let reference = &spec.reference;
        let ids = Ids::of(&[&reference.cluster, &reference.uid, &reference.generation.to_string()]);
        if ids.chance >= sampling.per_million {
            return None;
        }
        let link = self.cause(Kind::EndpointSlice, &reference.source).map(|cause| cause.traceparent);
        let start = self.start(&reference.source, reference.exported_since.unwrap_or(now));
        Some(span("export", ids, link, start, ids.context, spec))
    }

    /// Returns the start of a change that this agent saw at this time: its trigger, if that is of this change.
    fn start(&self, source: &ObjectName, seen: Timestamp) -> Timestamp {
        match self.triggers.get(source) {
            Some((triggered, since)) if *since >= seen && seen.since(*triggered) <= TRIGGER_AGE => seen.min(*triggered),
            _ => seen,
        }
    }

    /// Returns the span of an agent that continues a change for one importer.
    #[must_use]
    pub fn follow(&self, name: &'static str, cause: Cause, importer: &str, spec: &HubSliceSpec) -> Option<Span> {
        self.sampling.as_ref()?;
        let ids = Ids::of(&[&cause.traceparent.to_string(), name, importer]);
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

/// True if a write brings a change of a source slice: its generation is newer than that of the present object, or the
/// object is made for an object that was created a short time ago. Other writes are repairs, or for new importers.
#[must_use]
pub fn is_change(generation: i64, present: Option<i64>, created: Timestamp, now: Timestamp) -> bool {
    present.map_or_else(|| now.since(created) <= NEW_OBJECT, |present| generation > present)
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
    Span { name, context: ids.context, link, start, attributes }
}

/// Ids of a span, and the number that decides if a change is sampled.
#[derive(Clone, Copy, Debug)]
struct Ids {
    context: Traceparent,
    /// Less than [`SAMPLED_OF`].
    chance: u32,
}

impl Ids {
    /// Returns the ids of a span that has these names.
    fn of(names: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for name in names {
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
