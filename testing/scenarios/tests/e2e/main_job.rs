//! Tests of the main job on real API servers, with agents in separate processes.

use scenarios::environment::{Environment, FleetSpec, OnProcesses};

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnProcesses>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    harness::run(async { scenario(Environment::create(spec).await?).await })
}

scenarios::main_job_tests!(run_scenario);
