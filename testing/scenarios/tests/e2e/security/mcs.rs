//! Tests of the admission policy in `deploy/multicluster-api.yaml`, which keeps the member agent from the objects of
//! others in the namespaces of users. The token is that of the agent's service account.

use super::{Answer, request, send, until};
use anyhow::ensure;
use harness::fleet::{Fleet, MEMBER_AGENT, manifests};
use serde_json::{Value, json};

const DENIED: &str =
    "ValidatingAdmissionPolicy 'fleetnet-multicluster-api' with binding 'fleetnet-multicluster-api' denied request: ";

/// Kind that the agent writes in namespaces of users.
struct Kind {
    kind: &'static str,
    version: &'static str,
    /// Path of the kind in the namespace `work`.
    path: &'static str,
    /// Label that shows the agent as the writer.
    label: (&'static str, &'static str),
    fields: fn() -> Value,
    /// Name that the agent may use.
    name: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        kind: "Service",
        version: "v1",
        path: "/api/v1/namespaces/work/services",
        label: ("app.kubernetes.io/managed-by", "fleetnet-member-agent"),
        fields: || json!({"spec": {"ports": [{"port": 80}]}}),
        name: "derived-0123456789",
    },
    Kind {
        kind: "EndpointSlice",
        version: "discovery.k8s.io/v1",
        path: "/apis/discovery.k8s.io/v1/namespaces/work/endpointslices",
        label: ("endpointslice.kubernetes.io/managed-by", "endpointsliceimport-controller.networking.fleet.azure.com"),
        fields: || json!({"addressType": "IPv4", "endpoints": []}),
        name: "own",
    },
    Kind {
        kind: "ServiceImport",
        version: "multicluster.x-k8s.io/v1beta1",
        path: "/apis/multicluster.x-k8s.io/v1beta1/namespaces/work/serviceimports",
        label: ("app.kubernetes.io/managed-by", "fleetnet-member-agent"),
        fields: || json!({"spec": {"type": "Headless", "ports": []}}),
        name: "own",
    },
];

impl Kind {
    fn object(&self, name: &str, labels: Value) -> Value {
        let mut object = (self.fields)();
        object["apiVersion"] = self.version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": name, "labels": labels});
        object
    }

    fn labels(&self) -> Value {
        json!({self.label.0: self.label.1})
    }

    /// Checks that the policy denied a request, with a message that names the object and the label.
    fn is_denied(&self, answer: &Answer, name: &str) -> anyhow::Result<()> {
        let (label, writer) = self.label;
        let kind = self.kind;
        let expected = format!(
            "{DENIED}{kind} work/{name} has not the label {label}={writer}, so the member agent must not write it"
        );
        ensure!(answer.status == 403 && answer.message().ends_with(&expected), "{answer:?}\nexpected: {expected}");
        Ok(())
    }
}

fn is_accepted(answer: &Answer) -> anyhow::Result<()> {
    ensure!(answer.is_success(), "{answer:?}");
    Ok(())
}

/// Checks that the agent cannot take over clients of other Services, by no label of its objects.
async fn others_are_not_reached(admin: &kube::Client, agent: &kube::Client) -> anyhow::Result<()> {
    let [service, slice, import] = &KINDS;
    let mut taken = slice.object("own", slice.labels());
    taken["metadata"]["labels"]["kubernetes.io/service-name"] = "app".into();
    let mut selecting = service.object(service.name, service.labels());
    selecting["spec"]["selector"] = json!({"app": "app"});
    let mut external = service.object(service.name, service.labels());
    external["spec"]["externalIPs"] = json!(["10.9.9.9"]);
    let mut balancer = service.object(service.name, service.labels());
    balancer["spec"]["type"] = "LoadBalancer".into();
    let named = service.object("app", service.labels());
    let of_kubernetes = |kind: &Kind| kind.path.replace("work", "kube-system");
    for (path, object, why) in [
        (slice.path.to_owned(), taken, "is for the Service app"),
        (service.path.to_owned(), named, "is for the Service app"),
        (service.path.to_owned(), selecting, "has the type ClusterIP, no selector"),
        (service.path.to_owned(), external, "has the type ClusterIP, no selector"),
        (service.path.to_owned(), balancer, "has the type ClusterIP, no selector"),
        (of_kubernetes(slice), slice.object("own", slice.labels()), "namespaces of Kubernetes"),
        (of_kubernetes(service), service.object(service.name, service.labels()), "namespaces of Kubernetes"),
        (of_kubernetes(import), import.object("own", import.labels()), "namespaces of Kubernetes"),
    ] {
        let answer = send(agent, request("POST", &path), Some(&object)).await?;
        ensure!(answer.status == 403 && answer.message().contains(why), "{answer:?}\nexpected: {why}");
        is_accepted(&send(admin, request("POST", &format!("{path}?dryRun=All")), Some(&object)).await?)?;
    }
    Ok(())
}

#[test]
fn in_namespaces_of_users_the_agent_writes_only_objects_with_its_own_label() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(1).await?;
        let cluster = &fleet.members[0].control_plane;
        let definitions: Vec<String> = fleetnet_api::crds::mcs().iter().map(fleetnet_api::crds::yaml).collect();
        cluster.apply_definitions(&definitions).await?;
        manifests::apply(cluster, manifests::MCS_API).await?;
        cluster.create_namespace("work").await?;
        let (admin, agent) = (cluster.admin(), cluster.access(MEMBER_AGENT).await?.client().await?);
        // The policy about slices in all clusters also denies some of these requests.
        let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
        is_accepted(&send(&admin, request("DELETE", &format!("{bindings}/fleetnet-member-agent")), None).await?)?;
        for kind in &KINDS {
            let probe = kind.object("derived-1234567890", json!({}));
            let path = format!("{}?dryRun=All", kind.path);
            let ask = async || send(&agent, request("POST", &path), Some(&probe)).await;
            until("the policy is not used", |it| it.message().contains(DENIED), ask).await?;
            kind.is_denied(&send(&agent, request("POST", kind.path), Some(&probe)).await?, "derived-1234567890")?;

            // An object of a user, also if the agent pretends that it is its own.
            let own_name = kind.name;
            let (own, theirs) = (format!("{}/{own_name}", kind.path), format!("{}/derived-9876543210", kind.path));
            let users = kind.object("derived-9876543210", json!({"team": "blue"}));
            is_accepted(&send(&admin, request("POST", kind.path), Some(&users)).await?)?;
            let labelled = json!({"metadata": {"labels": kind.labels()}});
            let by_agent = |path: &str| format!("{path}?fieldManager=fleetnet-member-agent");
            let changed = send(&agent, request("PATCH", &by_agent(&theirs)), Some(&labelled)).await?;
            kind.is_denied(&changed, "derived-9876543210")?;
            let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
            kind.is_denied(&send(&agent, request("PATCH", &theirs), Some(&annotated)).await?, "derived-9876543210")?;
            kind.is_denied(&send(&agent, request("DELETE", &theirs), None).await?, "derived-9876543210")?;

            // An object of the agent. It may not give it away.
            let object = kind.object(own_name, kind.labels());
            is_accepted(&send(&agent, request("POST", &by_agent(kind.path)), Some(&object)).await?)?;
            is_accepted(&send(&agent, request("PATCH", &by_agent(&own)), Some(&annotated)).await?)?;
            let unlabelled = json!({"metadata": {"labels": {kind.label.0: null}}});
            kind.is_denied(&send(&agent, request("PATCH", &by_agent(&own)), Some(&unlabelled)).await?, own_name)?;

            // A user removes its label. The agent may restore the label, and nothing else.
            is_accepted(&send(&admin, request("PATCH", &own), Some(&unlabelled)).await?)?;
            kind.is_denied(&send(&agent, request("PATCH", &by_agent(&own)), Some(&annotated)).await?, own_name)?;
            is_accepted(&send(&agent, request("PATCH", &by_agent(&own)), Some(&labelled)).await?)?;
            is_accepted(&send(&admin, request("PATCH", &own), Some(&unlabelled)).await?)?;
            is_accepted(&send(&agent, request("DELETE", &own), None).await?)?;
            is_accepted(&send(&admin, request("DELETE", &theirs), None).await?)?;
        }
        others_are_not_reached(&admin, &agent).await?;
        // In its own namespace, the policy does not apply: a slice may belong to any Service.
        let mut slice = KINDS[1].object("own", KINDS[1].labels());
        slice["metadata"]["labels"]["kubernetes.io/service-name"] = "app".into();
        let path = KINDS[1].path.replace("work", "fleet-system");
        is_accepted(&send(&agent, request("POST", &path), Some(&slice)).await?)
    })
}

#[test]
fn as_the_endpointslice_controller_the_agent_also_writes_the_slices_of_users() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(1).await?;
        let cluster = &fleet.members[0].control_plane;
        for manifest in [manifests::MCS_API, manifests::ENDPOINT_SLICES] {
            manifests::apply(cluster, manifest).await?;
        }
        cluster.create_namespace("work").await?;
        let agent = cluster.access(MEMBER_AGENT).await?.client().await?;
        let [service, slice, _] = &KINDS;
        let probe = service.object("derived-1234567890", json!({}));
        let path = format!("{}?dryRun=All", service.path);
        let ask = async || send(&agent, request("POST", &path), Some(&probe)).await;
        until("the policy is not used", |it| it.message().contains(DENIED), ask).await?;
        let of_controller = json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
        let object = slice.object("one", of_controller);
        is_accepted(&send(&agent, request("POST", slice.path), Some(&object)).await?)
    })
}
