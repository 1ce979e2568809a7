//! EndpointSlices of this cluster, made from its pods in place of kube-controller-manager's controller.
//!
//! ```text
//!  Service, Pod, Node, EndpointSlice ─► view ─► touched Services ─► due ─► plan ─► phase of writes ─► engine's writer
//!                                        ▲                                              │
//!                                        └─────────── the answer to each write ─────────┘
//!  Lease, slices that others changed ─► takeover ─► on or off
//! ```
//!
//! The `endpointslice` library decides what the slices should be. This module decides when to ask it, and for what. All of
//! it is pure: time comes in as data, and writes go out as bodies of the engine's requests.
//!
//! - [`view`]: cached objects, and the Services that a change touches.
//! - [`due`]: time at which a touched Service is planned.
//! - [`controller`]: plan of one Service, its phases, events and metrics.
//! - [`writes`]: conversion of the library's plan to requests; [`names`]: names of new slices.
//! - [`write_origin`]: own and foreign writes to slices; [`lost`]: own writes of unknown outcome.
//! - [`takeover`]: decision to serve or not; [`serving`]: controller and decision together.

mod alike;
pub mod controller;
mod due;
mod flags;
mod lost;
mod names;
mod serving;
pub mod takeover;
pub mod view;
mod write_origin;
mod writes;

pub use controller::{Controller, Effect, Planned, ServiceEvent, Timing, Written};
pub use flags::{EndpointFlags, ModeFlag};
pub use serving::{Decided, Serving, Settings};
pub use view::{Input, Object};
pub use writes::{Operation, SliceReceipt, SliceWrite};
