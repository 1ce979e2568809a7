//! Regular expressions for values in texts that are different on each server.

use regex::Regex;
use std::sync::LazyLock;

pub(super) struct Patterns {
    pub(super) uid: Regex,
    pub(super) time: Regex,
    /// A resourceVersion in a YAML document.
    pub(super) version: Regex,
}

pub(super) static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |text| Regex::new(text).expect("written here, and every case of the table goes through it");
    Patterns {
        uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        version: pattern(r#"resourceVersion: "\d+""#),
        time: pattern(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    }
});
