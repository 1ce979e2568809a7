//! Which EndpointSlices a Service should have, apart from writing them.

pub mod config;
pub mod model;
pub mod names;
pub mod plan;
mod text;
mod text_map;

pub use config::{Config, HintPolicy, Placeholder};
pub use text::Text;
pub use text_map::TextMap;
