//! The member agent's EndpointSlice controller on a real kube-apiserver, beside a real kube-controller-manager. It has the
//! tests of upstream's integration tests and conformance suite, and our own.

mod auto;
mod bad_input;
mod beside;
mod conformance;
mod failover;
mod integration;
mod large;

use fleetnet_tests::agent::Agent;

/// Serves even if another controller serves too.
const ON: (&str, &str) = ("--endpointslices", "on");

/// Waits until an agent logs a line that contains all of these.
async fn says(agent: &Agent, parts: &[&str]) -> anyhow::Result<()> {
    let what = format!("something with {parts:?}");
    agent.log().find(&what, |line| parts.iter().all(|part| line.contains(part)).then_some(())).await
}
