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
//! The `endpointslice` library computes the desired slices. This crate decides when to plan which Service. Except for
//! [`agent`], it is pure: it gets the time as data, and returns writes as bodies of requests for the engine.
//!
//! The crate knows nothing of the fleet. A program starts an [`EndpointsAgent`], which may show the responses to its
//! writes to another agent of the process ([`fleetnet_runtime::ResponseSink`]).
//!
//! - [`view`]: cached objects, and the Services that a change requeues.
//! - [`due`]: time at which a requeued Service is planned.
//! - [`controller`]: plan of one Service, its phases, Events and metrics.
//! - [`writes`]: conversion of the library's plan to requests; [`names`]: names of new slices.
//! - [`write_origin`]: own and foreign writes to slices; [`lost`]: own writes of unknown outcome.
//! - [`takeover`]: decision whether the controller is active; [`serving`]: the controller together with this decision,
//!   as an implementation of the runtime's `Logic`; [`source`]: its watches; [`agent`]: its runs; [`settings`].

mod agent;
mod alike;
mod controller;
mod due;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod lost;
pub mod metrics;
mod names;
mod serving;
mod settings;
mod source;
mod takeover;
mod view;
mod write_origin;
mod writes;

pub use agent::EndpointsAgent;
pub use controller::Timing;
pub use settings::Settings;
#[doc(hidden)]
pub use takeover::LeaseSeen;
pub use takeover::Mode;
pub use view::{Input, Object};

#[cfg(test)]
use {
    controller::Controller,
    writes::{Operation, SliceWrite},
};
