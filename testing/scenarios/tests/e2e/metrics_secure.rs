//! Test of `--metrics-secure` on a real API server: it decides with TokenReview and SubjectAccessReview who reads the
//! metrics. The agents have the rights in `deploy/metrics-auth.yaml`.

use anyhow::ensure;
use harness::agent::{Agent, AgentSpec};
use harness::control_plane::{ControlPlane, SERVICE_ACCOUNT};
use harness::fleet::{FLEET_SYSTEM, Fleet, HUB_AGENT, manifests};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// Service account that may read the metrics, and one that may not.
const SCRAPER: &str = "metrics-scraper";
const OTHER: &str = "metrics-other";

/// Gives the agents their rights, creates the two service accounts, and lets the scraper read the metrics.
async fn prepare(cluster: &ControlPlane) -> anyhow::Result<()> {
    manifests::apply(cluster, manifests::METRICS_AUTH).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.admin(), FLEET_SYSTEM);
    for name in [SCRAPER, OTHER] {
        let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        accounts.create(&PostParams::default(), &account).await?;
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.admin());
    let binding = serde_json::from_value(json!({
        "metadata": {"name": SCRAPER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fleetnet-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": SCRAPER, "namespace": FLEET_SYSTEM}],
    }))?;
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}

async fn remove(cluster: &ControlPlane) -> anyhow::Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.admin(), FLEET_SYSTEM);
    for name in [SCRAPER, OTHER] {
        accounts.delete(name, &DeleteParams::default()).await?;
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.admin());
    bindings.delete(SCRAPER, &DeleteParams::default()).await?;
    Ok(())
}

async fn token(cluster: &ControlPlane, account: &str) -> anyhow::Result<String> {
    Ok(cluster.access(&format!("{SERVICE_ACCOUNT}{FLEET_SYSTEM}:{account}")).await?.token)
}

/// Reads the metrics at an address over TLS. Returns the status and the body of the response. The certificate is
/// self-signed, so the client does not verify it.
async fn get(address: &str, token: Option<&str>) -> anyhow::Result<(u16, String)> {
    let mut config = kube::Config::new(format!("https://{address}").parse()?);
    config.accept_invalid_certs = true;
    let mut request = http::Request::get("/metrics");
    if let Some(token) = token {
        request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = kube::Client::try_from(config)?.send(request.body(kube::client::Body::empty())?).await?;
    let status = response.status().as_u16();
    Ok((status, String::from_utf8(response.into_body().collect_bytes().await?.to_vec())?))
}

fn secure(spec: AgentSpec) -> AgentSpec {
    spec.flag("--metrics-secure", "true")
}

/// Asserts who may read the metrics of an agent in this cluster, and that its probes stay open.
async fn is_protected(agent: &Agent, cluster: &ControlPlane, metric: &str) -> anyhow::Result<()> {
    let address = agent.secure_metrics_address().await?;
    let (scraper, other) = (token(cluster, SCRAPER).await?, token(cluster, OTHER).await?);
    for (token, expected) in [
        (None, 401),
        (Some("no-token-of-this-cluster"), 401),
        (Some(other.as_str()), 403),
        (Some(scraper.as_str()), 200),
        (Some(scraper.as_str()), 200),
    ] {
        let (status, body) = get(&address, token).await?;
        ensure!(status == expected, "{expected} was expected, not {status}: {body}");
        ensure!(body.contains(metric) == (expected == 200), "{status}: {body}");
        ensure!(body.contains("fleetnet_build_info{") == (expected == 200), "{status}: {body}");
    }
    let (status, body) = agent.get("/readyz").await?;
    ensure!(status == 200, "{status}: {body}");
    let (status, body) = agent.get("/metrics").await?;
    ensure!(status == 404 && !body.contains(metric), "the probes' address serves no metrics: {status}: {body}");
    Ok(())
}

/// Also rule K12.
#[test]
fn protected_metrics_are_served_to_clients_that_the_api_server_accepts() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let member = &fleet.members[0];
        for cluster in [&*fleet.hub, &member.control_plane] {
            prepare(cluster).await?;
        }
        let mark = fleet.hub.audit().mark().await?;
        let hub_agent = secure(fleet.hub_agent().await?).start_ready().await?;
        is_protected(&hub_agent, &fleet.hub, "fleetnet_exports").await?;
        let member_agent = secure(fleet.member_agent(member).await?).start_ready().await?;
        is_protected(&member_agent, &member.control_plane, "fleetnet_hub_token_expiry_timestamp_seconds").await?;

        // The scraper read the metrics twice, and there is one review about it.
        let writes = fleet.hub.audit().since(mark).await?;
        for (resource, expected) in [("tokenreviews", 3), ("subjectaccessreviews", 2)] {
            let reviews = writes.0.iter().filter(|write| write.user == HUB_AGENT && write.resource == resource);
            ensure!(reviews.count() == expected, "not {expected} {resource}:\n{writes}");
        }
        for cluster in [&*fleet.hub, &member.control_plane] {
            remove(cluster).await?;
        }
        Ok(())
    })
}
