//! Unaggregated discovery: one path for each group and version.

use super::groups::{self, Group, GroupVersion};
use crate::registry::{Definition, Scope};
use crate::service::Reply;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Response to `/api`.
pub(super) fn core_versions(groups: &[Group]) -> Value {
    let core = groups.iter().filter(|group| group.name.is_empty());
    let versions: Vec<&str> = core.flat_map(|group| &group.versions).map(|version| version.name.as_str()).collect();
    json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []})
}

/// Response to `/apis`.
pub(super) fn all_groups(groups: &[Group]) -> Value {
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(|group| Value::Object(group_members(group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Response to `/apis/<group>`. `None` if the server has no such group.
pub(super) fn group(groups: &[Group], name: &str) -> Option<Reply> {
    let group = groups.iter().find(|group| group.name == name)?;
    let mut document = group_members(group);
    document.insert("kind".to_owned(), json!("APIGroup"));
    document.insert("apiVersion".to_owned(), json!("v1"));
    Some(Reply::json(200, &Value::Object(document)))
}

fn group_members(group: &Group) -> Map<String, Value> {
    let version =
        |version: &GroupVersion| json!({"groupVersion": group.api_version(&version.name), "version": version.name});
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(group.name));
    members.insert("versions".to_owned(), group.versions.iter().map(version).collect());
    members.insert("preferredVersion".to_owned(), group.versions.first().map_or(Value::Null, version));
    members
}

/// Response to `/api/<version>` and `/apis/<group>/<version>`. `None` if the server has no such version.
pub(super) fn resources(groups: &[Group], group: &str, version: &str) -> Option<Reply> {
    let group = groups.iter().find(|known| known.name == group)?;
    let version = group.versions.iter().find(|known| known.name == version)?;
    let resources: Vec<Value> = version.resources.iter().flat_map(|definition| entries(definition)).collect();
    let mut list = json!({
        "kind": "APIResourceList", "groupVersion": group.api_version(&version.name), "resources": resources,
    });
    if !group.name.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(Reply::json(200, &list))
}

/// Discovery entries of a resource and of its subresources.
fn entries(definition: &Definition) -> Vec<Value> {
    let Definition { plural, singular, kind, short_names, categories, .. } = definition;
    let namespaced = definition.scope == Scope::Namespaced;
    let mut entry = json!({
        "name": plural, "singularName": singular, "namespaced": namespaced, "kind": kind,
        "verbs": groups::verbs(definition), "storageVersionHash": storage_version_hash(definition),
    });
    for (name, values) in [("shortNames", short_names), ("categories", categories)] {
        if !values.is_empty() {
            entry[name] = json!(values);
        }
    }
    let subresources = groups::subresources(definition).into_iter().map(|subresource| {
        let mut entry = json!({
            "name": format!("{plural}/{}", subresource.name()), "singularName": "", "namespaced": namespaced,
            "kind": kind, "verbs": groups::subresource_verbs(subresource),
        });
        if let Some([group, version, kind]) = subresource.own_kind() {
            entry["kind"] = json!(kind);
            if group != definition.group {
                (entry["group"], entry["version"]) = (json!(group), json!(version));
            }
        }
        entry
    });
    std::iter::once(entry).chain(subresources).collect()
}

/// `storageVersionHash` of a resource: the first 8 bytes of a SHA-256 over group, storage version and kind. Clients
/// compare this hash to detect a change of the storage version.
fn storage_version_hash(definition: &Definition) -> String {
    let stored = format!("{}/{}/{}", definition.group, definition.storage_version(), definition.kind);
    STANDARD.encode(&Sha256::digest(stored)[..8])
}
