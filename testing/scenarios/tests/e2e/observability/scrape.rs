//! Configuration with which Prometheus scrapes agents, as the Prometheus Operator makes it from the PodMonitors of the
//! charts.

use anyhow::Context as _;
use harness::agent::Agent;
use harness::fleet::{FLEET_SYSTEM, Fleet};
use harness::helm::Helm;
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};

/// Returns a configuration for the hub's agent and for the agent of each member.
pub(super) async fn configurations(fleet: &Fleet, agents: &[Agent]) -> anyhow::Result<Vec<Value>> {
    let helm = Helm::find().await?;
    let values = |member: Option<&str>| {
        let cluster = format!(
            "--set=podMonitor.relabelings[0].targetLabel=cluster,podMonitor.relabelings[0].replacement={}",
            member.unwrap_or("hub")
        );
        let values = [
            "--set=podMonitor.enabled=true".to_owned(),
            "--set=image.registry=registry.example.com".to_owned(),
            cluster,
        ];
        values.into_iter().chain(member.map(|id| format!("--set=member.id={id}"))).collect::<Vec<_>>()
    };
    let members = fleet.members.iter().map(|member| ("member-agent", Some(member.cluster_id.as_str())));
    let mut configurations = Vec::new();
    for ((name, member), agent) in [("hub-agent", None)].into_iter().chain(members).zip(agents) {
        let values = values(member);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let objects = helm.objects(&format!("fleetnet-{name}"), &values).await?;
        let pod = format!("{name}-{}", configurations.len());
        configurations.push(configuration(&objects, &pod, agent.address().await?)?);
    }
    Ok(configurations)
}

fn configuration(objects: &[DynamicObject], pod: &str, address: &str) -> anyhow::Result<Value> {
    let of_kind = |kind: &str| {
        let object = objects.iter().find(|it| it.types.as_ref().is_some_and(|types| types.kind == kind));
        object.map(|it| &it.data["spec"]).with_context(|| format!("the chart renders a {kind}"))
    };
    let (deployment, monitor) = (of_kind("Deployment")?, of_kind("PodMonitor")?);
    // What Prometheus knows of a pod from the API server.
    let mut labels = json!({"__meta_kubernetes_namespace": FLEET_SYSTEM, "__meta_kubernetes_pod_name": pod});
    for (name, value) in deployment["template"]["metadata"]["labels"].as_object().context("labels of the pods")? {
        labels[of_pod(name)] = value.clone();
    }
    // What the operator makes of each PodMonitor.
    let job = monitor["jobLabel"].as_str().context("the label of the job")?;
    let mut relabelings = vec![
        json!({"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"}),
        json!({"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"}),
        json!({"source_labels": [of_pod(job)], "target_label": "job", "regex": "(.+)", "replacement": "${1}"}),
    ];
    let own = monitor["podMetricsEndpoints"][0]["relabelings"].as_array();
    relabelings.extend(own.into_iter().flatten().map(in_snake_case));
    let target = json!({"targets": [address], "labels": labels});
    Ok(json!({"job_name": pod, "static_configs": [target], "relabel_configs": relabelings}))
}

/// Returns Prometheus's name for a label of a pod.
fn of_pod(label: &str) -> String {
    let name = label.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
    format!("__meta_kubernetes_pod_label_{name}")
}

/// Returns an object of the operator with the field names of Prometheus: `target_label` for `targetLabel`.
fn in_snake_case(object: &Value) -> Value {
    let mut fields = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let mut snake = String::new();
        for character in name.chars() {
            if character.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
        }
        fields.insert(snake, value.clone());
    }
    Value::Object(fields)
}
