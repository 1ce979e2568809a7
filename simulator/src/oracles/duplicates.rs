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

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    fn export(name: &str, uid: &str) -> State {
        let reference = json!({"clusterId": "member-1", "namespace": "work", "name": "app-1", "uid": uid});
        let owner = json!({"namespace": "work", "name": "app"});
        let rest = json!({"spec": {"endpointSliceReference": reference, "ownerServiceReference": owner}});
        state(Kind::EndpointSliceExport, &format!("fleet-member-member-1/{name}"), &rest)
    }

    #[test]
    fn a_source_slice_has_one_export() {
        for (why, second, is_right) in [
            ("the same slice again", export("two", "a"), false),
            ("another slice", export("two", "b"), true),
            ("the same export again", export("one", "a"), true),
        ] {
            let (mut rule, first, agent) = (OnlyOnce::default(), export("one", "a"), Some(Place::Member(0)));
            rule.committed(&seen(Place::Hub, agent, None, Some(&first))).expect("the first export");
            let committed = rule.committed(&seen(Place::Hub, agent, None, Some(&second)));
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
        }
    }
}
