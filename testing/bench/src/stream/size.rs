//! Size of the measurement: numbers of importers, changes and endpoints.

use crate::size::endpoints;
use serde::Serialize;

/// How much there is of everything.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Size {
    /// Importers of the changed slice, on servers in memory.
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 100])]
    pub importers: Vec<u32>,
    /// Changes per second.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 20])]
    pub rates: Vec<u32>,
    /// Duration of the changes of each rate, in seconds.
    #[arg(long, default_value_t = 30)]
    pub seconds: u32,
    /// Endpoints of each slice.
    #[arg(long, default_value_t = 20, value_parser = endpoints)]
    pub endpoints: usize,
    /// Time that each write waits in an API server in memory, in milliseconds.
    #[arg(long, default_value_t = 2)]
    pub write_delay: u64,
}

impl Size {
    /// Returns the size of the smoke run, which runs every step in a short time.
    #[must_use]
    pub fn smoke() -> Self {
        Self { importers: vec![3], rates: vec![4], seconds: 2, endpoints: 3, write_delay: 2 }
    }
}
