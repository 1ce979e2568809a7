//! The member agent's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    member_agent::main(std::env::args())
}
