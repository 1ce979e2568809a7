//! Make before break on real API servers, with agents in processes of their own.

use anyhow::Context as _;
use fleetnet_tests::audit::Ledger;
use fleetnet_tests::eventually::Deadline;
use fleetnet_tests::fleet::FLEET_SYSTEM;
use fleetnet_tests::limits::POLL;
use fleetnet_tests::scenes::succession::{
    make_slices_anew, slices_are_left_in_the_hub, slices_made_anew_leave_no_moment_without_endpoints,
};
use fleetnet_tests::stage::{Cast, Ground as _, OnProcesses, Stage};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

const CAST: Cast = Cast::of(2);

#[test]
fn slices_made_anew_leave_no_moment_without_endpoints_on_real_servers() -> anyhow::Result<()> {
    fleetnet_tests::run(async {
        slices_made_anew_leave_no_moment_without_endpoints(Stage::<OnProcesses>::set(CAST).await?).await
    })
}

#[test]
fn a_real_quota_that_refuses_the_new_slice_keeps_the_old_one_until_it_is_lifted() -> anyhow::Result<()> {
    fleetnet_tests::run(async {
        let stage = Stage::<OnProcesses>::set(CAST).await?;
        stage.export_and_import(&["10.1.0.1"]).await?;
        let mut routes = stage.user(1).routes("app");
        routes.are(&["10.1.0.1:8080"]).await?;

        // No controller counts objects here, so the quota is used up for as long as its status says so.
        let quotas: Api<ResourceQuota> = Api::namespaced(stage.members[1].client.clone(), FLEET_SYSTEM);
        let used_up = json!({"count/endpointslices.discovery.k8s.io": "1"});
        let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": used_up}});
        quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
        let status = Patch::Merge(json!({"status": {"hard": used_up, "used": used_up}}));
        quotas.patch_status("small", &PatchParams::default(), &status).await?;

        let mark = stage.ground.mark().await?;
        make_slices_anew(&stage.user(0), "app-1", "app-2", "10.1.0.2", 8081).await?;
        let deadline = Deadline::start();
        let is_refused = |ledger: &Ledger| ledger.of_agents().filter(|entry| entry.status == 403).count() > 0;
        while !stage.ground.since(&mark).await?.clusters().any(is_refused) {
            deadline.check().context("nobody was refused")?;
            sleep(POLL).await;
        }
        routes.are(&["10.1.0.1:8080"]).await?;

        quotas.delete("small", &DeleteParams::default()).await?;
        routes.are(&["10.1.0.2:8081"]).await?;
        routes.never_led_nowhere()?;
        slices_are_left_in_the_hub(&stage, 1).await
    })
}
