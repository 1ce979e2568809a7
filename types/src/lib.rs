//! Values that a reconciler is made of. The rules (`fleetnet-core`) and the machinery (`fleetnet-runtime`) share them.
//!
//! | file | its values |
//! |---|---|
//! | [`name`] | names of objects |
//! | [`time`] | moments on the wall clock of a cluster |
//! | [`resource`] | addresses of kinds in an API server |
//! | [`watch`] | state of the view of a kind |
//! | [`event`] | Kubernetes Events |
//!
//! Invariant: nothing here does I/O, reads a clock, or knows a Kubernetes client.

pub mod event;
pub mod name;
pub mod resource;
pub mod time;
pub mod watch;

pub use event::Severity;
pub use name::{ObjectName, Text};
pub use resource::Resource;
pub use time::Timestamp;
pub use watch::WatchState;
