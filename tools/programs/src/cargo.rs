//! Runs Cargo from a program that Cargo itself started.

use crate::root;
use anyhow::{Context as _, bail};
use std::process::Command;

/// Features that are off by default and that all tests have, as the argument of `--features`.
pub const FEATURES: &str = "fleetnet/real";

/// Returns a Cargo command for this work tree, without the environment variables that describe the calling package.
/// Otherwise build scripts that read these variables, such as ring's, would run again, and Cargo would rebuild
/// everything that depends on them.
#[must_use]
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in variables.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
        command.env_remove(name);
    }
    command.current_dir(root()).args(arguments);
    command
}

/// Runs Cargo with these arguments.
///
/// # Errors
/// If Cargo fails.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let call = format!("cargo {}", arguments.join(" "));
    eprintln!("$ {call}");
    let status = command(arguments).status().with_context(|| format!("cannot run `{call}`"))?;
    if !status.success() {
        bail!("`{call}` failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn variables_of_cargo_about_this_package_are_not_passed_on() {
        let call = command(&["--version"]);
        let removed: Vec<_> = call.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR"] {
            assert!(removed.iter().any(|removed| *removed == name), "{name} is passed on: {removed:?}");
        }
    }
}
