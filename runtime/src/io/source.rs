//! Description of a watched source.

use std::fmt::{self, Debug};
use std::sync::Arc;

use fleetnet_types::Resource;

use super::client::Cluster;
use super::decoder::Decoder;
use super::response::ResponseSink;
use crate::engine::logic::Logic;
use crate::engine::source_info::SourceInfo;

/// Description of a source: how to watch its objects and how to address them in writes.
pub struct SourceSpec<L: Logic> {
    pub source: L::Source,
    /// Cluster of the source. `cluster.name` is the label and field `side` in metrics and logs.
    pub cluster: Arc<Cluster>,
    pub resource: Resource,
    /// Label `kind` of this watch in metrics. Each source of an agent and a cluster has another one.
    pub label: &'static str,
    /// Namespace to watch. `None` watches all namespaces.
    pub namespace: Option<String>,
    /// Name of the one object to watch. `None` watches all objects. With a name, RBAC can limit list and watch to this
    /// object.
    pub name: Option<&'static str>,
    /// True if the agent works without this kind: when it is absent or forbidden, only a feature is disabled
    /// (`WatchState::Absent`).
    pub optional: bool,
    /// True if the loss of the permission to watch (403) makes a complete view `WatchState::Unknown`. The source is
    /// then listed again when the permission returns. If false, the complete view stays in use.
    pub freezes_when_forbidden: bool,
    /// True to watch metadata only (PartialObjectMetadata).
    pub metadata_only: bool,
    /// True if a change of this source ends the slow back-off (after 403 and 404) of the keys that the change requeues.
    /// For kinds whose absence causes such failures, such as Namespaces.
    pub ends_denials: bool,
    /// Decodes the objects in watch events and in responses to writes.
    pub decode: Decoder<L::Object>,
    /// Another agent of this process, which sees the responses to this agent's writes before its own watch shows them.
    pub response_sink: Option<ResponseSink>,
}

impl<L: Logic> SourceSpec<L> {
    /// Returns the specification of a watch of all objects of this kind, without which the agent does not work.
    pub fn new(source: L::Source, cluster: Arc<Cluster>, resource: Resource, decode: Decoder<L::Object>) -> Self {
        Self {
            source,
            cluster,
            resource,
            label: resource.kind,
            namespace: None,
            name: None,
            optional: false,
            freezes_when_forbidden: false,
            metadata_only: false,
            ends_denials: false,
            decode,
            response_sink: None,
        }
    }

    /// Returns what the engine needs to know of the source.
    pub(crate) fn info(&self) -> SourceInfo<L::Source> {
        let Self { source, label, optional, freezes_when_forbidden, ends_denials, .. } = *self;
        let (side, resource) = (self.cluster.name.clone(), self.resource);
        SourceInfo { source, side, resource, label, optional, freezes_when_forbidden, ends_denials }
    }
}

impl<L: Logic> Debug for SourceSpec<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec")
            .field("source", &self.source)
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("optional", &self.optional)
            .field("metadata_only", &self.metadata_only)
            .finish_non_exhaustive()
    }
}
