//! Process of the hub agent.

use std::process::ExitCode;

fn main() -> ExitCode {
    hub_agent::main(std::env::args())
}
