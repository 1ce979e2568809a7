//! Tests of flags whose effects are visible from outside the process.

use harness::in_memory::{Server, knows_all, member_agent_of};
use harness::run;

#[test]
fn without_leader_election_an_agent_acts_and_takes_no_lease() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let agent = member_agent_of(&own, &hub).flag("--leader-elect", "false").start().await?;
        hub.heartbeat(&agent).await?;
        assert!(own.holders().await?.is_empty());
        Ok(())
    })
}

#[test]
fn logs_are_text_on_request_and_v_2_shows_each_write() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let quiet = member_agent_of(&own, &hub).flag("--log-format", "text").flag("--v", "1").start().await?;
        hub.heartbeat(&quiet).await?;
        knows_all(&quiet).await?;
        let lines = quiet.log().lines();
        assert!(
            lines.iter().any(|line| line.contains(" INFO fleetnet_agent::launch: starting agent=\"member-agent\""))
        );
        assert!(!lines.iter().any(|line| line.starts_with('{') || line.contains(" DEBUG ")), "{lines:?}");
        quiet.terminate().await?;

        let talkative = member_agent_of(&own, &hub).flag("--log-format", "text").flag("--v", "2").start().await?;
        let written = |line: &str| {
            (line.contains(" DEBUG fleetnet_runtime::engine::reports: written ")
                && line.contains("kind=\"MemberAgent\""))
            .then_some(())
        };
        talkative.log().find("that it has written a heartbeat", written).await
    })
}

#[test]
fn flags_that_are_accepted_for_compatibility_with_the_go_agents_are_logged() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let agent = member_agent_of(&own, &hub)
            .flag("--cloud-config", "/etc/kubernetes/azure.json")
            .flag("--enable-v1beta1-apis", "false")
            .flag("--logtostderr", "true")
            .flag("--stderrthreshold", "0")
            .start_ready()
            .await?;
        let lines = agent.log().lines();
        let logged = |level: &str, words: &str| {
            lines.iter().any(|line| line.contains(&format!(r#""level":"{level}""#)) && line.contains(words))
        };
        assert!(logged("INFO", "--cloud-config has no effect"), "{lines:?}");
        assert!(logged("WARN", "klog flags are ignored: --logtostderr, --stderrthreshold"), "{lines:?}");
        assert!(!logged("INFO", "this version does not handle membership"), "{lines:?}");
        Ok(())
    })
}
