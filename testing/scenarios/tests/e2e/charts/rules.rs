//! Tests of the alerts that the charts render: all of the files, or with the changes of a user.

use super::{Chart, rendered, with_helm};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::fs;

/// Returns the rules of the file of a chart, with the address of the runbook.
fn written(agent: &str) -> anyhow::Result<Vec<Value>> {
    let file = programs::root().join(format!("deploy/charts/fleetnet-{agent}/files/rules.yaml"));
    let text = fs::read_to_string(file)?.replace("docs/runbook/", "https://example.com/runbook/");
    let rules: Value = serde_saphyr::from_str(&text)?;
    Ok(rules["groups"][0]["rules"].as_array().context("rules")?.clone())
}

#[test]
fn a_chart_has_the_alerts_of_its_file_and_each_alert_can_be_changed_or_left_out() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (chart, agent) in [(Chart::HubAgent, "hub-agent"), (Chart::MemberAgent, "member-agent")] {
            let of_chart = |objects: super::Objects| {
                let rules = objects[&format!("PrometheusRule fleet-system/{agent}")]["spec"]["groups"][0].clone();
                anyhow::ensure!(rules["name"] == format!("fleetnet-{agent}"), "{rules}");
                Ok(rules["rules"].as_array().context("rules")?.clone())
            };
            let enabled = "--set=prometheusRule.enabled=true,prometheusRule.runbookURL=https://example.com/runbook";
            let unchanged = of_chart(
                rendered(&helm, chart, &["--set=member.id=west", enabled][usize::from(agent == "hub-agent")..]).await?,
            )?;
            let file = written(agent)?;
            ensure!(unchanged == file, "the rules are not those of files/rules.yaml: {unchanged:?}");

            let changed = of_chart(rendered(&helm, chart, &[&chart.file("everything")]).await?)?;
            let expected = file.into_iter().filter(|rule| rule["alert"] != "FleetnetEventsDropped").map(|mut rule| {
                if !rule["alert"].is_null() {
                    rule["labels"]["team"] = json!("platform");
                }
                if rule["alert"] == "FleetnetWatchStale" {
                    (rule["for"], rule["keep_firing_for"]) = (json!("10m"), json!("5m"));
                    (rule["labels"]["severity"], rule["labels"]["tier"]) = (json!("page"), json!("agents"));
                    rule["annotations"]["dashboard"] = json!("fleet");
                }
                if rule["alert"] == "FleetnetRetriesPending" {
                    rule["expr"] = json!("min_over_time(fleetnet_queue_depth[30m]) > 10");
                }
                rule
            });
            let expected: Vec<Value> = expected.collect();
            for (found, expected) in changed.iter().zip(&expected) {
                ensure!(found == expected, "{found} is not {expected}");
            }
            ensure!(changed.len() == expected.len(), "{} rules are not {}", changed.len(), expected.len());
        }
        Ok(())
    })
}
