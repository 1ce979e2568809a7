//! Snapshot of a small healthy fleet for unit tests: member `west` exports the Service `shop/app`, and member `east`
//! imports it.

use crate::snapshot::{AgentObjects, Connection, Hub, HubSecret, Listing, Member, Reached, Snapshot, TokenClaims};
use fleetnet_api::crds::{self, Form};
use fleetnet_types::ObjectName;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Time of all clusters.
pub(crate) const NOW: &str = "2027-01-15T12:10:00Z";
/// Time at which all objects were created, 10 min earlier.
const CREATED: &str = "2027-01-15T12:00:00Z";
const GROUP: &str = "networking.fleet.azure.com";

pub(crate) fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

pub(crate) fn app() -> ObjectName {
    ObjectName { namespace: "shop".into(), name: "app".into() }
}

/// Decodes an object. `apiVersion` and `kind` are those of a fleet's kind.
pub(crate) fn object<K: DeserializeOwned>(kind: &str, mut json: Value) -> K {
    let version = if kind == "ServiceExport" { "v1beta1" } else { "v1alpha1" };
    (json["apiVersion"], json["kind"]) = (format!("{GROUP}/{version}").into(), kind.into());
    serde_json::from_value(json).expect("the object is valid")
}

/// Decodes an object of a kind of Kubernetes.
pub(crate) fn built_in<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).expect("the object is valid")
}

pub(crate) fn meta(namespace: &str, name: &str) -> Value {
    json!({
        "namespace": namespace, "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1", "generation": 1,
        "creationTimestamp": CREATED,
    })
}

pub(crate) fn conditions(type_: &str, status: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": CREATED}])
}

pub(crate) fn reference(cluster: &str, kind: &str, name: &str) -> Value {
    json!({
        "clusterId": cluster, "kind": kind, "namespace": "shop", "name": name, "resourceVersion": "1", "generation": 3,
        "uid": format!("uid-of-{name}"), "namespacedName": format!("shop/{name}"),
    })
}

/// Definitions of this version, generated once.
static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(|| crds::all(Form::Full));

fn connection(context: &str) -> Connection {
    Connection {
        context: Some(context.to_owned()),
        server_url: format!("https://{context}.example:6443"),
        authority: None,
        reached: Reached::Yes,
        now: Some(at(NOW)),
        answer_milliseconds: Some(10),
        throttled: false,
    }
}

fn agent(own: &str, name: &str) -> AgentObjects {
    let labels = json!({"app.kubernetes.io/name": name});
    let mut metadata = meta(own, name);
    metadata["labels"] = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "fleetnet"});
    let deployment = json!({
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
        "status": {"readyReplicas": 2},
    });
    AgentObjects {
        namespace: own.parse().expect("a name"),
        deployments: Listing::of(vec![built_in(deployment)]),
        pods: Listing::of(Vec::new()),
        leases: Listing::of(Vec::new()),
        definitions: Listing::of(DEFINITIONS.clone()),
        missing_rights: Listing::of(Vec::new()),
        missing_slice_rights: Listing::of(Vec::new()),
    }
}

/// Returns the MemberAgent of a member that was heard 5 s ago and whose clock is right.
pub(crate) fn member_agent(id: &str) -> Value {
    let mut metadata = meta(&format!("fleet-member-{id}"), id);
    metadata["managedFields"] = json!([
        {"manager": "a", "time": "2027-01-15T12:09:55Z", "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
        {"manager": "b", "time": "2027-01-15T12:09:59Z", "fieldsV1": {"f:status": {}}},
    ]);
    json!({
        "metadata": metadata,
        "spec": {
            "version": "0.1.0", "features": ["IPv6", "Headless"], "clusterUid": format!("cluster-{id}"),
            "renewTime": "2027-01-15T12:09:55.400000Z",
        },
        "status": {
            "version": "0.1.0", "features": ["IPv6", "Headless"], "exportedServices": 1, "exportedEndpoints": 1,
            "importedServices": 0,
        },
    })
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name, "creationTimestamp": CREATED}})
}

/// Returns the spec of the exported slice.
pub(crate) fn slice_spec() -> Value {
    json!({
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"]}],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpointSliceReference": reference("west", "EndpointSlice", "app-1"),
        "ownerServiceReference": {"namespace": "shop", "name": "app", "namespacedName": "shop/app"},
    })
}

fn account(namespace: &str) -> ServiceAccount {
    built_in(json!({"metadata": meta(namespace, "member-agent")}))
}

fn hub(agents: &str) -> Hub {
    let status = json!({"type": "ClusterSetIP", "clusters": [{"cluster": "west"}]});
    let mut import = meta("shop", "app");
    let in_use_by = json!({"MemberClusters": {"fleet-member-east": "east"}}).to_string();
    import["annotations"] = json!({format!("{GROUP}/service-in-use-by"): in_use_by});
    let mut claim = meta("fleet-member-east", "shop-app");
    claim["annotations"] = json!({format!("{GROUP}/service-type"): "ClusterIP"});
    let namespaces = ["shop", "fleet-member-west", "fleet-member-east"].map(namespace).map(built_in);
    Hub {
        connection: connection("hub"),
        agent: agent(agents, "hub-agent"),
        namespaces: Listing::of(namespaces.into()),
        member_agents: Listing::of(["east", "west"].map(|id| object("MemberAgent", member_agent(id))).into()),
        internal_exports: Listing::of(vec![object(
            "InternalServiceExport",
            json!({
                "metadata": meta("fleet-member-west", "shop-app"),
                "spec": {"ports": [], "serviceReference": reference("west", "Service", "app")},
                "status": {"conditions": conditions("Conflict", "False", "NoConflictFound")},
            }),
        )]),
        claims: Listing::of(vec![object(
            "InternalServiceImport",
            json!({
                "metadata": claim, "spec": {"serviceImportReference": reference("east", "ServiceImport", "app")},
                "status": status,
            }),
        )]),
        slice_exports: Listing::of(vec![object(
            "EndpointSliceExport",
            json!({"metadata": meta("fleet-member-west", "west-shop-app-1-x"), "spec": slice_spec()}),
        )]),
        distributed_slices: Listing::of(vec![object(
            "EndpointSliceImport",
            json!({"metadata": meta("fleet-member-east", "west-shop-app-1-x"), "spec": slice_spec()}),
        )]),
        service_imports: Listing::of(vec![object("ServiceImport", json!({"metadata": import, "status": status}))]),
        merged_imports: Listing::of(Vec::new()),
        events: Listing::of(Vec::new()),
        quotas: Listing::of(Vec::new()),
        accounts: Listing::of(["fleet-member-west", "fleet-member-east"].map(account).into()),
        ..Hub::default()
    }
}

fn member(agents: &str, id: &str) -> Member {
    let token = TokenClaims {
        subject: format!("system:serviceaccount:fleet-member-{id}:member-agent"),
        ..TokenClaims::default()
    };
    let secret = HubSecret {
        namespace: agents.to_owned(),
        name: "fleetnet-hub".to_owned(),
        url: "https://hub.example:6443".to_owned(),
        authority: None,
        token: Some(token),
    };
    Member {
        id: id.to_owned(),
        connection: connection(id),
        agent: agent(agents, "member-agent"),
        cluster_uid: Some(format!("cluster-{id}")),
        controller_manager: controller_manager(NOW),
        hub_secret: Listing::of(vec![secret]),
        service_exports: Listing::of(Vec::new()),
        multi_cluster_services: Listing::of(Vec::new()),
        service_imports: Listing::of(Vec::new()),
        mcs_exports: Listing::NotDefined,
        mcs_imports: Listing::NotDefined,
        nodes: Listing::NotAsked,
        namespaces: Listing::of(vec![built_in(namespace("shop"))]),
        services: Listing::of(Vec::new()),
        slices: Listing::of(Vec::new()),
        pods: Listing::of(Vec::new()),
        events: Listing::of(Vec::new()),
        missing_hub_rights: Listing::of(Vec::new()),
    }
}

/// Returns the snapshot of the healthy fleet. `members[0]` is the importer `east`, `members[1]` the exporter `west`.
pub(crate) fn healthy() -> Snapshot {
    healthy_in("fleet-system")
}

/// Returns the healthy fleet with agents in this namespace.
pub(crate) fn healthy_in(agents: &str) -> Snapshot {
    let (mut east, mut west) = (member(agents, "east"), member(agents, "west"));
    let mut slice = meta("shop", "app-1");
    slice["labels"] = json!({"kubernetes.io/service-name": "app"});
    let content = json!({
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    });
    let with = |metadata: Value| {
        let mut object = content.clone();
        object["metadata"] = metadata;
        built_in(object)
    };
    west.slices = Listing::of(vec![with(slice)]);
    west.services = Listing::of(vec![built_in(json!({"metadata": meta("shop", "app"), "spec": {}}))]);
    west.service_exports = Listing::of(vec![object(
        "ServiceExport",
        json!({
            "metadata": meta("shop", "app"),
            "status": {"conditions": conditions("Valid", "True", "ServiceIsValid")},
        }),
    )]);
    let mut imported = meta(agents, "west-shop-app-1-x");
    imported["labels"] = json!({
        "kubernetes.io/service-name": "shop-app",
        "endpointslice.kubernetes.io/managed-by": format!("endpointsliceimport-controller.{GROUP}"),
    });
    imported["annotations"] = json!({format!("{GROUP}/last-observed-generation"): "3"});
    east.slices = Listing::of(vec![with(imported)]);
    east.services = Listing::of(vec![built_in(json!({"metadata": meta(agents, "shop-app"), "spec": {}}))]);
    let mut request = meta("shop", "app");
    request["labels"] = json!({format!("{GROUP}/derived-service"): "shop-app"});
    east.multi_cluster_services = Listing::of(vec![object(
        "MultiClusterService",
        json!({
            "metadata": request,
            "spec": {"serviceImport": {"name": "app"}, "type": "ClusterIP"},
            "status": {"conditions": conditions("Valid", "True", "FoundServiceImport")},
        }),
    )]);
    Snapshot { hub: hub(agents), members: vec![east, west] }
}

/// Sets a field of an object, by JSON pointer.
pub(crate) fn set<K: serde::Serialize + serde::de::DeserializeOwned>(
    objects: &mut Listing<K>,
    pointer: &str,
    value: Value,
) {
    let object = &mut objects.objects_mut().expect("the listing is known")[0];
    let mut json = serde_json::to_value(&*object).expect("it serializes");
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    let parent = json.pointer_mut(parent).expect("the parent exists").as_object_mut().expect("an object");
    parent.insert(field.replace("~1", "/"), value);
    *object = serde_json::from_value(json).expect("the object is valid");
}

/// Sets a field in the spec of the exported slice.
pub(crate) fn set_slice(snapshot: &mut Snapshot, field: &str, value: Value) {
    set(&mut snapshot.hub.slice_exports, &format!("/spec/{field}"), value);
}

/// Lease of kube-controller-manager.
pub(crate) fn controller_manager(renewed: &str) -> Listing<Lease> {
    let mut lease = lease("kube-controller-manager", "it", renewed);
    set(&mut lease, "/metadata/namespace", json!("kube-system"));
    lease
}

/// Lease of an agent.
pub(crate) fn lease(name: &str, holder: &str, renewed: &str) -> Listing<Lease> {
    let renewed = renewed.replace('Z', ".000000Z");
    let spec = json!({"holderIdentity": holder, "renewTime": renewed});
    Listing::of(vec![built_in(json!({"metadata": meta("fleet-system", name), "spec": spec}))])
}
