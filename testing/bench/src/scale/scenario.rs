//! Scenario: which member exports each Service, and which members import it.

use serde::Serialize;
use std::fmt;

/// Namespace of the Services that member 0 imports. With the fleet's API, all Services are in it.
pub const NAMESPACE: &str = "work";
/// Namespace of the other Services, with the standard API: a member imports all Services of a namespace.
pub const OTHER_NAMESPACE: &str = "rest";

/// API by which the members export and import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// The fleet's API: each importer has a claim.
    Fleet,
    /// The standard API: the hub agent makes a MergedServiceImport for each Service and member, and importers mark
    /// theirs.
    #[serde(rename = "multicluster")]
    #[value(name = "multicluster")]
    Mcs,
}

/// Exported Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub service: u32,
    pub namespace: &'static str,
    /// Member that exports the Service.
    pub member: u32,
    pub api: Api,
}

/// Fleet to measure. Its members have the numbers from 0. The agent of member 0 is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scenario {
    pub api: Api,
    pub members: u32,
    pub services: u32,
    /// Number of importers of each Service that is not shared.
    pub importers: u32,
    /// Number of Services that all members import.
    pub shared: u32,
}

impl Scenario {
    /// Returns the member that exports a Service.
    #[must_use]
    pub fn exporter(&self, service: u32) -> u32 {
        (service + 1) % self.members
    }

    /// Returns the export of a Service.
    #[must_use]
    pub fn exported(&self, service: u32) -> Exported {
        let is_elsewhere = self.api == Api::Mcs && !self.importers(service).any(|member| member == 0);
        let namespace = if is_elsewhere { OTHER_NAMESPACE } else { NAMESPACE };
        Exported { service, namespace, member: self.exporter(service), api: self.api }
    }

    /// Returns the members that import a Service. The exporter is among them only if all members import the Service.
    pub fn importers(&self, service: u32) -> impl Iterator<Item = u32> + use<> {
        let (members, exporter) = (self.members, self.exporter(service));
        (1..=self.importers_of(service)).map(move |distance| (exporter + distance) % members)
    }

    /// Returns the number of members that import a Service, which is also the number of copies of its slice.
    #[must_use]
    pub fn importers_of(&self, service: u32) -> u32 {
        if service < self.shared { self.members } else { self.importers.min(self.members) }
    }

    /// Returns the number of copies of all slices.
    #[must_use]
    pub fn copies(&self) -> u64 {
        (0..self.services).map(|service| u64::from(self.importers_of(service))).sum()
    }

    /// Returns the Services that a member imports.
    #[must_use]
    pub fn imports_of(&self, member: u32) -> Vec<u32> {
        (0..self.services).filter(|service| self.importers(*service).any(|it| it == member)).collect()
    }

    /// Returns the Services whose slices the measurement changes. No change is made in member 0, so that all changes
    /// take the same way: from the hub agent to the importers. Every second Service of the result is imported by member
    /// 0, as long as there are such Services. In a scenario with shared Services, only these change.
    #[must_use]
    pub fn changed(&self) -> Vec<u32> {
        let end = if self.shared > 0 { self.shared.min(self.services) } else { self.services };
        let others = |service: &u32| self.exporter(*service) != 0;
        let (imported, elsewhere): (Vec<u32>, Vec<u32>) =
            (0..end).filter(others).partition(|service| self.importers(*service).any(|member| member == 0));
        if imported.is_empty() || elsewhere.is_empty() {
            return [imported, elsewhere].concat();
        }
        let pairs = imported.iter().cycle().zip(elsewhere.iter().cycle()).take(imported.len().max(elsewhere.len()));
        pairs.flat_map(|(one, other)| [*one, *other]).collect()
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api, members, services, importers, shared } = self;
        if *api == Api::Mcs {
            formatter.write_str("standard API, ")?;
        }
        write!(formatter, "{members} members, {services} Services, importers of each: {importers}")?;
        if *shared > 0 {
            write!(formatter, ", of {shared} Services: all")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, NAMESPACE, OTHER_NAMESPACE, Scenario};

    #[test]
    fn importers_are_the_next_members_and_the_exporter_only_if_all_import() {
        let scenario = Scenario { api: Api::Fleet, members: 4, services: 8, importers: 2, shared: 1 };
        assert_eq!(scenario.importers(0).collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!(scenario.importers(5).collect::<Vec<_>>(), [3, 0]);
        assert_eq!(scenario.copies(), 4 + 7 * 2);
        assert_eq!(scenario.imports_of(0), [0, 1, 2, 5, 6]);
    }

    #[test]
    fn by_the_mcs_api_the_services_that_member_0_imports_are_in_a_namespace_of_their_own() {
        let scenario = Scenario { api: Api::Mcs, members: 4, services: 8, importers: 2, shared: 1 };
        for service in 0..8 {
            let expected = if scenario.imports_of(0).contains(&service) { NAMESPACE } else { OTHER_NAMESPACE };
            assert_eq!(scenario.exported(service).namespace, expected, "{service}");
            assert_eq!(Scenario { api: Api::Fleet, ..scenario }.exported(service).namespace, NAMESPACE);
        }
    }

    #[test]
    fn every_second_changed_service_is_imported_by_member_0() {
        let scenario = Scenario { api: Api::Fleet, members: 4, services: 8, importers: 1, shared: 0 };
        // Member 3 exports the Services 2 and 6, which member 0 imports. Member 0 exports the Services 3 and 7.
        assert_eq!(scenario.changed(), [2, 0, 6, 1, 2, 4, 6, 5]);
        let shared = Scenario { shared: 4, ..scenario };
        assert_eq!(shared.changed(), [0, 1, 2]);
    }
}
