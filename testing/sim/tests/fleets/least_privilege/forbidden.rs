//! Tests that roles deny requests that agents do not need: requests for other namespaces, names or resources.

use super::fleet_with;
use super::rbac::Record;
use anyhow::ensure;
use harness::fleet::{FLEET_SYSTEM, manifests};
use http::Method;
use memkube::User;
use scenarios::environment::FleetSpec;
use sim::Server;
use sim::fleet::{HUB_AGENT, MEMBER_AGENT, hub_user};
use std::sync::Arc;

const OURS: &str = "/apis/networking.fleet.azure.com/v1alpha1";
const EXPORTS: &str = "/apis/networking.fleet.azure.com/v1beta1";
const LEASES: &str = "/apis/coordination.k8s.io/v1";
const SLICES: &str = "/apis/discovery.k8s.io/v1";
const CORE: &str = "/api/v1";

/// Request that must be denied: method, path before the namespace, namespace ("" for all), and path after it.
type Forbidden = (Method, &'static str, &'static str, &'static str);

async fn are_denied(server: &Server, user: &str, table: &[Forbidden]) -> anyhow::Result<()> {
    let client = server.memkube().client(User::new(user));
    for (method, before, namespace, after) in table {
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let (path, is_patch) = (format!("{before}{place}/{after}"), method == Method::PATCH);
        let content = if is_patch { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(&path).header(http::header::CONTENT_TYPE, content);
        let answer = client.request_text(request.body(b"{}".to_vec())?).await;
        let code = match &answer {
            Err(kube::Error::Api(status)) => status.code,
            _ => 0,
        };
        ensure!(code == 403, "{user} may {method} {path}: {answer:?}");
    }
    Ok(())
}

#[test]
fn the_roles_end_at_the_namespaces_the_names_and_the_resources_that_agents_need() -> anyhow::Result<()> {
    let get = Method::GET;
    sim::paused(async {
        let spec = FleetSpec::of(2);
        // The manifest with the rights to make EndpointSlices from pods is not applied here, because it grants more
        // rights.
        let of_member = [("member-agent.yaml", manifests::MEMBER_AGENT)];
        let fleet = fleet_with(spec, &Arc::new(Record::default()), &of_member, sim::Options::members(0)).await?;
        let member_in_hub = hub_user(&fleet.members[0].hub_namespace);
        let (own, other) = ("fleet-member-member-1", "fleet-member-member-2");
        let of_member_in_hub = [
            (get.clone(), OURS, other, "endpointsliceexports/app"),
            (get.clone(), OURS, other, "endpointsliceimports"),
            (get.clone(), OURS, other, "memberagents"),
            (Method::POST, OURS, other, "memberagents"),
            (Method::DELETE, OURS, own, "memberagents/app"),
            (Method::PATCH, OURS, other, "internalserviceexports/app"),
            (Method::DELETE, OURS, other, "internalserviceimports/app"),
            (get.clone(), OURS, "", "endpointsliceimports"),
            (get.clone(), OURS, "work", "serviceimports/app"),
            (Method::POST, OURS, own, "endpointsliceimports"),
            (Method::DELETE, OURS, own, "endpointsliceimports/app"),
            (Method::POST, LEASES, FLEET_SYSTEM, "leases"),
            (get.clone(), CORE, own, "secrets"),
            (Method::POST, CORE, own, "serviceaccounts/default/token"),
            (Method::POST, CORE, other, "serviceaccounts/member-agent/token"),
            (get.clone(), CORE, "", "namespaces"),
        ];
        are_denied(&fleet.hub, &member_in_hub, &of_member_in_hub).await?;
        let of_hub_agent = [
            (Method::PUT, LEASES, FLEET_SYSTEM, "leases/another"),
            (get.clone(), LEASES, FLEET_SYSTEM, "leases/another"),
            (Method::POST, LEASES, "work", "leases"),
            (Method::POST, OURS, own, "endpointsliceexports"),
            (Method::DELETE, OURS, own, "internalserviceexports/app"),
            (get.clone(), CORE, FLEET_SYSTEM, "secrets"),
            (get.clone(), CORE, "work", "services"),
            (Method::PATCH, CORE, "", "namespaces/work"),
        ];
        are_denied(&fleet.hub, HUB_AGENT, &of_hub_agent).await?;
        let of_member_agent = [
            (Method::PUT, LEASES, FLEET_SYSTEM, "leases/another"),
            (Method::POST, LEASES, "work", "leases"),
            (Method::POST, CORE, "work", "services"),
            (Method::PATCH, CORE, "work", "services/app"),
            (Method::DELETE, CORE, "work", "services/app"),
            (Method::POST, SLICES, "work", "endpointslices"),
            (Method::PATCH, SLICES, "work", "endpointslices/app-1"),
            (Method::DELETE, SLICES, "work", "endpointslices/app-1"),
            (Method::POST, EXPORTS, "work", "serviceexports"),
            (Method::DELETE, EXPORTS, "work", "serviceexports/app"),
            (Method::DELETE, OURS, "work", "multiclusterservices/app"),
            (get.clone(), CORE, FLEET_SYSTEM, "secrets"),
            (get.clone(), CORE, FLEET_SYSTEM, "secrets/another"),
            (Method::PATCH, CORE, FLEET_SYSTEM, "secrets/another"),
            (get.clone(), CORE, "", "namespaces"),
            (get.clone(), CORE, "", "namespaces/work"),
            (get.clone(), CORE, "", "pods"),
            (get, CORE, "", "nodes"),
        ];
        are_denied(&fleet.members[0].server, MEMBER_AGENT, &of_member_agent).await
    })
}
