//! Scenarios: each one causes a failure, explains the failure to the user, and compares the clusters with the expected
//! state at the end.

mod agent_killed;
mod conflict;
mod hub_down;
mod member_silent;
mod slice_storm;

use super::scene::Scene;
use crate::args::Scenario;

/// Runs a scenario. At the end, compares the clusters with the expected state and returns the differences as sentences.
///
/// # Errors
/// If a server rejects a request of the scenario.
pub(crate) async fn play(scenario: Scenario, scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    match scenario {
        Scenario::HubDown => hub_down::play(scene).await,
        Scenario::AgentKilled => agent_killed::play(scene).await,
        Scenario::MemberSilent => member_silent::play(scene).await,
        Scenario::Conflict => conflict::play(scene).await,
        Scenario::SliceStorm => slice_storm::play(scene).await,
    }
}
