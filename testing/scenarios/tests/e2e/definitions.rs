//! Tests of the CRDs of `deploy/crds` on a real API server.

use harness::control_plane::shared;
use harness::run;
use kube::Client;
use scenarios::definitions;
use tokio::sync::OnceCell;

static UPGRADED: OnceCell<Client> = OnceCell::const_new();

async fn upgraded() -> anyhow::Result<Client> {
    let upgrade = || async {
        let client = shared().await?.admin();
        definitions::upgrade(&client).await?;
        anyhow::Ok(client)
    };
    UPGRADED.get_or_try_init(upgrade).await.cloned()
}

fn run_scenario<S>(scenario: impl FnOnce(Client) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    run(async { scenario(upgraded().await?).await })
}

#[test]
fn the_committed_definitions_are_one_for_each_kind_and_take_valid_objects() -> anyhow::Result<()> {
    run_scenario(definitions::the_committed_definitions_are_one_for_each_kind_and_take_valid_objects)
}

#[test]
fn both_versions_of_service_export_are_served() -> anyhow::Result<()> {
    run_scenario(definitions::both_versions_of_service_export_are_served)
}

#[test]
fn a_bad_multi_cluster_service_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_multi_cluster_service_is_rejected)
}

#[test]
fn a_bad_service_export_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_service_export_is_rejected)
}

#[test]
fn a_bad_service_import_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_service_import_is_rejected)
}

#[test]
fn a_bad_endpoint_slice_export_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_endpoint_slice_export_is_rejected)
}

#[test]
fn a_bad_endpoint_slice_import_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_endpoint_slice_import_is_rejected)
}

#[test]
fn a_bad_internal_service_export_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_internal_service_export_is_rejected)
}

#[test]
fn a_bad_internal_service_import_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_internal_service_import_is_rejected)
}

#[test]
fn a_bad_member_agent_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_member_agent_is_rejected)
}

#[test]
fn a_bad_merged_service_import_is_rejected() -> anyhow::Result<()> {
    run_scenario(definitions::a_bad_merged_service_import_is_rejected)
}
