//! Tests of charts with another name, which install beside KubeFleet's agents.

use super::objects::Objects;
use super::{Chart, rendered, with_helm};
use anyhow::ensure;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Adds each label selector in a value, with its path: `matchLabels`, and the selector of a Service.
fn selectors(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}/{name}");
                if name == "matchLabels" || (name == "selector" && field.get("app.kubernetes.io/name").is_some()) {
                    found.push((path, field.clone()));
                } else {
                    selectors(&path, field, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| selectors(path, item, found)),
        _ => {}
    }
}

/// Returns the objects that only one agent of a cluster may have: all but those in the namespaces of members.
fn of_agent(objects: &Objects) -> BTreeSet<&String> {
    objects.keys().filter(|name| !name.contains("fleet-member-")).collect()
}

#[test]
fn with_another_name_a_chart_shares_no_object_and_no_pod_with_an_agent_of_the_usual_name() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (chart, agent) in [(Chart::HubAgent, "hub-agent"), (Chart::MemberAgent, "member-agent")] {
            let renamed = rendered(&helm, chart, &[&chart.file("renamed")]).await?;
            // The usual names of all objects that the chart knows.
            let usual = rendered(&helm, chart, &[&chart.file("renamed"), "--set=nameOverride="]).await?;
            ensure!(renamed.len() == usual.len(), "{:?} and {:?}", renamed.keys(), usual.keys());
            for name in of_agent(&renamed) {
                let own = name.rsplit(['/', ' ']).next().unwrap_or_default();
                ensure!(own.starts_with("fleetnet-"), "KubeFleet may have {name}");
            }
            let other = rendered(&helm, chart, &[&chart.file("renamed"), "--set=nameOverride=other"]).await?;
            let shared: Vec<_> = of_agent(&other).intersection(&of_agent(&usual)).copied().collect();
            ensure!(shared.is_empty(), "{shared:?}");

            let labels =
                json!({"app.kubernetes.io/name": format!("fleetnet-{agent}"), "app.kubernetes.io/instance": "release"});
            let mut found = Vec::new();
            for (name, object) in &renamed {
                selectors(name, object, &mut found);
            }
            let kinds = ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service ", "ServiceMonitor"];
            for kind in kinds {
                ensure!(found.iter().any(|(path, _)| path.starts_with(kind)), "no selector of a {kind}: {found:?}");
            }
            for (path, selector) in &found {
                let mut selector = selector.clone();
                if path.starts_with("ServiceMonitor") {
                    let component = selector.as_object_mut().and_then(|it| it.remove("app.kubernetes.io/component"));
                    ensure!(component == Some(json!("metrics")), "{path}: {selector}");
                }
                ensure!(selector == labels, "{path}: {selector}");
            }
            all_names_agree(&renamed, agent)?;
        }
        Ok(())
    })
}

/// Fails if an object still refers to the usual name.
fn all_names_agree(objects: &Objects, agent: &str) -> anyhow::Result<()> {
    let own = format!("fleetnet-{agent}");
    let deployment = &objects[&format!("Deployment fleet-system/{own}")]["spec"]["template"];
    ensure!(deployment["spec"]["serviceAccountName"] == *own, "{deployment}");
    let labels = &deployment["metadata"]["labels"];
    ensure!(labels["app.kubernetes.io/instance"] == "release", "{labels}");
    // Only this label says which of the two agents it is.
    ensure!(labels["app.kubernetes.io/component"] == agent, "{labels}");
    for (name, object) in objects.iter().filter(|(name, _)| !name.contains("fleet-member-")) {
        let text = object.to_string();
        ensure!(!text.contains(&format!("system:serviceaccount:fleet-system:{agent}")), "{name}: {text}");
        if name.contains("Binding ") && object["roleRef"].is_object() {
            let role = object["roleRef"]["name"].as_str().unwrap_or_default();
            let kind = object["roleRef"]["kind"].as_str().unwrap_or_default();
            let exists = objects.keys().any(|it| it.starts_with(&format!("{kind} ")) && it.ends_with(role));
            ensure!(exists, "{name} refers to the {kind} {role}, which the chart does not have");
        }
        if let Some(policy) = object["spec"]["policyName"].as_str() {
            ensure!(objects.contains_key(&format!("ValidatingAdmissionPolicy {policy}")), "{name}: {policy}");
        }
        if let Some(level) = object["spec"]["priorityLevelConfiguration"]["name"].as_str() {
            let exists = objects.contains_key(&format!("PriorityLevelConfiguration {level}"));
            ensure!(exists || level == "leader-election", "{name}: {level}");
        }
    }
    let monitor = &objects[&format!("ServiceMonitor fleet-system/{own}")];
    ensure!(monitor["spec"]["endpoints"][0]["scheme"] == "https", "{monitor}");
    ensure!(monitor["metadata"]["labels"]["release"] == "prometheus", "{monitor}");
    // The label of the job is the name of the agent, so the rules read the series of this agent, and not those of
    // KubeFleet's.
    ensure!(monitor["spec"]["jobLabel"] == "app.kubernetes.io/name", "{monitor}");
    let rules = objects[&format!("PrometheusRule fleet-system/{own}")].to_string();
    ensure!(rules.contains(&format!(r#"job=\"{own}\""#)), "{rules}");
    ensure!(!rules.contains(&format!(r#"job=\"{agent}\""#)), "{rules}");
    Ok(())
}

#[test]
fn the_test_of_a_release_waits_for_its_deployment_and_no_selector_of_the_agent_selects_its_pod() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for chart in [Chart::HubAgent, Chart::MemberAgent] {
            for set in ["everything", "renamed"] {
                let file = chart.file(set);
                let only = ["--show-only=templates/tests/ready.yaml", &*file];
                let objects = super::by_name(helm.objects(chart.name(), &only).await?)?;
                ensure!(objects.len() == 4, "{:?}", objects.keys());
                let all = rendered(&helm, chart, &[&file]).await?;
                let deployment = all.keys().find(|name| name.starts_with("Deployment ")).cloned().unwrap_or_default();
                let own = deployment.rsplit('/').next().unwrap_or_default();
                for (name, object) in &objects {
                    let metadata = &object["metadata"];
                    ensure!(metadata["annotations"]["helm.sh/hook"] == "test", "{name}: {metadata}");
                    ensure!(
                        metadata["labels"]["app.kubernetes.io/name"] == format!("{own}-test"),
                        "{name}: {metadata}"
                    );
                }
                let pod = &objects[&format!("Pod fleet-system/{own}-test")]["spec"];
                let timeout = if set == "everything" { "5m" } else { "60s" };
                let arguments = json!([
                    "--namespace=fleet-system",
                    "rollout",
                    "status",
                    format!("deployment/{own}"),
                    format!("--timeout={timeout}")
                ]);
                ensure!(pod["containers"][0]["args"] == arguments, "{pod}");
                let role = &objects[&format!("Role fleet-system/{own}-test")]["rules"][0];
                ensure!(role["resourceNames"] == json!([own]), "{role}");
            }
        }
        Ok(())
    })
}
