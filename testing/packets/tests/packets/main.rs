//! Tests with real packets, in one program.

mod conformance;
mod connectivity;
mod disturbances;
mod interruptions;
mod measurement;
mod pods;
mod requests;
mod selection;
