//! Command `fleetnet completion`: prints the completion script of a shell, or of kubectl.

use super::exit::{Exit, Stop};
use super::output::{self, safe::Safe};
use clap_complete::Shell;

/// Options of the command.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Shell whose script to print. The script for kubectl completes `kubectl fleetnet` in all shells that kubectl
    /// completes.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Caller,
}

/// Program that calls the script.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Caller {
    Bash,
    Elvish,
    Fish,
    Kubectl,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

/// End of the program that kubectl calls with the words after `kubectl fleetnet`; the last one is to be completed. The
/// program prints the candidates, and then the directive 4: do not complete names of files. compopt works only in an
/// interactive shell.
const OF_KUBECTL: &str = r#"
COMP_WORDS=(fleetnet "$@") COMP_CWORD=$#
_fleetnet fleetnet "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
echo :4
"#;

/// Prints the script for the command line `command`.
pub(crate) fn run(options: Options, mut command: clap::Command) -> Result<Exit, Stop> {
    let shell = match options.shell {
        Caller::Bash | Caller::Kubectl => Shell::Bash,
        Caller::Elvish => Shell::Elvish,
        Caller::Fish => Shell::Fish,
        Caller::PowerShell => Shell::PowerShell,
        Caller::Zsh => Shell::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "fleetnet", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if matches!(options.shell, Caller::Kubectl) {
        script = format!("#!/usr/bin/env bash\n{script}{OF_KUBECTL}");
    }
    output::write(&Safe::script(&script))?;
    Ok(Exit::Healthy)
}
