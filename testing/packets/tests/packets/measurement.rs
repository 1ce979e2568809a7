//! Short run of `bench requests`. Its figures have no meaning, but its report is complete.

use anyhow::{Context as _, ensure};
use harness::binaries;
use serde_json::{Value, json};
use tokio::process::Command;

/// Rolling update of one pod.
const ARGUMENTS: [&str; 7] =
    ["requests", "--scenario=rollout", "--connections=kept", "--pre-stop=1", "--times=1", "--rate=50", "--pods=1"];

#[test]
fn the_bench_counts_requests_in_rolling_updates() -> anyhow::Result<()> {
    packets::inside(async || {
        // The bench sees that it runs inside of namespaces, and makes none of its own.
        let output = Command::new(binaries::find("bench").await?).args(ARGUMENTS).kill_on_drop(true).output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{:?}:\n{errors}", output.status);
        let report: Value = serde_json::from_slice(&output.stdout).context("it prints JSON")?;
        let rows = report["rows"].as_array().context("rows")?;
        let clients: Vec<[&Value; 2]> = rows.iter().map(|row| [&row["detail"], &row["client"]]).collect();
        let expected = ["local", "importer"].map(|client| ["kept connections", client]);
        ensure!(json!(clients) == json!(expected), "{report}");
        for row in rows {
            let [sent, lost] = [&row["sent"], &row["lost"]].map(|count| count.as_u64().unwrap_or_default());
            let kinds: u64 = row["kinds"].as_object().context("kinds")?.values().filter_map(Value::as_u64).sum();
            ensure!(sent >= 100 && lost < sent && kinds == lost, "{row}");
            ensure!(row["pre_stop"] == 1 && row["allowed"] == "baseline", "{row}");
        }
        ensure!(report["targets"].as_array().map(Vec::len) == Some(1), "{report}");
        Ok(())
    })
}
