//! EndpointSlice controller: makes the EndpointSlices of this cluster from its pods, in place of
//! kube-controller-manager.
//!
//! ```text
//!  Service, Pod, Node, EndpointSlice ─► view ─► touched Services ─► due ─► plan ─► phase of writes ─► engine's writer
//!                                        ▲                                              │
//!                                        └────────── the response to each write ────────┘
//!  Lease, foreign writes to slices ─► takeover ─► active or inactive
//! ```
//!
//! The `endpointslice` library computes the desired slices. This module decides when to plan which Service. The module
//! is pure: it gets the time as data, and returns writes as bodies of requests for the engine.
//!
//! - [`view`]: cached objects, and the Services that a change requeues.
//! - [`due`]: time at which a requeued Service is planned.
//! - [`controller`]: plan of one Service, its phases, Events and metrics.
//! - [`writes`]: conversion of the library's plan to requests; [`names`]: names of new slices.
//! - [`write_origin`]: own and foreign writes to slices; [`lost`]: own writes of unknown outcome.
//! - [`takeover`]: decision whether the controller is active; [`serving`]: the controller together with this decision,
//!   as an implementation of the runtime's `Logic`; [`source`]: its watches; [`agent`]: its runs.

mod agent;
mod alike;
pub mod controller;
mod due;
mod flags;
mod lost;
mod names;
mod serving;
pub(crate) mod source;
pub mod takeover;
pub mod view;
mod write_origin;
mod writes;

pub use agent::EndpointsAgent;
pub use controller::{Controller, Effect, Planned, ServiceEvent, Timing, Written};
pub use flags::{EndpointFlags, ModeFlag};
pub use serving::{Serving, Settings};
pub use view::{Input, Object};
pub use writes::{Operation, SliceReceipt, SliceWrite};
