//! Tests of the member agent's EndpointSlice controller, with a real kube-apiserver and a real kube-controller-manager.
//! The tests check the requirements of upstream's integration tests and conformance suite, and those of fleetnet.

mod auto;
mod bad_input;
mod beside;
mod conformance;
mod failover;
mod integration;

use harness::agent::Agent;

/// Flag with which the agent's EndpointSlice controller is always active, even if another controller is active too.
const ON: (&str, &str) = ("--endpointslices", "on");

/// Waits until an agent logs a line that contains all of these texts.
async fn logs(agent: &Agent, parts: &[&str]) -> anyhow::Result<()> {
    let what = format!("something with {parts:?}");
    agent.log().find(&what, |line| parts.iter().all(|part| line.contains(part)).then_some(())).await
}
