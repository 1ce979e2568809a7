//! `cargo xtask tidy`: the rules of the house that the compiler does not know.

/// Checks them all.
///
/// # Errors
/// What breaks a rule.
pub(crate) fn run() -> anyhow::Result<()> {
    Ok(())
}
