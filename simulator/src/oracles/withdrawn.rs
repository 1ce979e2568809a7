//! Agents withdraw nothing while nobody changes anything that an import depends on: no endpoint of an imported slice, no derived
//! Service. Faults are no reason. The rule looks at the first import of the first Service, which users do not touch in this time.

use super::{Oracle, Seen};
use fleetnet_core::model::{Object, SliceContent};
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
}

fn endpoints(content: &SliceContent) -> BTreeSet<String> {
    content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}

/// Returns the name of the derived Service of the first MultiClusterService.
fn derived() -> String {
    MCS_NAMES[0].replace('/', "-")
}

impl NothingLive {
    /// True if agents may withdraw endpoints of the first derived Service in this cluster now.
    fn may_withdraw(&self, seen: &Seen<'_>) -> bool {
        let imports_first = self.imports.get(&seen.server).is_some_and(|name| APPS[0].ends_with(&format!("/{name}")));
        seen.may_withdraw || !imports_first
    }
}

impl Oracle for NothingLive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let is_removed = seen.after.is_none();
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
                let gone: Vec<&String> = before.iter().filter(|address| !left.contains(address)).collect();
                if !gone.is_empty() && !self.may_withdraw(seen) {
                    return Err(format!("{gone:?} of {} in {:?} are withdrawn", derived(), seen.server));
                }
            }
            Some(Object::Service(service))
                if is_removed
                    && *service.meta.name.name == *derived()
                    && service.derived_from.is_some()
                    && !self.may_withdraw(seen) =>
            {
                return Err(format!("the derived Service {} in {:?} is removed", service.meta.name, seen.server));
            }
            _ => {}
        }
        Ok(())
    }
}
