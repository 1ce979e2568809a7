//! Tests with real packets, in one program.

mod conformance;
mod disturbances;
mod pods;
mod requests;
