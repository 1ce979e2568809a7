//! What the library does, as its users see it: worlds are built, planned, written to memory and looked at.

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
