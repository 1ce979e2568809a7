//! Status of a pod in the API server: [`Reporter`].

use super::place::Place;
use super::state::{Ended, State, Status};
use crate::clock;
use crate::limits::RETRY;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;

/// Writes the status of a pod whenever it has changed.
pub(super) struct Reporter {
    place: Arc<Place>,
    statuses: watch::Receiver<Vec<Status>>,
    pods: Api<Pod>,
    started_at: String,
    /// Conditions by their types: the status, and its time.
    conditions: BTreeMap<&'static str, (bool, String)>,
    /// Last status that the API server has.
    reported: Value,
    ends: bool,
}

impl Reporter {
    pub(super) fn new(place: &Arc<Place>) -> Self {
        let namespace = place.pod.namespace().unwrap_or_default();
        Self {
            place: Arc::clone(place),
            statuses: place.statuses.subscribe(),
            pods: Api::namespaced(place.node.client.clone(), &namespace),
            started_at: clock::seconds(),
            conditions: BTreeMap::new(),
            reported: Value::Null,
            ends: false,
        }
    }

    /// Tells that the pod is being deleted. Containers that end do not start again.
    pub(super) fn pod_ends(&mut self) {
        self.ends = true;
        self.place.record(|times| times.deleted = Some(clock::now().as_microsecond()));
    }

    /// Writes the status at each change.
    pub(super) async fn follow(&mut self) -> Infallible {
        loop {
            self.report().await;
            // The sender lives as long as `place`.
            let _ = self.statuses.changed().await;
        }
    }

    /// Writes the present status, if the API server does not have it yet.
    pub(super) async fn report(&mut self) {
        let statuses = self.statuses.borrow_and_update().clone();
        let status = self.status(&statuses);
        if status == self.reported {
            return;
        }
        let name = self.place.pod.name_any();
        let patch = Patch::Merge(json!({"metadata": {"uid": self.place.pod.uid()}, "status": status}));
        loop {
            match self.pods.patch_status(&name, &PatchParams::default(), &patch).await {
                Ok(_) => break,
                // Gone, or another pod with the same name.
                Err(kube::Error::Api(answer)) if [404, 409].contains(&answer.code) => break,
                Err(error) => eprintln!("no status of {}: {error}", self.place.name()),
            }
            tokio::time::sleep(RETRY).await;
        }
        self.reported = status;
    }

    fn status(&mut self, statuses: &[Status]) -> Value {
        let is_ready = statuses.iter().all(|status| status.is_ready);
        if is_ready {
            self.place.record(|times| times.ready = times.ready.or_else(|| Some(clock::now().as_microsecond())));
        }
        let conditions =
            [("PodScheduled", true), ("Initialized", true), ("ContainersReady", is_ready), ("Ready", is_ready)]
                .map(|(kind, holds)| self.condition(kind, holds));
        let network = self.place.node.settings.network;
        let (four, six) = (self.place.address(), network.pod_address6(self.place.number));
        let containers = self.place.containers().iter().zip(statuses).map(|(spec, status)| {
            let is_running = matches!(status.state, State::Running(_));
            json!({
                "name": spec.name, "image": spec.image, "imageID": "", "ready": status.is_ready, "started": is_running,
                "restartCount": status.restarts, "state": state(&status.state),
                "lastState": status.last.as_ref().map_or_else(|| json!({}), |last| json!({"terminated": terminated(last)})),
            })
        });
        json!({
            "phase": self.phase(statuses),
            "podIP": four, "podIPs": [{"ip": four}, {"ip": six}],
            "hostIP": network.address(), "hostIPs": [{"ip": network.address()}, {"ip": network.address6()}],
            "startTime": self.started_at,
            "conditions": conditions,
            "containerStatuses": containers.collect::<Vec<_>>(),
        })
    }

    fn phase(&self, statuses: &[Status]) -> &'static str {
        let policy = self.place.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        let code = |status: &Status| match &status.state {
            State::Ended(ended) => Some(ended.code),
            State::Creating | State::Failed(_) | State::Running(_) => None,
        };
        let codes: Option<Vec<i32>> = statuses.iter().map(code).collect();
        let Some(codes) = codes else { return "Running" };
        match (codes.iter().all(|code| *code == 0), policy) {
            (true, Some("Never" | "OnFailure")) => "Succeeded",
            (false, Some("Never")) => "Failed",
            (true, _) if self.ends => "Succeeded",
            (false, _) if self.ends => "Failed",
            _ => "Running",
        }
    }

    /// Returns a condition, with the time at which its status changed.
    fn condition(&mut self, kind: &'static str, holds: bool) -> Value {
        let entry = self.conditions.entry(kind).or_insert_with(|| (holds, clock::seconds()));
        if entry.0 != holds {
            *entry = (holds, clock::seconds());
        }
        let status = if holds { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastTransitionTime": entry.1})
    }
}

fn state(state: &State) -> Value {
    match state {
        State::Creating => json!({"waiting": {"reason": "ContainerCreating"}}),
        State::Failed(message) => json!({"waiting": {"reason": "RunContainerError", "message": message}}),
        State::Running(since) => json!({"running": {"startedAt": since}}),
        State::Ended(ended) => json!({"terminated": terminated(ended)}),
    }
}

fn terminated(ended: &Ended) -> Value {
    let reason = if ended.code == 0 { "Completed" } else { "Error" };
    json!({"exitCode": ended.code, "reason": reason, "startedAt": ended.started_at, "finishedAt": ended.finished_at})
}
