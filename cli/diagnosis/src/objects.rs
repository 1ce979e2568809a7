//! Objects of one Service on which the agents emit Events.

use crate::explain::{imports, is_service};
use crate::snapshot::Snapshot;
use fleetnet_api::crd::shared::ExportedObjectReference;
use fleetnet_types::ObjectName;
use kube::{Resource, ResourceExt as _};
use std::collections::BTreeSet;

/// Namespace and name of an object.
type Place = (String, String);

/// Objects of one Service in the hub and in the members.
#[derive(Clone, Debug)]
pub struct Objects {
    service: Place,
    in_hub: BTreeSet<Place>,
    /// MultiClusterServices with other names than the Service, with the cluster ids of their members.
    imports: BTreeSet<(String, Place)>,
}

impl Objects {
    /// Returns the objects of a Service in a snapshot.
    #[must_use]
    pub fn of(snapshot: &Snapshot, service: &ObjectName) -> Self {
        let hub = &snapshot.hub;
        let is_of = |reference: &ExportedObjectReference| is_service(service, &reference.namespace, &reference.name);
        let exports = hub.internal_exports.objects().filter(|it| is_of(&it.spec.service_reference)).map(place);
        let claims = hub.claims.objects().filter(|it| is_of(&it.spec.service_import_reference)).map(place);
        let slices = hub.slice_exports.objects().filter(|it| {
            let owner = &it.spec.owner_service_reference;
            is_service(service, &owner.namespace, &owner.name)
        });
        let in_hub = exports.chain(claims).chain(slices.map(place)).collect();
        let of_member = snapshot.members.iter().flat_map(|member| {
            let own = member.multi_cluster_services.objects().filter(|request| imports(request, service));
            own.map(|request| (member.id.clone(), place(request)))
        });
        let service = (service.namespace.to_string(), service.name.to_string());
        Self { service, in_hub, imports: of_member.collect() }
    }

    /// True if an object belongs to the Service. `member` is the cluster id of a member, and `None` for the hub.
    /// The ServiceExport, the ServiceImport and mostly the MultiClusterService have the name of the Service.
    #[must_use]
    pub fn contain(&self, member: Option<&str>, namespace: &str, name: &str) -> bool {
        let place = (namespace.to_owned(), name.to_owned());
        let is_other = |id: &str| self.imports.contains(&(id.to_owned(), place.clone()));
        place == self.service || member.map_or_else(|| self.in_hub.contains(&place), is_other)
    }
}

fn place<K: Resource>(object: &K) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{app, healthy, set};
    use serde_json::json;

    #[test]
    fn the_objects_of_a_service_are_found_by_name_and_by_reference() {
        let mut snapshot = healthy();
        set(&mut snapshot.members[0].multi_cluster_services, "/metadata/name", json!("other"));
        let objects = Objects::of(&snapshot, &app());
        let table = [
            (None, "shop", "app", true),
            (Some("west"), "shop", "app", true),
            (Some("west"), "work", "app", false),
            (None, "fleet-member-west", "shop-app", true),
            (None, "fleet-member-east", "shop-app", true),
            (None, "fleet-member-west", "west-shop-app-1-x", true),
            (None, "fleet-member-west", "west", false),
            (Some("east"), "shop", "other", true),
            (Some("west"), "shop", "other", false),
            (None, "shop", "other", false),
        ];
        for (member, namespace, name, expected) in table {
            assert_eq!(objects.contain(member, namespace, name), expected, "{member:?} {namespace}/{name}");
        }
    }
}
