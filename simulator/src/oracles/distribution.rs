//! The hub agent distributes a slice only to members whose claim on the Service is recorded.

use super::{Oracle, Seen};
use fleetnet_core::model::{Kind, Object};
use fleetnet_types::{ObjectName, Text};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Importers of each Service by their namespaces, and when a namespace was last one of them.
#[derive(Debug, Default)]
pub(super) struct OnlyToImporters {
    recorded: BTreeMap<ObjectName, BTreeSet<Text>>,
    ended: BTreeMap<(ObjectName, Text), Duration>,
}

impl OnlyToImporters {
    fn record(&mut self, service: &ObjectName, importers: BTreeSet<Text>, calm: Duration) {
        let before = self.recorded.insert(service.clone(), importers.clone()).unwrap_or_default();
        for gone in before.difference(&importers) {
            self.ended.insert((service.clone(), gone.clone()), calm);
        }
    }
}

impl Oracle for OnlyToImporters {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        if seen.server != Place::Hub {
            return Ok(false);
        }
        match seen.newest() {
            Some(Object::ServiceImport(import)) => {
                let importers = seen.after.map(|_| import.claims.importers.keys().cloned().collect());
                self.record(&import.meta.name, importers.unwrap_or_default(), seen.calm);
            }
            Some(Object::EndpointSliceImport(slice))
                if seen.kind == Kind::EndpointSliceImport && seen.before.is_none() && seen.agent.is_some() =>
            {
                let (service, namespace) = (&slice.spec.owner, &slice.meta.name.namespace);
                let is_recorded = self.recorded.get(service).is_some_and(|importers| importers.contains(namespace));
                let ended = self.ended.get(&(service.clone(), namespace.clone()));
                let was_recorded = ended.is_some_and(|ended| seen.calm <= *ended + seen.freshness);
                if !is_recorded && !was_recorded {
                    return Err(format!(
                        "{} is distributed, and {namespace} does not import {service}",
                        slice.meta.name
                    ));
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }
}
