//! An agent exports a source slice only once: no second EndpointSliceExport for one source slice.

use super::{Oracle, Seen};
use fleetnet_core::model::Object;
use fleetnet_types::{ObjectName, Text, Uid};
use sim::fleet::Place;
use std::collections::BTreeMap;

/// Source slice of each export that an agent created, by the name of the export.
#[derive(Debug, Default)]
pub(super) struct OnlyOnce(BTreeMap<ObjectName, (Text, Uid)>);

impl Oracle for OnlyOnce {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let (Place::Hub, Some(Object::EndpointSliceExport(export))) = (seen.server, seen.newest()) else {
            return Ok(false);
        };
        let name = &export.meta.name;
        if seen.after.is_none() || export.meta.deleting {
            self.0.remove(name);
        }
        if seen.before.is_none() && seen.agent.is_some() {
            let source = (name.namespace.clone(), export.spec.reference.uid.clone());
            let other =
                self.0.iter().find(|(other, of)| **of == source && *other != name).map(|(other, _)| other.clone());
            self.0.insert(name.clone(), source);
            if let Some(other) = other {
                return Err(format!("{name} and {other} export the same slice {}", export.spec.reference.source));
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn restored(&mut self) {
        self.0.clear();
    }
}
