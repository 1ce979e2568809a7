//! The hub agent's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    hub_agent::main(std::env::args())
}
