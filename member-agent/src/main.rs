//! Process of the member agent.

use std::process::ExitCode;

fn main() -> ExitCode {
    member_agent::main(std::env::args())
}
