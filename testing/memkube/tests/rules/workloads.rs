//! Tests of Deployments, their scale, and the binding of pods.

use crate::support::{MERGE, STRATEGIC, Server};
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn server() -> Server {
    let server = Server::new();
    server.memkube.add_workloads();
    server
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_has_deployments_only_on_request() {
    assert_eq!(Server::new().get(DEPLOYMENTS).await.code, 404);
    assert_eq!(server().get(DEPLOYMENTS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_has_defaults_and_a_generation() {
    let server = server();
    let made = server.post(DEPLOYMENTS, deployment()).await;
    assert_eq!((made.code, &made.body["spec"]["replicas"]), (201, &json!(1)));
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    assert_eq!(made.body["spec"]["strategy"], strategy);
    let path = format!("{DEPLOYMENTS}/web");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    let changed = server.patch(&path, STRATEGIC, image).await;
    assert_eq!(changed.body["metadata"]["generation"], 2);
    let container = json!([{"name": "web", "image": "web:2"}]);
    assert_eq!(changed.body["spec"]["template"]["spec"]["containers"], container);
    let status = server.patch(&format!("{path}/status"), MERGE, json!({"status": {"replicas": 1}})).await;
    assert_eq!((status.code, &status.body["metadata"]["generation"]), (200, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_cannot_work_is_rejected() {
    let server = server();
    let table = [
        (json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}), "spec.template.metadata.labels"),
        (json!({"spec": {"selector": {"matchLabels": null}}}), "spec.selector"),
        (json!({"spec": {"template": {"spec": {"containers": []}}}}), "spec.template.spec.containers"),
        (json!({"spec": {"replicas": -1}}), "spec.replicas"),
    ];
    for (change, field) in table {
        let mut deployment = deployment();
        json_patch::merge(&mut deployment, &change);
        assert_eq!(server.post(DEPLOYMENTS, deployment).await.fields(), (422, vec![field]));
    }
    server.post(DEPLOYMENTS, deployment()).await;
    let other = json!({"spec": {
        "selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}},
    }});
    let moved = server.patch(&format!("{DEPLOYMENTS}/web"), MERGE, other).await;
    assert_eq!(moved.fields(), (422, vec!["spec.selector"]));
}

#[tokio::test(start_paused = true)]
async fn a_scale_changes_the_replicas_only() {
    let server = server();
    let made = server.post(DEPLOYMENTS, deployment()).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let mut scale = server.get(&path).await;
    assert_eq!((&scale.body["kind"], &scale.body["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!((&scale.body["spec"]["replicas"], &scale.body["status"]["selector"]), (&json!(1), &json!("app=web")));
    scale.body["spec"]["replicas"] = json!(3);
    assert_eq!(server.put(&path, scale.body.clone()).await.body["spec"]["replicas"], 3);
    assert_eq!(server.put(&path, scale.body).await.code, 409, "the version is old");
    assert_eq!(server.patch(&path, MERGE, json!({"spec": {"replicas": 0}})).await.body["spec"]["replicas"], 0);
    assert_eq!(server.patch(&path, MERGE, json!({"spec": {"replicas": -2}})).await.fields().0, 422);
    let after = server.get(&format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(after.body["spec"]["replicas"], 0);
    assert_eq!(after.body["spec"]["template"], made.body["spec"]["template"]);
    assert_eq!(server.get(&format!("{DEPLOYMENTS}/none/scale")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_binding_gives_a_pod_its_node_once() {
    let server = server();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    server.post(PODS, pod).await;
    let path = format!("{PODS}/a/binding");
    let binding = |node: &str| json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}});
    assert_eq!(server.post(&path, binding("")).await.fields(), (422, vec!["target.name"]));
    assert_eq!(server.post(&path, binding("n1")).await.code, 201);
    assert_eq!(server.get(&format!("{PODS}/a")).await.body["spec"]["nodeName"], "n1");
    assert_eq!(server.post(&path, binding("n2")).await.code, 409);
    assert_eq!(server.post(&format!("{PODS}/b/binding"), binding("n1")).await.code, 404);
}
