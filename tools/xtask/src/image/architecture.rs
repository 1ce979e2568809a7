//! Architecture of an image.

use clap::ValueEnum;

/// Architecture of an image, as OCI names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Returns the target of rustc.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }
}
