//! Takeover of each state of the Go agents.

use super::taken::{STATES, Taken};
use super::{EXPORTER, IMPORTER, SETTLES};
use anyhow::ensure;
use harness::user::User;
use sim::fleet::Place;
use std::time::Duration;
use tokio::time::sleep;

/// Returns the writes that a takeover of a state needs, sorted.
fn needed(state: &str) -> Vec<&'static str> {
    // The hub agent stores since when each export has its ports.
    let stamp = |service| match service {
        0 => "patch internalserviceexports work-svc0",
        1 => "patch internalserviceexports work-svc1",
        _ => "patch internalserviceexports work-svc2",
    };
    let stamps: &[usize] = match state {
        "1-settled" => &[0, 1, 2],
        "2-conflict" => &[0, 0, 1, 2],
        "3-unexported" | "4-mcs-deleted" => &[0, 0, 2],
        _ => &[0, 0],
    };
    let others: &[&str] = match state {
        // The Go agents exported `svc2-1` twice (bug B1b). The older export goes.
        "1-settled" | "2-conflict" | "3-unexported" => &[
            "delete endpointsliceexports exporter-work-svc2-1-dc6ab",
            "delete endpointsliceimports exporter-work-svc2-1-dc6ab",
            "delete endpointslices exporter-work-svc2-1-dc6ab",
            "patch endpointsliceexports exporter-work-svc2-1-dc6ab",
            "patch endpointsliceimports exporter-work-svc2-1-dc6ab",
        ],
        "4-mcs-deleted" => &[],
        // The Go agents left these when the weight became 0 (bug B8).
        _ => &[
            "delete endpointsliceexports exporter-work-svc2-0-1f827",
            "delete endpointsliceexports exporter-work-svc2-1-e1859",
        ],
    };
    let mut writes: Vec<&str> = stamps.iter().map(|service| stamp(*service)).chain(others.iter().copied()).collect();
    writes.sort_unstable();
    writes
}

/// Lets our agents take a state over. `pause` is the time between the starts of two agents.
async fn takes_over(state: &str, order: [Place; 3], pause: Duration) -> anyhow::Result<()> {
    let mut taken = Taken::new(state).await?;
    for place in order {
        taken.fleet.start(place)?;
        sleep(pause).await;
    }
    taken.fleet.ready().await?;
    sleep(SETTLES).await;
    taken.nothing_was_lost().await?;
    let mut found = taken.writes();
    found.sort();
    ensure!(found == needed(state), "{state} {order:?}: {found:#?}\nnot {:#?}", needed(state));

    // A restart costs nothing, and a change costs three writes.
    for place in order {
        taken.fleet.stop(place).await?;
        taken.fleet.start(place)?;
    }
    taken.fleet.ready().await?;
    sleep(SETTLES).await;
    ensure!(taken.writes().len() == found.len(), "after a restart: {:#?}", taken.writes());
    let exporter = User::new(taken.fleet.members[0].server.admin(), "work");
    exporter.set_endpoints("svc0-0", &["10.1.0.77"]).await?;
    sleep(Duration::from_secs(5)).await;
    let change = &taken.writes()[found.len()..];
    ensure!(change.len() == 3, "a change of endpoints: {change:#?}");
    Ok(())
}

/// Time between the starts of two agents. It is longer than the 6 minutes that peers have for their first announcement.
const ONE_BY_ONE: Duration = Duration::from_secs(420);

/// Rule U16: The agents of a cluster start on the objects that Go agents left, in one cluster after the other or in all
/// at once
/// Then: No endpoint is lost at any moment, and no export gets another name. The only writes are a stamp
/// `ports-offered-since` for each export, and the removal of exported slices that the Go agents left by mistake (B1b,
/// B8)
#[test]
fn each_state_of_the_go_agents_is_taken_over_without_a_lost_endpoint_or_a_needless_write() -> anyhow::Result<()> {
    for state in STATES {
        sim::paused(async { takes_over(state, [Place::Hub, EXPORTER, IMPORTER], Duration::ZERO).await })?;
    }
    Ok(())
}

/// Also rule U16.
#[test]
fn a_fleet_is_taken_over_agent_by_agent_in_any_order() -> anyhow::Result<()> {
    let orders = [
        ("1-settled", [Place::Hub, EXPORTER, IMPORTER]),
        ("2-conflict", [Place::Hub, IMPORTER, EXPORTER]),
        ("3-unexported", [EXPORTER, Place::Hub, IMPORTER]),
        ("4-mcs-deleted", [EXPORTER, IMPORTER, Place::Hub]),
        ("5-weight-zero", [IMPORTER, Place::Hub, EXPORTER]),
        ("2-conflict", [IMPORTER, EXPORTER, Place::Hub]),
    ];
    for (state, order) in orders {
        sim::paused(async { takes_over(state, order, ONE_BY_ONE).await })?;
    }
    Ok(())
}
