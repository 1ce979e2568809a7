//! Test of the dashboards and rules for Prometheus: Debian's Prometheus scrapes real agents, with the labels that the
//! charts give. Each query of a dashboard must have series, and no alert may be active in a healthy fleet.

mod activity;
mod dashboards;
mod rules;
mod scrape;

use activity::Activity;
use anyhow::{Context as _, bail, ensure};
use dashboards::Dashboard;
use harness::agent::Agent;
use harness::eventually::Deadline;
use harness::fleet::{FLEET_SYSTEM, Fleet, HUB_AGENT, MEMBER_AGENT, manifests};
use harness::gate::GateProxy;
use harness::kubectl::Kubectl;
use harness::prometheus::Prometheus;
use harness::tinyproxy::Tinyproxy;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// Secret with the member agent's token for the hub.
const SECRET: &str = "fleetnet-hub";

/// Fault that a panel needs to have series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// An object is blocked until a user acts. The test makes one at its end.
    BlockedObject,
    /// Watches fail. The test ends the proxy between two agents and their clusters.
    FailedWatch,
}

/// Panels without series in a healthy fleet: dashboard, title, and what they need. Other panels must have series.
const EXCEPTIONS: [(&str, &str, Fault); 5] = [
    ("fleetnet-fleet", "Blocked objects by reason", Fault::BlockedObject),
    ("fleetnet-fleet", "Blocked objects now", Fault::BlockedObject),
    ("fleetnet-fleet", "Watches that failed", Fault::FailedWatch),
    ("fleetnet-member", "Blocked objects now", Fault::BlockedObject),
    ("fleetnet-member", "Watches that failed", Fault::FailedWatch),
];

/// Agents of a fleet: of the hub, then of each member. The first member also makes its EndpointSlices, and renews its
/// token. The agents of the hub and of the second member reach their clusters through the proxy. Both members use the
/// slice stream, through the gate.
async fn agents(fleet: &Fleet, proxy: &Tinyproxy, gate: &GateProxy) -> anyhow::Result<Vec<Agent>> {
    let [first, second] = fleet.members.as_slice() else { bail!("the fleet has two members") };
    let kubeconfig = proxy.kubeconfig(&fleet.hub.kubeconfig(HUB_AGENT).await?)?;
    manifests::apply(&fleet.hub, manifests::SLICE_STREAM).await?;
    let spec = fleet.hub_agent().await?.flag("--kubeconfig", kubeconfig);
    let spec = spec.flag("--slice-stream-bind-address", "127.0.0.1:0");
    let hub_agent = spec.flag("--slice-stream-advertise-address", gate.address()).start_ready().await?;
    gate.open_to(hub_agent.slice_stream_address().await?);
    manifests::apply(&first.control_plane, manifests::ENDPOINT_SLICES).await?;
    let secrets: Api<Secret> = Api::namespaced(first.control_plane.admin(), FLEET_SYSTEM);
    let mut secret = Secret::default();
    secret.metadata.name = Some(SECRET.to_owned());
    let token = fleet.hub.access(&first.hub_user).await?.token;
    secret.data = Some([("token".to_owned(), ByteString(token.into_bytes()))].into());
    secrets.create(&PostParams::default(), &secret).await?;
    let spec = fleet.member_agent(first).await?.flag("--endpointslices", "on");
    let spec = spec.flag("--hub-token-secret", format!("{FLEET_SYSTEM}/{SECRET}"));
    let first_agent = spec.start_ready().await?;
    let kubeconfig = proxy.kubeconfig(&second.control_plane.kubeconfig(MEMBER_AGENT).await?)?;
    // As deploy/member-agent.yaml does, because the agent has no rights to the pods.
    let spec = fleet.member_agent(second).await?.flag("--endpointslices", "off").flag("--kubeconfig", kubeconfig);
    Ok(vec![hub_agent, first_agent, spec.start_ready().await?])
}

/// Removes what other tests of the shared fleet must not find.
async fn remove(fleet: &Fleet) -> anyhow::Result<()> {
    let first = &fleet.members[0].control_plane;
    let secrets: Api<Secret> = Api::namespaced(first.admin(), FLEET_SYSTEM);
    secrets.delete(SECRET, &DeleteParams::default()).await?;
    let kubectl = Kubectl::with(first.admin_kubeconfig()?).await?;
    kubectl.script("kubectl delete -f deploy/endpointslices.yaml").await.map(drop)
}

/// Changes objects until each query of the dashboards has series, if the fleet has these faults. Other panels of
/// [`EXCEPTIONS`] must have none.
async fn have_series(
    prometheus: &Prometheus,
    dashboards: &[Dashboard],
    activity: &mut Activity,
    present: &[Fault],
) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        activity.go_on().await?;
        let mut wrong = Vec::new();
        for dashboard in dashboards {
            for panel in &dashboard.panels {
                let (uid, title) = (dashboard.uid.as_str(), panel.title.as_str());
                let exception = EXCEPTIONS.iter().find(|it| (it.0, it.1) == (uid, title));
                let missing = exception.filter(|it| !present.contains(&it.2));
                let found = panel.faults(prometheus).await?;
                match missing {
                    None => wrong.extend(found.iter().map(|it| format!("{uid} {title}: {it}"))),
                    Some(_) if !found.is_empty() => {}
                    Some((_, _, fault)) => {
                        wrong.push(format!("{uid} {title}: it has series without the fault {fault:?} of EXCEPTIONS"));
                    }
                }
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        deadline.check().with_context(|| format!("with {present:?}:\n{}", wrong.join("\n")))?;
    }
}

/// Waits until each panel that needs [`Fault::FailedWatch`] has series.
async fn failed_watches_have_series(prometheus: &Prometheus, dashboards: &[Dashboard]) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    for (uid, title, _) in EXCEPTIONS.iter().filter(|it| it.2 == Fault::FailedWatch) {
        let panels = dashboards.iter().filter(|it| it.uid == *uid).flat_map(|it| &it.panels);
        for panel in panels.filter(|it| it.title == *title) {
            loop {
                let wrong = panel.faults(prometheus).await?;
                if wrong.is_empty() {
                    break;
                }
                deadline.pause(|| format!("{uid} {title}: {}", wrong.join("\n"))).await?;
            }
        }
    }
    Ok(())
}

/// Waits until each rule was evaluated once more, and has no fault.
async fn rules_are_fine(prometheus: &Prometheus, activity: &mut Activity) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    let before = rules::evaluations(prometheus).await?;
    loop {
        activity.go_on().await?;
        let wrong = rules::faults(prometheus, &before).await?;
        if wrong.is_empty() {
            return Ok(());
        }
        deadline.check().with_context(|| wrong.join("\n"))?;
    }
}

async fn observe(fleet: &Fleet) -> anyhow::Result<()> {
    let proxy = Tinyproxy::start(None).await?;
    let gate = GateProxy::start_shut().await?;
    let agents = agents(fleet, &proxy, &gate).await?;
    let configuration = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": rules::files()?,
        "scrape_configs": scrape::configurations(fleet, &agents).await?,
    });
    let prometheus = Prometheus::start(&configuration).await?;
    let dashboards = dashboards::all()?;
    for (uid, title, _) in EXCEPTIONS {
        let has = |it: &Dashboard| it.uid == uid && it.panels.iter().any(|panel| panel.title == title);
        ensure!(dashboards.iter().any(has), "there is no panel {title} in {uid}");
    }
    let mut activity = Activity::begin(fleet).await?;
    have_series(&prometheus, &dashboards, &mut activity, &[]).await?;
    rules_are_fine(&prometheus, &mut activity).await?;
    activity.import_twice().await?;
    have_series(&prometheus, &dashboards, &mut activity, &[Fault::BlockedObject]).await?;
    // Without its agents' connections, the fleet has no activity, so only these panels have series.
    proxy.end().await?;
    failed_watches_have_series(&prometheus, &dashboards).await
}

#[test]
fn each_query_of_the_dashboards_has_series_and_no_alert_is_active_in_a_healthy_fleet() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(2).await?;
        let observed = observe(&fleet).await;
        // Also after a failure, so that the next test of the shared fleet does not fail too.
        let removed = remove(&fleet).await;
        observed.and(removed)
    })
}
