//! Command `cargo xtask collector`: an OpenTelemetry Collector, for the test of traces.
//!
//! The collector is built once from `tools/collector` ([`crate::go`]). The test uses it if the environment variable
//! `FLEETNET_COLLECTOR` names it.

use crate::go::{Build, Module};
use std::path::PathBuf;

/// Environment variable with the path of the collector.
pub const COLLECTOR_VARIABLE: &str = "FLEETNET_COLLECTOR";

/// Returns the collector that the environment variable names; `None` without one.
///
/// # Errors
/// If there is no such file.
pub fn named() -> anyhow::Result<Option<PathBuf>> {
    crate::named(COLLECTOR_VARIABLE, "set it to what `cargo xtask collector` prints")
}

/// Builds the collector if necessary. Returns its path.
///
/// # Errors
/// If the build fails.
pub fn build() -> anyhow::Result<PathBuf> {
    let module = Module {
        folder: "collector",
        called: "the OpenTelemetry Collector",
        takes: "about one minute",
        instead: "use a machine that has it",
        linker_flags: |_| Ok(String::new()),
    };
    Build::of_this_tree(module)?.ensure()
}
