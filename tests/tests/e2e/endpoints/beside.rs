//! `--endpointslices=auto` beside an active kube-controller-manager.

use super::auto::{AFTER, AUTO, Flapping, Scene};
use anyhow::ensure;
use fleetnet_tests::endpoints::is_serving;
use fleetnet_tests::fleet::MEMBER_AGENT;
use fleetnet_tests::run;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn auto_writes_nothing_beside_a_kube_controller_manager_at_work() -> anyhow::Result<()> {
    run(async {
        let (scene, _controller_manager) = Scene::set("beside").await?;
        let mark = scene.cluster.mark().await?;
        let agent = scene.cluster.serve(&AUTO).await?;
        let mut flapping = Flapping::watch(&scene.workload);
        for _ in 0..4 {
            flapping.change(&scene).await?;
        }
        // Longer than the time after which it would take over: only the Lease keeps it from that.
        let last_change = Instant::now();
        while last_change.elapsed() < AFTER + Duration::from_secs(1) {
            scene.renewed().await?;
            ensure!(!is_serving(&agent).await?, "{}", agent.log().tail());
        }
        for _ in 0..4 {
            flapping.change(&scene).await?;
        }
        let written = scene.cluster.control_plane.audit().since(mark).await?.of_user(MEMBER_AGENT);
        let resources: BTreeSet<&str> = written.0.iter().map(|entry| entry.resource.as_str()).collect();
        assert_eq!(resources, BTreeSet::from(["leases"]), "{written}");
        let [_, theirs] = scene.writes(mark).await?;
        assert_eq!(theirs.count(), flapping.changes, "{theirs}");
        Ok(())
    })
}
