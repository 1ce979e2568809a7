//! The main job, as on real API servers, in one process on paused time.

mod support;

use fleetnet_tests::stage::{Cast, Stage};
use support::OnMemkube;

fn play<S>(cast: Cast, scene: impl FnOnce(Stage<OnMemkube>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async { scene(Stage::set(cast).await?).await })
}

fleetnet_tests::play_the_main_job!(play);
