//! Contents of a member's namespace in the hub: which objects are fleetnet's, and which are foreign.

use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::failure::Failure;
use crate::cli::exit::Stop;
use crate::cli::join::manifests::{self, Token};
use crate::cli::objects::Reference;
use fleetnet_api::names::GROUP;
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResourceList, ObjectMeta};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use serde_json::Value;

/// Number of kinds that are listed at the same time.
// no limit: API servers queue requests beyond their own limits
const AT_ONCE: usize = 8;
/// Longest page of a list. A namespace of a member has at most some ten thousand objects.
const PAGE: u32 = 500;

/// Object of a namespace.
#[derive(Clone, Debug)]
pub(super) struct ListedObject {
    pub(super) resource: ApiResource,
    pub(super) object: Reference,
    pub(super) metadata: ObjectMeta,
}

/// Contents of a namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// Objects of fleetnet's kinds: exports, claims, slices and MemberAgents.
    pub(super) fleet: Vec<ListedObject>,
    /// Objects that `fleetnet join` makes.
    pub(super) access: Vec<ListedObject>,
    /// Objects of others.
    pub(super) foreign: Vec<ListedObject>,
    /// Kinds that cannot be listed, with the reason.
    pub(super) unknown: Vec<String>,
}

/// Lists all objects in a namespace, of every kind that the server has.
pub(super) async fn read(hub: &Cluster, namespace: &str) -> Result<Contents, Stop> {
    let mut contents = Contents::default();
    let mut kinds = Vec::new();
    let core = hub.ask(hub.client.list_core_api_resources("v1")).await?;
    kinds.extend(listable(&core, "", "v1"));
    for group in hub.ask(hub.client.list_api_groups()).await?.groups {
        // A kind may be in some versions of its group only, so all versions count.
        let mut of_group: Vec<ApiResource> = Vec::new();
        for version in &group.versions {
            match hub.ask(hub.client.list_api_group_resources(&version.group_version)).await {
                Ok(resources) => {
                    let found = listable(&resources, &group.name, &version.version);
                    let is_known = |new: &ApiResource| of_group.iter().any(|known| known.plural == new.plural);
                    let new: Vec<ApiResource> = found.into_iter().filter(|new| !is_known(new)).collect();
                    of_group.extend(new);
                }
                // An aggregated API server may be away. Nobody knows if it has objects in this namespace.
                Err(failure) => contents.unknown.push(format!("{}: {}", group.name, failure.class.word())),
            }
        }
        kinds.extend(of_group);
    }
    let lists = kinds.into_iter().map(|resource| list(hub, namespace, resource));
    let lists: Vec<_> = stream::iter(lists).buffered(AT_ONCE).collect().await;
    for (resource, listed) in lists {
        match listed {
            Ok(items) => items.into_iter().for_each(|metadata| contents.add(&resource, metadata, namespace)),
            Err(failure) => contents.unknown.push(format!("{}: {}", resource.plural, failure.class.word())),
        }
    }
    Ok(contents)
}

impl Contents {
    fn add(&mut self, resource: &ApiResource, metadata: ObjectMeta, namespace: &str) {
        let object = Reference::new(&resource.kind, namespace, metadata.name.as_deref().unwrap_or_default());
        let class = class(&resource.group, &object, &metadata);
        let found = ListedObject { resource: resource.clone(), object, metadata };
        match class {
            Owner::Fleet => self.fleet.push(found),
            Owner::Access => self.access.push(found),
            Owner::Foreign => self.foreign.push(found),
            Owner::Kubernetes => {}
        }
    }

    /// Returns why the namespace cannot be deleted; `None` if everything in it is fleetnet's.
    pub(super) fn obstacle(&self) -> Option<String> {
        const SHOWN: usize = 5;
        if !self.foreign.is_empty() {
            let names: Vec<String> = self.foreign.iter().take(SHOWN).map(|found| found.object.to_string()).collect();
            let more = self.foreign.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Some(format!("it has objects that are not fleetnet's: {}{more}", names.join(", ")));
        }
        (!self.unknown.is_empty()).then(|| format!("not all of its objects can be read: {}", self.unknown.join(", ")))
    }
}

/// Who made an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Fleet,
    Access,
    Kubernetes,
    Foreign,
}

fn class(group: &str, object: &Reference, metadata: &ObjectMeta) -> Owner {
    if group == GROUP {
        return Owner::Fleet;
    }
    let of_join = manifests::of_member(member(&object.namespace), Token::NeverExpires);
    if of_join.iter().map(Reference::of).any(|made| made == *object) {
        return Owner::Access;
    }
    let is_kubernetes = match (object.kind.as_str(), object.name.as_str()) {
        ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt") | ("Event", _) => true,
        // Tokens that old servers make for ServiceAccounts.
        ("Secret", _) => metadata.annotations.iter().flatten().any(|(key, account)| {
            key == "kubernetes.io/service-account.name" && ["default", manifests::ACCOUNT].contains(&account.as_str())
        }),
        _ => false,
    };
    if is_kubernetes { Owner::Kubernetes } else { Owner::Foreign }
}

fn member(namespace: &str) -> &str {
    namespace.strip_prefix("fleet-member-").unwrap_or_default()
}

/// Returns the kinds of a version that have a namespace and can be listed.
fn listable(resources: &APIResourceList, group: &str, version: &str) -> Vec<ApiResource> {
    let is_listable = |verbs: &Vec<String>| verbs.iter().any(|verb| verb == "list");
    let listable = resources
        .resources
        .iter()
        .filter(|resource| resource.namespaced && !resource.name.contains('/') && is_listable(&resource.verbs));
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    listable
        .map(|resource| ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.clone(),
            kind: resource.kind.clone(),
            plural: resource.name.clone(),
        })
        .collect()
}

async fn list(
    hub: &Cluster,
    namespace: &str,
    resource: ApiResource,
) -> (ApiResource, Result<Vec<ObjectMeta>, Failure>) {
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::namespaced_with(hub.client.clone(), namespace, &resource);
    let mut found = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        match hub.find(api.list_metadata(&parameters)).await {
            Ok(page) => {
                let (items, next) = page.map(|page| (page.items, page.metadata.continue_)).unwrap_or_default();
                found.extend(items.into_iter().map(|item| item.metadata));
                match next.filter(|next| !next.is_empty()) {
                    Some(next) => parameters.continue_token = Some(next),
                    None => return (resource, Ok(found)),
                }
            }
            // A kind that can be listed in discovery only, such as one of an extension.
            Err(failure) if failure.status == 405 => {
                return (resource, Ok(found));
            }
            Err(failure) => return (resource, Err(failure)),
        }
    }
}

/// Returns an object of a kind with this name, for requests.
pub(super) fn api(hub: &Cluster, found: &ListedObject) -> Api<DynamicObject> {
    Api::namespaced_with(hub.client.clone(), &found.object.namespace, &found.resource)
}

/// Returns the finalizers of an object without those of fleetnet; `None` if it has none of fleetnet.
pub(super) fn without_ours(metadata: &ObjectMeta) -> Option<Value> {
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    let ours = format!("{GROUP}/");
    let others: Vec<&String> = finalizers.iter().filter(|finalizer| !finalizer.starts_with(&ours)).collect();
    (others.len() < finalizers.len()).then(|| others.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class_of(group: &str, kind: &str, name: &str, metadata: Value) -> Owner {
        let object = Reference::new(kind, "fleet-member-west", name);
        class(group, &object, &serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn objects_are_fleetnets_kubernetes_or_foreign() {
        let rbac = "rbac.authorization.k8s.io";
        let none = || json!({});
        let token = json!({"annotations": {"kubernetes.io/service-account.name": "member-agent"}});
        let table = [
            (GROUP, "MemberAgent", "west", none(), Owner::Fleet),
            (GROUP, "EndpointSliceImport", "any", none(), Owner::Fleet),
            ("", "ServiceAccount", "member-agent", none(), Owner::Access),
            (rbac, "Role", "fleetnet-member-agent", none(), Owner::Access),
            (rbac, "RoleBinding", "fleetnet-member-agent", none(), Owner::Access),
            ("", "ResourceQuota", "fleetnet-member-agent", none(), Owner::Access),
            ("", "Secret", "member-agent-token", none(), Owner::Access),
            ("", "Secret", "member-agent-token-abcde", token, Owner::Kubernetes),
            ("", "Secret", "own", none(), Owner::Foreign),
            ("", "ServiceAccount", "default", none(), Owner::Kubernetes),
            ("", "ConfigMap", "kube-root-ca.crt", none(), Owner::Kubernetes),
            ("events.k8s.io", "Event", "any", none(), Owner::Kubernetes),
            ("", "ConfigMap", "own", none(), Owner::Foreign),
            ("", "Pod", "member-agent", none(), Owner::Foreign),
            (rbac, "Role", "own", none(), Owner::Foreign),
        ];
        for (group, kind, name, metadata, owner) in table {
            assert_eq!(class_of(group, kind, name, metadata), owner, "{kind} {name}");
        }
    }

    #[test]
    fn foreign_objects_and_unknown_kinds_keep_the_namespace() {
        let mut contents = Contents::default();
        assert_eq!(contents.obstacle(), None);
        contents.unknown.push("metrics: Timeout".to_owned());
        assert_eq!(contents.obstacle().unwrap(), "not all of its objects can be read: metrics: Timeout");
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        for name in ["a", "b", "c", "d", "e", "f"] {
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            contents.add(&resource, metadata, "fleet-member-west");
        }
        let obstacle = contents.obstacle().unwrap();
        assert!(obstacle.contains("Pod/fleet-member-west/a, ") && obstacle.ends_with("/e and 1 more"), "{obstacle}");
    }

    #[test]
    fn only_finalizers_of_fleetnet_are_taken_away() {
        let of = |finalizers: Value| without_ours(&serde_json::from_value(json!({"finalizers": finalizers})).unwrap());
        assert_eq!(of(json!([])), None);
        assert_eq!(of(json!(["example.com/keep"])), None);
        assert_eq!(of(json!(["networking.fleet.azure.com/x", "example.com/keep"])), Some(json!(["example.com/keep"])));
        assert_eq!(of(json!(["networking.fleet.azure.com/x"])), Some(json!([])));
        assert_eq!(of(json!(["networking.fleet.azure.com.evil/x"])), None);
    }
}
