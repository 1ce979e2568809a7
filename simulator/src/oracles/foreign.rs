//! Agents change nothing that belongs to users: no source slice, no Service except derived ones, no `spec` of a request.

use super::{Oracle, Seen};
use crate::world::WORK;
use fleetnet_core::model::Object;

#[derive(Debug)]
pub(super) struct OnlyOwn;

impl Oracle for OnlyOwn {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(object) = seen.newest().filter(|_| seen.agent.is_some()) else { return Ok(false) };
        let is_removed = seen.after.is_none() && !object.meta().deleting;
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
