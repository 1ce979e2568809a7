//! Test that kube-apiserver refuses each role what the role does not need.

use super::policy::{DENIED, TOKEN_DENIED};
use super::requests::{Expected, Request, Role, catalogue};
use super::{Answer, policy_is_used, request, send, until};
use anyhow::{Context as _, ensure};
use harness::control_plane::{ControlPlane, SERVICE_ACCOUNT};
use harness::fleet::{self, manifests};
use harness::turn::Turn;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Objects that the requests read, change and delete.
const OBJECTS: &str = include_str!("objects.yaml");
/// Objects of the member `west` in the hub.
const OF_MEMBER: &str = include_str!("member.yaml");

/// Starts one control plane that is hub and member: its service accounts are those of both. So one server has all
/// roles.
async fn cluster() -> anyhow::Result<ControlPlane> {
    let cluster = fleet::start_hub().await?;
    cluster.create_namespace("work").await?;
    for manifest in [manifests::MEMBER_AGENT, manifests::MEMBER_FLOW_CONTROL, manifests::VIEWER] {
        manifests::apply(&cluster, manifest).await?;
    }
    // The manifests bind these roles to the service accounts of the agents, which have other rights too. Here each role
    // has an account of its own.
    bind(&cluster, manifests::ENDPOINT_SLICES, "fleet-system", "endpointslices").await?;
    bind(&cluster, manifests::METRICS_AUTH, "work", "reviewer").await?;
    for (role, account) in [("fleetnet-viewer", "viewer"), ("fleetnet-metrics-reader", "scraper")] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject("work", account)],
        });
        for object in [account_object("work", account), binding] {
            manifests::apply(&cluster, &object.to_string()).await?;
        }
    }
    for id in ["west", "east"] {
        fleet::admit(&cluster, id).await?;
        manifests::apply(&cluster, &OF_MEMBER.replace("west", id)).await?;
    }
    manifests::apply(&cluster, OBJECTS).await?;
    Ok(cluster)
}

/// Applies the roles of a manifest, with bindings to a service account of their own.
async fn bind(cluster: &ControlPlane, manifest: &str, namespace: &str, account: &str) -> anyhow::Result<()> {
    manifests::apply(cluster, &account_object(namespace, account).to_string()).await?;
    for object in manifests::objects(manifest)? {
        let mut object = serde_json::to_value(object)?;
        if object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")) {
            object["subjects"] = json!([subject(namespace, account)]);
        }
        manifests::apply(cluster, &object.to_string()).await?;
    }
    Ok(())
}

fn account_object(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

fn subject(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}

async fn sent(client: &kube::Client, it: &Request, path: &str) -> anyhow::Result<Answer> {
    let mut request = request(&it.method, path);
    if let Some(user) = &it.impersonated {
        request = request.header("Impersonate-User", user);
    }
    send(client, request, it.body.as_ref()).await.with_context(|| it.shown())
}

/// Returns the reason why an answer is not the expected refusal.
fn flaw(it: &Request, answer: &Answer, user: &str) -> Option<String> {
    let message = answer.message();
    let by_rbac = message.contains(&format!("User \"{user}\" cannot "));
    let by_policy = message.contains(DENIED) || message.contains(TOKEN_DENIED);
    let is_expected = match it.expected {
        Expected::Allowed => return None,
        Expected::Refused => by_rbac,
        Expected::ByPolicy => by_policy,
    };
    let is_refused = answer.status == 403 && answer.body["reason"] == "Forbidden" && is_expected;
    (!is_refused).then(|| format!("{}: {} {message}", it.shown(), answer.status))
}

/// Returns the path of the collection that a write would change.
fn collection(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    // `/api/v1` or `/apis/<group>/<version>`, then `namespaces/<namespace>` unless the resource is not namespaced or is
    // the namespace itself, then the resource.
    let root = if segments[1] == "api" { 3 } else { 4 };
    let is_namespaced = segments[root] == "namespaces" && segments.len() > root + 2;
    let end = if is_namespaced { root + 3 } else { root + 1 };
    let length: usize = segments[..end].iter().map(|segment| segment.len() + 1).sum();
    &path[..length - 1]
}

/// Returns the objects of collections, with their versions. Reviews are not stored, so they have no collection.
async fn state(cluster: &ControlPlane, collections: &BTreeSet<&str>) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut state = BTreeMap::new();
    for collection in collections {
        let list = send(&cluster.admin(), request("GET", collection), None).await?;
        ensure!(list.is_success(), "{collection}: {list:?}");
        let items = list.body["items"].as_array().context("a list has items")?;
        // The API server renews a Lease of its own.
        let is_of_server = |name: &serde_json::Value| name.as_str().is_some_and(|name| name.starts_with("apiserver-"));
        let metadata = items.iter().map(|item| &item["metadata"]).filter(|it| !is_of_server(&it["name"]));
        let versions = metadata.map(|it| format!("{} {} {}", it["name"], it["uid"], it["resourceVersion"])).collect();
        state.insert((*collection).to_owned(), versions);
    }
    Ok(state)
}

/// Proves that nothing but the role stops the requests: the administrator may send them, and the server accepts them.
async fn succeed_for_an_administrator(cluster: &ControlPlane, requests: &[&Request]) -> anyhow::Result<()> {
    let mut flaws = Vec::new();
    for it in requests {
        let answer = sent(&cluster.admin(), it, &it.dry_run()).await?;
        if !answer.is_success() {
            flaws.push(format!("{}: {} {}", it.shown(), answer.status, answer.message()));
        }
    }
    ensure!(flaws.is_empty(), "{} requests fail for everybody:\n{}", flaws.len(), flaws.join("\n"));
    Ok(())
}

/// Rule K16: A member requests a token for its own account in the hub
/// Then: The policy `fleetnet-member-tokens` of `deploy/hub-admission.yaml` denies a life of more than 30 days, and a
/// token for the slice stream that has further audiences. The policy does not limit administrators
#[test]
fn each_role_is_refused_every_request_of_the_catalogue_and_nothing_changes() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let (cluster, roles) = (cluster().await?, catalogue()?);
        let refused: Vec<&Request> = roles.iter().flat_map(|role| role.requests(false)).collect();
        succeed_for_an_administrator(&cluster, &refused).await?;
        let mut clients = Vec::new();
        for role in &roles {
            let user = format!("{SERVICE_ACCOUNT}{}:{}", role.namespace, role.account);
            let client = cluster.access(&user).await?.client().await?;
            for it in role.requests(true) {
                let what = format!("{} is not allowed for the {}", it.shown(), role.name);
                until(&what, Answer::is_success, async || sent(&client, it, &it.path).await).await?;
            }
            if role.requests.iter().any(|it| it.expected == Expected::ByPolicy) {
                policy_is_used(&client, "west").await?;
            }
            clients.push((role, user, client));
        }

        let is_stored = |it: &&&Request| it.is_write() && !it.path.contains("reviews") && !it.path.ends_with("/token");
        let collections: BTreeSet<&str> = refused.iter().filter(is_stored).map(|it| collection(&it.path)).collect();
        let (mark, before) = (cluster.audit().mark().await?, state(&cluster, &collections).await?);
        let mut flaws = Vec::new();
        for (role, user, client) in &clients {
            for it in role.requests(false) {
                let answer = sent(client, it, &it.path).await?;
                flaws.extend(flaw(it, &answer, user).map(|flaw| format!("{}: {flaw}", role.name)));
            }
        }
        ensure!(flaws.is_empty(), "{} requests are not refused:\n{}", flaws.len(), flaws.join("\n"));
        is_logged(&cluster, mark, &roles, &clients).await?;
        let after = state(&cluster, &collections).await?;
        ensure!(before == after, "{before:#?}\n{after:#?}");
        Ok(())
    })
}

/// Checks with the audit log that the server got each write of the catalogue from its account, and refused it.
async fn is_logged(
    cluster: &ControlPlane,
    mark: harness::audit::Mark,
    roles: &[Role],
    clients: &[(&Role, String, kube::Client)],
) -> anyhow::Result<()> {
    let writes = cluster.audit().since(mark).await?;
    for (role, (_, user, _)) in roles.iter().zip(clients) {
        let statuses: Vec<u16> = writes.0.iter().filter(|it| it.user == *user).map(|it| it.status).collect();
        let expected = role.requests(false).filter(|it| it.is_write()).count();
        ensure!(
            statuses == vec![403; expected],
            "{}: {expected} writes were sent, the log has {statuses:?}",
            role.name
        );
    }
    Ok(())
}

#[test]
fn the_collection_of_a_path_is_what_a_write_would_change() {
    for (path, expected) in [
        ("/api/v1/namespaces", "/api/v1/namespaces"),
        ("/api/v1/namespaces/work", "/api/v1/namespaces"),
        ("/api/v1/nodes/node-1", "/api/v1/nodes"),
        ("/api/v1/namespaces/work/pods/app-1/status", "/api/v1/namespaces/work/pods"),
        ("/apis/apps/v1/namespaces/work/deployments?dryRun=All", "/apis/apps/v1/namespaces/work/deployments"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/a", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ] {
        assert_eq!(collection(path), expected);
    }
}
