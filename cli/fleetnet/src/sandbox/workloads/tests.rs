//! Tests of plans, and of the whole stand-in on a server in memory.

use super::action::Action;
use super::cluster::{Cluster, Kind, items, text};
use super::place::READY;
use super::plan::plan;
use super::{Place, Seen, Workloads, make_kubernetes_service};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use memkube::clock::TokioClock;
use memkube::faults::{Fault, Faults};
use memkube::status::Status;
use memkube::{Call, MemKube, Options, User, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of a wait, on paused time.
const LIMIT: Duration = Duration::from_secs(60);

fn place() -> Place {
    Place { number: 7, node: "member-7-node".to_owned() }
}

fn planned(cluster: &mut Cluster) -> Vec<Action> {
    plan(cluster, &place(), Timestamp::UNIX_EPOCH)
}

fn pod(name: &str, change: &Value) -> Value {
    let mut pod = json!({
        "metadata": {"namespace": "work", "name": name, "uid": name},
        "spec": {"nodeName": "member-7-node", "containers": [{"name": "web", "image": "web:1"}]},
    });
    merge(&mut pod, change);
    pod
}

fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => {
            change.iter().for_each(|(name, change)| merge(value.entry(name).or_insert(Value::Null), change));
        }
        (value, change) => *value = change.clone(),
    }
}

fn of_pods(pods: &[Value]) -> Cluster {
    let mut cluster = Cluster::default();
    pods.iter().for_each(|pod| cluster.see(Seen::Present(Kind::Pod, pod.clone())));
    cluster
}

/// Returns the statuses of pods that the plan writes: the address and the status of the condition Ready.
fn statuses(actions: &[Action]) -> Vec<(String, String)> {
    let of = |action: &Action| match action {
        Action::Status(Kind::Pod, _, status) => {
            let ready = items(status, "/conditions").find(|it| it["type"] == "Ready").unwrap();
            Some((text(status, "/podIP").to_owned(), text(ready, "/status").to_owned()))
        }
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

#[test]
fn a_pod_is_ready_by_its_annotation_and_its_gates() {
    let gate = json!([{"conditionType": "example.com/up"}]);
    let up = json!([{"type": "example.com/up", "status": "True"}]);
    let table = [
        (json!({}), "True"),
        (json!({"metadata": {"annotations": {READY: "false"}}}), "False"),
        (json!({"metadata": {"annotations": {READY: "true"}}}), "True"),
        (json!({"spec": {"readinessGates": gate}}), "False"),
        (json!({"spec": {"readinessGates": gate}, "status": {"conditions": up}}), "True"),
    ];
    for (change, ready) in table {
        let actions = planned(&mut of_pods(&[pod("a", &change)]));
        assert_eq!(statuses(&actions), [("10.244.7.1".to_owned(), ready.to_owned())], "{change}");
    }
}

#[test]
fn addresses_are_not_used_twice_and_not_again_at_once() {
    let mut cluster = of_pods(&[pod("a", &json!({})), pod("b", &json!({"status": {"podIP": "10.244.7.1"}}))]);
    let address = |actions: &[Action]| statuses(actions)[0].0.clone();
    assert_eq!(address(&planned(&mut cluster)), "10.244.7.2");
    cluster.pods.clear();
    cluster.see(Seen::Present(Kind::Pod, pod("c", &json!({}))));
    assert_eq!(address(&planned(&mut cluster)), "10.244.7.3");
    cluster.last_address = 254;
    assert_eq!(address(&planned(&mut cluster)), "10.244.7.1");
    let full = |number: u16| pod(&format!("p{number}"), &json!({"status": {"podIP": format!("10.244.7.{number}")}}));
    let mut pods: Vec<Value> = (1..=254).map(full).collect();
    pods.push(pod("late", &json!({})));
    assert!(!statuses(&planned(&mut of_pods(&pods))).iter().any(|(address, _)| address.is_empty()));
}

#[test]
fn a_pod_is_bound_or_ended_first() {
    let bound = planned(&mut of_pods(&[pod("a", &json!({"spec": {"nodeName": null}}))]));
    let (uid, node) = ("a".to_owned(), "member-7-node".to_owned());
    assert_eq!(bound, [Action::Bind { pod: ("work".to_owned(), "a".to_owned()), uid: uid.clone(), node }]);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let ended = planned(&mut of_pods(&[pod("a", &deleted)]));
    assert_eq!(ended, [Action::End { pod: ("work".to_owned(), "a".to_owned()), uid }]);
}

#[test]
fn pods_without_their_owner_are_deleted_and_pods_of_others_are_not() {
    let owned =
        |kind: &str| json!({"metadata": {"ownerReferences": [{"kind": kind, "uid": "gone", "controller": true}]}});
    let mut cluster = of_pods(&[pod("a", &owned("ReplicaSet")), pod("b", &owned("Job"))]);
    let deleted: Vec<Action> =
        planned(&mut cluster).into_iter().filter(|action| matches!(action, Action::Delete(..))).collect();
    assert_eq!(deleted, [Action::Delete(Kind::Pod, ("work".to_owned(), "a".to_owned()))]);
}

#[test]
fn an_older_content_does_not_replace_a_newer_one() {
    let mut cluster = Cluster::default();
    let at = |version: &str, uid: &str| json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}});
    cluster.learn(Kind::Pod, at("9", "x"));
    cluster.learn(Kind::Pod, at("10", "x"));
    cluster.learn(Kind::Pod, at("9", "x"));
    assert_eq!(text(cluster.pods.values().next().unwrap(), "/metadata/resourceVersion"), "10");
    cluster.forget(Kind::Pod, &at("11", "y"));
    assert_eq!(cluster.pods.len(), 1, "another pod of this name is gone");
    cluster.forget(Kind::Pod, &at("11", "x"));
    assert_eq!(cluster.pods.len(), 0);
}

/// Member with a running stand-in.
struct Member {
    server: MemKube,
    client: Client,
    _workloads: Workloads,
}

impl Member {
    async fn start() -> Self {
        let server = MemKube::new(Options::new(Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)), 1));
        server.add_workloads();
        let client = server.client(User::new("user"));
        make_kubernetes_service(&client).await.unwrap();
        let workloads = Workloads::start(client.clone(), "member-7", 6).await.unwrap();
        Self { server, client, _workloads: workloads }
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &kind.resource())
    }

    async fn deploy(&self, replicas: u32) {
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        self.api(Kind::Deployment).create(&PostParams::default(), &deployment).await.unwrap();
    }

    async fn patch(&self, kind: Kind, name: &str, patch: Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until the objects of a kind meet a condition, and returns them by their names.
    async fn until(&self, kind: Kind, so: impl Fn(&BTreeMap<String, Value>) -> bool) -> BTreeMap<String, Value> {
        let parameters = WatchParams::default().initial_events();
        let mut events = self.api(kind).watch(&parameters, "").await.unwrap().boxed();
        let mut objects = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event.unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let object = serde_json::to_value(object).unwrap();
                    objects.insert(text(&object, "/metadata/name").to_owned(), object);
                }
                WatchEvent::Deleted(object) => _ = objects.remove(object.metadata.name.as_deref().unwrap()),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("{error:?}"),
            }
            if so(&objects) {
                return objects;
            }
        }
        panic!("the watch ended")
    }

    /// Waits until a Deployment says that it has this many pods with the present template, all ready.
    async fn rolled_out(&self, replicas: u64) {
        let so = |objects: &BTreeMap<String, Value>| {
            objects.get("web").is_some_and(|it| {
                let status = &it["status"];
                ["replicas", "updatedReplicas", "readyReplicas"].iter().all(|name| status[name] == replicas)
                    && status["observedGeneration"] == it["metadata"]["generation"]
            })
        };
        self.until(Kind::Deployment, so).await;
    }

    async fn images(&self) -> Vec<String> {
        let pods =
            self.until(Kind::Pod, |pods| pods.values().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()));
        pods.await.values().map(|pod| text(pod, "/spec/containers/0/image").to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_pods_with_addresses_and_scales_and_rolls_and_ends() {
    let member = Member::start().await;
    member.deploy(2).await;
    member.rolled_out(2).await;
    let pods = member.until(Kind::Pod, |pods| pods.len() == 2).await;
    assert!(pods.values().all(|pod| pod["spec"]["nodeName"] == "member-7-node"), "{pods:?}");

    member.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 5}})).await;
    member.rolled_out(5).await;
    member.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 3}})).await;
    member.rolled_out(3).await;
    let containers = json!([{"name": "web", "image": "web:2"}]);
    member.patch(Kind::Deployment, "web", json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    member.rolled_out(3).await;
    assert_eq!(member.images().await, ["web:2"; 3]);
    let sets = member.until(Kind::ReplicaSet, |sets| sets.len() == 2).await;
    let revisions: Vec<&Value> =
        sets.values().map(|it| &it["metadata"]["annotations"]["deployment.kubernetes.io/revision"]).collect();
    assert!(revisions.contains(&&json!("1")) && revisions.contains(&&json!("2")), "{revisions:?}");

    member.api(Kind::Deployment).delete("web", &DeleteParams::default()).await.unwrap();
    member.until(Kind::Pod, BTreeMap::is_empty).await;
    member.until(Kind::ReplicaSet, BTreeMap::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_stops_a_rollout_and_a_deleted_one_is_replaced() {
    let member = Member::start().await;
    member.deploy(1).await;
    member.rolled_out(1).await;
    let template = json!({"metadata": {"annotations": {READY: "false"}}});
    member.patch(Kind::Deployment, "web", json!({"spec": {"template": template}})).await;
    let pods = member.until(Kind::Pod, |pods| pods.len() == 2).await;
    let waiting = pods.iter().find(|(_, pod)| pod["metadata"]["annotations"][READY] == "false").unwrap().0;
    member.patch(Kind::Pod, waiting, json!({"metadata": {"annotations": {READY: "true"}}})).await;
    member.rolled_out(1).await;
    member.api(Kind::Pod).delete(waiting, &DeleteParams::default()).await.unwrap();
    member.until(Kind::Pod, |pods| pods.len() == 1 && !pods.contains_key(waiting)).await;
}

/// Lets the second and the third deletion of a pod fail.
struct SomeFail(AtomicUsize);

impl Faults for SomeFail {
    fn request(&self, call: &Call) -> Fault {
        let is_deletion = call.verb == Verb::Delete && &*call.target.resource == "pods";
        let fails = is_deletion && (1..=2).contains(&self.0.fetch_add(1, Ordering::Relaxed));
        Fault { refuse: fails.then(|| Status::plain(500, "InternalError", "a test lets it fail")), ..Fault::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_last_deletion_fails_is_deleted_again() {
    let member = Member::start().await;
    member.deploy(1).await;
    member.rolled_out(1).await;
    let pods = member.until(Kind::Pod, |pods| pods.len() == 1).await;
    let first = pods.into_keys().next().unwrap();
    member.server.set_faults(Some(Arc::new(SomeFail(AtomicUsize::new(0)))));
    member.api(Kind::Pod).delete(&first, &DeleteParams::default()).await.unwrap();
    let is_replaced = |pods: &BTreeMap<String, Value>| pods.len() == 1 && !pods.contains_key(&first);
    let replaced = timeout(LIMIT, member.until(Kind::Pod, is_replaced)).await;
    assert!(replaced.is_ok(), "waited {LIMIT:?} for the end of the deleted pod");
}
