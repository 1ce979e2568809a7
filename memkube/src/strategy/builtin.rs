//! List of the built-in kinds, and the rules of small kinds that have no separate file.

use super::{ListMerge, Strategy};
use crate::auth::Verb;
use crate::object::{Object, at};
use crate::registry::{Definition, ResourceId, Scope, Subresource};
use crate::store::Fields;
use crate::strategy::config_map::{ConfigMap, Secret};
use crate::strategy::custom_resource_definition::CustomResourceDefinition;
use crate::strategy::endpoint_slice::EndpointSlice;
use crate::strategy::event::Event;
use crate::strategy::lease::Lease;
use crate::strategy::namespace::Namespace;
use crate::strategy::pod::Pod;
use crate::strategy::review::{AccessReview, SelfSubjectReview, TokenReview};
use crate::strategy::service::Service;

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
pub(crate) fn namespace_fields(phase: &str) -> Fields {
    Fields::from([("status.phase".to_owned(), phase.to_owned())])
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
                .with(&[Subresource::Finalize, Subresource::Status])
                .only(&without_collection),
            Box::new(Namespace),
        ),
        (
            namespaced("", "v1", "Service", "services").short(&["svc"]).in_categories(&["all"]).with(&status),
            Box::new(Service),
        ),
        (namespaced("", "v1", "Pod", "pods").short(&["po"]).in_categories(&["all"]).with(&status), Box::new(Pod)),
        (cluster("", "v1", "Node", "nodes").short(&["no"]).with(&status), Box::new(Node)),
        (namespaced("", "v1", "Event", "events").short(&["ev"]), Box::new(Event::Core)),
        (namespaced("", "v1", "ConfigMap", "configmaps").short(&["cm"]), Box::new(ConfigMap)),
        (namespaced("", "v1", "Secret", "secrets"), Box::new(Secret)),
        (namespaced("", "v1", "ServiceAccount", "serviceaccounts").short(&["sa"]), Box::new(Shown)),
    ]
}

fn other_groups() -> Vec<Entry> {
    let rbac = "rbac.authorization.k8s.io";
    vec![
        (namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"), Box::new(EndpointSlice)),
        (namespaced("coordination.k8s.io", "v1", "Lease", "leases"), Box::new(Lease)),
        (namespaced("events.k8s.io", "v1", "Event", "events").short(&["ev"]), Box::new(Event::Group)),
        (
            cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
                .short(&["crd", "crds"])
                .in_categories(&["api-extensions"])
                .with(&[Subresource::Status]),
            Box::new(CustomResourceDefinition::default()),
        ),
        (namespaced(rbac, "v1", "Role", "roles"), Box::new(Segment)),
        (namespaced(rbac, "v1", "RoleBinding", "rolebindings"), Box::new(Segment)),
        (cluster(rbac, "v1", "ClusterRole", "clusterroles"), Box::new(Segment)),
        (cluster(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings"), Box::new(Segment)),
    ]
}

fn reviews() -> Vec<Entry> {
    let authorization = "authorization.k8s.io";
    let authentication = "authentication.k8s.io";
    let review = |group: &str, kind: &str, plural: &str| cluster(group, "v1", kind, plural).only(&[Verb::Create]);
    let local = namespaced(authorization, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews");
    vec![
        (review(authentication, "TokenReview", "tokenreviews"), Box::new(TokenReview)),
        (review(authentication, "SelfSubjectReview", "selfsubjectreviews"), Box::new(SelfSubjectReview)),
        (local.only(&[Verb::Create]), Box::new(AccessReview::InNamespace)),
        (review(authorization, "SubjectAccessReview", "subjectaccessreviews"), Box::new(AccessReview::OfOther)),
        (review(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews"), Box::new(AccessReview::OfSelf)),
    ]
}

/// Strategy of ServiceAccounts: the response to a delete is the object.
#[derive(Clone, Copy, Debug)]
struct Shown;

impl Strategy for Shown {
    fn returns_deleted(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug)]
struct Node;

impl Strategy for Node {
    fn selectable_names(&self, _: &str) -> Vec<String> {
        vec!["spec.unschedulable".to_owned()]
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let unschedulable = at(object, "spec.unschedulable").is_some_and(|value| *value == true);
        Fields::from([("spec.unschedulable".to_owned(), unschedulable.to_string())])
    }
}

/// Strategy of kinds whose names may contain any character that is valid in a path.
#[derive(Clone, Copy, Debug)]
struct Segment;

impl Strategy for Segment {
    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::object::names::path_segment(name, prefix)
    }
}

/// Way in which strategic merge patches merge the lists of built-in kinds, by path.
pub(crate) fn list_merge(path: &str) -> ListMerge {
    match path {
        "metadata.finalizers" | "spec.podCIDRs" => ListMerge::Set,
        "metadata.ownerReferences" => ListMerge::ByKey("uid"),
        "spec.ports" => ListMerge::ByKey("port"),
        "status.conditions" | "status.addresses" => ListMerge::ByKey("type"),
        "status.podIPs" | "status.hostIPs" | "spec.hostAliases" => ListMerge::ByKey("ip"),
        "spec.containers.ports" | "spec.initContainers.ports" => ListMerge::ByKey("containerPort"),
        "spec.containers.volumeMounts" | "spec.initContainers.volumeMounts" => ListMerge::ByKey("mountPath"),
        "spec.topologySpreadConstraints" => ListMerge::ByKey("topologyKey"),
        "spec.containers"
        | "spec.initContainers"
        | "spec.ephemeralContainers"
        | "spec.volumes"
        | "spec.imagePullSecrets"
        | "spec.schedulingGates"
        | "spec.containers.env"
        | "spec.initContainers.env"
        | "secrets"
        | "imagePullSecrets" => ListMerge::ByKey("name"),
        _ => ListMerge::Replace,
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
