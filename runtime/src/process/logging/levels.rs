//! Log levels of the flag `--v`.

/// Crates whose log level `--v` raises, besides those that an agent names.
const OWN_CRATES: [&str; 1] = [env!("CARGO_CRATE_NAME")];

pub(super) fn levels_for(verbosity: u8, own_crates: &[&str]) -> String {
    let own = match verbosity {
        0 | 1 => "info",
        2 | 3 => "debug",
        _ => "trace",
    };
    let others = match verbosity {
        0..=5 => "warn",
        6 | 7 => "info",
        _ => "debug",
    };
    let directives = OWN_CRATES.iter().chain(own_crates).map(|name| format!("{name}={own}"));
    std::iter::once(others.to_owned()).chain(directives).collect::<Vec<_>>().join(",")
}
