//! This cluster's EndpointSlices: pods to slices, in the place of kube-controller-manager's controller.
//!
//! ```text
//!  Service, Pod, Node, EndpointSlice ─► view ─► touched Services ─► due ─► plan ─► phase of writes ─► engine's writer
//!                                        ▲                                              │
//!                                        └─────────── the answer to each write ─────────┘
//!  Lease, slices that others changed ─► takeover ─► whether all of this is on
//! ```
//!
//! What the slices should be is the `endpointslice` library's to say; here is what it is asked about, and when. All of it
//! is pure: time comes in as data, and what is to be written goes out as the bodies of the engine's requests.
//!
//! - [`view`]: the objects, and which Services a change touches.
//! - [`due`]: when a touched Service is planned.
//! - [`controller`]: the plan of one Service, its phases, events and measurements.
//! - [`writes`]: from the library's plan to requests; [`names`]: what new slices are called.
//! - [`hands`]: by whose hand slices change; [`lost`]: what own writes asked for whose outcome nobody knows.
//! - [`takeover`]: on or off; [`serving`]: both together.

mod alike;
pub mod controller;
mod due;
mod flags;
mod hands;
mod lost;
mod names;
mod serving;
pub mod takeover;
pub mod view;
mod writes;

pub use controller::{Controller, Planned, ServiceEvent, Timing, Written};
pub use flags::{EndpointFlags, ModeFlag};
pub use serving::{Serving, Settings};
pub use view::{Input, Object};
pub use writes::{Operation, SliceReceipt, SliceWrite};
