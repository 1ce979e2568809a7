//! Command `fleetnet test`: tests of what objects cannot show.

mod connectivity;

use super::exit::{Exit, Stop};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Connect to imported Services from a pod in each importing cluster: by address, by Service and by name.
    ///
    /// Creates one pod in each importing cluster, and deletes it afterwards, also after Ctrl-C. Only TCP ports are
    /// tested. At most 3 addresses of each exporter, port and family, 4 ports of a Service, and without a name 10
    /// Services. Exit codes: 0 all connections work, 1 a fault, 3 something could not be tested.
    #[command(
        after_help = "Examples:\n  fleetnet test connectivity shop/web\n  fleetnet test connectivity shop/web --to east --image registry.example/busybox:1.37.0\n  fleetnet test connectivity shop/web --from-here"
    )]
    Connectivity(Box<connectivity::Options>),
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    match options.command {
        Command::Connectivity(options) => Box::pin(connectivity::run(*options)).await,
    }
}
