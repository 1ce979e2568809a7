//! Writes of the stand-in to the API server.

use super::action::Action;
use super::cluster::{Cluster, Key, Kind, is_deleting};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Time between the deletion of a pod and its end.
const TERMINATION: Duration = Duration::from_secs(1);
/// Delay before a broken watch or a rejected write is tried again.
pub(super) const AGAIN: Duration = Duration::from_millis(200);

/// Writer of a member's stand-in.
pub(super) struct Actor {
    client: Client,
    /// UIDs of the pods that are terminating.
    ending: BTreeSet<String>,
    ends: JoinSet<()>,
}

/// Outcome of a write.
enum Outcome {
    Present(Kind, Value),
    Gone(Kind, Key),
    Nothing,
}

impl Actor {
    pub(super) fn new(client: Client) -> Self {
        Self { client, ending: BTreeSet::new(), ends: JoinSet::new() }
    }

    /// Performs the actions one after the other, and records the answers. A rejected write is ignored: the next
    /// observation leads to a new plan. Returns true if an answer may lead to more actions.
    pub(super) async fn perform(&mut self, actions: Vec<Action>, cluster: &mut Cluster) -> bool {
        while self.ends.try_join_next().is_some() {}
        let mut is_changed = false;
        for action in actions {
            match self.write(action).await.unwrap_or(Outcome::Nothing) {
                Outcome::Present(kind, object) => {
                    cluster.learn(kind, object);
                    is_changed = true;
                }
                Outcome::Gone(kind, key) => {
                    cluster.of(kind).remove(&key);
                    is_changed = true;
                }
                Outcome::Nothing => {}
            }
        }
        is_changed
    }

    async fn write(&mut self, action: Action) -> kube::Result<Outcome> {
        let parameters = PatchParams::default();
        let (kind, object) = match action {
            Action::Create(kind, object) => {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
                (kind, self.api(kind, &namespace).create(&PostParams::default(), &object).await?)
            }
            Action::Patch(kind, (namespace, name), patch) => {
                (kind, self.api(kind, &namespace).patch(&name, &parameters, &Patch::Merge(patch)).await?)
            }
            Action::Status(kind, (namespace, name), status) => {
                let patch = Patch::Merge(json!({ "status": status }));
                (kind, self.api(kind, &namespace).patch_status(&name, &parameters, &patch).await?)
            }
            Action::Delete(kind, key) => {
                let deleted = self.api(kind, &key.0).delete(&key.1, &DeleteParams::background()).await?;
                return Ok(match deleted.left().and_then(|object| present(object).filter(is_deleting)) {
                    Some(object) => Outcome::Present(kind, object),
                    None => Outcome::Gone(kind, key),
                });
            }
            Action::Bind { pod: (namespace, name), uid, node } => {
                self.bind(&namespace, &name, &uid, &node).await?;
                (Kind::Pod, self.api(Kind::Pod, &namespace).get(&name).await?)
            }
            Action::End { pod, uid } => {
                self.end(pod, uid);
                return Ok(Outcome::Nothing);
            }
        };
        Ok(present(object).map_or(Outcome::Nothing, |object| Outcome::Present(kind, object)))
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    async fn bind(&self, namespace: &str, name: &str, uid: &str, node: &str) -> kube::Result<Value> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(binding.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Removes a terminating pod later, once.
    fn end(&mut self, (namespace, name): Key, uid: String) {
        if !self.ending.insert(uid.clone()) {
            return;
        }
        let pods = self.api(Kind::Pod, &namespace);
        self.ends.spawn(async move {
            sleep(TERMINATION).await;
            let only = kube::api::Preconditions { uid: Some(uid), resource_version: None };
            let parameters = DeleteParams { preconditions: Some(only), ..DeleteParams::default().grace_period(0) };
            // Only these answers say that the pod is gone, or that another pod has its name.
            while let Err(error) = pods.delete(&name, &parameters).await
                && !matches!(&error, kube::Error::Api(status) if [404, 409].contains(&status.code))
            {
                sleep(AGAIN).await;
            }
        });
    }
}

fn present(object: DynamicObject) -> Option<Value> {
    serde_json::to_value(object).ok()
}
