//! Tests that the CRDs of `deploy/crds` behave on memkube as on a real API server.

use kube::Client;
use memkube::clock::TokioClock;
use memkube::{MemKube, Options, User};
use scenarios::definitions;
use std::sync::Arc;

fn run_scenario<S>(scenario: impl FnOnce(Client) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async {
        let clock = TokioClock::starting_at("2027-01-15T12:00:00Z".parse()?);
        let client = MemKube::new(Options::new(Arc::new(clock), 1)).client(User::new("admin"));
        definitions::upgrade(&client).await?;
        scenario(client).await
    })
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
