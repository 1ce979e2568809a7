//! Tests of behaviour that users of the library see. They build a world, plan it, write the plan to memory and check the
//! result.

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
