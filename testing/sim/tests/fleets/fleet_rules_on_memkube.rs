//! Tests of the main job and of the rules of the fleet, in one process on paused time. The scenarios also run on real
//! API servers. Other rules need a minute to test, and run only here.

use crate::support::OnMemkube;
use fleetnet_api::crd::MemberAgent;
use harness::audit::Ledger;
use kube::api::DeleteParams;
use scenarios::announced::{self, sees_shares};
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec};
use scenarios::{carried, conflicts, deletion, main_job, rich, trust};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time for which the features of a member stay valid after its MemberAgent was deleted.
const MINUTE: Duration = Duration::from_secs(60);
/// Time in which all effects of a change become visible.
const SOON: Duration = Duration::from_secs(1);

fn run_scenario<S>(spec: FleetSpec, scenario: impl FnOnce(Environment<OnMemkube>) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async { scenario(Environment::create(spec).await?).await })
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

#[test]
fn a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts,
    )
}

#[test]
fn fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement,
    )
}

#[test]
fn fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        announced::fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement,
    )
}

#[test]
fn a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), announced::a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn)
}

#[test]
fn all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), carried::all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes)
}

#[test]
fn a_headless_service_arrives_headless_where_its_export_asks_for_it() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), carried::a_headless_service_arrives_headless_where_its_export_asks_for_it)
}

#[test]
fn a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2),
        conflicts::a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it,
    )
}

#[test]
fn a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::WITHOUT_GRACE,
        deletion::a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports,
    )
}

#[test]
fn a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports)
}

#[test]
fn a_namespace_deleted_in_the_hub_removes_nothing_in_the_members() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_namespace_deleted_in_the_hub_removes_nothing_in_the_members)
}

#[test]
fn an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::WITHOUT_GRACE,
        deletion::an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports,
    )
}

#[test]
fn an_importing_members_namespace_deleted_in_the_hub_is_removed() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::an_importing_members_namespace_deleted_in_the_hub_is_removed)
}

#[test]
fn a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion)
}

#[test]
fn a_service_export_is_removed_with_any_propagation_of_its_deletion() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_service_export_is_removed_with_any_propagation_of_its_deletion)
}

#[test]
fn a_deleted_service_is_removed_with_its_slices_and_their_exports() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_deleted_service_is_removed_with_its_slices_and_their_exports)
}

#[test]
fn a_service_import_without_its_owner_is_garbage_collected_and_created_again() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), deletion::a_service_import_without_its_owner_is_garbage_collected_and_created_again)
}

#[test]
fn an_exporter_that_is_not_allowed_exports_nothing_and_is_notified() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::an_exporter_that_is_not_allowed_exports_nothing_and_is_notified)
}

#[test]
fn an_importer_that_is_not_allowed_imports_nothing_and_is_notified() -> anyhow::Result<()> {
    run_scenario(FleetSpec::WITHOUT_GRACE, trust::an_importer_that_is_not_allowed_imports_nothing_and_is_notified)
}

#[test]
fn addresses_outside_the_declared_ranges_are_not_imported_and_are_reported() -> anyhow::Result<()> {
    run_scenario(
        FleetSpec::of(2).with_source_ranges("10.1.0.0/16,fd00:1::/32"),
        trust::addresses_outside_the_declared_ranges_are_not_imported_and_are_reported,
    )
}

#[test]
fn addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported)
}

#[test]
fn objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing() -> anyhow::Result<()> {
    run_scenario(FleetSpec::of(2), trust::objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing)
}

/// Returns the number of writes to MemberAgents in `seconds`. The ledger itself waits for 5 s, so the sleep here is
/// shorter by 5 s.
async fn heartbeats(env: &Environment<OnMemkube>, seconds: u64) -> anyhow::Result<BTreeMap<String, usize>> {
    const OF_LEDGER: u64 = 5;
    let mark = env.backend.mark().await?;
    sleep(Duration::from_secs(seconds - OF_LEDGER)).await;
    let ledger = env.backend.since(&mark).await?;
    assert_eq!(ledger.members.iter().map(|member| member.heartbeats().count()).sum::<usize>(), 0, "in the hub alone");
    Ok(ledger.hub.heartbeats().counts())
}

fn lines<const N: usize>(lines: [(&str, usize); N]) -> BTreeMap<String, usize> {
    lines.into_iter().map(|(line, count)| (line.to_owned(), count)).collect()
}

/// Also rules U1, U4.
#[test]
fn a_member_renews_every_ten_seconds_and_the_hub_answers_where_a_count_has_changed() -> anyhow::Result<()> {
    const MEMBER_1: &str = "patch memberagents in fleet-member-member-1 by member-agent";
    const MEMBER_2: &str = "patch memberagents in fleet-member-member-2 by member-agent";
    sim::paused(async {
        let env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
        assert_eq!(heartbeats(&env, 100).await?, lines([(MEMBER_1, 10), (MEMBER_2, 10)]));
        env.export_and_import(&["10.1.0.1", "10.1.0.2"]).await?;
        let answered = [
            (MEMBER_1, 2),
            (MEMBER_2, 2),
            ("patch memberagents/status in fleet-member-member-1 by hub-agent", 1),
            ("patch memberagents/status in fleet-member-member-2 by hub-agent", 1),
        ];
        assert_eq!(heartbeats(&env, 20).await?, lines(answered));
        sees_shares(&env, 0, [1, 1, 2, 0, 0]).await?;
        sees_shares(&env, 1, [0, 0, 0, 1, 1]).await?;
        // Change an endpoint without a change of the number of endpoints. So no count in the MemberAgents changes, and
        // the hub agent does not answer the heartbeats.
        env.user(0).set_endpoints("app-1", &["10.1.0.3", "10.1.0.2"]).await?;
        assert_eq!(heartbeats(&env, 20).await?, lines([(MEMBER_1, 2), (MEMBER_2, 2)]));
        env.user(0).set_endpoints("app-1", &["10.1.0.3"]).await?;
        let of_exporter = [answered[0], answered[1], answered[2]];
        assert_eq!(heartbeats(&env, 20).await?, lines(of_exporter), "an importer has no endpoints counted");
        sees_shares(&env, 0, [1, 1, 1, 0, 0]).await.map(drop)
    })
}

/// Also rule A12.
#[test]
fn a_member_whose_counts_change_with_every_renewal_renews_as_usual() -> anyhow::Result<()> {
    sim::paused(async {
        let env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let mark = env.backend.mark().await?;
        let begun = Instant::now();
        for round in 0..30 {
            let addresses: &[&str] = if round % 2 == 0 { &["10.1.0.1", "10.1.0.2"] } else { &["10.1.0.1"] };
            env.user(0).set_endpoints("app-1", addresses).await?;
            sleep(Duration::from_secs(10)).await;
        }
        let renewed = env.backend.since(&mark).await?.hub.heartbeats().counts();
        let count = |line: &str| renewed.get(line).copied().unwrap_or_default();
        let renewals = count("patch memberagents in fleet-member-member-1 by member-agent");
        let due = usize::try_from(begun.elapsed().as_secs() / 10)?;
        assert!((due - 1..=due + 1).contains(&renewals), "{renewals} renewals, and {due} are due");
        let answers = count("patch memberagents/status in fleet-member-member-1 by hub-agent");
        assert!(answers >= 25, "the hub has answered {answers} times, so that this shows little");
        Ok(())
    })
}

/// Returns a fleet with an exported and imported Service that uses every feature.
async fn rich_fleet() -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
    rich::export_and_import(&env).await?;
    sleep(SOON).await; // wait until the agents have listed everything
    Ok(env)
}

/// Deletes the MemberAgent of a member, as an operator does before a return to the Go agents.
async fn delete_member_agent(env: &Environment<OnMemkube>, member: usize) -> anyhow::Result<()> {
    let agents = announced::member_agents(env, member);
    agents.delete(&env.members[member].cluster_id, &DeleteParams::default()).await?;
    Ok(())
}

async fn is_settled(env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    let mark = env.backend.mark().await?;
    sleep(MINUTE).await;
    let ledger = env.backend.since(&mark).await?.objects();
    assert_eq!(ledger.clusters().map(Ledger::count).sum::<usize>(), 0, "the fleet is not settled:\n{ledger}");
    Ok(())
}

/// Also rule U7.
#[test]
fn an_importer_back_on_go_agents_gets_the_go_form_a_minute_after_its_memberagent_was_deleted() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = rich_fleet().await?;
        env.backend.stop_agent(AgentPlace::Member(1)).await?;
        delete_member_agent(&env, 1).await?;
        let deleted = Instant::now();
        sleep(MINUTE - SOON).await;
        rich::is_distributed(&env, &rich::in_hub()).await?;
        rich::is_distributed(&env, &rich::in_go_form()).await?;
        assert_eq!(deleted.elapsed().as_secs(), MINUTE.as_secs());
        is_settled(&env).await?;

        env.backend.start_agent(AgentPlace::Member(1)).await?;
        rich::is_distributed(&env, &rich::in_hub()).await?;
        rich::arrives(&env.user(1), &rich::imported()).await?;
        is_settled(&env).await
    })
}

/// Also rule U7.
#[test]
fn a_hub_back_on_go_agents_gets_the_go_form_a_minute_after_the_memberagents_were_deleted() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = rich_fleet().await?;
        env.backend.stop_agent(AgentPlace::Hub).await?;
        for member in [0, 1] {
            delete_member_agent(&env, member).await?;
        }
        let deleted = Instant::now();
        sleep(MINUTE - SOON).await;
        rich::is_exported(&env, &rich::in_hub()).await?;
        let agent: MemberAgent = announced::member_agents(&env, 0).get(&env.members[0].cluster_id).await?;
        assert_eq!(agent.status.and_then(|status| status.version), None, "created again, and nobody has answered");
        rich::is_exported(&env, &rich::in_go_form()).await?;
        assert_eq!(deleted.elapsed().as_secs(), MINUTE.as_secs());
        is_settled(&env).await?;

        env.backend.start_agent(AgentPlace::Hub).await?;
        rich::is_exported(&env, &rich::in_hub()).await?;
        rich::arrives(&env.user(1), &rich::imported()).await?;
        is_settled(&env).await
    })
}
