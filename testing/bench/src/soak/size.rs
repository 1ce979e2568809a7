//! Size of the soak.

use crate::limits::SOAK_MARGIN;
use serde::Serialize;
use std::time::Duration;

/// Size of the soak.
#[derive(Clone, Copy, Debug, clap::Args, Serialize)]
pub struct Size {
    /// How long users change slices and faults occur.
    #[arg(long, default_value_t = 1_800)]
    pub seconds: u32,
    /// Changes per second.
    #[arg(long, default_value_t = 50)]
    pub rate: u32,
    /// Services that each of the two members exports and the other imports.
    #[arg(long, default_value_t = 20)]
    pub services: u32,
    /// Slices of each.
    #[arg(long, default_value_t = 2)]
    pub slices: u32,
    /// Longest time between two faults in seconds.
    #[arg(long, default_value_t = 20)]
    pub calm: u32,
    /// Seed of faults and changes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Size of the smoke run, which plays each fault once.
pub const SMOKE: Size = Size { seconds: 0, rate: 20, services: 2, slices: 2, calm: 1, seed: 1 };

impl Size {
    /// Returns the time limit of the soak.
    #[must_use]
    pub fn limit(self) -> Duration {
        Duration::from_secs(self.seconds.into()) + SOAK_MARGIN
    }
}
