//! Tests of the admission policies in `deploy/member-admission.yaml`: who gets a load balancer, and what the member
//! agent writes.

use super::{Answer, request, send, until};
use anyhow::ensure;
use harness::fleet::{Fleet, MEMBER_AGENT, manifests};
use serde_json::{Value, json};

const SERVICES: &str = "/api/v1/namespaces/fleet-system/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/fleet-system/endpointslices";
const IMPORTS: &str = "/apis/networking.fleet.azure.com/v1alpha1/namespaces/work/multiclusterservices";
/// User who may write MultiClusterServices in the namespace `work`, and no Services.
const TENANT: &str = "system:serviceaccount:work:tenant";

fn is_accepted(answer: &Answer) -> anyhow::Result<()> {
    ensure!(answer.is_success(), "{answer:?}");
    Ok(())
}

fn is_denied(answer: &Answer, why: &str) -> anyhow::Result<()> {
    let is_denied = answer.status == 403 && answer.body["reason"] == "Forbidden";
    ensure!(is_denied && answer.message().contains(why), "{answer:?}\nexpected: {why}");
    Ok(())
}

fn import(name: &str, type_: Option<&str>) -> Value {
    json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MultiClusterService", "metadata": {"name": name},
        "spec": {"serviceImport": {"name": name}, "type": type_},
    })
}

/// Objects of a tenant: a service account, and the right to write MultiClusterServices, or also Services.
fn rights(role: &str, group: &str, resource: &str) -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": role, "namespace": "work"});
    vec![
        json!({
            "apiVersion": rbac, "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": "work"}],
        }),
    ]
}

#[test]
fn who_may_not_create_services_gets_no_load_balancer() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(1).await?;
        let cluster = &fleet.members[0].control_plane;
        cluster.create_namespace("work").await?;
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant", "namespace": "work"},
        });
        let imports = rights("imports", "networking.fleet.azure.com", "multiclusterservices");
        for object in std::iter::once(account).chain(imports) {
            manifests::apply(cluster, &object.to_string()).await?;
        }
        let (admin, tenant) = (cluster.admin(), cluster.access(TENANT).await?.client().await?);
        let why = "has the type LoadBalancer, and user system:serviceaccount:work:tenant may not create Services";
        let (dry, one) = (format!("{IMPORTS}?dryRun=All"), format!("{IMPORTS}/one"));
        let ask = async || send(&tenant, request("POST", &dry), Some(&import("probe", None))).await;
        until("the policy is not used", |it| it.message().contains(why), ask).await?;

        // An absent type means LoadBalancer.
        for type_ in [None, Some("LoadBalancer")] {
            is_denied(&send(&tenant, request("POST", IMPORTS), Some(&import("one", type_))).await?, why)?;
        }
        is_accepted(&send(&tenant, request("POST", IMPORTS), Some(&import("one", Some("ClusterIP")))).await?)?;
        let patched =
            async |client: &kube::Client, patch: Value| send(client, request("PATCH", &one), Some(&patch)).await;
        is_denied(&patched(&tenant, json!({"spec": {"type": "LoadBalancer"}})).await?, why)?;
        is_denied(&patched(&tenant, json!({"spec": {"type": null}})).await?, why)?;

        // An administrator asks for a load balancer. The tenant may not make it public, and the rest of the metadata is
        // free.
        let internal = "networking.fleet.azure.com/azure-load-balancer-internal";
        let balancer = json!({"spec": {"type": "LoadBalancer"}, "metadata": {"annotations": {internal: "true"}}});
        is_accepted(&patched(&admin, balancer).await?)?;
        is_denied(&patched(&tenant, json!({"metadata": {"annotations": {internal: null}}})).await?, why)?;
        is_denied(&patched(&tenant, json!({"spec": {"serviceImport": {"name": "other"}}})).await?, why)?;
        is_accepted(&patched(&tenant, json!({"metadata": {"labels": {"a": "b"}}})).await?)?;
        let agent = cluster.access(MEMBER_AGENT).await?.client().await?;
        is_accepted(&patched(&agent, json!({"metadata": {"finalizers": ["example.com/test"]}})).await?)?;
        is_accepted(&send(&tenant, request("DELETE", &one), None).await?)?;
        is_accepted(&patched(&agent, json!({"metadata": {"finalizers": []}})).await?)?;

        // With the right to create Services in the namespace, the tenant may.
        for object in rights("services", "", "services") {
            manifests::apply(cluster, &object.to_string()).await?;
        }
        let ask = async || send(&tenant, request("POST", &dry), Some(&import("probe", None))).await;
        until("the right is not used", Answer::is_success, ask).await.map(drop)
    })
}

/// Returns a derived Service as the agent writes it, with other fields of its spec.
fn derived(name: &str, spec: Value) -> Value {
    let labels = json!({
        "networking.fleet.azure.com/multi-cluster-service-name": "app",
        "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
    });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels}, "spec": {"ports": [{"port": 80}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    service
}

fn slice(name: &str, managed_by: &str, service: &str) -> Value {
    let labels = json!({"endpointslice.kubernetes.io/managed-by": managed_by, "kubernetes.io/service-name": service});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": name, "labels": labels},
        "addressType": "IPv4", "endpoints": [],
    })
}

const IMPORTER: &str = "endpointsliceimport-controller.networking.fleet.azure.com";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const FOREIGN: &str = "so the member agent must not write it";

#[test]
fn the_member_agent_writes_only_its_own_services_and_slices() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(1).await?;
        let cluster = &fleet.members[0].control_plane;
        manifests::apply(cluster, manifests::ENDPOINT_SLICES).await?;
        cluster.create_namespace("work").await?;
        let (admin, agent) = (cluster.admin(), cluster.access(MEMBER_AGENT).await?.client().await?);
        let by_agent = |path: &str| format!("{path}?fieldManager=fleetnet-member-agent");
        let mut foreign = derived("foreign", json!({}));
        foreign["metadata"]["labels"] = json!({"team": "blue"});
        let dry = format!("{SERVICES}?dryRun=All");
        let ask = async || send(&agent, request("POST", &dry), Some(&foreign)).await;
        until("the policy is not used", |it| it.message().contains(FOREIGN), ask).await?;

        // Services in its own namespace.
        is_denied(&send(&agent, request("POST", SERVICES), Some(&foreign)).await?, FOREIGN)?;
        is_accepted(&send(&admin, request("POST", SERVICES), Some(&foreign)).await?)?;
        let theirs = format!("{SERVICES}/foreign");
        let labels = json!({"metadata": {"labels": derived("x", json!({}))["metadata"]["labels"]}});
        is_denied(&send(&agent, request("PATCH", &by_agent(&theirs)), Some(&labels)).await?, FOREIGN)?;
        is_denied(&send(&agent, request("DELETE", &theirs), None).await?, FOREIGN)?;
        let limits = "adds no selector and no external addresses";
        for spec in [
            json!({"selector": {"app": "app"}}),
            json!({"externalIPs": ["10.9.9.9"]}),
            json!({"type": "ExternalName", "externalName": "example.com"}),
            json!({"type": "NodePort"}),
        ] {
            is_denied(&send(&agent, request("POST", SERVICES), Some(&derived("own", spec))).await?, limits)?;
        }
        let own = format!("{SERVICES}/own");
        let balancer = derived("own", json!({"type": "LoadBalancer"}));
        is_accepted(&send(&agent, request("POST", &by_agent(SERVICES)), Some(&balancer)).await?)?;
        // Somebody adds an external address, and takes the labels away. The agent may still write the Service, and
        // repair it.
        let edited = json!({"spec": {"externalIPs": ["10.9.9.9"]}});
        is_accepted(&send(&admin, request("PATCH", &own), Some(&edited)).await?)?;
        let port = json!({"spec": {"ports": [{"port": 81}]}});
        is_accepted(&send(&agent, request("PATCH", &by_agent(&own)), Some(&port)).await?)?;
        let another = json!({"spec": {"externalIPs": ["10.9.9.8"]}});
        is_denied(&send(&agent, request("PATCH", &by_agent(&own)), Some(&another)).await?, limits)?;
        let without = json!({"metadata": {"labels": null}});
        is_accepted(&send(&admin, request("PATCH", &own), Some(&without)).await?)?;
        is_denied(&send(&agent, request("PATCH", &by_agent(&own)), Some(&port)).await?, FOREIGN)?;
        is_accepted(&send(&agent, request("PATCH", &by_agent(&own)), Some(&labels)).await?)?;
        is_accepted(&send(&agent, request("DELETE", &own), None).await?)?;

        // Slices in all namespaces.
        let of_work = SLICES.replace("fleet-system", "work");
        is_accepted(&send(&agent, request("POST", SLICES), Some(&slice("imported", IMPORTER, "own"))).await?)?;
        is_accepted(&send(&agent, request("POST", &of_work), Some(&slice("made", CONTROLLER, "app"))).await?)?;
        is_denied(&send(&agent, request("POST", &of_work), Some(&slice("other", "staff", "app"))).await?, FOREIGN)?;
        is_accepted(&send(&admin, request("POST", &of_work), Some(&slice("other", "staff", "app"))).await?)?;
        let other = format!("{of_work}/other");
        is_denied(&send(&agent, request("DELETE", &other), None).await?, FOREIGN)?;
        is_accepted(&send(&agent, request("DELETE", &format!("{of_work}/made")), None).await?)?;
        let of_default = SLICES.replace("fleet-system", "default");
        let of_server = "must not write EndpointSlices of the API server";
        let forged = slice("kubernetes-2", CONTROLLER, "kubernetes");
        is_denied(&send(&agent, request("POST", &of_default), Some(&forged)).await?, of_server)?;
        // The API server of the tests makes no slice of its own.
        is_accepted(&send(&admin, request("POST", &of_default), Some(&slice("kubernetes", "", "kubernetes"))).await?)?;
        is_denied(&send(&agent, request("DELETE", &format!("{of_default}/kubernetes")), None).await?, "must not write")
    })
}
