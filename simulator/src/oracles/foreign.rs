//! Agents change nothing that belongs to users: no source slice, no Service except derived ones, no `spec` of a request. They
//! delete no request, and remove no finalizer of others from one.

use super::{Oracle, Seen};
use crate::world::WORK;
use fleetnet_core::model::Object;

#[derive(Debug)]
pub(super) struct OnlyOwn;

impl Oracle for OnlyOwn {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(object) = seen.newest().filter(|_| seen.agent.is_some()) else { return Ok(false) };
        // A request has a finalizer, so a delete first marks it.
        let is_marked = |before: &Object| !before.meta().deleting && object.meta().deleting;
        let is_deleted = seen.after.is_none() && !object.meta().deleting || seen.before.is_some_and(is_marked);
        let is_released = |before: &Object| before.meta().finalizers.others != object.meta().finalizers.others;
        let is_removed = is_deleted || seen.before.is_some_and(is_released);
        let is_foreign = match (seen.before, object) {
            // Labels do not tell whose an object is, because users edit them.
            (_, Object::Service(_) | Object::EndpointSlice(_)) => *object.meta().name.namespace == *WORK,
            (Some(Object::ServiceExport(before)), Object::ServiceExport(after)) => {
                is_removed || before.weight != after.weight
            }
            (Some(Object::MultiClusterService(before)), Object::MultiClusterService(after)) => {
                is_removed || before.import_name != after.import_name || before.consumer_type != after.consumer_type
            }
            (None, Object::ServiceExport(_) | Object::MultiClusterService(_)) => true,
            _ => false,
        };
        if is_foreign {
            return Err(format!("an agent changed the {:?} {} of a user: {seen:?}", seen.kind, object.meta().name));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::{Value, json};
    use sim::fleet::Place;

    #[test]
    fn a_request_of_a_user_is_neither_deleted_nor_changed_nor_released_by_an_agent() {
        let mcs = json!({"spec": {"serviceImport": {"name": "app"}, "type": "ClusterIP"}});
        let labels = json!({"networking.fleet.azure.com/derived-service": "work-app"});
        let table: [(&str, &str, Value, bool); 6] = [
            ("a label", "/metadata/labels", labels, false),
            (
                "our finalizer",
                "/metadata/finalizers",
                json!(["networking.fleet.azure.com/service-resources-cleanup"]),
                false,
            ),
            ("the target", "/spec/serviceImport/name", json!("other"), true),
            ("the type", "/spec/type", json!("LoadBalancer"), true),
            ("a deletion", "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), true),
            ("a finalizer of others", "/metadata/finalizers", json!(["example.com/theirs"]), true),
        ];
        for (what, pointer, value, is_foreign) in table {
            let mut changed = mcs.clone();
            changed["metadata"] = json!({"labels": {}, "finalizers": [], "deletionTimestamp": null});
            *changed.pointer_mut(pointer).expect("a field") = value;
            let [before, after] = [&mcs, &changed].map(|json| state(Kind::MultiClusterService, "work/app", json));
            for agent in [None, Some(Place::Member(0))] {
                let committed = OnlyOwn.committed(&seen(Place::Member(0), agent, Some(&before), Some(&after)));
                assert_eq!(committed.is_err(), is_foreign && agent.is_some(), "{what} by {agent:?}");
            }
        }
    }

    #[test]
    fn services_and_slices_are_of_users_by_their_namespace() {
        for (path, is_foreign) in [("work/app", true), ("fleet-system/work-app", false)] {
            let service = state(Kind::Service, path, &json!({"spec": {"ports": []}}));
            let committed = OnlyOwn.committed(&seen(Place::Member(0), Some(Place::Member(0)), None, Some(&service)));
            assert_eq!(committed.is_err(), is_foreign, "{path}");
        }
    }
}
