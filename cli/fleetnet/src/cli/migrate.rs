//! Command `fleetnet migrate`: changes between Go agents and fleetnet.

mod check;
mod to_go;

use super::exit::{Exit, Stop};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// List what a change of agents does not carry over.
    ///
    /// Changes nothing. Each item has the agents whose change has the effect, the objects and a remedy. An item about
    /// traffic has exit code 1.
    Check(check::Options),

    /// Prepare the return of one cluster to Go agents, after its fleetnet agent has stopped.
    ///
    /// In a member: annotates the source slices, so that Go agents continue their exports, and deletes what Go agents
    /// do not continue in the hub. Then waits until the other agents write the Go form for this cluster. --dry-run
    /// shows the objects.
    ToGo(to_go::Options),
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    match options.command {
        Command::Check(options) => check::run(options).await,
        Command::ToGo(options) => Box::pin(to_go::run(options)).await,
    }
}
