//! Rights of members in a namespace of the hub.

use super::installed::flag_value;
use super::step_result::Site;
use crate::snapshot::Snapshot;
use fleetnet_core::hub::NamespacePolicy;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;

/// True unless the hub agent runs without rights of namespaces.
pub(crate) fn are_rights_enforced(snapshot: &Snapshot) -> bool {
    namespace_policy(snapshot) != NamespacePolicy::Off
}

/// True if the hub agent denies every member in a namespace that does not exist in the hub, also by the standard API.
pub(crate) fn is_namespace_required(snapshot: &Snapshot) -> bool {
    matches!(namespace_policy(snapshot), NamespacePolicy::Strict | NamespacePolicy::Listed)
}

/// Returns the policy in the arguments of the hub agent's Deployment. A hub agent without the flag has the default.
pub(crate) fn namespace_policy(snapshot: &Snapshot) -> NamespacePolicy {
    match flag_value(Site::Hub(&snapshot.hub), "namespace-policy") {
        Some("strict") => NamespacePolicy::Strict,
        Some("listed") => NamespacePolicy::Listed,
        Some("off") => NamespacePolicy::Off,
        _ => NamespacePolicy::Enforce,
    }
}

/// True if the annotation of a namespace in the hub lists this cluster. Without the annotation, or without the
/// namespace, the policy of the hub agent decides.
pub(crate) fn is_allowed(
    snapshot: &Snapshot,
    namespace: Option<&k8s_openapi::api::core::v1::Namespace>,
    annotation: &str,
    cluster: &str,
) -> bool {
    let policy = namespace_policy(snapshot);
    match namespace.map(|namespace| namespace.annotations().get(annotation)) {
        _ if policy == NamespacePolicy::Off => true,
        None => !is_namespace_required(snapshot),
        Some(None) => policy != NamespacePolicy::Listed,
        Some(Some(list)) => list.split(',').any(|entry| entry.trim() == cluster),
    }
}

/// Returns the clusters that an annotation of a namespace lists, as a user reads them.
pub(super) fn list_of(namespace: &Namespace, annotation: &str) -> String {
    let list = namespace.annotations().get(annotation).cloned();
    list.unwrap_or_else(|| "missing, and the hub agent runs with --namespace-policy=listed".to_owned())
}
