//! Description of a source for the engine.

use super::logic::Resource;

/// Description of a source for the engine. The description of the watch has the same fields with their meanings.
#[derive(Clone, Debug)]
pub(crate) struct SourceInfo<S> {
    pub(crate) source: S,
    /// Name of the cluster.
    pub(crate) side: String,
    pub(crate) resource: Resource,
    pub(crate) label: &'static str,
    pub(crate) optional: bool,
    pub(crate) freezes_when_forbidden: bool,
    pub(crate) ends_denials: bool,
}
