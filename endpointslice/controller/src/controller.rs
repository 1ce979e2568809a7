//! EndpointSlice controller ([`Controller`]): stores changes of objects, returns the Services to plan, and plans their
//! slices.
//!
//! A *sync* of a Service starts with the first write after a change. The sync ends when a write fails, or when a plan
//! has nothing left to write. If changes are faster than writes, a sync ends when the next sync starts ([`Syncs`]).
//!
//! After an own write, the controller plans the Service again at once. After a foreign write to a slice, the controller
//! waits 1 s. So two controllers that undo each other's writes cost one write a second, and do not overload the server.
//!
//! While inactive, the controller plans nothing, and caches only the data that distinguishes own from foreign writes
//! ([`WriteOrigins`]). Each time that the controller becomes active, its inputs are listed from the beginning.

mod events;
mod progress;
mod slices;
mod syncs;

use super::view::{Draft, Input, Object, Touched, View};
use super::write_origin::WriteOrigins;
use super::writes::{self, Operation, SliceWrite};
use crate::limits::{FOREIGN_CHANGE_DELAY, SLICES_PACE};
use endpointslice::hints::ServiceHints;
use endpointslice::metrics::{Metrics, SyncResult};
use endpointslice::plan::Plan as SlicePlan;
use endpointslice::{Config, Proposal, Text};
pub(crate) use events::ServiceEvent;
use events::{errors_event, failed_to_update, hint_event};
use fleetnet_runtime::{Severity, WatchState};
use fleetnet_types::{ObjectName, Timestamp};
use progress::Progress;
pub(crate) use slices::Written;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use syncs::{Opened, Syncs};
use tracing::trace;

/// Delays between changes of pods and the writes that publish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Time in which changes of pods are gathered before a plan, from the first change.
    pub batch_period: Duration,
    /// Minimum time between writes of one Service that publish changes of pods. In a rollout, pods change every few
    /// milliseconds, so each write carries several changes. A single change does not wait.
    pub pace: Duration,
}

impl Timing {
    /// Returns a timing with this batch period and the default pace.
    #[must_use]
    pub const fn with_batch_period(batch_period: Duration) -> Self {
        Self { batch_period, pace: SLICES_PACE }
    }

    fn foreign_change_delay(self) -> Duration {
        self.batch_period.max(FOREIGN_CHANGE_DELAY)
    }
}

/// Result of a plan for a Service.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// Writes of the plan's next phase: first all creates, then updates, then deletes. The engine may send the writes
    /// of a phase at the same time.
    pub writes: Vec<SliceWrite>,
    /// Kubernetes Events to emit for the Service.
    pub events: Vec<ServiceEvent>,
    /// Time to plan the Service again even without a change.
    pub again: Option<Timestamp>,
    /// Change of the controller's state, to apply with [`Controller::planned`]. `None` if there is no plan for the
    /// Service now.
    pub effect: Option<Box<Effect>>,
}

/// Change that a plan of a Service makes to the controller's state.
#[derive(Debug)]
pub(crate) struct Effect {
    proposal: Proposal,
    hints: ServiceHints,
    delayed_deletes: BTreeSet<Text>,
    /// Names of the slices that the plan writes, each with its operation.
    written: Vec<(Text, Operation)>,
}

/// EndpointSlice controller of one cluster.
pub(crate) struct Controller {
    view: View,
    states: BTreeMap<Input, WatchState>,
    is_serving: bool,
    timing: Timing,
    progress: BTreeMap<ObjectName, Progress>,
    write_origins: WriteOrigins,
    metrics: Option<Metrics>,
    /// Time of the last foreign write to a slice of this manager. [`Controller::take_foreign_change`] clears it.
    foreign_change: Option<Timestamp>,
}

impl Controller {
    /// `source.component` of the Events. The value is the same as in kube-controller-manager, because users filter
    /// Events by it.
    pub(crate) const COMPONENT: &'static str = "endpoint-slice-controller";

    /// Returns an inactive controller with an empty cache.
    #[must_use]
    pub(crate) fn new(config: Config, timing: Timing, metrics: Option<Metrics>) -> Self {
        let config = Arc::new(config);
        Self {
            write_origins: WriteOrigins::new(config.controller_name().clone()),
            view: View::new(config),
            states: BTreeMap::new(),
            is_serving: false,
            timing,
            progress: BTreeMap::new(),
            metrics,
            foreign_change: None,
        }
    }

    /// True if the controller is active.
    #[cfg(test)]
    pub(crate) const fn is_serving(&self) -> bool {
        self.is_serving
    }

    /// Makes the controller inactive until the next run: it makes no further plan. Slices stay as they are for the next
    /// active controller.
    pub(crate) const fn stop(&mut self) {
        self.is_serving = false;
    }

    /// Begins a run in which the controller is active or inactive. No input is listed yet, and the cache is empty.
    pub(crate) fn begin_run(&mut self, is_serving: bool) {
        self.is_serving = is_serving;
        self.states.clear();
        self.progress.clear();
        self.write_origins.list_again();
        let config = Arc::clone(self.view.config());
        let old_view = std::mem::replace(&mut self.view, View::new(config));
        if let Some(metrics) = &mut self.metrics {
            old_view.services().for_each(|(namespace, name)| metrics.forget(namespace, name));
        }
    }

    /// True if the controller is active and has listed all inputs.
    #[must_use]
    pub(crate) fn is_ready(&self) -> bool {
        self.is_serving && Input::ALL.iter().all(|input| self.is_known(*input))
    }

    /// True if plans may use the cached objects of this input. If the agent can no longer read Nodes, plans use the
    /// last known Nodes, because changes of pods are more important than changes of zones. A pod on an unknown Node is
    /// not published.
    fn is_known(&self, input: Input) -> bool {
        match self.states.get(&input) {
            Some(WatchState::Complete) => true,
            Some(WatchState::Unknown) => input == Input::Node,
            _ => false,
        }
    }

    /// Records the new watch state of an input. If all inputs are ready now, adds all Services to `requeue`.
    pub(crate) fn watch_state(&mut self, input: Input, state: WatchState, requeue: &mut Vec<ObjectName>) {
        let was_ready = self.is_ready();
        self.states.insert(input, state);
        if input == Input::EndpointSlice && state == WatchState::Complete {
            self.write_origins.listed();
        }
        if self.is_ready() && !was_ready {
            let _all_are_planned_anyway = (self.view.keep_undecodable(), self.view.reallocate());
            requeue.extend(self.view.services().map(|(namespace, name)| ObjectName::new(&**namespace, &**name)));
        }
    }

    /// Stores a new or changed object. Adds the Services that must be planned to `requeue`.
    pub(crate) fn apply(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        match object {
            Object::EndpointSlice(slice) => self.apply_slice(slice, at, requeue),
            _ if !self.is_serving => {}
            Object::Service(service) => {
                let name = ObjectName::new(&*service.metadata.namespace, &*service.metadata.name);
                if self.view.set_service(service) {
                    let progress = self.progress.entry(name.clone()).or_default();
                    let by = progress.news(at);
                    progress.due.by(by);
                    requeue.push(name);
                }
            }
            Object::Pod(pod) => {
                let touched = self.view.set_pod(pod);
                self.touch_at_pace(touched, at + self.timing.batch_period, requeue);
            }
            Object::Node(node) => {
                let is_ready = self.is_ready();
                let touched = self.view.set_node(node, is_ready);
                self.touch(touched, at, requeue);
            }
        }
    }

    /// Removes an object. Adds the Services that must be planned to `requeue`.
    pub(crate) fn remove(
        &mut self,
        input: Input,
        namespace: &str,
        name: &str,
        at: Timestamp,
        requeue: &mut Vec<ObjectName>,
    ) {
        let is_ready = self.is_ready();
        match input {
            Input::Service => {
                self.view.remove_service(namespace, name);
                self.progress.remove(&ObjectName::new(namespace, name));
                if let Some(metrics) = &mut self.metrics {
                    metrics.forget(namespace, name);
                }
            }
            Input::Pod => {
                let touched = self.view.remove_pod(namespace, name);
                self.touch_at_pace(touched, at + self.timing.batch_period, requeue);
            }
            Input::Node => {
                let touched = self.view.remove_node(name, is_ready);
                self.touch(touched, at, requeue);
            }
            Input::EndpointSlice => {
                let touched = self.view.remove_slice(namespace, name);
                let is_own = self.write_origins.observe_removal(&ObjectName::new(namespace, name), at);
                self.after_slice(touched, is_own, at, requeue);
            }
        }
    }

    /// Records an undecodable object without an earlier decoded state. Adds the Services that must be planned to
    /// `requeue`.
    pub(crate) fn undecodable(
        &mut self,
        input: Input,
        namespace: &str,
        name: &str,
        at: Timestamp,
        requeue: &mut Vec<ObjectName>,
    ) {
        match input {
            _ if !self.is_serving => {}
            Input::Service => {}
            Input::EndpointSlice => self.view.note_slice(namespace, name),
            // Do not requeue. The controller knew nothing about this pod until now. If a slice has an endpoint with the
            // name of the pod, the endpoint belongs to an earlier pod of the same name.
            Input::Pod => self.view.note_pod(namespace, name),
            Input::Node => {
                self.view.note_node(name);
                if self.is_ready() {
                    let touched = self.view.keep_undecodable();
                    self.touch(touched, at, requeue);
                }
            }
        }
    }

    /// Returns and clears the time of the last foreign write to a slice of this manager.
    pub(crate) fn take_foreign_change(&mut self) -> Option<Timestamp> {
        self.foreign_change.take()
    }

    /// Returns the writes and Events that a Service needs now.
    #[must_use]
    pub(crate) fn plan(&self, key: &ObjectName, now: Timestamp) -> Planned {
        if !self.is_ready() {
            return Planned::default();
        }
        let Some(known) = self.view.service(&key.namespace, &key.name) else { return Planned::default() };
        let unknown = Progress::default();
        let progress = self.progress.get(key).unwrap_or(&unknown);
        if let Some(again) = progress.due.waits_until(now, self.timing.foreign_change_delay()) {
            return Planned { again: Some(again), ..Planned::default() };
        }
        let Some(draft) = self.view.plan(&key.namespace, &key.name) else { return Planned::default() };
        let Draft { proposal, hints, events } = draft;
        let plan = &proposal.plan;
        let uid = &known.state.service().metadata.uid;
        let mut events: Vec<ServiceEvent> = events.iter().map(|event| hint_event(uid, event)).collect();
        events.extend(errors_event(progress, plan, key, uid));
        let mut phase = writes::next_phase(plan, uid, |name| self.view.has_slice(&key.namespace, name));
        let delayed_deletes = writes::delayed_deletes(plan);
        phase.delete_also(plan, &progress.round.may_go(&delayed_deletes));
        let writes = phase.writes;
        let written = writes.iter().map(|write| (write.name.clone(), write.receipt.operation)).collect();
        let effect = Effect { proposal, hints, delayed_deletes, written };
        Planned { writes, events, again: None, effect: Some(Box::new(effect)) }
    }

    /// Applies the effect of a plan, right after the plan was made.
    pub(crate) fn planned(&mut self, key: &ObjectName, effect: Effect, now: Timestamp) {
        let Effect { proposal, hints, delayed_deletes, written } = effect;
        self.view.planned(&key.namespace, &key.name, &proposal, hints);
        let plan = proposal.plan;
        let Some(known) = self.view.service(&key.namespace, &key.name) else { return };
        if let Some(metrics) = &mut self.metrics {
            metrics.counted(known.state.service(), &plan);
        }
        let progress = self.progress.entry(key.clone()).or_default();
        progress.due.clear();
        progress.reported = plan.errors().collect();
        if written.is_empty() {
            return self.finish(key, plan, now);
        }
        progress.writes(written.iter().map(|(slice, _)| slice.clone()), now);
        progress.has_more_phases = writes::has_phases_after_the_next(&plan);
        let added = written.into_iter().filter(|(_, operation)| *operation != Operation::Delete);
        progress.round.begin(&plan, delayed_deletes, added.map(|(slice, _)| slice));
        progress.syncs.plan(plan, now);
    }

    /// Counts a successful write to a slice.
    pub(crate) fn written(&self, operation: Operation) {
        if let Some(metrics) = &self.metrics {
            metrics.changed(operation);
        }
    }

    /// Records that a write for this Service failed. Called after [`Controller::write_ended`].
    pub(crate) fn not_done(&mut self, key: &ObjectName, at: Timestamp) {
        if let Some(begun) = self.progress.get_mut(key).and_then(|progress| progress.syncs.fails()) {
            self.synced(key, SyncResult::Error, at.since(begun.at));
        }
    }

    /// Returns the Event about a write that was denied, rejected or failed. Called only for the first of several
    /// consecutive failures.
    pub(crate) fn rejected(&self, key: &ObjectName, operation: &str, slice: &str, why: &str) -> Option<ServiceEvent> {
        let service = self.view.service(&key.namespace, &key.name)?.state.service();
        let message = match operation {
            "create" => format!("failed to create EndpointSlice for Service {key}: {why}"),
            "delete" if self.view.is_unsupported(service, slice) => {
                format!("error deleting {slice} EndpointSlice for Service {key}: {why}")
            }
            "delete" => format!("failed to delete {slice} EndpointSlice for Service {key}: {why}"),
            _ => format!("failed to update {slice} EndpointSlice for Service {key}: {why}"),
        };
        Some(failed_to_update(key, &service.metadata.uid, &message))
    }

    /// Returns an Event about a Service. `None` if the Service does not exist.
    pub(crate) fn event_about(
        &self,
        key: &ObjectName,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) -> Option<ServiceEvent> {
        let uid = self.view.service(&key.namespace, &key.name)?.state.service().metadata.uid.clone();
        Some(ServiceEvent { service: key.clone(), uid, severity, reason, message })
    }

    /// Ends the sync of a Service that has nothing left to write. If the plan has an error, such as an unknown Node of
    /// a pod, the sync counts as failed in the metrics.
    fn finish(&mut self, key: &ObjectName, plan: SlicePlan, now: Timestamp) {
        let is_done = plan.errors().next().is_none();
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.rest();
        if !progress.syncs.rests() {
            return;
        }
        let begun = progress.syncs.end();
        let took = begun.as_ref().map_or(Duration::ZERO, |begun| now.since(begun.at));
        if let Some(metrics) = self.metrics.as_ref().filter(|_| begun.is_none()) {
            metrics.sync_begun(&plan);
        }
        self.completed(key, &begun.map_or(plan, |begun| begun.first));
        self.synced(key, if is_done { SyncResult::Success } else { SyncResult::Error }, took);
    }

    /// Records that a write to a slice is sent. If this write starts a sync of the Service, updates the metrics for the
    /// new sync, and for the previous sync, which ends.
    fn sync(&mut self, key: &ObjectName, slice: &ObjectName) {
        let Some(Opened { over, now }) = self.progress.get_mut(key).and_then(|it| it.syncs.begin(&slice.name)) else {
            return;
        };
        let at = now.at;
        if let Some(metrics) = &self.metrics {
            metrics.sync_begun(&now.first);
        }
        if let Some(over) = over {
            self.completed(key, &over.first);
            self.synced(key, SyncResult::Success, at.since(over.at));
        }
        trace!(service = %key, "a sync begins");
    }

    /// Updates metrics for a plan of a Service whose writes have all succeeded.
    fn completed(&self, key: &ObjectName, plan: &SlicePlan) {
        if let (Some(metrics), Some(known)) = (&self.metrics, self.view.service(&key.namespace, &key.name)) {
            metrics.completed(known.state.service(), &plan.families);
        }
    }

    fn synced(&self, key: &ObjectName, result: SyncResult, took: Duration) {
        trace!(service = %key, result = result.as_str(), ?took, "a sync has ended");
        if let Some(metrics) = &self.metrics {
            metrics.synced(result);
        }
    }

    fn touch(&mut self, touched: Touched, by: Timestamp, requeue: &mut Vec<ObjectName>) {
        self.touch_by(touched, |progress| progress.news(by), requeue);
    }

    fn touch_at_pace(&mut self, touched: Touched, by: Timestamp, requeue: &mut Vec<ObjectName>) {
        let pace = self.timing.pace;
        self.touch_by(touched, |progress| progress.news(progress.paced(by, pace)), requeue);
    }

    /// Requeues these Services. `by` returns the time at which a Service must be planned at the latest. Does nothing
    /// while the controller is not ready, because the controller requeues all Services when it becomes ready.
    fn touch_by(&mut self, touched: Touched, by: impl Fn(&mut Progress) -> Timestamp, requeue: &mut Vec<ObjectName>) {
        if !self.is_ready() {
            return;
        }
        for (namespace, name) in touched {
            if self.view.service(&namespace, &name).is_some() {
                let key = ObjectName::new(&*namespace, &*name);
                let progress = self.progress.entry(key.clone()).or_default();
                let by = by(progress);
                progress.due.by(by);
                requeue.push(key);
            }
        }
    }
}

/// Number of cached objects of each kind, for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheSizes {
    pub(super) services: usize,
    pub(super) slices: usize,
    pub(super) pods: usize,
    pub(super) nodes: usize,
    /// Number of slices whose generation is remembered.
    pub(super) seen: usize,
    /// Number of Services with a [`Progress`] value.
    pub(super) in_progress: usize,
}

#[cfg(test)]
impl Controller {
    pub(super) fn foreign_labels(&self) -> usize {
        self.view.config().foreign_labels.len()
    }

    pub(super) fn cache_sizes(&self) -> CacheSizes {
        let [services, slices, pods, nodes] = self.view.cache_sizes();
        CacheSizes { services, slices, pods, nodes, seen: self.write_origins.seen(), in_progress: self.progress.len() }
    }
}

#[cfg(test)]
mod tests;
