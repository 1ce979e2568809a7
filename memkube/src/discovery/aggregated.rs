//! Aggregated discovery (`apidiscovery.k8s.io/v2`, KEP-3352).
//!
//! The response to `/api` has all resources of the core group, and the response to `/apis` has the resources of all other
//! groups.

use super::groups::{self, Group};
use super::lists;
use crate::registry::{Definition, Scope};
use crate::service::{Content, Reply};
use serde_json::{Value, json};

const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns aggregated discovery if the `Accept` header prefers it, otherwise the unaggregated list.
pub(super) fn or_plain(accept: &str, groups: &[Group], core: bool) -> Reply {
    if wanted(accept) {
        let groups = groups.iter().filter(|group| group.name.is_empty() == core);
        let items: Vec<Value> = groups.map(group).collect();
        let list = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        });
        return Reply::new(200, Content::Document(CONTENT_TYPE, list.to_string().into()));
    }
    let list = if core { lists::core_versions(groups) } else { lists::all_groups(groups) };
    Reply::json(200, &list)
}

fn wanted(accept: &str) -> bool {
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        if parts.next() != Some("application/json") {
            continue;
        }
        let parameters: Vec<&str> = parts.collect();
        let has = |parameter| parameters.contains(&parameter);
        if has("as=APIGroupDiscoveryList") && has("g=apidiscovery.k8s.io") && has("v=v2") {
            return true;
        }
        if !parameters.iter().any(|parameter| parameter.starts_with("as=")) {
            return false;
        }
    }
    false
}

fn group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources = version.resources.iter().map(|definition| resource(definition, &version.name));
            json!({"version": version.name, "resources": resources.collect::<Vec<_>>(), "freshness": "Current"})
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn resource(definition: &Definition, version: &str) -> Value {
    let Definition { group, kind, plural, singular, short_names, categories, .. } = definition;
    // As in kube-apiserver, the `responseKind` of a built-in kind has no group and no version. Clients know both from the group
    // that contains the resource.
    let response_kind = match definition.custom {
        true => json!({"group": group, "version": version, "kind": kind}),
        false => json!({"group": "", "version": "", "kind": kind}),
    };
    let scope = match definition.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut resource = json!({
        "resource": plural, "responseKind": response_kind, "scope": scope, "singularResource": singular,
        "verbs": groups::verbs(definition),
    });
    for (name, values) in [("shortNames", short_names), ("categories", categories)] {
        if !values.is_empty() {
            resource[name] = json!(values);
        }
    }
    let subresources = groups::subresources(definition).into_iter().map(|subresource| {
        json!({
            "subresource": subresource.name(), "responseKind": response_kind,
            "verbs": groups::subresource_verbs(subresource),
        })
    });
    let subresources: Vec<Value> = subresources.collect();
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}
