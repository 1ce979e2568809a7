//! `cargo xtask demo`: builds what the demo needs and runs it.

use crate::controlplane::{self, Program};
use crate::test::cargo;

/// Arguments of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// How many changes of endpoints to make and to time.
    #[arg(long, default_value_t = 10)]
    pub(crate) changes: u32,
}

/// Runs the demo; it ends well only if everything arrived.
///
/// # Errors
/// Where something cannot be built or started, or did not arrive.
pub(crate) fn run(arguments: &DemoArgs) -> anyhow::Result<()> {
    controlplane::locate(Program::ApiServer)?;
    cargo(&["build", "--quiet", "--workspace", "--bins"])?;
    cargo(&["run", "--quiet", "--bin", "fleetnet-demo", "--", "--changes", &arguments.changes.to_string()])
}
