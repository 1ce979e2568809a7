//! Tests of faults that only a real connection can have: a TLS handshake gets no response, connections break or become
//! silent, tokens appear late or are revoked. `testing/sim/tests/fleets/bad_answers_on_memkube/` tests the other
//! faults.

use anyhow::ensure;
use harness::agent::{Agent, AgentSpec};
use harness::audit::{Entry, FleetMark};
use harness::eventually::Deadline;
use harness::gate::{Gate, GateProxy};
use harness::kubeconfig::Access;
use harness::process::Ended;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec, OnProcesses};
use scenarios::marker::Marker;
use scenarios::snapshot::{Snapshot, differences, take_snapshot};
use std::path::PathBuf;
use tokio::time::Instant;

const FLEET: FleetSpec = FleetSpec::of(2);
const BEFORE: [&str; 1] = ["10.1.0.1"];
const AFTER: [&str; 2] = ["10.1.0.2", "10.1.0.3"];
/// Place of the exporter's agent. This agent writes to the hub when a slice changes.
const EXPORTER: AgentPlace = AgentPlace::Member(0);
/// Number of changes of the marker Service after a fault. If each of these changes causes only the expected writes, the
/// fleet has settled.
const SETTLED_CHANGES: usize = 5;

/// Fleet that has exported and imported a Service and makes no more writes.
struct Settled {
    env: Environment<OnProcesses>,
    marker: Marker,
    /// State of the fleet after the same change without faults. A test compares the state of its fleet with this state.
    expected: Snapshot,
    /// Access of the exporter's agent to the hub. The agent itself is stopped.
    hub: Access,
}

async fn settled() -> anyhow::Result<Settled> {
    let mut env = Environment::<OnProcesses>::create(FLEET).await?;
    let marker = Marker::make(&env).await?;
    env.namespace = env.backend.namespace("bad").await?;
    env.export_and_import(&BEFORE).await?;
    changed(&env, &AFTER).await?;
    let expected = take_snapshot(&env).await?;
    changed(&env, &BEFORE).await?;
    env.backend.stop(EXPORTER).await?;
    let hub = env.backend.hub_access(0).await?;
    Ok(Settled { env, marker, expected, hub })
}

async fn changed(env: &Environment<OnProcesses>, addresses: &[&str]) -> anyhow::Result<()> {
    env.user(0).set_endpoints("app-1", addresses).await?;
    env.user(1).sees("app", addresses).await.map(drop)
}

/// Returns settings for the exporter's agent. The caller has stopped the previous process, which released its Leases.
async fn exporter(env: &Environment<OnProcesses>) -> anyhow::Result<AgentSpec> {
    env.backend.spec(EXPORTER).await
}

/// Waits until an agent logs a line that contains all of these texts.
async fn logs(agent: &Agent, parts: &[&str]) -> anyhow::Result<()> {
    let what = format!("something with {parts:?}");
    agent.log().find(&what, |line| parts.iter().all(|part| line.contains(part)).then_some(())).await
}

/// Asserts that the importer has the endpoints `AFTER`, that the fleet is in the expected state, and that no agent
/// makes more writes. The exporter's agent must be the same process as before the fault.
async fn recovers(settled: Settled, agent: Agent) -> anyhow::Result<()> {
    let Settled { env, mut marker, expected, .. } = settled;
    env.user(1).sees("app", &AFTER).await?;
    agent.ready().await?;
    let deadline = Deadline::start();
    loop {
        let wrong = differences(&expected, &take_snapshot(&env).await?);
        if wrong.is_empty() {
            break;
        }
        deadline.pause(|| wrong.join("\n")).await?;
    }
    for _ in 0..SETTLED_CHANGES {
        marker.is_settled(&env).await?;
    }
    ensure!(agent.terminate().await? == Ended::Exited(0), "{}", agent.log().tail());
    Ok(())
}

/// Asserts that the log has at most `most` warnings plus one for each second since `since`: while the hub is down, the
/// agent must not fill the log.
fn few_complaints(agent: &Agent, since: Instant, most: usize) -> anyhow::Result<()> {
    let complaints = agent.log().lines().iter().filter(|line| line.contains("WARN")).count();
    let most = most + usize::try_from(since.elapsed().as_secs())?;
    ensure!(complaints <= most, "{complaints} complaints, at most {most}\n{}", agent.log().tail());
    Ok(())
}

#[test]
fn a_hub_that_never_answers_a_tls_handshake_times_out_and_is_used_once_it_answers() -> anyhow::Result<()> {
    harness::run(async {
        let settled = settled().await?;
        let (env, hub) = (&settled.env, &settled.hub);
        let (began, gate) = (Instant::now(), GateProxy::start(&hub.server_url, Gate::Silent).await?);
        let agent = exporter(env).await?.variable("HUB_SERVER_URL", &gate.server_url).start().await?;
        env.user(0).set_endpoints("app-1", &AFTER).await?;
        logs(&agent, &["WARN", "a watch failed; the agent retries", "hub"]).await?;
        let (_, readiness) = agent.get("/readyz").await?;
        ensure!(readiness.contains("[-]hub/endpointsliceexports: incomplete"), "{readiness}");
        env.user(1).sees("app", &BEFORE).await?;
        few_complaints(&agent, began, 20)?;

        // Open the gate: existing connections stay silent, and new connections reach the server.
        gate.set_state(Gate::Open);
        recovers(settled, agent).await
    })
}

#[test]
fn broken_or_silent_connections_to_the_hub_remove_nothing_and_the_fleet_catches_up() -> anyhow::Result<()> {
    harness::run(async {
        let settled = settled().await?;
        let (env, hub) = (&settled.env, &settled.hub);
        let (began, gate) = (Instant::now(), GateProxy::start(&hub.server_url, Gate::Open).await?);
        let agent = exporter(env).await?.variable("HUB_SERVER_URL", &gate.server_url).start_ready().await?;
        changed(env, &["10.1.0.4"]).await?;

        gate.set_state(Gate::Silent);
        env.user(0).set_endpoints("app-1", &["10.1.0.5"]).await?;
        logs(&agent, &["WARN", "a write failed; the agent retries", "EndpointSliceExport", "outcome unknown"]).await?;
        env.user(1).sees("app", &["10.1.0.4"]).await?;
        gate.set_state(Gate::Open);
        env.user(1).sees("app", &["10.1.0.5"]).await?;

        gate.set_state(Gate::Shut);
        env.user(0).set_endpoints("app-1", &AFTER).await?;
        logs(&agent, &["WARN", "a watch failed; the agent retries", "EndpointSliceExport"]).await?;
        env.user(1).sees("app", &["10.1.0.5"]).await?;
        few_complaints(&agent, began, 120)?;
        gate.set_state(Gate::Open);
        recovers(settled, agent).await
    })
}

/// Returns the number of the exporter's heartbeats (writes to its MemberAgent in the hub) after the position `mark`
/// that got this status.
async fn heartbeats(env: &Environment<OnProcesses>, mark: &FleetMark, status: u16) -> anyhow::Result<usize> {
    let namespace = &*env.members[0].hub_namespace;
    let ledger = env.backend.since(mark).await?;
    let of_exporter = |entry: &&Entry| entry.resource == "memberagents" && entry.namespace == namespace;
    Ok(ledger.hub.0.iter().filter(of_exporter).filter(|entry| entry.status == status).count())
}

#[test]
fn heartbeats_that_a_role_does_not_allow_back_off() -> anyhow::Result<()> {
    harness::run(async {
        let settled = settled().await?;
        let env = &settled.env;
        let agent = exporter(env).await?.start_ready().await?;
        changed(env, &["10.1.0.4"]).await?;

        // Change the role into the role of an older hub, which has no MemberAgents.
        let roles: Api<Role> = env.hub(&env.members[0].hub_namespace);
        let allowed = roles.get("fleetnet-member-agent").await?;
        let mut older = allowed.clone();
        let is_about = |resources: &Option<Vec<String>>| resources.iter().flatten().any(|it| it == "memberagents");
        older.rules.iter_mut().for_each(|rules| rules.retain(|rule| !is_about(&rule.resources)));
        ensure!(older != allowed, "the role says nothing of MemberAgents");
        let mark = env.backend.mark().await?;
        let replaced = roles.replace("fleetnet-member-agent", &PostParams::default(), &older).await?;

        // Wait for four denied heartbeats. The agent sends the first heartbeat within 10 s, and repeats a denied
        // heartbeat after about 1, 2 and 4 s.
        let deadline = Deadline::start();
        while heartbeats(env, &mark, 403).await? < 4 {
            deadline.pause(|| "four heartbeats that are denied").await?;
        }
        changed(env, &["10.1.0.5"]).await?;
        env.user(0).set_endpoints("app-1", &AFTER).await?;
        env.user(1).sees("app", &AFTER).await?;
        let denied = heartbeats(env, &mark, 403).await?;
        ensure!(denied <= 6, "{denied} heartbeats were sent though they are denied: {}", agent.log().tail());
        let complaints = agent.log().lines().iter().filter(|line| line.contains("WARN")).count();
        ensure!(complaints <= 30, "{}", agent.log().tail());

        let allowed = Role { metadata: replaced.metadata, ..allowed };
        roles.replace("fleetnet-member-agent", &PostParams::default(), &allowed).await?;
        let mark = env.backend.mark().await?;
        let deadline = Deadline::start();
        while heartbeats(env, &mark, 200).await? == 0 {
            deadline.pause(|| "a heartbeat once the role allows it").await?;
        }
        recovers(settled, agent).await
    })
}

#[test]
fn a_late_token_is_waited_for_and_a_revoked_one_is_read_again() -> anyhow::Result<()> {
    harness::run(async {
        let settled = settled().await?;
        let (env, hub) = (&settled.env, &settled.hub);
        let folder = tempfile::tempdir()?;
        let file: PathBuf = folder.path().join("token");
        let agent = exporter(env).await?.variable("CONFIG_PATH", &file).start().await?;
        logs(&agent, &["WARN", "the bearer token file", "cannot be read"]).await?;
        let (_, readiness) = agent.get("/readyz").await?;
        ensure!(readiness.contains("[-]hub/endpointsliceexports: incomplete"), "{readiness}");

        std::fs::write(&file, &hub.token)?;
        agent.ready().await?;
        changed(env, &["10.1.0.4"]).await?;

        // Deleting the service account revokes its tokens. The new account has the same name and rights.
        let namespace = &env.members[0].hub_namespace;
        let accounts: Api<ServiceAccount> = env.hub(namespace);
        let mut account = accounts.get("member-agent").await?;
        accounts.delete("member-agent", &DeleteParams::default()).await?;
        (account.metadata.uid, account.metadata.resource_version) = (None, None);
        accounts.create(&PostParams::default(), &account).await?;
        let unauthorized = hub.client().await?;
        let deadline = Deadline::start();
        while unauthorized.apiserver_version().await.is_ok() {
            deadline.pause(|| "the token is still good").await?;
        }
        env.user(0).set_endpoints("app-1", &AFTER).await?;
        logs(&agent, &["WARN", "a write failed; the agent retries", "EndpointSliceExport", "401"]).await?;
        env.user(1).sees("app", &["10.1.0.4"]).await?;

        std::fs::write(&file, env.backend.hub_access(0).await?.token)?;
        recovers(settled, agent).await
    })
}
