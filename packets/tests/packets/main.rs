//! Tests with real packets, in one program.

mod pods;
mod requests;
