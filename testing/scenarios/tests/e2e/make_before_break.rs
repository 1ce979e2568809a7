//! Tests of handover (make-before-break) on real API servers, with agents in separate processes.

use harness::audit::Ledger;
use harness::eventually::Deadline;
use harness::fleet::FLEET_SYSTEM;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use scenarios::environment::{Backend as _, Environment, FleetSpec, OnProcesses};
use scenarios::handover::{
    recreate_slices, recreated_slices_leave_no_moment_without_endpoints, slices_are_left_in_the_hub,
};
use serde_json::json;

const FLEET: FleetSpec = FleetSpec::of(2);

#[test]
fn recreated_slices_leave_no_moment_without_endpoints_on_real_servers() -> anyhow::Result<()> {
    harness::run(async {
        recreated_slices_leave_no_moment_without_endpoints(Environment::<OnProcesses>::create(FLEET).await?).await
    })
}

#[test]
fn a_real_quota_that_denies_the_new_slice_keeps_the_old_one_until_it_is_lifted() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FLEET).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let mut routes = env.user(1).routes("app");
        routes.are(&["10.1.0.1:8080"]).await?;

        // No controller counts objects in this cluster, so the quota stays used up until the test changes its status.
        let quotas: Api<ResourceQuota> = Api::namespaced(env.members[1].client.clone(), FLEET_SYSTEM);
        let used_up = json!({"count/endpointslices.discovery.k8s.io": "1"});
        let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": used_up}});
        quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
        let status = Patch::Merge(json!({"status": {"hard": used_up, "used": used_up}}));
        quotas.patch_status("small", &PatchParams::default(), &status).await?;

        let mark = env.backend.mark().await?;
        recreate_slices(&env.user(0), "app-1", "app-2", "10.1.0.2", 8081).await?;
        let deadline = Deadline::start();
        let has_denied_write = |ledger: &Ledger| ledger.of_agents().filter(|entry| entry.status == 403).count() > 0;
        while !env.backend.since(&mark).await?.clusters().any(has_denied_write) {
            deadline.pause(|| "no write was denied").await?;
        }
        routes.are(&["10.1.0.1:8080"]).await?;

        quotas.delete("small", &DeleteParams::default()).await?;
        routes.are(&["10.1.0.2:8081"]).await?;
        routes.never_empty()?;
        slices_are_left_in_the_hub(&env, 1).await
    })
}
