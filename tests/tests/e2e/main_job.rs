//! The main job on real API servers, with agents in processes of their own.

use fleetnet_tests::stage::{Cast, OnProcesses, Stage};

fn play<S>(cast: Cast, scene: impl FnOnce(Stage<OnProcesses>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    fleetnet_tests::run(async { scene(Stage::set(cast).await?).await })
}

fleetnet_tests::play_the_main_job!(play);
