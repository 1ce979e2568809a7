//! Which EndpointSlices a Service should have, apart from writing them.

pub mod address;
pub mod apply;
pub mod backend;
pub mod config;
pub mod hints;
mod incremental;
pub mod model;
pub mod names;
mod nodes;
pub mod packer;
mod per_service;
pub mod plan;
pub mod ports;
pub mod selector;
mod template;
mod text;
mod text_map;
pub mod tracker;
pub mod trigger;

pub use apply::{Applied, SliceWriter, apply};
pub use backend::Backend;
pub use config::{Config, HintPolicy, Placeholder};
pub use incremental::Incremental;
pub use nodes::{KnownNode, NodeZones};
pub use plan::{Plan, PlanRequest, plan, plan_pods};
pub use template::SliceTemplate;
pub use text::Text;
pub use text_map::TextMap;
