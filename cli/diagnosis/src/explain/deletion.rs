//! Objects that are being deleted.

use super::age::settled;
use super::step_result::{Site, StepResult};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Resource, ResourceExt as _};

/// Fails if an object was deleted more than 10 s ago, and a finalizer keeps it.
pub(crate) fn stays_or_goes<K: Resource<DynamicType = ()>>(site: Site<'_>, object: &K) -> StepResult {
    let Some(deleted) = &object.meta().deletion_timestamp else { return Ok(()) };
    settled(site, Some(deleted.0))?;
    Err(site.broken(object, "metadata.finalizers", object.finalizers().join(", ")).at(Some(deleted.0)))
}

/// Fails if a namespace has been deleted for more than 10 s, and something in it keeps it.
pub(crate) fn stays_or_goes_with(site: Site<'_>, namespace: &Namespace) -> StepResult {
    let Some(deleted) = &namespace.metadata.deletion_timestamp else { return Ok(()) };
    settled(site, Some(deleted.0))?;
    let mut value = remaining(namespace);
    if value.is_empty() {
        "the namespace is being deleted".clone_into(&mut value);
    }
    Err(site.broken(namespace, "metadata.deletionTimestamp", value).at(Some(deleted.0)))
}

/// Returns what keeps a namespace that is being deleted, from its conditions.
pub(crate) fn remaining(namespace: &Namespace) -> String {
    let conditions = namespace.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let messages = conditions.filter(|condition| condition.status == "True").filter_map(|it| it.message.clone());
    messages.collect::<Vec<_>>().join("; ")
}
