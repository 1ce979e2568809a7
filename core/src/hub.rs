//! Rules of the hub agent: which export is accepted, who may export and import, and which member gets which slice.
//!
//! | file | rules |
//! |---|---|
//! | [`view`] | the hub agent's cache of objects |
//! | `planner` | the plans of the keys, and the keys that a change requeues |
//! | [`conflict`] | conflict resolution: merges the exports of a Service into one ServiceImport |
//! | [`claims`] | the members that may import a Service, exclusively or shared |
//! | [`rights`] | the members that may export from, and import from, a namespace of the hub |
//! | [`distribute`] | the importers that get a slice |
//! | `leaving` | the finalizers of a member that leaves the fleet |
//! | [`merge`] | the merge of the exports of a Service by the standard API, and their order: pure functions |
//! | `merged_import` | the members that get a merged import, and the conditions of its exports |
//! | `selection` | the clusters that an importer prefers, by the cluster selectors of a Service |
//! | `silence` | members that the hub agent does not hear from any more |

pub mod claims;
pub mod conflict;
pub mod distribute;
mod leaving;
pub mod merge;
mod merged_import;
mod planner;
pub mod rights;
mod selection;
pub(crate) mod silence;
pub mod view;

pub use planner::{Planner, ReadValues};
pub use view::last_renewal::SilenceLimits;
pub use view::reader::Reader;
pub use view::{Key, NamespacePolicy, View};
