//! Tests of `--endpointslices=auto` beside an active kube-controller-manager.

use super::auto::{AFTER, AUTO, Flapping, Setup};
use anyhow::ensure;
use harness::endpoints::is_serving;
use harness::fleet::MEMBER_AGENT;
use harness::run;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn auto_writes_nothing_beside_a_kube_controller_manager_at_work() -> anyhow::Result<()> {
    run(async {
        let (setup, _controller_manager) = Setup::create("beside").await?;
        let mark = setup.cluster.mark().await?;
        let agent = setup.cluster.serve(&AUTO).await?;
        let mut flapping = Flapping::watch(&setup.workload);
        for _ in 0..4 {
            flapping.change(&setup).await?;
        }
        // Wait longer than the takeover time without a change of a slice. So the renewed Lease is the only reason for
        // the agent to stay inactive.
        let last_change = Instant::now();
        while last_change.elapsed() < AFTER + Duration::from_secs(1) {
            setup.renewed().await?;
            ensure!(!is_serving(&agent).await?, "{}", agent.log().tail());
        }
        for _ in 0..4 {
            flapping.change(&setup).await?;
        }
        let written = setup.cluster.control_plane.audit().since(mark).await?.of_user(MEMBER_AGENT);
        let resources: BTreeSet<&str> = written.0.iter().map(|entry| entry.resource.as_str()).collect();
        assert_eq!(resources, BTreeSet::from(["leases"]), "{written}");
        let [_, theirs] = setup.writes(mark).await?;
        assert_eq!(theirs.count(), flapping.changes, "{theirs}");
        Ok(())
    })
}
