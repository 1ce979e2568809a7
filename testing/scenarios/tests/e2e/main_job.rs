//! Tests of the main job on real API servers, with agents in separate processes.

use scenarios::environment::{Environment, FleetSpec, OnProcesses};
use scenarios::main_job;

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnProcesses>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    harness::run(async { scenario(Environment::create(spec).await?).await })
}

#[test]
fn the_first_export_and_import_cost_what_the_ledger_lists() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), main_job::the_first_export_and_import_cost_what_the_ledger_lists)
}

#[test]
fn a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(3),
        main_job::a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers,
    )
}

#[test]
fn a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        main_job::a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing,
    )
}

#[test]
fn b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), main_job::b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export)
}

#[test]
fn b1_a_deleted_slice_is_withdrawn_by_its_event() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), main_job::b1_a_deleted_slice_is_withdrawn_by_its_event)
}

#[test]
fn an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), main_job::an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again)
}

#[test]
fn an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace() -> anyhow::Result<()>
{
    run_scenario(
        FleetSpec::WITHOUT_GRACE,
        main_job::an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace,
    )
}

#[test]
fn a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        main_job::a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub,
    )
}

#[test]
fn a_service_deleted_and_created_again_is_exported_again() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), main_job::a_service_deleted_and_created_again_is_exported_again)
}
