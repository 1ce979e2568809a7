//! Command `cargo xtask coredns`: CoreDNS, for the tests of names of the standard API.
//!
//! CoreDNS is built once from `tools/coredns` ([`crate::go`]). If the environment variable `FLEETNET_COREDNS` is set,
//! the CoreDNS that it names is used instead.

use crate::go::{Build, Module};
use crate::named;
use std::path::PathBuf;

/// Environment variable with the path of a ready-made CoreDNS.
pub const COREDNS_VARIABLE: &str = "FLEETNET_COREDNS";

/// Finds CoreDNS, and builds it if necessary.
///
/// # Errors
/// If there is no file where `FLEETNET_COREDNS` points, or the build fails.
pub fn locate() -> anyhow::Result<PathBuf> {
    if let Some(file) = named(COREDNS_VARIABLE, "correct it, or unset it to have CoreDNS built with Go")? {
        return Ok(file);
    }
    let module = Module {
        folder: "coredns",
        called: "CoreDNS",
        takes: "about one minute",
        instead: "set FLEETNET_COREDNS to the path of CoreDNS 1.12.2 or newer",
        linker_flags: |_| Ok(String::new()),
    };
    Build::of_this_tree(module)?.ensure()
}
