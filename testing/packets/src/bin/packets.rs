//! Commands that the images of a bed stand for: `serve` and `client`.

use clap::Parser;
use packets::image::{client, serve};

/// Programs of the pods of a bed.
#[derive(Parser)]
enum Command {
    Serve(serve::Arguments),
    Client(client::Arguments),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Serve(arguments) => serve::run(arguments).await,
        Command::Client(arguments) => client::run(arguments).await,
    }
}
