//! Of all claims of type LoadBalancer for a Service, at most one is granted.

use super::{Oracle, Seen};
use fleetnet_core::model::{ConsumerType, Object};
use fleetnet_types::ObjectName;
use std::collections::BTreeMap;

/// Granted claims of type LoadBalancer: the Service of each claim, by the name of the claim.
#[derive(Debug, Default)]
pub(super) struct OneExclusive(BTreeMap<ObjectName, ObjectName>);

impl Oracle for OneExclusive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(Object::InternalServiceImport(claim)) = seen.newest() else { return Ok(false) };
        let name = &claim.meta.name;
        let is_granted = seen.after.is_some()
            && claim.consumer_type == ConsumerType::LoadBalancer
            && !claim.meta.deleting
            && !claim.status.clusters.is_empty();
        if !is_granted {
            self.0.remove(name);
            return Ok(false);
        }
        let service = claim.reference.source.clone();
        let other = self.0.iter().find(|(other, of)| *other != name && **of == service).map(|(other, _)| other.clone());
        self.0.insert(name.clone(), service.clone());
        match other {
            // A member can change the type of its own claim, so only a grant by the hub agent counts.
            Some(other) if seen.agent == Some(sim::fleet::Place::Hub) => {
                Err(format!("{service}: both claims {name} and {other} have type LoadBalancer and are granted"))
            }
            _ => Ok(true),
        }
    }

    fn restored(&mut self) {
        self.0.clear();
    }
}
