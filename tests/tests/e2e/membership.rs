//! Tests of members that a fleet manager defines, and of members that are lost for good, on real control planes. The definitions of the
//! manager's kinds are small ones of this test.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{EndpointSliceExport, MultiClusterService, ServiceExport};
use fleetnet_api::crds::yaml;
use harness::eventually::{self, Deadline};
use harness::fleet::{Fleet, manifests};
use harness::kubectl::Kubectl;
use harness::limits::POLL;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Entry of the fleet's own agent, which the agents must keep.
fn entry_of_another_agent() -> Value {
    json!({ "type": "MemberAgent", "conditions": [{ "type": "Healthy", "status": "True" }] })
}

/// Returns a definition of one of the manager's kinds, with a status subresource.
fn definition(kind: &str, scope: &str) -> anyhow::Result<String> {
    let (singular, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.cluster.kubernetes-fleet.io") },
        "spec": {
            "group": "cluster.kubernetes-fleet.io",
            "names": { "kind": kind, "plural": plural, "singular": singular },
            "scope": scope,
            "versions": [{
                "name": "v1beta1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": free, "status": free },
                } },
            }],
        },
    });
    Ok(yaml(&serde_json::from_value(definition)?))
}

const KINDS: [(&str, &str); 2] = [("InternalMemberCluster", "Namespaced"), ("MemberCluster", "Cluster")];

/// Installs the kinds of a fleet manager, and the rights for them.
async fn install_manager(fleet: &Fleet) -> anyhow::Result<()> {
    let documents: anyhow::Result<Vec<String>> = KINDS.iter().map(|(kind, scope)| definition(kind, scope)).collect();
    fleet.hub.apply_definitions(&documents?).await?;
    for member in &fleet.members {
        manifests::apply(&fleet.hub, &manifests::of_managed_member(&member.cluster_id)).await?;
        manifests::apply(&member.control_plane, manifests::FLEET_MANAGER_MEMBER).await?;
    }
    Ok(())
}

async fn request(client: &Client, method: http::Method, path: &str, body: &Value) -> anyhow::Result<Value> {
    let content = if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content);
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    client.request(request.body(body)?).await.with_context(|| path.to_owned())
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let metadata = json!({ "name": name, "finalizers": ["example.com/manager"] });
    json!({ "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec })
}

/// InternalMemberCluster of a member.
struct Membership {
    hub: Client,
    path: String,
}

impl Membership {
    async fn create(fleet: &Fleet, index: usize) -> anyhow::Result<Self> {
        let (hub, member) = (fleet.hub.admin(), &fleet.members[index]);
        let all = format!(
            "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/{}/internalmemberclusters",
            member.hub_namespace
        );
        let spec = json!({ "state": "Join", "heartbeatPeriodSeconds": 1 });
        let made = object("InternalMemberCluster", &member.cluster_id, &spec);
        request(&hub, http::Method::POST, &all, &made).await?;
        let path = format!("{all}/{}", member.cluster_id);
        let status = json!({ "status": { "agentStatus": [entry_of_another_agent()] } });
        request(&hub, http::Method::PATCH, &format!("{path}/status"), &status).await?;
        Ok(Self { hub, path })
    }

    async fn ask_to_leave(&self) -> anyhow::Result<()> {
        let leave = json!({ "spec": { "state": "Leave" } });
        request(&self.hub, http::Method::PATCH, &self.path, &leave).await.map(drop)
    }

    /// Waits until both agents have answered this, and returns the time of their last heartbeat.
    async fn answered(&self, status: &str, reason: &str) -> anyhow::Result<String> {
        let deadline = Deadline::start();
        loop {
            let found = request(&self.hub, http::Method::GET, &self.path, &Value::Null).await?;
            let (agents, generation) = (&found["status"]["agentStatus"], &found["metadata"]["generation"]);
            let is_answered = |agent: &Value| {
                let joined = &agent["conditions"][0];
                (&joined["type"], &joined["status"], &joined["reason"])
                    == (&json!("Joined"), &json!(status), &json!(reason))
                    && joined["observedGeneration"] == *generation
            };
            let [other, agents @ ..] = &agents.as_array().context("the entries of agents")?[..] else {
                anyhow::bail!("an entry is missing: {found}")
            };
            ensure!(*other == entry_of_another_agent(), "another agent's entry is now {other}");
            let types: Vec<&Value> = agents.iter().map(|agent| &agent["type"]).collect();
            if types == ["ServiceExportImportAgent", "MultiClusterServiceAgent"] && agents.iter().all(is_answered) {
                return Ok(agents[0]["lastReceivedHeartbeat"].as_str().context("a heartbeat")?.to_owned());
            }
            deadline.check().with_context(|| format!("both agents do not answer {status} {reason}: {found}"))?;
            sleep(POLL).await;
        }
    }
}

/// Exports and imports the Service `app` in each of two members.
async fn export_and_import(users: &[User; 2]) -> anyhow::Result<()> {
    for (user, address) in users.iter().zip(["10.1.0.1", "10.2.0.1"]) {
        user.create_service("app").await?;
        user.create_slice("app", "app-1", &[address]).await?;
        user.export("app").await?;
        user.import("app", "app", Consume::ClusterIp).await?;
    }
    for user in users {
        user.sees("app", &["10.1.0.1", "10.2.0.1"]).await?;
    }
    Ok(())
}

async fn users(fleet: &Fleet) -> anyhow::Result<[User; 2]> {
    let namespace = fleet.namespace("membership").await?;
    Ok([0, 1].map(|index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace)))
}

#[test]
fn a_manager_lets_a_member_join_and_leave() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(2).await?;
        install_manager(&fleet).await?;
        let membership = Membership::create(&fleet, 0).await?;
        let users = users(&fleet).await?;
        let _hub_agent = fleet.hub_agent().await?.start_ready().await?;
        let _first = fleet.member_agent(&fleet.members[0]).await?.start_ready().await?;
        let _second = fleet.member_agent(&fleet.members[1]).await?.start_ready().await?;
        export_and_import(&users).await?;
        let first = membership.answered("True", "AgentJoined").await?;
        let deadline = Deadline::start();
        while membership.answered("True", "AgentJoined").await? == first {
            deadline.check().context("there is no second heartbeat")?;
            sleep(POLL).await;
        }

        membership.ask_to_leave().await?;
        membership.answered("False", "AgentLeft").await?;
        eventually::gone(&users[0].api::<ServiceExport>(), "app").await?;
        eventually::gone(&users[0].api::<MultiClusterService>(), "app").await?;
        users[0].no_derived_service("app").await?;
        users[0].sees_no_slice("app").await?;
        users[1].sees("app", &["10.2.0.1"]).await?;
        let exports: Api<EndpointSliceExport> = Api::namespaced(fleet.hub.admin(), &fleet.members[0].hub_namespace);
        eventually::objects(&exports, &Default::default(), "no exported slice", |all| all.is_empty()).await?;
        Ok(())
    })
}

#[test]
fn a_member_that_is_lost_for_good_is_removed() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::own(2).await?;
        install_manager(&fleet).await?;
        let (hub, lost) = (fleet.hub.admin(), &fleet.members[1]);
        let all = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
        request(&hub, http::Method::POST, all, &object("MemberCluster", &lost.cluster_id, &json!({}))).await?;
        let users = users(&fleet).await?;
        let hub_agent = fleet.hub_agent().await?.flag("--force-delete-wait-time", "2s");
        let _hub_agent = hub_agent.start_ready().await?;
        let _member = fleet.member_agent(&fleet.members[0]).await?.start_ready().await?;
        let agent = fleet.member_agent(lost).await?.start_ready().await?;
        export_and_import(&users).await?;
        agent.kill().await?;

        request(&hub, http::Method::DELETE, &format!("{all}/{}", lost.cluster_id), &Value::Null).await?;
        let kubectl = Kubectl::with(fleet.hub.admin_kubeconfig()?).await?;
        kubectl.print(&format!("delete namespace {} --wait=false", lost.hub_namespace)).await?;
        eventually::gone(&Api::<Namespace>::all(hub), &lost.hub_namespace).await?;
        users[0].sees("app", &["10.1.0.1"]).await?;
        users[1].sees("app", &["10.1.0.1", "10.2.0.1"]).await?;
        Ok(())
    })
}
