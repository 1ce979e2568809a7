//! Wall clock of the bed: times in objects and in results.

use jiff::Timestamp;

/// Returns the present time.
#[expect(clippy::disallowed_methods, reason = "real processes write times that are compared with those of API servers")]
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the present time as text, with whole seconds, as in objects of Kubernetes.
pub(crate) fn seconds() -> String {
    now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
