//! Generator of scenario files. With these files, a measurement needs no input from outside of this repository.

use crate::slices::full;
use crate::slices::scenario::Scenario;
use anyhow::Context as _;
use endpointslice::model::{Node, Pod, Service, TargetPort};
use endpointslice::names::ANNOTATION_TOPOLOGY_MODE;
use serde_json::{from_value, json};
use std::fs;
use std::path::Path;

const ENDPOINTS_PER_SLICE: usize = 100;

/// Writes the scenarios for each number of pods to `folder`.
pub fn write(folder: &Path, pods: &[usize]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for &count in pods {
        for scenario in scenarios(count)? {
            let file = folder.join(format!("{}-{count}.json", scenario.name));
            let scenario = Scenario { name: format!("{}-{count}", scenario.name), ..scenario };
            let text = serde_json::to_vec(&scenario).context("a scenario is JSON")?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

fn scenarios(count: usize) -> anyhow::Result<Vec<Scenario>> {
    let base = world(count)?;
    let mut zonal = base.clone();
    zonal.service.spec.traffic_distribution = Some("PreferSameZone".into());
    let mut shared = Scenario { topology_cache: true, ..base.clone() };
    shared.service.metadata.annotations.insert(ANNOTATION_TOPOLOGY_MODE, "Auto");
    let (settled, zonal) = (settle(base.clone())?, settle(zonal)?);

    let mut unready = settled.clone();
    unready.pods[count / 2].status.readiness.is_ready = false;
    let mut replaced = settled.clone();
    replaced.pods.remove(count / 2);
    replaced.pods.push(pod(count + 7, base.nodes.len())?);
    let mut other_port = settled.clone();
    other_port.service.spec.ports[1].target_port = TargetPort::Number(9091);
    let mut without_hints = zonal.clone();
    without_hints.service.spec.traffic_distribution = None;
    Ok(vec![
        named("create", base),
        named("noop", settled),
        named("one-unready", unready),
        named("replace-one", replaced),
        named("port-change", other_port),
        named("noop-prefersamezone", zonal),
        named("hints-removal", without_hints),
        named("noop-topology-auto", settle(shared)?),
        named("podmap", namespace(count)?),
    ])
}

fn named(name: &str, scenario: Scenario) -> Scenario {
    Scenario { name: name.to_owned(), ..scenario }
}

/// Returns a scenario: one Service with a named port and a numbered port, `count` pods, and Nodes in three zones.
fn world(count: usize) -> anyhow::Result<Scenario> {
    let nodes = count / 30 + 3;
    let service = json!({
        "metadata": {"namespace": "bench", "name": "web", "uid": "service", "labels": {"app": "web", "team": "one"}},
        "spec": {
            "clusterIP": "10.0.0.10", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"},
                {"name": "metrics", "port": 9090, "protocol": "TCP", "targetPort": 9090},
            ],
        },
    });
    Ok(Scenario {
        max_endpoints_per_slice: ENDPOINTS_PER_SLICE,
        service: from_value(service)?,
        pods: (0..count).map(|number| pod(number, nodes)).collect::<Result<_, _>>()?,
        nodes: (0..nodes).map(node).collect::<Result<_, _>>()?,
        ..Scenario::default()
    })
}

fn pod(number: usize, nodes: usize) -> Result<Pod, serde_json::Error> {
    let ip = format!("10.{}.{}.{}", 1 + number / 65_025, number / 255 % 255, 1 + number % 255);
    from_value(json!({
        "metadata": {
            "namespace": "bench", "name": format!("web-5d9c7b6f8d-{number:05}"), "uid": format!("pod-{number:05}"),
            "labels": {"app": "web", "pod-template-hash": "5d9c7b6f8d"},
        },
        "spec": {
            "nodeName": format!("node-{:04}", number % nodes),
            "containers": [{"ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}],
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }))
}

fn node(number: usize) -> Result<Node, serde_json::Error> {
    let zone = ["zone-a", "zone-b", "zone-c"][number % 3];
    from_value(json!({
        "metadata": {"name": format!("node-{number:04}"), "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }))
}

/// Adds the slices that the scenario's Service should have.
fn settle(scenario: Scenario) -> anyhow::Result<Scenario> {
    let (existing, _) = full::reconcile(&scenario)?;
    Ok(Scenario { existing, ..scenario })
}

/// Returns a scenario with `count` Services in one namespace. Only one of the Services selects the pod.
fn namespace(count: usize) -> anyhow::Result<Scenario> {
    let service = |number: usize| {
        let mut selector = json!({"app": format!("app-{number:05}"), "tier": "front"});
        if number == count / 2 {
            selector = json!({"app": "web"});
        }
        let name = format!("service-{number:05}");
        from_value::<Service>(json!({"metadata": {"namespace": "bench", "name": name}, "spec": {"selector": selector}}))
    };
    Ok(Scenario {
        max_endpoints_per_slice: ENDPOINTS_PER_SLICE,
        pods: vec![pod(0, 1)?],
        services: (0..count).map(service).collect::<Result<_, _>>()?,
        ..Scenario::default()
    })
}
