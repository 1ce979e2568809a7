//! Failures to watch: each does something, says what, and tells what is wrong in the end.

mod agent_killed;
mod conflict;
mod hub_down;
mod slice_storm;

use super::scene::Scene;
use crate::args::Scenario;

/// Plays it, and tells in sentences what did not come out as it should.
///
/// # Errors
/// Where a server refuses what it should not.
pub(crate) async fn play(scenario: Scenario, scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    match scenario {
        Scenario::HubDown => hub_down::play(scene).await,
        Scenario::AgentKilled => agent_killed::play(scene).await,
        Scenario::Conflict => conflict::play(scene).await,
        Scenario::SliceStorm => slice_storm::play(scene).await,
    }
}
