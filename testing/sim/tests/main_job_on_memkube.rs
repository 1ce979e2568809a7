//! Tests of the main job, in one process on paused time. The same scenarios also run on real API servers.

mod support;

use scenarios::environment::{Environment, FleetSpec};
use support::OnMemkube;

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnMemkube>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async { scenario(Environment::create(spec).await?).await })
}

scenarios::main_job_tests!(run_scenario);
