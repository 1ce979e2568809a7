//! memkube: a Kubernetes API server in memory, for tests, the sandbox and simulations.
//!
//! ```text
//! kube::Client, HTTPS ─> Service ─> wire ─> auth ─> faults ─> verbs
//!
//! wire  ─> audit
//! verbs ─> Strategy (rules of one kind)
//! verbs ─> Store (objects as bytes, event log) ─> watches
//! ```
//!
//! memkube has no code about fleets. Each kind is registered with a [`Definition`] and a [`Strategy`]. Creating a
//! CustomResourceDefinition registers its kind.
//!
//! All random numbers come from one seed and all times from a [`Clock`]. So two runs with the same calls return the
//! same bytes, except the messages of CEL rules that iterate over a map. A test can inject faults with
//! [`faults::Faults`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::cast_possible_truncation))]

pub mod audit;
pub mod auth;
pub mod clock;
mod columns;
mod discovery;
pub mod faults;
mod issuer;
pub mod limits;
pub mod object;
pub mod observe;
pub mod random;
pub mod registry;
mod schema;
pub mod selector;
pub mod serve;
mod server;
mod service;
pub mod status;
pub mod store;
mod strategic;
pub mod strategy;
mod verbs;
mod wire;

pub use auth::{Call, PathCall, Target, User, Verb};
pub use clock::Clock;
pub use columns::Column;
pub use object::Object;
pub use registry::{Definition, Scope, Subresource, Version};
pub use server::{Backup, MemKube, Options};
pub use service::{Body, BoxError, Service};
pub use status::Status;
pub use strategy::{Context, Strategy};
