//! Command `fleetnet completion`: prints the completion script of a shell.

use super::exit::{Exit, Stop};
use super::output::{self, safe::Safe};
use clap_complete::Shell;

/// Options of the command.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Shell whose script to print.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script for the command line `command`.
pub(crate) fn run(options: Options, mut command: clap::Command) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "fleetnet", &mut script);
    output::write(&Safe::script(&String::from_utf8_lossy(&script)))?;
    Ok(Exit::Healthy)
}
