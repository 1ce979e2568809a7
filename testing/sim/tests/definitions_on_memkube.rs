//! Tests that the CRDs of `deploy/crds` behave on memkube as on a real API server.

use kube::Client;
use memkube::clock::TokioClock;
use memkube::{MemKube, Options, User};
use scenarios::definitions::upgrade;
use std::sync::Arc;

fn run_scenario<S>(scenario: impl FnOnce(Client) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async {
        let clock = TokioClock::starting_at("2027-01-15T12:00:00Z".parse()?);
        let client = MemKube::new(Options::new(Arc::new(clock), 1)).client(User::new("admin"));
        upgrade(&client).await?;
        scenario(client).await
    })
}

scenarios::definition_tests!(run_scenario);
