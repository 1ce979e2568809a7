//! Tests of the main job and of the rules of the fleet, in one process on paused time. The scenarios also run on real
//! API servers. Other rules need a minute to test, and run only here.

mod support;

use fleetnet_api::crd::MemberAgent;
use harness::audit::Ledger;
use kube::api::DeleteParams;
use scenarios::announced::{self, sees_shares};
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec};
use scenarios::rich;
use std::collections::BTreeMap;
use std::time::Duration;
use support::OnMemkube;
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

scenarios::main_job_tests!(run_scenario);
scenarios::fleet_rule_tests!(run_scenario);

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
