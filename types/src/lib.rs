//! Basic types of a reconciler. The rules (`fleetnet-core`) and the engine (`fleetnet-runtime`) share these types.
//!
//! | file | types |
//! |---|---|
//! | [`name`] | names and ids of objects, members and namespaces |
//! | [`condition`] | status of conditions |
//! | [`change`] | changes of objects, from a watch to a view |
//! | [`time`] | moments on the wall clock of a cluster |
//! | [`resource`] | addresses of kinds in an API server |
//! | [`watch`] | states of watches: how complete an agent's view of a kind is |
//! | [`event`] | Kubernetes Events |
//! | [`trace`] | contexts of spans |
//!
//! Invariant: this crate does no I/O, reads no clock, and depends on no Kubernetes client.

pub mod change;
pub mod condition;
pub mod event;
pub mod name;
pub mod resource;
pub mod time;
pub mod trace;
pub mod watch;

pub use change::{Change, Observed, Removal, Undecodable};
pub use condition::ConditionStatus;
pub use event::{Event, Severity};
pub use name::{ClusterId, MemberNamespace, ObjectName, Text, Uid};
pub use resource::Resource;
pub use time::Timestamp;
pub use trace::{Traced, Traceparent};
pub use watch::WatchState;
