//! Tests of a fleet whose agents run in another namespace than `fleet-system`, in Deployments with other names.

use crate::hub::{Cluster, folder};
use crate::program::{Ended, run};
use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};
use sim::agent::{self, Agent, Setup};
use sim::fleet::{HUB_AGENT, MEMBER_AGENT, hub_user};
use std::sync::Arc;

/// Namespace of the agents.
const AGENTS: &str = "fabric";

/// Hub and one member, which exports and imports the Service `work/app`.
struct Fleet {
    hub: Cluster,
    member: Cluster,
    _agents: [Agent; 2],
}

impl Fleet {
    async fn start(folder: &std::path::Path) -> Self {
        let (hub, member) = (Cluster::https(folder, "hub").await, Cluster::https(folder, "west").await);
        for cluster in [&hub, &member] {
            for namespace in [AGENTS, "work"] {
                cluster.server.make_namespace(namespace).await.unwrap();
            }
        }
        hub.server.make_namespace("fleet-member-west").await.unwrap();
        deploy(&hub, "hub-agent").await;
        deploy(&member, "member-agent").await;
        let setup = |kind: &str| Setup { namespace: AGENTS.to_owned(), ..Setup::usual(kind) };
        let hub_agent = agent::of_hub(Arc::new(hub.server.cluster("hub", HUB_AGENT)), setup("hub-agent")).unwrap();
        let access = Arc::new(hub.server.cluster("hub", &hub_user("fleet-member-west")));
        let own = Arc::new(member.server.cluster("member", MEMBER_AGENT));
        let member_agent = agent::of_member("west", own, &access, setup("member-agent")).unwrap();
        share(&member).await;
        Self { hub, member, _agents: [hub_agent, member_agent] }
    }

    async fn run(&self, arguments: &[&str]) -> Ended {
        let kubeconfigs = [&self.hub, &self.member].map(|it| it.flag());
        run(arguments.iter().map(|it| (*it).to_owned()).chain(kubeconfigs)).await
    }
}

/// Creates the Deployment of an agent as its chart does with `fullnameOverride`.
async fn deploy(cluster: &Cluster, component: &str) {
    let labels = json!({"app.kubernetes.io/name": "own", "app.kubernetes.io/instance": "own"});
    let deployment = json!({
        "metadata": {"name": "own", "labels": {
            "app.kubernetes.io/name": "own", "app.kubernetes.io/part-of": "fleetnet", "app.kubernetes.io/component": component,
        }},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
        "status": {"readyReplicas": 1},
    });
    cluster.create::<Deployment>(AGENTS, deployment).await;
}

/// Exports and imports a Service.
async fn share(cluster: &Cluster) {
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
    let service = json!({"metadata": {"name": "app"}, "spec": {"ports": ports, "selector": {"app": "app"}}});
    cluster.create::<Service>("work", service).await;
    let slice = json!({
        "metadata": {"name": "app-1", "labels": {"kubernetes.io/service-name": "app"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}], "ports": ports,
    });
    cluster.create::<EndpointSlice>("work", slice).await;
    let object = |version: &str, kind: &str, spec: Value| {
        let api = format!("networking.fleet.azure.com/{version}");
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "app"}, "spec": spec})
    };
    cluster.create::<ServiceExport>("work", object("v1beta1", "ServiceExport", json!({}))).await;
    let import =
        object("v1alpha1", "MultiClusterService", json!({"serviceImport": {"name": "app"}, "type": "ClusterIP"}));
    cluster.create::<MultiClusterService>("work", import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_on_agents_in_another_namespace_and_say_if_it_is_the_wrong_one() {
    let folder = folder();
    let fleet = Fleet::start(folder.path()).await;
    let right = ["--agent-namespace", AGENTS];
    let with = |verb: &[&'static str], more: &[&'static str]| [verb, more].concat();

    let explained = fleet.run(&with(&["explain", "work/app", "--wait=30s"], &right)).await.expect(0);
    assert!(explained.output.contains("  in west: work-app.fabric.svc (port 80/TCP"), "{explained:?}");
    for verb in [&["status"][..], &["services"], &["check"], &["latency"]] {
        fleet.run(&with(verb, &right)).await.expect(0);
    }
    let status = fleet.run(&with(&["status"], &right)).await;
    assert!(
        status.output.contains("leader hub-agent_") && status.output.contains("1 of 1 replicas ready"),
        "{status:?}"
    );
    let archive = folder.path().join("a.tar.gz");
    let gathered = fleet.run(&[&["gather", "--file", archive.to_str().unwrap()][..], &right].concat()).await.expect(0);
    assert!(gathered.output.contains("member-west"), "{gathered:?}");

    // The usual namespace has no agents.
    let explained = fleet.run(&["explain", "work/app"]).await.expect(1);
    for part in ["FN107", "Deployment fleet-system/hub-agent: not found", "--agent-namespace"] {
        assert!(explained.output.contains(part), "{part}: {explained:?}");
    }
    let status = fleet.run(&["status"]).await.expect(3);
    assert!(status.errors.contains("the namespace fleet-system has no hub agent"), "{status:?}");
    let hub_only = ["--hub-agent-namespace", AGENTS];
    fleet.run(&with(&["status"], &hub_only)).await.expect(0);
    let why =
        "west: the namespace fleet-system has no member agent: name the namespace of the agents with --agent-namespace";
    for verb in [&["explain", "work/app"][..], &["check"]] {
        let ended = fleet.run(&with(verb, &hub_only)).await.expect(3);
        assert!(ended.output.contains(why), "{ended:?}");
    }
    let services = fleet.run(&with(&["services"], &hub_only)).await.expect(3);
    assert!(services.errors.contains(why), "{services:?}");

    let left =
        fleet.run(&with(&["leave", "west", "--context=admin@west", "--yes", "--wait=30s"], &right)).await.expect(0);
    assert!(left.errors.contains(" -n fabric uninstall fleetnet-member-agent"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_namespace_can_have_is_a_usage_error_that_names_the_flag() {
    for flag in ["--agent-namespace", "--hub-agent-namespace"] {
        for verb in [&["status"][..], &["explain", "work/app"], &["leave", "west"], &["version"], &["gather"]] {
            for name in ["Fleet", "a/b", "", "../x"] {
                let arguments = [verb, &[flag, name]].concat();
                let ended = run(arguments).await.expect(2);
                assert!(ended.output.is_empty() && ended.errors.contains(flag), "{ended:?}");
            }
        }
    }
}
