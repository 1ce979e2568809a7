//! Size of the measurement: which fleets are measured, and for how long.

use super::scenario::{Api, Scenario};
use crate::size::endpoints;
use serde::Serialize;
use std::time::Duration;

/// How much there is of everything.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Size {
    /// API by which the members export and import.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["fleet"])]
    pub api: Vec<Api>,
    /// Members of the measured fleets.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 10, 30, 100])]
    pub members: Vec<u32>,
    /// Services of each fleet. Each Service has one slice.
    #[arg(long, default_value_t = 1000)]
    pub services: u32,
    /// Endpoints of each slice.
    #[arg(long, default_value_t = 100, value_parser = endpoints)]
    pub endpoints: usize,
    /// Importers of each Service, for each number of members.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10])]
    pub importers: Vec<u32>,
    /// Services that all members import, in one more fleet for each number of members. The other Services of this fleet
    /// have one importer.
    #[arg(long, default_value_t = 10)]
    pub shared: u32,
    /// Changes per second.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 20, 100])]
    pub rates: Vec<u32>,
    /// Duration of the changes of each rate, in seconds.
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
    /// Time that each write waits in the API server, in milliseconds.
    #[arg(long, default_value_t = 2)]
    pub write_delay: u64,
}

impl Size {
    /// Returns the size of the smoke run, which runs every step in a short time.
    #[must_use]
    pub fn smoke() -> Self {
        Self {
            api: vec![Api::Fleet, Api::Mcs],
            members: vec![3],
            services: 6,
            endpoints: 3,
            importers: vec![2],
            shared: 1,
            rates: vec![4],
            seconds: 1,
            write_delay: 2,
        }
    }

    /// Returns the scenarios to measure.
    #[must_use]
    pub fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        let fleets = self.api.iter().flat_map(|api| self.members.iter().map(|members| (*api, *members)));
        for (api, members) in fleets {
            let of =
                |importers: u32, shared: u32| Scenario { api, members, services: self.services, importers, shared };
            scenarios.extend(self.importers.iter().filter(|importers| **importers <= members).map(|it| of(*it, 0)));
            if self.shared > 0 {
                scenarios.push(of(1, self.shared));
            }
        }
        scenarios
    }

    #[must_use]
    pub fn write_delay(&self) -> Duration {
        Duration::from_millis(self.write_delay)
    }
}
