//! Test of the bench as a program. The run is so small that its times have no meaning, but its counts are exact and its
//! JSON is complete.

use anyhow::{Context as _, ensure};
use harness::turn::Turn;
use harness::{binaries, run};
use serde_json::{Value, json};
use tokio::process::Command;

/// With the flag `--smoke`, the bench exports and imports two Services with two slices each.
const SERVICES: u64 = 2;
const SLICES: u64 = 2;

async fn print(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(binaries::find("bench").await?).args(arguments).kill_on_drop(true).output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?}:\n{errors}", output.status);
    String::from_utf8(output.stdout).context("it prints letters")
}

/// Runs the bench with a command that starts separate control planes. Returns the output.
async fn with_own_servers(arguments: &[&str]) -> anyhow::Result<String> {
    let _turn = Turn::with_own_servers().await;
    print(arguments).await
}

#[test]
fn agents_and_baseline_make_the_writes_of_the_ledgers() -> anyhow::Result<()> {
    let report: Value = serde_json::from_str(&run(with_own_servers(&["all", "--smoke"]))?).context("it prints JSON")?;

    // Expected writes. For each Service, a user creates the Service, the ServiceExport, the MultiClusterService and the
    // slices. For each Service, the agents make the writes in the ledgers of a first export and a first import: 19, and
    // 5 for each slice.
    let (by_users, by_agents) = (SERVICES * (3 + SLICES), SERVICES * (19 + 5 * SLICES));
    let writes = &report["import"]["writes"];
    assert_eq!(writes["users"], by_users, "{writes}");
    assert_eq!(writes["agents"], by_agents, "{writes}");
    assert_eq!(writes["agents_refused"], 0, "{writes}");
    assert_eq!(writes["baseline"], by_users + by_agents, "{writes}");

    let churn = &report["churn"];
    let changes = churn["changes"].as_u64().context("a number of changes")?;
    assert_eq!((changes, &churn["overtaken"], &churn["events"]), (8, &json!(0), &json!(0)));
    assert_eq!(churn["agents_writes"], 3 * changes, "one in the hub for the export, one for the import, one imported");
    for stages in ["agents", "baseline"] {
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

#[test]
fn slice_streams_deliver_each_change_and_save_the_writes_of_objects() -> anyhow::Result<()> {
    let report = run(with_own_servers(&["stream", "--smoke"]))?;
    let report: Value = serde_json::from_str(&report).context("it prints JSON")?;
    // Each measurement makes 8 changes in two seconds, which is less than the lag of objects.
    let changes = report["changes"].as_array().context("changes")?;
    assert_eq!(changes.len(), 4, "of one and of all slices, without and with a stream");
    for change in changes {
        let shown = [&change["agents"]["count"], &change["overtaken"]].map(|count| count.as_u64().unwrap_or(0));
        assert_eq!((change["changes"].as_u64(), shown.iter().sum::<u64>()), (Some(8), 8), "{change}");
        let writes = change["hub_writes_per_change"].as_f64().context("a number")?;
        let (slices, has_stream) = (change["slices"].as_u64().context("a number")?, change["has_stream"] == true);
        match (has_stream, slices) {
            (false, _) => assert_eq!(writes, 2.0, "the export, and its copy: {change}"),
            (true, 1) => assert!((1.0..=1.25).contains(&writes), "the copy is written once or twice: {change}"),
            (true, _) => assert!((1.0..=2.0).contains(&writes), "{change}"),
        }
    }
    let [fan_out] = &report["fan_outs"].as_array().context("fan-outs")?[..] else {
        anyhow::bail!("one number of importers")
    };
    let (objects, streams) = (&fan_out["objects"][0], &fan_out["streams"][0]);
    assert_eq!(objects["hub_writes_per_change"], 4.0, "the export, and a copy for each of 3 importers: {objects}");
    assert_eq!((&streams["arrived"]["count"], &streams["overtaken"]), (&json!(24), &json!(0)), "{streams}");
    let writes = streams["hub_writes_per_change"].as_f64().context("a number")?;
    assert!((1.0..=1.75).contains(&writes), "each copy is written once or twice for 8 changes: {streams}");
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(7));
    Ok(())
}

#[test]
fn each_copy_of_a_simulated_fleet_arrives_and_costs_one_write() -> anyhow::Result<()> {
    let report: Value = serde_json::from_str(&run(print(&["scale", "--smoke"]))?).context("it prints JSON")?;
    // By each API, the bench measures two fleets of three members and six Services. In the first one, each Service has
    // two importers. In the second one, all members import one Service, and each other Service has one importer.
    let scenarios = report["scenarios"].as_array().context("scenarios")?;
    let apis: Vec<&str> = scenarios.iter().filter_map(|it| it["scenario"]["api"].as_str()).collect();
    assert_eq!(apis, ["fleet", "fleet", "multicluster", "multicluster"]);
    for (scenario, (copies, copies_of_changes)) in scenarios.iter().zip([(12, 8), (8, 12)].iter().cycle()) {
        let first = &scenario["first"];
        assert_eq!((&first["copies"], &first["lease_kept"]), (&json!(copies), &json!(true)), "{first}");
        let changes = &scenario["changes"][0];
        let arrived = (&changes["changes"], &changes["copies"], &changes["overtaken"]);
        assert_eq!(arrived, (&json!(4), &json!(copies_of_changes), &json!(0)), "{changes}");
        for side in ["hub", "member"] {
            let memory = scenario[format!("{side}_memory")]["resident_mib"].as_f64().context("memory")?;
            assert!(memory > 1.0, "{side}: {memory}");
            let restart = &scenario[format!("{side}_restart")];
            assert_eq!(restart["other_writes"], 0, "{side}: {restart}");
        }
        // 500 heartbeats of other members cost no write. Meanwhile, the first heartbeat of the real agent after its
        // imports may cost one write.
        let writes = scenario["heartbeats"]["hub_writes"].as_u64().context("a number of writes")?;
        assert!(writes <= 1, "{writes} writes for heartbeats: {scenario}");
    }
    Ok(())
}

#[test]
fn the_endpoints_of_a_dead_member_are_used_no_longer_than_the_soft_limit() -> anyhow::Result<()> {
    let report: Value = serde_json::from_str(&run(print(&["silence", "--smoke"]))?).context("it prints JSON")?;
    let [round] = &report["rounds"].as_array().context("rounds")?[..] else { anyhow::bail!("one round") };
    let of = |field: &str| round[field].as_f64().with_context(|| format!("{field}: {round}"));
    // The soft limit is 30 s here. It counts from the last renewal.
    assert!((29.0..45.0).contains(&of("out_of_use_seconds")?), "{round}");
    assert!((0.0..15.0).contains(&of("restored_seconds")?), "{round}");
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(2));
    Ok(())
}

#[test]
fn a_soak_with_each_fault_ends_with_equal_endpoints_and_silence() -> anyhow::Result<()> {
    let report: Value =
        serde_json::from_str(&run(with_own_servers(&["soak", "--smoke"]))?).context("it prints JSON")?;
    let faults = report["faults"].as_object().context("faults")?;
    assert_eq!(faults.len(), 6, "{report}");
    assert!(report["changes"].as_u64().context("changes")? > 0, "{report}");
    assert_eq!((&report["different"], &report["late_writes"]), (&json!([]), &json!([])), "{report}");
    assert_eq!(report["most"].as_object().map(serde_json::Map::len), Some(3), "{report}");
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(7));
    Ok(())
}

/// Expected result of a scenario: name, mode, writes (created, updated, deleted), lengths of slices, and allocations in
/// one run.
type Expected = (&'static str, &'static str, [u64; 3], &'static [u64], f64);

const SLICE_SCENARIOS: [Expected; 22] = [
    ("create-10", "full", [1, 0, 0], &[10], 68.0),
    ("create-120", "full", [2, 0, 0], &[20, 100], 193.0),
    ("hints-removal-10", "full", [0, 1, 0], &[10], 75.0),
    ("hints-removal-120", "full", [0, 2, 0], &[20, 100], 202.0),
    ("noop-10", "full", [0, 0, 0], &[10], 61.0),
    ("noop-120", "full", [0, 0, 0], &[20, 100], 179.0),
    ("noop-prefersamezone-10", "full", [0, 0, 0], &[10], 61.0),
    ("noop-prefersamezone-120", "full", [0, 0, 0], &[20, 100], 179.0),
    ("noop-topology-auto-10", "full", [0, 0, 0], &[10], 69.0),
    ("noop-topology-auto-120", "full", [0, 0, 0], &[20, 100], 188.0),
    ("one-unready-10", "full", [0, 1, 0], &[10], 75.0),
    ("one-unready-10", "incremental", [0, 1, 0], &[10], 61.0),
    ("one-unready-120", "full", [0, 1, 0], &[20, 100], 194.0),
    ("one-unready-120", "incremental", [0, 1, 0], &[20, 100], 64.0),
    ("podmap-10", "selected", [0, 0, 0], &[], 2.0),
    ("podmap-120", "selected", [0, 0, 0], &[], 2.0),
    ("port-change-10", "full", [0, 1, 0], &[10], 75.0),
    ("port-change-120", "full", [0, 2, 0], &[20, 100], 202.0),
    ("replace-one-10", "full", [0, 1, 0], &[10], 77.0),
    ("replace-one-10", "incremental", [0, 1, 0], &[10], 63.0),
    ("replace-one-120", "full", [0, 1, 0], &[20, 100], 196.0),
    ("replace-one-120", "incremental", [0, 1, 0], &[20, 100], 66.0),
];

#[test]
fn the_bench_of_endpoint_slices_counts_writes_slices_and_allocations_of_each_scenario() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let scenarios = folder.path().to_str().context("made of letters")?;
    run(print(&["endpointslice", "--generate", scenarios, "--pods", "10,120"]))?;
    let printed = run(print(&["endpointslice", "--folder", scenarios, "--milliseconds", "1"]))?;
    let measured: Vec<Value> = printed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(measured.len() == SLICE_SCENARIOS.len(), "{} lines", measured.len());
    for (line, (name, mode, writes, lengths, allocations)) in measured.iter().zip(SLICE_SCENARIOS) {
        assert_eq!((&line["name"], &line["mode"]), (&json!(name), &json!(mode)));
        assert_eq!(json!([line["creates"], line["updates"], line["deletes"]]), json!(writes), "{line}");
        assert_eq!(line["slice_lengths"], json!(lengths), "{line}");
        if mode != "selected" {
            assert_eq!(line["endpoints"], line["distinct_endpoints"], "{line}");
        }
        let counted = line["allocs_op"].as_f64().context("allocations")?;
        assert!((counted - allocations).abs() <= allocations * 0.03, "{counted} allocations: {line}");
    }
    Ok(())
}
