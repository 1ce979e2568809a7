//! Test that docs/reference/metrics.md lists every metric of running agents. The page is generated from the definitions
//! in the code. So the test finds a metric that an agent serves without a definition.

use crate::support::OnMemkube;
use anyhow::Context as _;
use endpointslice_controller::{Mode, Settings};
use harness::endpoints::Workload;
use harness::user::Consume;
use scenarios::environment::Environment;
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};

const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");

/// Type and labels of each metric, by name.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

/// Returns the metrics on the reference page. A row has the form ``| `name` | counter | `label`, `label` | meaning |``.
fn listed() -> Metrics {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let (kind, labels) = (cells.next()?.to_owned(), cells.next()?);
        let labels = labels.split(", ").filter(|label| *label != "–").map(|label| label.trim_matches('`').to_owned());
        Some((name, (kind, labels.collect())))
    };
    REFERENCE.lines().filter_map(row).collect()
}

/// Returns the metrics in the text of an agent's `/metrics`, without the additional labels and suffixes of histograms.
fn exported(text: &str) -> Metrics {
    let mut metrics = Metrics::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            current = name.to_owned();
            metrics.insert(current.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let names = labels.split("\",").filter_map(|label| Some(label.trim().split_once("=\"")?.0.to_owned()));
            let metric = metrics.get_mut(&current).expect("the type of a metric comes before its samples");
            metric.1.extend(names.filter(|name| name != "le"));
        }
    }
    metrics
}

#[test]
fn running_agents_export_only_metrics_of_the_reference() -> anyhow::Result<()> {
    sim::paused(async {
        let options = Options { endpointslices: Some(Settings::with_mode(Mode::On)), ..Options::members(2) };
        let env = Environment::on(OnMemkube(Fleet::new(options).await?)).await?;
        let workload = Workload::begin(env.members[0].client.clone(), &env.namespace).await?;
        workload.service("app").await?;
        workload.pods("app", &["10.1.0.1"]).await?;
        env.user(0).export("app").await?;
        env.user(1).import("app", "app", Consume::ClusterIp).await?;
        env.user(1).sees("app", &["10.1.0.1"]).await?;

        let listed = listed();
        for (place, expected) in [
            (Place::Hub, "fleetnet_writes_total"),
            (Place::Member(0), "endpoint_slice_controller_changes"),
            (Place::Member(1), "fleet_networking_endpointslice_export_import_duration_milliseconds"),
        ] {
            let agent = env.backend.0.agent(place).context("the agent runs")?;
            let exported = exported(&agent.metrics()?);
            assert!(exported.contains_key(expected), "{expected} is missing in {exported:?}");
            for (name, metric) in &exported {
                assert_eq!(Some(metric), listed.get(name), "{}: {name}: run `cargo xtask reference`", agent.name());
            }
        }
        Ok(())
    })
}
