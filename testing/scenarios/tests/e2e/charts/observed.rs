//! Tests of what the charts render for Prometheus and Grafana: dashboards, and metrics that only some clients may read.

use super::objects::Objects;
use super::rendered::{arguments, plain};
use super::{Chart, REGISTRY, rendered, with_helm};
use anyhow::{Context as _, ensure};
use harness::fleet::manifests;
use serde_json::json;
use std::fs;

#[test]
fn the_sidecar_of_grafana_gets_each_dashboard_unchanged() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let dashboards = |objects: Objects| -> Objects {
            objects
                .into_iter()
                .filter(|(name, _)| name.contains("/fleetnet-") && name.starts_with("ConfigMap"))
                .collect()
        };
        let off = rendered(&helm, Chart::HubAgent, &[]).await?;
        ensure!(dashboards(off).is_empty(), "without the value, there are no dashboards");
        let options = ["--set=dashboards.enabled=true", "--set=prometheusRule.runbookURL=docs/runbook"];
        let on = dashboards(rendered(&helm, Chart::HubAgent, &options).await?);
        let names: Vec<&str> = on.keys().map(String::as_str).collect();
        let expected = ["fleetnet-fleet", "fleetnet-member", "fleetnet-pair"];
        ensure!(names == expected.map(|name| format!("ConfigMap fleet-system/{name}")), "{names:?}");
        for name in expected {
            let (map, file) = (&on[&format!("ConfigMap fleet-system/{name}")], format!("{name}.json"));
            ensure!(map["metadata"]["labels"]["grafana_dashboard"] == "1", "{map}");
            let text = fs::read_to_string(
                programs::root().join("deploy/charts/fleetnet-hub-agent/files/dashboards").join(&file),
            )?;
            ensure!(map["data"] == json!({file: text}), "{name} is not the file: {}", map["data"]);
            // The API server accepts at most 1 MiB in an object.
            ensure!(map.to_string().len() < 512 * 1024, "{name} has {} bytes", map.to_string().len());
        }

        let everything = format!("--values={}/ci/everything-values.yaml", Chart::HubAgent);
        let on = dashboards(rendered(&helm, Chart::HubAgent, &[&everything]).await?);
        ensure!(on.len() == expected.len(), "{:?}", on.keys());
        for (name, map) in &on {
            ensure!(name.starts_with("ConfigMap monitoring/"), "{name} is not in the namespace of the values");
            ensure!(map["metadata"]["annotations"] == json!({"grafana_folder": "fleetnet"}), "{map}");
            let data = map["data"].to_string();
            ensure!(
                data.contains(r#"\"query\": \"https://example.com/runbook\""#),
                "{name} does not link to the runbook"
            );
            ensure!(!data.contains("docs/runbook"), "{name} has a link that Grafana cannot open");
        }
        Ok(())
    })
}

#[test]
fn protected_metrics_have_the_rights_of_the_plain_manifest_and_a_monitor_that_can_read_them() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let plain = plain(&[manifests::METRICS_AUTH])?;
        for (chart, agent) in [(Chart::HubAgent, "hub-agent"), (Chart::MemberAgent, "member-agent")] {
            let readers = "--set=metrics.readers[0].kind=ServiceAccount,metrics.readers[0].name=prometheus";
            let values =
                ["--set=member.id=west", "--set=metrics.secure=true", "--set=podMonitor.enabled=true", readers];
            let values = if agent == "hub-agent" { &values[1..] } else { &values };
            let objects = rendered(&helm, chart, values).await?;
            // Both agents may run in one cluster. So the names of the roles have the name of the agent.
            for role in ["auth", "reader"] {
                let (ours, theirs) = (format!("fleetnet-{agent}-metrics-{role}"), format!("fleetnet-metrics-{role}"));
                let rules = &objects[&format!("ClusterRole {ours}")]["rules"];
                ensure!(*rules == plain[&format!("ClusterRole {theirs}")]["rules"], "{role} of {chart}: {rules}");
                ensure!(
                    objects[&format!("ClusterRoleBinding {ours}")]["roleRef"]["name"] == *ours,
                    "{role} of {chart}"
                );
            }
            let account = &objects[&format!("ClusterRoleBinding fleetnet-{agent}-metrics-auth")]["subjects"][0];
            let of_plain =
                plain["ClusterRoleBinding fleetnet-metrics-auth"]["subjects"].as_array().context("a list")?;
            ensure!(of_plain.contains(account), "{account}");
            let reader = &objects[&format!("ClusterRoleBinding fleetnet-{agent}-metrics-reader")]["subjects"];
            ensure!(*reader == json!([{"kind": "ServiceAccount", "name": "prometheus"}]), "{reader}");
            ensure!(arguments(&objects, agent)?.iter().any(|it| it == "--metrics-secure=true"), "{chart}");
            let endpoint = &objects[&format!("PodMonitor fleet-system/{agent}")]["spec"]["podMetricsEndpoints"][0];
            ensure!(endpoint["scheme"] == "https", "{endpoint}");
            ensure!(endpoint["tlsConfig"] == json!({"insecureSkipVerify": true}), "{endpoint}");
            // A server that nobody checks must not get a token.
            let token = "--set=podMonitor.authorization.credentials.name=prometheus-token";
            let refused =
                helm.run(&[&["template", "release", chart.name(), REGISTRY], values, &[token]].concat()).await?;
            ensure!(refused.code != 0 && refused.err.contains("podMonitor.authorization needs"), "{refused:?}");
            let certificate = "--set=metrics.certificateSecret=certificate";
            let objects = rendered(&helm, chart, &[values, &[token, certificate]].concat()).await?;
            let endpoint = &objects[&format!("PodMonitor fleet-system/{agent}")]["spec"]["podMetricsEndpoints"][0];
            ensure!(endpoint["tlsConfig"].is_null() && endpoint["authorization"].is_object(), "{endpoint}");
        }
        Ok(())
    })
}
