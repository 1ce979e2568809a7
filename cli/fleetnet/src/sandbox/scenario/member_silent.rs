//! Scenario: a member falls silent, returns, and does the same again. The other members drain its endpoints meanwhile.
//! After the second silence they wait for a while.

use crate::args::Scenario;
use crate::limits::SET_UP;
use crate::sandbox::fleet::SILENCE;
use crate::sandbox::measure::milliseconds;
use crate::sandbox::scene::Scene;
use fleetnet_core::limits::FLAP_HOLD_MICROS;
use tokio::time::Instant;

pub(super) async fn play(scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let name = Scenario::MemberSilent.name();
    let victim = scene.members() - 1;
    let cluster = scene.name(victim);
    let mut wrong = Vec::new();
    for round in 0..2 {
        scene.fleet.kill_agent(victim).await;
        let soft = SILENCE.soft_micros / 1_000_000;
        scene.step(name, format!("{cluster} sends no heartbeats; after {soft} s, it counts as silent")).await;
        scene.expected.draining = Some(victim);
        wrong.extend(scene.all_as_expected(SET_UP).await);
        scene
            .step(
                name,
                format!("the endpoints of {cluster} are draining: they are used only if no other endpoint is ready"),
            )
            .await;
        scene.fleet.restart_agent(victim).await?;
        let begun = Instant::now();
        scene.expected.draining = None;
        wrong.extend(scene.all_as_expected(SET_UP).await);
        let took = milliseconds(begun.elapsed()) / 1000.0;
        let text = if round == 0 {
            format!("{cluster} sends heartbeats again: its endpoints are ready after {took:.1} s")
        } else {
            let hold = FLAP_HOLD_MICROS / 1_000_000;
            format!(
                "{cluster} fell silent twice, so it must send heartbeats for {hold} s: its endpoints are ready after {took:.1} s"
            )
        };
        scene.step(name, text).await;
    }
    Ok(wrong)
}
