//! Spans, and their receivers.

use fleetnet_types::{Text, Timestamp, Traceparent};
use std::fmt::Debug;

/// Span of an agent, from its cause to its write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub name: &'static str,
    /// Ids of this span, which is the first one of its trace.
    pub context: Traceparent,
    /// Span of the cause.
    pub link: Option<Traceparent>,
    /// Context of the exporter's span, which the written slice carries on.
    pub change: Traceparent,
    pub start: Timestamp,
    pub attributes: Vec<(&'static str, Text)>,
}

/// Receiver of finished spans.
pub trait Sink: Debug + Send + Sync {
    /// Takes a span that ended at this time.
    fn take(&self, span: Span, end: Timestamp);
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
