//! The bench as a program: tiny, so its figures say nothing, but what it counts is exact and its JSON is whole.

use anyhow::{Context as _, ensure};
use fleetnet_tests::{binaries, run};
use serde_json::{Value, json};
use tokio::process::Command;

/// Services and slices of each, as `--smoke` has them.
const SERVICES: u64 = 2;
const SLICES: u64 = 2;

async fn bench(arguments: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(binaries::of_agent("bench").await?).args(arguments).kill_on_drop(true).output().await?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{:?}:\n{told}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("what it prints is no JSON:\n{told}"))
}

#[test]
fn the_bench_counts_what_the_ledgers_say_by_agents_and_by_hand_alike() -> anyhow::Result<()> {
    let report = run(bench(&["all", "--smoke"]))?;

    // For a Service and its slices: what users write, and what the ledgers of a first export and a first import add up to.
    let (by_users, by_agents) = (SERVICES * (3 + SLICES), SERVICES * (19 + 5 * SLICES));
    let writes = &report["import"]["writes"];
    assert_eq!(writes["users"], by_users, "{writes}");
    assert_eq!(writes["agents"], by_agents, "{writes}");
    assert_eq!(writes["agents_refused"], 0, "{writes}");
    assert_eq!(writes["floor"], by_users + by_agents, "{writes}");

    let churn = &report["churn"];
    let changes = churn["changes"].as_u64().context("a number of changes")?;
    assert_eq!((changes, &churn["overtaken"], &churn["events"]), (8, &json!(0), &json!(0)));
    assert_eq!(churn["agents_writes"], 3 * changes, "one in the hub for the export, one for the import, one imported");
    for stages in ["agents", "floor"] {
        for hop in ["change", "export", "distribute", "import"] {
            assert_eq!(churn["stages"][stages][hop]["count"], changes, "{stages} {hop}");
        }
    }
    for agent in ["exporter", "hub", "importer"] {
        for stage in ["decode", "view", "plan", "share", "reaction", "write"] {
            let count = churn["stages"]["own"][agent][stage]["count"].as_f64().context("a count")?;
            assert!(count >= 8.0, "{agent} {stage}: {count}");
        }
        let memory = churn["memory"][agent]["resident_mib"].as_f64().context("memory")?;
        assert!(memory > 1.0, "{agent}: {memory}");
    }

    let restart = &report["restart"];
    assert_eq!((&restart["writes"], &restart["writes_with_changes"]), (&json!(0), &json!(3)), "{restart}");
    assert_eq!(restart["fresh_change"]["count"], 1);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(12));
    Ok(())
}
