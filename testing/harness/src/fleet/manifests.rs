//! Manifests of `deploy/`. The agents in these tests have exactly the rights that they have in production.

use crate::control_plane::ControlPlane;
use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;
use std::fs;

/// Manifest to apply in the hub, for the hub agent.
pub const HUB_AGENT: &str = include_str!("../../../../deploy/hub-agent.yaml");
/// Manifest to apply in a member cluster, for its member agent.
pub const MEMBER_AGENT: &str = include_str!("../../../../deploy/member-agent.yaml");
/// Manifest with the additional rights of a member agent that runs as the EndpointSlice controller.
pub const ENDPOINT_SLICES: &str = include_str!("../../../../deploy/endpointslices.yaml");
/// Manifest with the additional rights of a member agent that uses the standard API.
pub const MCS_API: &str = include_str!("../../../../deploy/multicluster-api.yaml");
/// Manifest with the role to read fleetnet's objects, for the hub and for members.
pub const VIEWER: &str = include_str!("../../../../deploy/viewer.yaml");
/// Manifest with the additional rights of both agents for `--metrics-secure`.
pub const METRICS_AUTH: &str = include_str!("../../../../deploy/metrics-auth.yaml");
/// Manifest with the Service of the slice stream, and the hub agent's rights for it.
pub const SLICE_STREAM: &str = include_str!("../../../../deploy/slice-stream.yaml");
/// Manifest with the admission policy of the hub.
pub const HUB_ADMISSION: &str = include_str!("../../../../deploy/hub-admission.yaml");
/// Manifest with the admission policies of a member.
pub const MEMBER_ADMISSION: &str = include_str!("../../../../deploy/member-admission.yaml");
/// Manifest with the flow control for the agents' requests in the hub.
pub const HUB_FLOW_CONTROL: &str = include_str!("../../../../deploy/hub-flow-control.yaml");
/// Manifest with the flow control for the member agent's requests in its own cluster.
pub const MEMBER_FLOW_CONTROL: &str = include_str!("../../../../deploy/member-flow-control.yaml");
/// CRD of MemberAgent in its previous version, which has no field for the owner of a cluster id.
pub const PREVIOUS_MEMBER_AGENTS: &str = include_str!("previous/networking.fleet.azure.com_memberagents.yaml");
/// Manifest with the rights in the hub for a fleet with a manager. Tests apply it for each member.
const FLEET_MANAGER_HUB: &str = include_str!("../../../../deploy/fleet-manager-hub.yaml");
/// Manifest with the right of the member agent in its cluster, in a fleet with a manager.
pub const FLEET_MANAGER_MEMBER: &str = include_str!("../../../../deploy/fleet-manager-member.yaml");
/// Manifest to apply in the hub for each member.
const HUB_MEMBER: &str = include_str!("../../../../deploy/hub-member.yaml");
/// Cluster id in the manifest [`HUB_MEMBER`], which tests replace by the id of their member.
const EXAMPLE: &str = "member-1";

/// Returns `deploy/hub-member.yaml` with a member's cluster id in place of `member-1`, as the first comment in the file
/// requires.
#[must_use]
pub fn of_member(cluster_id: &str) -> String {
    HUB_MEMBER.replace(EXAMPLE, cluster_id)
}

/// Returns `deploy/fleet-manager-hub.yaml` with a member's cluster id in place of `member-1`.
#[must_use]
pub fn of_managed_member(cluster_id: &str) -> String {
    FLEET_MANAGER_HUB.replace(EXAMPLE, cluster_id)
}

/// Returns the CRDs of the previous release, as YAML, in the order of their names.
pub fn previous_definitions() -> anyhow::Result<Vec<String>> {
    let folder = programs::root().join("testing/harness/src/fleet/previous");
    let files: std::io::Result<Vec<_>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut files = files?;
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).with_context(|| file.display().to_string())).collect()
}

/// Returns the resource that a CRD defines, in the version in which it is stored.
#[must_use]
pub fn stored_resource(definition: &CustomResourceDefinition) -> ApiResource {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage).map_or("", |version| &version.name);
    let kind = GroupVersionKind::gvk(&spec.group, stored, &spec.names.kind);
    ApiResource::from_gvk_with_plural(&kind, &spec.names.plural)
}

/// Returns the objects of a manifest with any number of documents.
pub fn objects(manifest: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let documents = manifest.trim_start_matches("---\n").split("\n---\n");
    documents.map(|document| serde_saphyr::from_str(document).with_context(|| document.to_owned())).collect()
}

/// Creates the objects of a manifest. Existing objects stay as they are.
pub async fn apply(control_plane: &ControlPlane, manifest: &str) -> anyhow::Result<()> {
    for object in objects(manifest)? {
        let types = object.types.as_ref().context("an object has a kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(control_plane.admin(), namespace, &resource),
            None => Api::all_with(control_plane.admin(), &resource),
        };
        let path = format!("{}?fieldValidation=Strict", api.resource_url());
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
        let made = control_plane.admin().request::<Value>(request.body(serde_json::to_vec(&object)?)?).await;
        match made {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            made => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                made.with_context(|| format!("{} refuses the {} {name}", control_plane.name(), types.kind))?;
            }
        }
    }
    Ok(())
}

/// Namespace of fleetnet's objects in every cluster, such as the agents' Leases and derived Services.
pub const FLEET_SYSTEM: &str = "fleet-system";

#[cfg(test)]
mod tests {
    use super::{HUB_AGENT, MEMBER_AGENT, objects, of_member};
    use clap::Parser as _;
    use kube::core::DynamicObject;
    use serde_json::Value;
    use std::fs;
    use std::path::PathBuf;

    fn of_kind(manifest: &str, kind: &str) -> Vec<Value> {
        let is_wanted = |object: &DynamicObject| object.types.as_ref().is_some_and(|types| types.kind == kind);
        objects(manifest).expect("YAML").into_iter().filter(is_wanted).map(|object| object.data).collect()
    }

    fn arguments(manifest: &str) -> Vec<String> {
        let [deployment] = &of_kind(manifest, "Deployment")[..] else { panic!("one Deployment") };
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let name = container["name"].as_str().expect("a name").to_owned();
        let arguments: Vec<String> = serde_json::from_value(container["args"].clone()).expect("arguments");
        std::iter::once(name).chain(arguments).collect()
    }

    fn leases(manifest: &str) -> Vec<String> {
        let rules = of_kind(manifest, "Role").into_iter().flat_map(|role| role["rules"].as_array().cloned());
        let of_leases = rules.flatten().filter(|rule| rule["resources"] == serde_json::json!(["leases"]));
        let named = of_leases.into_iter().find_map(|rule| serde_json::from_value(rule["resourceNames"].clone()).ok());
        named.expect("a rule names the Leases")
    }

    #[test]
    fn the_deployments_give_flags_that_the_agents_know() {
        hub_agent::Flags::try_parse_from(arguments(HUB_AGENT)).expect("the hub agent's flags");
        member_agent::Flags::try_parse_from(arguments(MEMBER_AGENT)).expect("the member agent's flags");
    }

    #[test]
    fn the_agents_may_hold_their_leases_and_no_others() {
        assert_eq!(leases(HUB_AGENT), hub_agent::leases());
        assert_eq!(leases(MEMBER_AGENT), member_agent::Parts::ALL.leases());
    }

    /// Returns the YAML files in `deploy/`, also those of the charts, with their contents.
    fn files() -> Vec<(PathBuf, String)> {
        let mut folders = vec![programs::root().join("deploy")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "yaml") {
                    let text = fs::read_to_string(&path).expect("a text");
                    files.push((path, text));
                }
            }
        }
        files
    }

    /// With variables for the Services of `fleet-system`, a pod cannot start any more once there are very many ports.
    #[test]
    fn no_pod_has_variables_for_the_services_of_its_namespace() {
        // The templates of the charts are no YAML. Each pod spec has a list of containers: in a Deployment, or in the
        // Pod of a test.
        let of_each = |text: &str, line: &str| {
            text.matches(&format!("\n      {line}\n")).count() + text.matches(&format!("\n  {line}\n")).count()
        };
        let specs = |text: &str| of_each(text, "containers:");
        let without = |text: &str| of_each(text, "enableServiceLinks: false");
        let files = files();
        for (path, text) in &files {
            assert_eq!(text.matches("containers:\n").count(), specs(text), "{}: another indentation", path.display());
            assert_eq!(without(text), specs(text), "{}: enableServiceLinks: false is missing", path.display());
        }
        assert_eq!(
            files.iter().map(|(_, text)| specs(text)).sum::<usize>(),
            6,
            "two manifests, two charts and their tests"
        );
        for manifest in [HUB_AGENT, MEMBER_AGENT] {
            let [deployment] = &of_kind(manifest, "Deployment")[..] else { panic!("one Deployment") };
            assert_eq!(deployment["spec"]["template"]["spec"]["enableServiceLinks"], false);
        }
    }

    /// OpenShift chooses the user of a pod, and checks the addresses in slices.
    #[test]
    fn openshift_accepts_the_pods_and_the_slices() {
        let mut roles = 0;
        for (path, text) in files() {
            assert!(!text.contains("runAsUser:") && !text.contains("runAsGroup:"), "{}", path.display());
            let creates = |rule: &str| rule.contains("resources: [endpointslices]\n    verbs: [get, create");
            let made = text.split("  - apiGroups: ").filter(|rule| creates(rule)).count();
            let right = "resources: [endpointslices/restricted]\n    verbs: [create]\n";
            assert_eq!(text.matches(right).count(), made, "{}", path.display());
            roles += made;
        }
        assert_eq!(roles, 6, "three roles of the member agent, in manifests and in its chart");
    }

    /// Also rule T37.
    #[test]
    fn the_quota_of_a_member_counts_its_objects_in_the_hub_and_not_those_of_the_hub() {
        let [quota] = &of_kind(&of_member("west"), "ResourceQuota")[..] else { panic!("one ResourceQuota") };
        let expected = serde_json::json!({
            "count/endpointsliceexports.networking.fleet.azure.com": "5000",
            "count/internalserviceexports.networking.fleet.azure.com": "2000",
            "count/internalserviceimports.networking.fleet.azure.com": "2000",
            "count/memberagents.networking.fleet.azure.com": "4",
        });
        assert_eq!(quota["spec"], serde_json::json!({ "hard": expected }));
        // The quota must limit each kind of object that a member may create. A token is no stored object.
        let [role] = &of_kind(&of_member("west"), "Role")[..] else { panic!("one Role") };
        let creates = |rule: &&Value| rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&"create".into()));
        let rules = role["rules"].as_array().expect("rules").iter().filter(creates);
        let made = rules.flat_map(|rule| rule["resources"].as_array().expect("resources"));
        let made = made.map(|resource| resource.as_str().expect("a name"));
        for resource in made.filter(|resource| *resource != "serviceaccounts/token") {
            let counted = format!("count/{resource}.networking.fleet.azure.com");
            assert!(expected.get(&counted).is_some(), "{resource}");
        }
    }

    #[test]
    fn objects_of_a_member_in_the_hub_are_in_its_namespace() {
        for object in objects(&of_member("west")).expect("YAML") {
            let kind = object.types.map(|types| types.kind);
            if kind.as_deref() == Some("Namespace") {
                assert_eq!(object.metadata.name.as_deref(), Some("fleet-member-west"));
            } else {
                assert_eq!(object.metadata.namespace.as_deref(), Some("fleet-member-west"), "{kind:?}");
            }
        }
    }
}
