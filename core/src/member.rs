//! Rules of the member agent: export to the hub, import from the hub, and ownership of the cluster id.
//!
//! | file | rules |
//! |---|---|
//! | [`view`] | the member agent's cache of objects |
//! | `planner` | the plans of the keys, and the keys that a change requeues |
//! | `export` | writes exported Services and slices to the hub, and the outcome of conflict resolution to the ServiceExport |
//! | `import` | MultiClusterService, ServiceImport, derived Service and imported slices |
//! | `mcs_import` | imports of the standard API |
//! | [`identity`] | ownership of the cluster id: of several clusters with the same id, only one acts in the hub |
//! | `selection` | which exporting clusters serve a port of an imported Service |
//! | `membership` | joins and leaves a fleet with a manager |
//! | [`latency`] | duration from a change in the exporter to the write of this change in the importer |

mod derived;
mod disputed;
mod export;
mod facts;
pub mod identity;
mod import;
pub mod latency;
mod mcs_import;
mod membership;
mod planner;
pub mod properties;
mod selection;
pub mod view;

pub use crate::admission::own::OwnRanges;
pub use export::weight;
pub use mcs_import::NEVER_IMPORTING;
pub(crate) use mcs_import::served;
pub use planner::{Planner, ReadValues};
pub use selection::Pace;
pub use view::{
    ClusterSelection, Direction, ImportLimits, Key, Limits, McsApi, Membership, OnLeave, ServiceLatency, Settings,
    SliceStreamServer, SliceStreamUse, StreamEnd, Switch, View,
};
