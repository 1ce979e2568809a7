//! Tests of the member agent's EndpointSlice controller on a real kube-apiserver, beside a real kube-controller-manager: those
//! of upstream's integration tests and conformance suite, and our own.

mod auto;
mod bad_input;
mod beside;
mod conformance;
mod failover;
mod integration;
mod large;

use fleetnet_tests::agent::Agent;

/// Flag with which the agent makes slices even if another controller does too.
const ON: (&str, &str) = ("--endpointslices", "on");

/// Waits until an agent logs a line that contains all of these texts.
async fn says(agent: &Agent, parts: &[&str]) -> anyhow::Result<()> {
    let what = format!("something with {parts:?}");
    agent.log().find(&what, |line| parts.iter().all(|part| line.contains(part)).then_some(())).await
}
