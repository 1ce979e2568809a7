//! The EndpointSlice controller of the member agent on a real kube-apiserver, beside a real kube-controller-manager: what
//! upstream's integration tests and the conformance suite ask of whoever makes EndpointSlices, and ours besides.

mod auto;
mod bad_input;
mod beside;
mod conformance;
mod failover;
mod integration;
mod large;

use fleetnet_tests::agent::Agent;

/// Serves whoever else does.
const ON: (&str, &str) = ("--endpointslices", "on");

/// An agent says something with all of these.
async fn says(agent: &Agent, parts: &[&str]) -> anyhow::Result<()> {
    let what = format!("something with {parts:?}");
    agent.log().find(&what, |line| parts.iter().all(|part| line.contains(part)).then_some(())).await
}
