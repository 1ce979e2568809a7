//! Scenarios: each causes a failure, explains what happens, and compares the clusters with the expected state at the end.

mod agent_killed;
mod conflict;
mod hub_down;
mod slice_storm;

use super::scene::Scene;
use crate::args::Scenario;

/// Plays a scenario. Returns the differences from the expected state at its end as sentences.
///
/// # Errors
/// A server rejects a request that the scenario makes.
pub(crate) async fn play(scenario: Scenario, scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    match scenario {
        Scenario::HubDown => hub_down::play(scene).await,
        Scenario::AgentKilled => agent_killed::play(scene).await,
        Scenario::Conflict => conflict::play(scene).await,
        Scenario::SliceStorm => slice_storm::play(scene).await,
    }
}
