//! Command `fleetnet`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod limits;
mod sandbox;

use args::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse(std::env::args_os()) {
        Ok(Command::Sandbox(options)) => sandbox::run(&options),
        Err(code) => code,
    }
}
