//! Tests of the ways in which agents end: exit codes, and Leases.

use anyhow::{Context as _, ensure};
use harness::eventually::Deadline;
use harness::in_memory::{Server, member_agent_of};
use harness::limits::PROCESS;
use harness::process::Ended;
use harness::{binaries, run};
use kube::api::{Patch, PatchParams};
use memkube::Call;
use memkube::faults::{Answer, Fault, Faults};
use serde_json::json;
use std::process::Stdio;
use std::sync::Arc;

/// Names of all Leases of a member agent that runs all controllers.
const LEASES: [&str; 5] = [
    "2bf2b407.hub.networking.fleet.azure.com",
    "2bf2b407.mcs.hub.networking.fleet.azure.com",
    "2bf2b407.mcs.member.networking.fleet.azure.com",
    "2bf2b407.member.networking.fleet.azure.com",
    "fleetnet-endpointslices",
];

/// Waits until all Leases have a holder.
async fn led(own: &Server) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        let holders = own.holders().await?;
        if holders.len() == LEASES.len() && holders.values().all(|holder| !holder.is_empty()) {
            return Ok(());
        }
        deadline.pause(|| format!("not all Leases are held: {holders:?}")).await?;
    }
}

#[test]
fn help_and_version_are_printed_and_end_with_0() -> anyhow::Result<()> {
    run(async {
        for binary in ["hub-agent", "member-agent"] {
            for (flag, printed) in [("--help", "Usage:"), ("-h", "Usage:"), ("--version", binary), ("-V", binary)] {
                let mut command = tokio::process::Command::new(binaries::find(binary).await?);
                command.env_clear().arg(flag).stdin(Stdio::null()).kill_on_drop(true);
                let output = tokio::time::timeout(PROCESS, command.output()).await.context("it does not end")??;
                let output_text = String::from_utf8(output.stdout)?;
                assert_eq!(output.status.code(), Some(0), "{binary} {flag}");
                assert!(output_text.contains(printed), "{binary} {flag}: {output_text}");
                assert_eq!(String::from_utf8(output.stderr)?, "", "{binary} {flag}");
            }
        }
        Ok(())
    })
}

#[test]
fn a_clean_stop_ends_with_0_and_releases_the_leases() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let agent = member_agent_of(&own, &hub).start().await?;
        led(&own).await?;
        assert_eq!(agent.terminate().await?, Ended::Exited(0));
        let holders = own.holders().await?;
        assert_eq!(holders.keys().collect::<Vec<_>>(), LEASES);
        assert!(holders.values().all(String::is_empty), "{holders:?}");
        Ok(())
    })
}

/// Fault: the server executes heartbeats but sends no response, so that the agent has a write in flight.
struct Silent;

impl Faults for Silent {
    fn request(&self, call: &Call) -> Fault {
        let is_heartbeat = call.verb.writes() && &*call.target.resource == "memberagents";
        Fault { answer: if is_heartbeat { Answer::Never } else { Answer::Whole }, ..Fault::default() }
    }
}

#[test]
fn a_second_signal_ends_with_1_at_once_and_leaves_the_leases_to_expire() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        hub.memkube.set_faults(Some(Arc::new(Silent)));
        let agent = member_agent_of(&own, &hub).start().await?;
        hub.heartbeat(&agent).await?;
        agent.ask_to_stop().await?;
        let stopping = |line: &str| line.contains("stopping: no new writes start").then_some(());
        agent.log().find("that it stops", stopping).await?;
        agent.ask_to_stop().await?;
        assert_eq!(agent.wait().await?, Ended::Exited(1));
        let twice = |line: &str| line.contains("asked to stop for a second time").then_some(());
        agent.log().find("that it was asked twice", twice).await?;
        let holders = own.holders().await?;
        assert!(holders.len() == 5 && holders.values().all(|holder| !holder.is_empty()), "{holders:?}");
        Ok(())
    })
}

#[test]
fn a_lost_lease_is_logged_and_taken_again_when_it_expires() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let agent = member_agent_of(&own, &hub).start().await?;
        led(&own).await?;
        let taken = json!({"spec": {"holderIdentity": "another", "renewTime": "2026-01-01T00:01:00.000000Z"}});
        own.leases().patch(LEASES[0], &PatchParams::default(), &Patch::Merge(&taken)).await?;
        let lost = |line: &str| {
            let is_it = line.contains("leadership was lost") && line.contains("another has taken it");
            (is_it && line.contains(r#""level":"WARN""#)).then_some(())
        };
        agent.log().find("why it does not lead any more", lost).await?;
        let mut led = 0;
        let leads_again = |line: &str| {
            led += usize::from(line.contains(r#""message":"leading""#));
            (led == 2).then_some(())
        };
        agent.log().find("that it leads again", leads_again).await?;
        ensure!(own.holders().await?[LEASES[0]] != "another");
        assert_eq!(agent.terminate().await?, Ended::Exited(0));
        Ok(())
    })
}
