//! Test of the flow control in `deploy/`: which FlowSchema and which level the requests of the agents get.

use super::{Answer, request, send, until};
use anyhow::{Context as _, ensure};
use harness::control_plane::ControlPlane;
use harness::fleet::{Fleet, HUB_AGENT, MEMBER_AGENT};
use std::collections::BTreeMap;

const API: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const GROUP: &str = "/apis/networking.fleet.azure.com/v1alpha1";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/fleet-system/leases";

/// Names by UID of the objects of a kind.
async fn names(cluster: &ControlPlane, plural: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let list = send(&cluster.admin(), request("GET", &format!("{API}/{plural}")), None).await?;
    let items = list.body["items"].as_array().context("a list has items")?;
    let text = |text: &serde_json::Value| text.as_str().unwrap_or_default().to_owned();
    Ok(items.iter().map(|item| (text(&item["metadata"]["uid"]), text(&item["metadata"]["name"]))).collect())
}

#[test]
fn requests_of_agents_have_their_own_levels_and_those_for_leases_the_level_of_elections() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let member = &fleet.members[0];
        let (hub, own) = (&*fleet.hub, &*member.control_plane);
        let claims = format!("{GROUP}/namespaces/{}/internalserviceimports", member.hub_namespace);
        let pods = format!("/api/v1/namespaces/{}/pods", member.hub_namespace);
        let of_hub = format!("{LEASES}/2bf2b407.hub.networking.fleet.azure.com");
        let of_member = format!("{LEASES}/2bf2b407.member.networking.fleet.azure.com");
        let node = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
        let all_claims = format!("{GROUP}/internalserviceimports");
        let member_user = &*member.hub_user;
        for (cluster, user, path, schema, level) in [
            (hub, HUB_AGENT, &*all_claims, "fleetnet-hub-agent", "fleetnet-hub-agent"),
            (hub, HUB_AGENT, &*claims, "fleetnet-hub-agent", "fleetnet-hub-agent"),
            (hub, HUB_AGENT, "/version", "fleetnet-hub-agent", "fleetnet-hub-agent"),
            (hub, HUB_AGENT, &*of_hub, "fleetnet-hub-agent-leases", "leader-election"),
            (hub, HUB_AGENT, node, "fleetnet-hub-agent", "fleetnet-hub-agent"),
            (hub, member_user, &*claims, "fleetnet-members", "fleetnet-members"),
            (hub, member_user, &*all_claims, "service-accounts", "workload-low"),
            (hub, member_user, &*pods, "service-accounts", "workload-low"),
            (hub, member_user, &*of_hub, "service-accounts", "workload-low"),
            (own, MEMBER_AGENT, "/api/v1/services", "fleetnet-member-agent", "fleetnet-member-agent"),
            (own, MEMBER_AGENT, "/version", "fleetnet-member-agent", "fleetnet-member-agent"),
            (own, MEMBER_AGENT, &*of_member, "fleetnet-member-agent-leases", "leader-election"),
            (own, MEMBER_AGENT, node, "fleetnet-member-agent", "fleetnet-member-agent"),
        ] {
            let client = cluster.access(user).await?.client().await?;
            let (schemas, levels) =
                (names(cluster, "flowschemas").await?, names(cluster, "prioritylevelconfigurations").await?);
            let named = |answer: &Answer, header: &str, names: &BTreeMap<String, String>| -> Option<String> {
                names.get(answer.headers.get(header)?.to_str().ok()?).cloned()
            };
            // The answer may be a refusal: flow control comes before authorization.
            let is_expected = |answer: &Answer| {
                named(answer, "X-Kubernetes-PF-FlowSchema-UID", &schemas).as_deref() == Some(schema)
                    && named(answer, "X-Kubernetes-PF-PriorityLevel-UID", &levels).as_deref() == Some(level)
            };
            let what = format!("{path} of {user} is not in {schema} and {level} of {schemas:?} and {levels:?}");
            until(&what, is_expected, async || send(&client, request("GET", path), None).await).await?;
        }
        for cluster in [hub, own] {
            are_used(cluster).await?;
        }
        Ok(())
    })
}

/// Checks that no FlowSchema of fleetnet names a level that does not exist, and that each member is a flow of its own.
async fn are_used(cluster: &ControlPlane) -> anyhow::Result<()> {
    let list = send(&cluster.admin(), request("GET", &format!("{API}/flowschemas")), None).await?;
    let items = list.body["items"].as_array().context("a list has items")?;
    let is_ours =
        |it: &&serde_json::Value| it["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("fleetnet-"));
    let ours: Vec<_> = items.iter().filter(is_ours).collect();
    ensure!(ours.len() >= 2, "{ours:?}");
    for schema in ours {
        let conditions = schema["status"]["conditions"].as_array().context("the server has looked at the schema")?;
        let is_dangling = conditions.iter().any(|it| it["type"] == "Dangling" && it["status"] == "True");
        ensure!(!is_dangling && schema["spec"]["distinguisherMethod"]["type"] == "ByUser", "{schema}");
    }
    Ok(())
}
