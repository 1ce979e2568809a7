//! Size of a measurement: numbers of objects and changes.

use crate::limits::ENDPOINTS;
use serde::Serialize;

/// How much there is of everything.
#[derive(Clone, Copy, Debug, clap::Args, Serialize)]
pub struct Size {
    /// Services that are exported by one member and imported by the other.
    #[arg(long, default_value_t = 100)]
    pub services: u32,
    /// Slices of each.
    #[arg(long, default_value_t = 2)]
    pub slices: u32,
    /// Endpoints of each slice.
    #[arg(long, default_value_t = 20, value_parser = endpoints)]
    pub endpoints: usize,
    /// Changes per second; 0: one after the other.
    #[arg(long, default_value_t = 20)]
    pub rate: u32,
    /// How long changes are made.
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// How often the agents are started again.
    #[arg(long, default_value_t = 10)]
    pub restarts: u32,
}

/// Size of the smoke run, which runs every step in a short time.
pub const SMOKE: Size = Size { services: 2, slices: 2, endpoints: 3, rate: 0, seconds: 2, restarts: 1 };

impl Size {
    /// Returns the number of slices of all Services together.
    #[must_use]
    pub fn all_slices(&self) -> u32 {
        self.services * self.slices
    }

    /// Returns the number of changes that the measurement makes.
    #[must_use]
    pub fn changes(&self) -> u32 {
        self.rate.max(4) * self.seconds
    }
}

/// Parses a number of endpoints of a slice.
pub(crate) fn endpoints(text: &str) -> Result<usize, String> {
    let count: usize = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=ENDPOINTS).contains(&count) { Ok(count) } else { Err(format!("1 to {ENDPOINTS}")) }
}
