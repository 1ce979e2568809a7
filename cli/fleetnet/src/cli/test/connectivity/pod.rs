//! Pod that runs the script in an importing cluster: created, followed until its end, and deleted in any case.

use super::super::super::contexts::connect::Cluster;
use crate::limits::{DELETE_TRIES, POD_LOG_BYTES, POD_MARGIN, POLL};
use fleetnet_runtime::process::shutdown::Shutdown;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::Api;
use kube::api::{DeleteParams, LogParams, PostParams};
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Value of the label `app.kubernetes.io/name` of the pods, and the first part of their names.
const NAME: &str = "fleetnet-connectivity";
/// Reasons for which a container waits and does not start without a change by a user.
const HOPELESS: [&str; 6] = [
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// Runner of pods in the namespace of an importer, with their image and time limit.
pub(super) struct Prober<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) namespace: &'a str,
    pub(super) image: &'a str,
    pub(super) timeout: Duration,
    pub(super) shutdown: &'a Shutdown,
}

/// End of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Log of the pod, as far as it could be read.
    pub(super) log: String,
    /// Reason why targets have no result in the log.
    pub(super) missing: String,
    /// Text about a pod that could not be deleted.
    pub(super) leftover: Option<String>,
}

/// State of the pod.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The container has not started yet, for this reason.
    Waiting(String),
    Running,
    /// The pod has ended. The text is the reason, if the pod says one.
    Ended(String),
    /// The container cannot start.
    Hopeless(String),
}

impl Prober<'_> {
    /// Runs a script in a pod. The pod is deleted in any case, also if nobody knows whether it was created.
    pub(super) async fn run(&self, script: &str) -> End {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), self.namespace);
        let name = format!("{NAME}-{:010x}", RandomState::new().hash_one(NAME) >> 24);
        let created = match pod(&name, self.image, script, self.timeout + POD_MARGIN) {
            // Not cut short by a signal: a request that is on its way could create the pod after its deletion.
            Ok(pod) => self.cluster.ask(pods.create(&PostParams::default(), &pod)).await,
            Err(error) => {
                return End { log: String::new(), missing: error.to_string(), leftover: None };
            }
        };
        let (log, missing) = match created {
            Ok(_) => self.follow(&pods, &name).await,
            Err(failure) if (400..500).contains(&failure.status) => {
                let missing = format!("a pod could not be created: {failure}");
                return End { log: String::new(), missing, leftover: None };
            }
            Err(failure) => (String::new(), format!("a pod could not be created: {failure}")),
        };
        End { log, missing, leftover: self.delete(&pods, &name).await }
    }

    /// Waits until the pod has ended, until the time limit passes or until a signal. Returns its log, and the reason
    /// for missing results.
    async fn follow(&self, pods: &Api<Pod>, name: &str) -> (String, String) {
        let end = Instant::now() + self.timeout;
        loop {
            let state = match self.cluster.find(pods.get(name)).await {
                Ok(Some(pod)) => State::of(&pod),
                Ok(None) => return (String::new(), "somebody else deleted the pod".to_owned()),
                Err(failure) => State::Waiting(failure.to_string()),
            };
            let has_passed = Instant::now() >= end;
            match state {
                State::Hopeless(why) => return (String::new(), format!("the pod cannot start: {why}")),
                State::Ended(why) => return self.log(pods, name, &format!("the pod has ended before{why}")).await,
                State::Running if has_passed => {
                    return self.log(pods, name, &format!("no result within {:?}", self.timeout)).await;
                }
                State::Waiting(why) if has_passed => {
                    return (String::new(), format!("the pod has not started within {:?}: {why}", self.timeout));
                }
                State::Running | State::Waiting(_) => {}
            }
            tokio::select! {
                biased;
                () = self.shutdown.requested() => return (String::new(), INTERRUPTED.to_owned()),
                () = sleep(POLL) => {}
            }
        }
    }

    async fn log(&self, pods: &Api<Pod>, name: &str, missing: &str) -> (String, String) {
        let parameters = LogParams { limit_bytes: Some(POD_LOG_BYTES), ..LogParams::default() };
        match self.cluster.ask(pods.logs(name, &parameters)).await {
            Ok(log) => (log, missing.to_owned()),
            Err(failure) => (String::new(), format!("{missing}, and its log could not be read: {failure}")),
        }
    }

    /// Deletes the pod. Returns a text with the command to delete it if that fails.
    async fn delete(&self, pods: &Api<Pod>, name: &str) -> Option<String> {
        let mut why = String::new();
        for _ in 0..DELETE_TRIES {
            match self.cluster.find(pods.delete(name, &DeleteParams::default())).await {
                Ok(_) => return None,
                Err(failure) => why = failure.to_string(),
            }
            sleep(POLL).await;
        }
        let (context, namespace) = (&self.cluster.context, self.namespace);
        Some(format!(
            "the pod {namespace}/{name} may still exist, use kubectl --context {context} -n {namespace} delete pod {name}: {why}"
        ))
    }
}

impl State {
    fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let said = |reason: Option<String>, message: Option<String>| {
            let words: Vec<String> = reason.into_iter().chain(message).filter(|text| !text.is_empty()).collect();
            words.join(": ")
        };
        if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            let why = said(status.reason, status.message);
            return Self::Ended(if why.is_empty() { why } else { format!(" ({why})") });
        }
        let container = status.container_statuses.and_then(|statuses| statuses.into_iter().next());
        match container.and_then(|container| container.state) {
            Some(ContainerState { running: Some(_), .. } | ContainerState { terminated: Some(_), .. }) => Self::Running,
            Some(ContainerState { waiting: Some(waiting), .. }) => {
                let is_hopeless = waiting.reason.as_deref().is_some_and(|reason| HOPELESS.contains(&reason));
                let why = said(waiting.reason, waiting.message);
                if is_hopeless { Self::Hopeless(why) } else { Self::Waiting(why) }
            }
            _ => {
                let mut conditions = status.conditions.into_iter().flatten();
                let unscheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False");
                let why = unscheduled.map(|it| said(it.reason, it.message)).unwrap_or_default();
                Self::Waiting(if why.is_empty() { "no node runs it yet".to_owned() } else { why })
            }
        }
    }
}

/// Returns the pod. It fulfils the Pod Security Standard `restricted`, has no token, and is no part of a service mesh:
/// a sidecar would answer in the place of the network, and would not end.
fn pod(name: &str, image: &str, script: &str, deadline: Duration) -> serde_json::Result<Pod> {
    let resources: Value = json!({
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"cpu": "500m", "memory": "64Mi"},
    });
    serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": NAME,
                "app.kubernetes.io/managed-by": "fleetnet",
                "sidecar.istio.io/inject": "false",
            },
            "annotations": {"linkerd.io/inject": "disabled"},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": deadline.as_secs(),
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "connectivity",
                "image": image,
                "command": ["sh", "-c", script],
                "resources": resources,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    }))
}

/// Reason of targets without an outcome after Ctrl-C.
pub(super) const INTERRUPTED: &str = "interrupted";

#[cfg(test)]
mod tests;
