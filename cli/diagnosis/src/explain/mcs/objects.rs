//! Objects of the standard API.

use crate::explain::heartbeat::{has, member_agent_of};
use crate::explain::installed::flag_value;
use crate::explain::lookup::need;
use crate::explain::step_result::{Site, Stop};
use crate::snapshot::{Member, Snapshot};
use fleetnet_api::crd::MergedServiceImport;
use fleetnet_api::names::{finalizers, labels};
use fleetnet_core::features::Feature;
use fleetnet_core::member::NEVER_IMPORTING;
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Resource, ResourceExt as _};

/// True if the member agent requests the slices of the Service.
pub(crate) fn is_requested(merged: &MergedServiceImport) -> bool {
    merged.finalizers().iter().any(|finalizer| finalizer == finalizers::MERGED_SERVICE_IMPORT)
}

/// True if the agent of a member announces the standard API. An agent that only exports does not.
pub(crate) fn imports_by_mcs_api(snapshot: &Snapshot, member: &Member) -> bool {
    member_agent_of(snapshot, member).is_some_and(|agent| has(agent.spec.features.as_ref(), Feature::McsApi))
}

/// True if the member agent made an object in a namespace of users.
pub(crate) fn is_ours<K: Resource>(object: &K) -> bool {
    object.labels().get(labels::WRITER).is_some_and(|writer| writer == labels::WRITER_MEMBER_AGENT)
}

/// State of a namespace in a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ImportState<'a> {
    /// The namespace has the label and imports.
    Labelled(&'a Namespace),
    /// The namespace imports because all do.
    AllImport(&'a Namespace),
    /// Namespaces of Kubernetes and of the fleet never import.
    Never(&'a Namespace),
    NotLabelled(&'a Namespace),
    /// The namespace is being deleted.
    Ends(&'a Namespace),
    Missing,
}

/// Returns the state of the namespace of the Service in a member.
pub(crate) fn import_state<'a>(member: &'a Member, service: &ObjectName) -> Result<ImportState<'a>, Stop> {
    let namespaces = need(&member.namespaces, "Namespaces", Site::Member(member))?;
    let namespace = namespaces.iter().find(|namespace| *namespace.name_any() == *service.namespace);
    let Some(namespace) = namespace else { return Ok(ImportState::Missing) };
    let is_labelled = namespace.labels().get(labels::IMPORT).is_some_and(|value| value == "true");
    Ok(match &*service.namespace {
        name if *name == *member.agent.namespace || NEVER_IMPORTING.contains(&name) => ImportState::Never(namespace),
        _ if namespace.metadata.deletion_timestamp.is_some() => ImportState::Ends(namespace),
        _ if is_labelled => ImportState::Labelled(namespace),
        _ if all_import(member) => ImportState::AllImport(namespace),
        _ => ImportState::NotLabelled(namespace),
    })
}

/// True if the member agent imports into all namespaces.
pub(super) fn all_import(member: &Member) -> bool {
    flag_value(Site::Member(member), "multicluster-api-import") == Some("all")
}

/// True if a merged import has this cluster.
pub(crate) fn lists(merged: &MergedServiceImport, cluster: &str) -> bool {
    merged.spec.clusters.iter().any(|part| part.cluster == cluster)
}
