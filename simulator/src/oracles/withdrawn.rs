//! Agents withdraw nothing live while nobody changes anything that an import depends on: no endpoint of an imported slice that its
//! exporter has, no derived Service with an exporter. Faults are no reason. The rule looks at the first import of the first Service,
//! which users do not touch in this time.

use super::{Oracle, Seen};
use fleetnet_core::model::{Object, ServicePort, SliceContent};
use fleetnet_types::{ObjectName, Text};
use histories::users::{APPS, MCS_NAMES};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};

/// Endpoints of each imported slice of the first derived Service, by cluster and name, and what the first MultiClusterService of
/// each cluster imports.
#[derive(Debug, Default)]
pub(super) struct NothingLive {
    endpoints: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    imports: BTreeMap<Place, Text>,
    /// Endpoints of each source slice of the first Service, by cluster and name.
    sources: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    /// The clusters that have the first Service, and those that have a ServiceExport for it.
    services: BTreeMap<Place, Vec<ServicePort>>,
    exports: BTreeSet<Place>,
    /// True if the hub was restored from a backup.
    is_restored: bool,
}

fn endpoints(content: &SliceContent) -> BTreeSet<String> {
    content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}

/// Returns the name of the derived Service of the first MultiClusterService.
fn derived() -> String {
    MCS_NAMES[0].replace('/', "-")
}

impl NothingLive {
    /// Stores what the exporters of the first Service have.
    fn store(&mut self, seen: &Seen<'_>) {
        let exists = seen.after.is_some_and(|object| !object.meta().deleting);
        match seen.newest() {
            Some(Object::Service(service)) if service.meta.name.to_string() == APPS[0] => {
                if exists {
                    self.services.insert(seen.server, service.ports.clone());
                } else {
                    self.services.remove(&seen.server);
                }
            }
            Some(Object::ServiceExport(export)) if export.meta.name.to_string() == APPS[0] => {
                if exists {
                    self.exports.insert(seen.server);
                } else {
                    self.exports.remove(&seen.server);
                }
            }
            Some(Object::EndpointSlice(slice))
                if !slice.imported && slice.service.as_deref().is_some_and(|name| APPS[0].ends_with(name)) =>
            {
                let now = if exists { endpoints(&slice.content) } else { BTreeSet::new() };
                self.sources.insert((seen.server, slice.meta.name.clone()), now);
            }
            _ => {}
        }
    }

    /// Returns the ports of each exported Service.
    fn exported(&self) -> impl Iterator<Item = &Vec<ServicePort>> {
        self.exports.iter().filter_map(|place| self.services.get(place))
    }

    /// True if exports conflict. After a restore, another one of them may be accepted than before.
    fn is_in_conflict(&self) -> bool {
        let mut all = self.exported();
        let first = all.next();
        all.any(|ports| Some(ports) != first)
    }

    /// True if an exporter has this endpoint.
    fn is_live(&self, address: &str) -> bool {
        let exporters = |place| self.services.contains_key(&place) && self.exports.contains(&place);
        self.sources.iter().any(|((place, _), addresses)| exporters(*place) && addresses.contains(address))
    }

    /// True if agents may withdraw endpoints of the first derived Service in this cluster now.
    fn may_withdraw(&self, seen: &Seen<'_>) -> bool {
        let imports_first = self.imports.get(&seen.server).is_some_and(|name| APPS[0].ends_with(&format!("/{name}")));
        seen.may_withdraw || !imports_first || (self.is_restored && self.is_in_conflict())
    }
}

impl Oracle for NothingLive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let is_removed = seen.after.is_none();
        self.store(seen);
        match seen.newest() {
            Some(Object::MultiClusterService(mcs)) if mcs.meta.name.to_string() == MCS_NAMES[0] => {
                if is_removed {
                    self.imports.remove(&seen.server);
                } else {
                    self.imports.insert(seen.server, mcs.import_name.clone());
                }
            }
            Some(Object::EndpointSlice(slice))
                if slice.imported && slice.service.as_deref() == Some(derived().as_str()) =>
            {
                let now = if is_removed { BTreeSet::new() } else { endpoints(&slice.content) };
                let key = (seen.server, slice.meta.name.clone());
                let before = self.endpoints.insert(key, now).unwrap_or_default();
                let here = self.endpoints.iter().filter(|((place, _), _)| *place == seen.server);
                let left: BTreeSet<&String> = here.flat_map(|(_, endpoints)| endpoints).collect();
                let gone: Vec<&String> =
                    before.iter().filter(|address| !left.contains(address) && self.is_live(address)).collect();
                if self.may_withdraw(seen) {
                    return Ok(false);
                }
                if !gone.is_empty() {
                    return Err(format!("{gone:?} of {} in {:?} are withdrawn", derived(), seen.server));
                }
                return Ok(true);
            }
            Some(Object::Service(service))
                if is_removed
                    && *service.meta.name.name == *derived()
                    && service.derived_from.is_some()
                    && self.exported().next().is_some()
                    && !self.may_withdraw(seen) =>
            {
                return Err(format!("the derived Service {} in {:?} is removed", service.meta.name, seen.server));
            }
            _ => {}
        }
        Ok(false)
    }

    fn restored(&mut self) {
        self.is_restored = true;
    }
}
