//! Tests with real packets, in one program.

mod conformance;
mod disturbances;
mod interruptions;
mod pods;
mod requests;
