//! Tests of the library's public behaviour. A test builds a simulated cluster ([`world::World`]), plans the slices,
//! writes the plan to memory and checks the result.

mod applying;
mod bad_input;
mod builders;
mod conversion;
mod decoding;
mod events;
mod hints;
mod histories;
mod hooks;
mod incremental;
mod labels;
mod memory;
mod meters;
mod placement;
mod ports;
mod properties;
mod reconciling;
mod world;
