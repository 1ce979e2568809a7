//! Observed state of the clusters, and its differences from the expected state. Does no I/O.

use super::describe::{self, FoundObject, Key, NAMESPACE, full_name};
use super::event::{Export, Import};
use crate::args::Api;
use fleetnet_core::names::mcs_derived;
use fleetnet_types::ObjectName;
use sim::server::FLEET_SYSTEM;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// Names of the kinds `Service` and `EndpointSlice` in messages about differences.
const SERVICE: &str = "Service";
const SLICE: &str = "EndpointSlice";

/// Observed object, with only the fields that the sandbox needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Export(Export),
    /// Status of the condition `Valid` of a MultiClusterService, or of the condition `Ready` of a ServiceImport of the
    /// standard API.
    Import(bool),
    /// One-line description of a derived Service.
    Derived(String),
    /// Imported slice.
    Slice(Slice),
}

/// Kinds that the sandbox watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// ServiceExports in [`NAMESPACE`].
    Export,
    /// MultiClusterServices or ServiceImports in [`NAMESPACE`].
    Import,
    /// Services in the namespace of [`Api::import_namespace`].
    Derived,
    /// EndpointSlices in the same namespace.
    Slice,
}

impl Api {
    /// Returns the namespace of derived Services and imported slices.
    pub(crate) fn import_namespace(self) -> &'static str {
        match self {
            Self::Fleet => FLEET_SYSTEM,
            Self::Mcs => NAMESPACE,
        }
    }

    /// Returns the name of the derived Service that the agents create for an imported Service of [`NAMESPACE`].
    pub(crate) fn derived_name(self, service: &str) -> String {
        match self {
            Self::Fleet => format!("{NAMESPACE}-{service}"),
            Self::Mcs => mcs_derived(&ObjectName::new(NAMESPACE, service)).name.to_string(),
        }
    }
}

/// Imported slice, with only the fields that the sandbox needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Name of the derived Service that the slice belongs to.
    pub(crate) derived: String,
    pub(crate) addresses: Vec<String>,
    /// Number of endpoints that are terminating.
    pub(crate) draining: usize,
    /// Number of endpoints that are neither ready nor terminating.
    pub(crate) unready: usize,
    /// One-line description of the whole slice.
    pub(crate) description: String,
}

/// Observed state of all members, in the order of the members.
#[derive(Clone, Debug)]
pub(crate) struct World {
    api: Api,
    names: Vec<String>,
    facts: Vec<BTreeMap<(Kind, String), Fact>>,
    awaited: BTreeMap<String, BTreeMap<usize, Instant>>,
}

/// Expected state of the fleet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) api: Api,
    /// Expected conditions of each ServiceExport, by member and Service.
    pub(crate) exports: BTreeMap<(usize, String), Export>,
    /// Expected MultiClusterServices or ServiceImports, by member and Service.
    pub(crate) imports: BTreeSet<(usize, String)>,
    /// Port of each Service that the sandbox created, by member and Service.
    pub(crate) ports: BTreeMap<(usize, String), u16>,
    /// Addresses of the endpoints that the sandbox created, by member, Service and slice.
    pub(crate) endpoints: BTreeMap<(usize, String, String), Vec<String>>,
    /// Member whose endpoints are draining in all other members.
    pub(crate) draining: Option<usize>,
}

impl World {
    /// Returns the state of members with these names, without objects.
    pub(crate) fn new(api: Api, names: Vec<String>) -> Self {
        Self { api, facts: vec![BTreeMap::new(); names.len()], names, awaited: BTreeMap::new() }
    }

    /// Records the current content of an object. `None` means that the object was removed.
    pub(crate) fn learn(&mut self, member: usize, kind: Kind, name: &str, fact: Option<Fact>, at: Instant) {
        let Some(facts) = self.facts.get_mut(member) else { return };
        let Some(fact) = fact else {
            facts.remove(&(kind, name.to_owned()));
            return;
        };
        if let Fact::Slice(slice) = &fact {
            for address in &slice.addresses {
                if let Some(arrivals) = self.awaited.get_mut(address) {
                    arrivals.entry(member).or_insert(at);
                }
            }
        }
        facts.insert((kind, name.to_owned()), fact);
    }

    /// Removes the objects of a kind that are not in a new list.
    pub(crate) fn keep_only(&mut self, member: usize, kind: Kind, names: &BTreeSet<String>) {
        if let Some(facts) = self.facts.get_mut(member) {
            facts.retain(|(of, name), _| *of != kind || names.contains(name));
        }
    }

    /// Starts to record when an endpoint with this address becomes visible in each member.
    pub(crate) fn await_arrivals(&mut self, address: &str) {
        self.awaited.insert(address.to_owned(), BTreeMap::new());
    }

    /// Returns the number of members in which the endpoint with this address has become visible since
    /// [`World::await_arrivals`].
    pub(crate) fn arrived(&self, address: &str) -> usize {
        self.awaited.get(address).map_or(0, BTreeMap::len)
    }

    /// Returns the time at which the endpoint with this address became visible in each member. Ends the recording.
    pub(crate) fn take_arrivals(&mut self, address: &str) -> BTreeMap<usize, Instant> {
        self.awaited.remove(address).unwrap_or_default()
    }

    /// Returns the observed conditions of a member's ServiceExport.
    pub(crate) fn export(&self, member: usize, service: &str) -> Option<&Export> {
        match self.facts.get(member)?.get(&(Kind::Export, service.to_owned()))? {
            Fact::Export(export) => Some(export),
            _ => None,
        }
    }

    /// Returns all observed exports, by the names of cluster and Service.
    pub(crate) fn exports(&self) -> BTreeMap<(String, String), Export> {
        let mut exports = BTreeMap::new();
        for (name, facts) in self.names.iter().zip(&self.facts) {
            for ((_, service), fact) in facts {
                if let Fact::Export(export) = fact {
                    exports.insert((name.clone(), full_name(service)), export.clone());
                }
            }
        }
        exports
    }

    /// Returns all observed imports, by the names of cluster and Service.
    pub(crate) fn imports(&self) -> BTreeMap<(String, String), Import> {
        let mut imports = BTreeMap::new();
        for (index, name) in self.names.iter().enumerate() {
            for ((_, service), fact) in &self.facts[index] {
                if let Fact::Import(valid) = fact {
                    imports.insert((name.clone(), full_name(service)), self.import(index, service, *valid));
                }
            }
        }
        imports
    }

    fn import(&self, member: usize, service: &str, valid: bool) -> Import {
        let mut import = Import { valid, ..Import::default() };
        for slice in self.slices(member, service) {
            import.slices += 1;
            import.endpoints += slice.addresses.len();
            import.draining += slice.draining;
            import.unready += slice.unready;
            let origins = slice.addresses.iter().filter_map(|address| self.names.get(origin_of(address)?));
            import.from.extend(origins.cloned());
        }
        import
    }

    fn slices(&self, member: usize, service: &str) -> impl Iterator<Item = &Slice> {
        let derived = self.api.derived_name(service);
        self.facts[member].values().filter_map(move |fact| match fact {
            Fact::Slice(slice) if slice.derived == derived => Some(slice),
            _ => None,
        })
    }

    /// Returns the members' differences from the expected state as sentences, member by member.
    pub(crate) fn differences<'a>(&'a self, expected: &'a Expected) -> impl Iterator<Item = String> + 'a {
        (0..self.names.len()).flat_map(|member| {
            let mut wrong = self.wrong_exports(member, expected);
            wrong.extend(self.wrong_imports(member, expected));
            let place = format!("{} of {}", self.api.import_namespace(), self.names[member]);
            wrong.extend(describe::compare(&place, expected.imported(member, &self.names), self.imported(member)));
            wrong
        })
    }

    /// Returns the members' differences from what the sandbox made. Objects that only a user can have made do not
    /// count.
    pub(crate) fn own_differences<'a>(&'a self, expected: &'a Expected) -> impl Iterator<Item = String> + 'a {
        self.differences(expected).filter(|difference| !difference.ends_with("should not be there"))
    }

    /// Returns differences in a member's ServiceExports. A ServiceExport that should not exist is also a difference.
    fn wrong_exports(&self, member: usize, expected: &Expected) -> Vec<String> {
        let cluster = &self.names[member];
        let mut wrong = Vec::new();
        for ((_, service), export) in expected.exports.iter().filter(|((of, _), _)| *of == member) {
            if self.export(member, service) != Some(export) {
                let description =
                    self.export(member, service).map_or_else(|| "does not exist".to_owned(), export_state);
                wrong.push(format!("export {} of {cluster} {description}", full_name(service)));
            }
        }
        let others = self.names_of(member, Kind::Export);
        let others = others.filter(|service| !expected.exports.contains_key(&(member, (*service).to_owned())));
        wrong.extend(others.map(|service| format!("export {} of {cluster} should not be there", full_name(service))));
        wrong
    }

    /// Returns differences in a member's imports. An import that should not exist is also a difference.
    fn wrong_imports(&self, member: usize, expected: &Expected) -> Vec<String> {
        let cluster = &self.names[member];
        let mut wrong = Vec::new();
        for (_, service) in expected.imports.iter().filter(|(of, _)| *of == member) {
            if self.facts[member].get(&(Kind::Import, service.clone())) != Some(&Fact::Import(true)) {
                wrong.push(format!("import {} in {cluster} is not valid", full_name(service)));
            }
        }
        let others = self.names_of(member, Kind::Import);
        let others = others.filter(|service| !expected.imports.contains(&(member, (*service).to_owned())));
        wrong.extend(others.map(|service| format!("import {} in {cluster} should not be there", full_name(service))));
        wrong
    }

    fn names_of(&self, member: usize, kind: Kind) -> impl Iterator<Item = &str> {
        self.facts[member].keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }

    /// Returns all observed derived Services and imported slices of a member.
    fn imported(&self, member: usize) -> impl Iterator<Item = FoundObject> {
        self.facts[member].iter().filter_map(|((_, name), fact)| match fact {
            Fact::Derived(description) => {
                Some(FoundObject { key: (SERVICE, name.clone()), name: name.clone(), description: description.clone() })
            }
            Fact::Slice(slice) => Some(FoundObject {
                key: (SLICE, describe::source(name).to_owned()),
                name: name.clone(),
                description: slice.description.clone(),
            }),
            Fact::Export(_) | Fact::Import(_) => None,
        })
    }
}

impl Expected {
    pub(crate) fn new(api: Api) -> Self {
        Self { api, ..Self::default() }
    }

    /// Returns the exports that should be part of the import, by member and Service. The fleet's API leaves out exports
    /// in conflict, the standard API does not.
    pub(crate) fn accepted_exports(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_accepted = |export: &Export| match self.api {
            Api::Fleet => *export == Export { valid: Some(true), conflict: Some(false) },
            Api::Mcs => export.valid == Some(true),
        };
        let exports = self.exports.iter().filter(move |(_, export)| is_accepted(export));
        exports.map(|((member, service), _)| (*member, service.as_str()))
    }

    pub(crate) fn importers(&self, service: &str) -> impl Iterator<Item = usize> {
        self.imports.iter().filter(move |(_, imported)| imported == service).map(|(member, _)| *member)
    }

    /// Returns the port of a Service in a member; 0 if the sandbox never created the Service.
    pub(crate) fn port(&self, member: usize, service: &str) -> u16 {
        self.ports.get(&(member, service.to_owned())).copied().unwrap_or_default()
    }

    /// Returns the port of an imported Service. `None` if no export is accepted. By the standard API, the oldest export
    /// decides: members export a Service one after the other.
    fn exported_port(&self, service: &str) -> Option<u16> {
        let (member, _) = self.accepted_exports().find(|(_, exported)| *exported == service)?;
        Some(self.port(member, service))
    }

    /// Returns the description of the port of an imported Service; `None` if no export is accepted.
    pub(crate) fn imported_port(&self, service: &str) -> Option<String> {
        let describe = match self.api {
            Api::Fleet => describe::sandbox_port,
            Api::Mcs => describe::merged_port,
        };
        self.exported_port(service).map(describe)
    }

    /// Returns the slices of a Service in a member, with their endpoints.
    pub(crate) fn slices(&self, member: usize, service: &str) -> impl Iterator<Item = (&str, &[String])> {
        let of_service =
            self.endpoints.iter().filter(move |((of, exported, _), _)| *of == member && exported == service);
        of_service.map(|((_, _, slice), addresses)| (slice.as_str(), addresses.as_slice()))
    }

    /// Returns all derived Services and imported slices that a member must have.
    fn imported(&self, member: usize, names: &[String]) -> BTreeMap<Key, String> {
        let mut wanted = BTreeMap::new();
        for (_, service) in self.imports.iter().filter(|(importer, _)| *importer == member) {
            let derived = self.api.derived_name(service);
            if let Some(port) = self.imported_port(service) {
                wanted.insert((SERVICE, derived.clone()), describe::derived_service_of(service, &port));
            }
            for (origin, _) in self.accepted_exports().filter(|(_, exported)| exported == service) {
                for (slice, addresses) in self.slices(origin, service) {
                    let key = (SLICE, format!("{}-{NAMESPACE}-{slice}", names[origin]));
                    // Clients do not reach a cluster at a port for which its export is in conflict.
                    let is_served = Some(self.port(origin, service)) == self.exported_port(service);
                    let is_draining = self.draining == Some(origin) && origin != member;
                    let description = match () {
                        () if !is_served => describe::unserved_slice_of(&derived),
                        () if is_draining => describe::drained_slice_of(&derived, addresses),
                        () => describe::imported_slice_of(&derived, addresses),
                    };
                    wanted.insert(key, description);
                }
            }
        }
        wanted
    }
}

/// First part of the addresses of pods.
const PODS: &str = "10.244.";

/// Returns the address of an endpoint. The address contains the number of the member and the number of the endpoint.
pub(crate) fn address(member: usize, number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("10.{}.{high}.{low}", member + 1)
}

/// Returns the index of the member that an endpoint belongs to. The addresses of pods are
/// `10.244.<number of the member>.x`.
fn origin_of(address: &str) -> Option<usize> {
    let network = address.strip_prefix(PODS).or_else(|| address.strip_prefix("10."))?;
    network.split('.').next()?.parse::<usize>().ok()?.checked_sub(1)
}

/// Describes the conditions of an export in words.
pub(crate) fn export_state(export: &Export) -> String {
    match (export.valid, export.conflict) {
        (Some(true), Some(false)) => "is valid, without conflict".to_owned(),
        (Some(true), Some(true)) => "is valid, in conflict with another export".to_owned(),
        (Some(true), None) => "is valid, waits for conflict resolution".to_owned(),
        (Some(false), _) => "is invalid".to_owned(),
        (None, _) => "has no condition Valid yet".to_owned(),
    }
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
