//! Objects of a member's cluster, to delete or to count.

use super::log::Log;
use crate::cli::contexts::connect::Cluster;
use crate::cli::exit::Stop;
use crate::cli::objects::{Action, Reference, write_failed};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Deletes an object, unless another one has replaced it.
pub(super) async fn delete<K>(member: &Cluster, object: &K, note: &str, log: &mut Log<'_>) -> Result<(), Stop>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let reference = Reference::new(&K::kind(&()), &namespace, &name);
    if !log.is_dry_run {
        let api: Api<K> = Api::namespaced(member.client.clone(), &namespace);
        let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        let deleted = member.find(api.delete(&name, &parameters)).await;
        deleted.map_err(|failure| write_failed(failure, "delete", &reference))?;
    }
    log.add(reference, &member.context, Action::Deleted, note);
    Ok(())
}

/// Returns the number of objects with these labels. A kind that the server does not have has none.
pub(super) async fn count<K>(member: &Cluster, namespace: Option<&str>, selector: &str) -> Result<usize, Stop>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let client = member.client.clone();
    let api: Api<K> =
        namespace.map_or_else(|| Api::all(client.clone()), |namespace| Api::namespaced(client.clone(), namespace));
    let list = member.find(api.list_metadata(&ListParams::default().labels(selector))).await?;
    Ok(list.map_or(0, |list| list.items.len()))
}
