//! Rules of the member agent: export to the hub, import from the hub, and ownership of the cluster id.
//!
//! | file | rules |
//! |---|---|
//! | [`view`] | everything that the member agent knows, and the keys that a change affects |
//! | [`export`] | a member's Services and slices to the hub, and the hub's outcome back |
//! | [`import`] | MultiClusterService, ServiceImport, derived Service and imported slices |
//! | [`identity`] | the one of several clusters with one id that acts in the hub |
//! | [`latency`] | the time from a change in the exporter to its write in the importer |

pub mod export;
pub mod identity;
pub mod import;
pub mod latency;
pub mod view;

pub use view::{Key, ServiceLatency, Settings, View};
