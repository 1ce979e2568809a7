//! Kubernetes release that memkube imitates.

use serde_json::{Value, json};

/// Minor version of the Kubernetes release that memkube imitates.
pub(super) const MINOR: &str = "35";

pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.4+memkube.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
