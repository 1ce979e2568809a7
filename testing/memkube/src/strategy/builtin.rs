//! List of the built-in kinds, and the rules of small kinds that have no separate file.

use super::{Findings, Plain, Strategy, Undecodable, custom_resource_definition, fields_at, typed};
use crate::auth::Verb;
use crate::object::Object;
use crate::registry::{Definition, ResourceId, Scope, Subresource};
use crate::store::Fields;
use crate::strategy::custom_resource_definition::CustomResourceDefinition;
use crate::strategy::endpoint_slice::EndpointSlice;
use crate::strategy::event::Event;
use crate::strategy::lease::Lease;
use crate::strategy::namespace::Namespace;
use crate::strategy::pod::Pod;
use crate::strategy::review::{AccessReview, SelfSubjectReview, TokenReview};
use crate::strategy::secret::Secret;
use crate::strategy::service::Service;
use k8s_openapi::api::core::v1;

/// Resource id of Namespaces.
#[must_use]
pub(crate) fn namespaces() -> ResourceId {
    ResourceId::new("", "namespaces")
}

/// Resource id of CustomResourceDefinitions.
#[must_use]
pub(crate) fn definitions() -> ResourceId {
    ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Selectable fields of a Namespace.
pub(crate) fn namespace_fields(namespace: &Object) -> Fields {
    fields_at(namespace, &super::namespace::SELECTABLE)
}

/// Resource that a CustomResourceDefinition describes.
#[must_use]
pub(crate) fn described(definition: &Object) -> ResourceId {
    custom_resource_definition::resource(definition)
}

type Entry = (Definition, Box<dyn Strategy>);

fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Definition {
    Definition::built_in(group, version, kind, plural, Scope::Namespaced)
}

fn cluster(group: &str, version: &str, kind: &str, plural: &str) -> Definition {
    Definition::built_in(group, version, kind, plural, Scope::Cluster)
}

/// Returns all built-in kinds with their strategies.
#[must_use]
pub(crate) fn all() -> Vec<Entry> {
    let mut all = core();
    all.extend(other_groups());
    all.extend(reviews());
    all
}

fn core() -> Vec<Entry> {
    let without_collection =
        [Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];
    let status = [Subresource::Status];
    vec![
        (
            cluster("", "v1", "Namespace", "namespaces")
                .short(&["ns"])
                .with(&[Subresource::Status])
                .only(&without_collection),
            Box::new(Namespace),
        ),
        (
            namespaced("", "v1", "Service", "services").short(&["svc"]).in_categories(&["all"]).with(&status),
            Box::new(Service),
        ),
        (
            namespaced("", "v1", "Pod", "pods")
                .short(&["po"])
                .in_categories(&["all"])
                .with(&[Subresource::Status, Subresource::Binding]),
            Box::new(Pod),
        ),
        (cluster("", "v1", "Node", "nodes").short(&["no"]).with(&status), Box::new(Plain)),
        (namespaced("", "v1", "Event", "events").short(&["ev"]), Box::new(Event)),
        (namespaced("", "v1", "ConfigMap", "configmaps").short(&["cm"]), Box::new(ConfigMap)),
        (namespaced("", "v1", "Secret", "secrets"), Box::new(Secret)),
        (
            namespaced("", "v1", "ServiceAccount", "serviceaccounts").short(&["sa"]).with(&[Subresource::Token]),
            Box::new(Shown),
        ),
    ]
}

fn other_groups() -> Vec<Entry> {
    let rbac = "rbac.authorization.k8s.io";
    vec![
        (namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"), Box::new(EndpointSlice)),
        (namespaced("coordination.k8s.io", "v1", "Lease", "leases"), Box::new(Lease)),
        (
            cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
                .short(&["crd", "crds"])
                .in_categories(&["api-extensions"])
                .with(&[Subresource::Status]),
            Box::new(CustomResourceDefinition),
        ),
        (namespaced(rbac, "v1", "Role", "roles"), Box::new(Segment)),
        (namespaced(rbac, "v1", "RoleBinding", "rolebindings"), Box::new(Segment)),
        (cluster(rbac, "v1", "ClusterRole", "clusterroles"), Box::new(Segment)),
        (cluster(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings"), Box::new(Segment)),
    ]
}

fn reviews() -> Vec<Entry> {
    let (authentication, authorization) = ("authentication.k8s.io", "authorization.k8s.io");
    let review = |group: &str, kind: &str, plural: &str| cluster(group, "v1", kind, plural).only(&[Verb::Create]);
    vec![
        (review(authentication, "TokenReview", "tokenreviews"), Box::new(TokenReview)),
        (review(authentication, "SelfSubjectReview", "selfsubjectreviews"), Box::new(SelfSubjectReview)),
        (review(authorization, "SubjectAccessReview", "subjectaccessreviews"), Box::new(AccessReview::OfOther)),
        (review(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews"), Box::new(AccessReview::OfSelf)),
    ]
}

#[derive(Clone, Copy, Debug)]
struct ConfigMap;

impl Strategy for ConfigMap {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::ConfigMap>(object, findings)
    }
}

/// Strategy of ServiceAccounts: the response to a delete is the object.
#[derive(Clone, Copy, Debug)]
struct Shown;

impl Strategy for Shown {
    fn returns_deleted(&self) -> bool {
        true
    }
}

/// Strategy of kinds whose names may contain any character that is valid in a path.
#[derive(Clone, Copy, Debug)]
struct Segment;

impl Strategy for Segment {
    fn check_name(&self, name: &str, prefix: bool) -> Option<&'static str> {
        crate::object::names::path_segment(name, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::collections::BTreeSet;

    #[test]
    fn no_kind_is_there_twice() {
        let all = all();
        let distinct: BTreeSet<_> = all.iter().map(|(definition, _)| definition.qualified_plural()).collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn each_kind_has_one_storage_version() {
        for (definition, _) in all() {
            let storage = definition.versions.iter().filter(|version| version.storage).count();
            assert_eq!(storage, 1, "{}", definition.kind);
        }
    }
}
