//! Agents withdraw nothing while nobody changes anything, whatever faults occur: no endpoint of an imported slice, no derived
//! Service.

use super::{Oracle, Seen};
use fleetnet_core::model::{Object, SliceContent};
use fleetnet_types::{ObjectName, Text};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};

/// Endpoints of each imported slice, by cluster, derived Service and name.
#[derive(Debug, Default)]
pub(super) struct NothingLive(BTreeMap<(Place, Option<Text>, ObjectName), BTreeSet<String>>);

fn endpoints(content: &SliceContent) -> BTreeSet<String> {
    content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}

impl Oracle for NothingLive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let is_removed = seen.after.is_none();
        match seen.newest() {
            Some(Object::EndpointSlice(slice)) if slice.imported => {
                let key = (seen.server, slice.service.clone(), slice.meta.name.clone());
                let now = if is_removed { BTreeSet::new() } else { endpoints(&slice.content) };
                let before = self.0.insert(key, now).unwrap_or_default();
                let of_service = |(place, service, _): &&(Place, Option<Text>, ObjectName)| {
                    *place == seen.server && *service == slice.service
                };
                let left: BTreeSet<&String> =
                    self.0.iter().filter(|(key, _)| of_service(key)).flat_map(|(_, endpoints)| endpoints).collect();
                let gone: Vec<&String> = before.iter().filter(|address| !left.contains(address)).collect();
                if !seen.may_withdraw && !gone.is_empty() {
                    return Err(format!("{gone:?} of {:?} in {:?} are withdrawn", slice.service, seen.server));
                }
            }
            Some(Object::Service(service)) if service.derived_from.is_some() && is_removed && !seen.may_withdraw => {
                return Err(format!("the derived Service {} in {:?} is removed", service.meta.name, seen.server));
            }
            _ => {}
        }
        Ok(())
    }
}
