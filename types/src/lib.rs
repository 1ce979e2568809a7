//! Values that a reconciler is made of. The rules (`fleetnet-core`) and the machinery (`fleetnet-runtime`) share them.
//!
//! | file | its values |
//! |---|---|
//! | [`name`] | names and ids of objects, members and namespaces |
//! | [`condition`] | status of conditions |
//! | [`change`] | changes of objects, from a watch to a view |
//! | [`time`] | moments on the wall clock of a cluster |
//! | [`resource`] | addresses of kinds in an API server |
//! | [`watch`] | how completely a kind is listed |
//! | [`event`] | Kubernetes Events |
//!
//! Invariant: nothing here does I/O, reads a clock, or knows a Kubernetes client.

pub mod change;
pub mod condition;
pub mod event;
pub mod name;
pub mod resource;
pub mod time;
pub mod watch;

pub use change::{Change, Observed, Removal, Undecodable};
pub use condition::ConditionStatus;
pub use event::{Event, Severity};
pub use name::{ClusterId, MemberNamespace, ObjectName, Text, Uid};
pub use resource::Resource;
pub use time::Timestamp;
pub use watch::WatchState;
