//! Command `fleetnet`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod cli;
mod limits;
mod random;
mod sandbox;
mod ui;

use args::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse(std::env::args_os()) {
        Ok(Command::Check(options)) => cli::run(cli::check::run(*options)),
        Ok(Command::Completion(options)) => cli::run(async { cli::completion::run(options, args::command()) }),
        Ok(Command::Explain(options)) => cli::run(cli::explain::run(*options)),
        Ok(Command::Gather(options)) => cli::run(cli::gather::run(*options)),
        Ok(Command::Join(options)) => cli::run(cli::join::run(*options)),
        Ok(Command::Latency(options)) => cli::run(cli::latency::run(*options)),
        Ok(Command::Leave(options)) => cli::run(cli::leave::run(*options)),
        Ok(Command::Migrate(options)) => cli::run(cli::migrate::run(*options)),
        Ok(Command::Rotate(options)) => cli::run(cli::rotate::run(*options)),
        Ok(Command::Sandbox(options)) => sandbox::run(&options),
        Ok(Command::Services(options)) => cli::run(cli::services::run(*options)),
        Ok(Command::Status(options)) => cli::run(cli::status::run(*options)),
        Ok(Command::Test(options)) => cli::run(cli::test::run(options)),
        Ok(Command::Ui(options)) => cli::run(ui::run(*options)),
        Ok(Command::Version(options)) => cli::run(cli::version::run(options)),
        Err(code) => code,
    }
}
