//! EndpointSlice controller as an implementation of the runtime's `Logic` ([`Serving`]), with the decision whether it
//! is active.
//!
//! The agent runs the controller again from the beginning each time that this decision changes ([`super::agent`]): an
//! inactive controller watches less.

use super::controller::{Controller, Effect as SlicesEffect, Planned, ServiceEvent, Written};
use super::settings::Settings;
use super::source::{Source, Watched};
use super::takeover::{Decision, Takeover, Why};
use super::view::Input;
use super::writes::{SliceReceipt, SliceWrite};
use crate::metrics::SERVING;
use endpointslice::metrics::Metrics;
use fleetnet_runtime::process::shutdown::ShutdownTrigger;
use fleetnet_runtime::{
    Change, Event, Fight, Flow, FlowId, Logic, Plan, ProcessNews, Request, Severity, WatchNews, WatchState, WriteEnded,
    WriteFailure, WriteNews,
};
use fleetnet_types::{ObjectName, Timestamp};
use prometheus::{IntGauge, Registry};
use std::convert::Infallible;
use tracing::{info, warn};

/// Reason of the Event about another writer that undoes the writes of slices. The agents of the fleet have the same.
const WRITES_UNDONE: &str = "WritesUndone";

/// Key of a plan of the EndpointSlice controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Decision whether the controller is active.
    Takeover,
    /// Service whose EndpointSlices the controller makes.
    Service(ObjectName),
}

/// Effect of a plan besides its writes.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Decision whether the controller is active.
    Takeover(Decided),
    /// Change of the controller's state by a plan for a Service.
    Service(Box<SlicesEffect>),
}

/// Decision whether the controller is active, and the observations that this decision has taken into account.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    takeover: Takeover,
    decision: Decision,
}

/// EndpointSlice controller, with the state for the decision whether the controller is active.
pub(crate) struct Serving {
    pub(super) controller: Controller,
    takeover: Takeover,
    decision: Option<Decision>,
    concurrent_syncs: usize,
    /// Ends the present run, because its watches do not fit a new decision.
    end_of_run: ShutdownTrigger,
    /// True once this replica leads. A replica that does not lead ignores foreign writes, because the leading replica
    /// may have made them.
    leads: bool,
    is_serving: IntGauge,
    /// Time of the last foreign write, whether or not this replica leads.
    #[cfg(test)]
    pub(super) last_foreign_change: Option<Timestamp>,
}

impl Serving {
    /// Returns an inactive controller with an empty cache. [`Serving::begin_run`] must be called before each run.
    ///
    /// # Errors
    /// If the registry already has a metric of the controller.
    pub(crate) fn new(settings: &Settings, registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::new(registry, &settings.config)?;
        let is_serving = SERVING.gauge(registry)?;
        Ok(Self {
            controller: Controller::new(settings.config.clone(), settings.timing, Some(metrics)),
            takeover: Takeover::new(settings.mode, settings.takeover_after),
            decision: None,
            concurrent_syncs: settings.concurrent_syncs,
            end_of_run: ShutdownTrigger::default(),
            leads: false,
            is_serving,
            #[cfg(test)]
            last_foreign_change: None,
        })
    }

    /// Prepares a run, whose watches begin with a list. The controller is active in this run if that was the last
    /// decision. The run must end when `end_of_run` requests it.
    pub(crate) fn begin_run(&mut self, end_of_run: ShutdownTrigger) {
        self.end_of_run = end_of_run;
        self.takeover.begin_run();
        self.controller.begin_run(self.serves());
        self.show_serving();
    }

    /// True if the last decision was that the controller is active.
    #[must_use]
    pub(crate) fn serves(&self) -> bool {
        self.decision.is_some_and(|decision| decision.serves)
    }

    /// Reports a foreign write to a slice to the decision whether the controller is active.
    fn report_foreign_change(&mut self, requeue: &mut Vec<Key>) {
        let foreign_change = self.controller.take_foreign_change();
        #[cfg(test)]
        {
            self.last_foreign_change = self.last_foreign_change.max(foreign_change);
        }
        if let Some(changed) = foreign_change.filter(|_| self.leads) {
            self.takeover.slices_changed(changed);
            requeue.push(Key::Takeover);
        }
    }

    /// Decides whether the controller is active. A replica that does not lead is inactive and caches nothing. It lists
    /// all inputs when it starts to lead.
    fn decide(&self, now: Timestamp) -> Decided {
        let mut takeover = self.takeover.clone();
        let decision = match takeover.decide(now) {
            decided if decided.serves && !self.leads => Decision { serves: false, why: Why::Follows, ..decided },
            decided => decided,
        };
        Decided { takeover, decision }
    }

    /// Applies a decision. If the controller must become inactive, it makes no further plan. It becomes active only in
    /// the next run, because it must list all inputs first.
    fn decided(&mut self, decided: Decided) {
        let Decided { takeover, decision } = decided;
        self.takeover = takeover;
        let served = self.serves();
        let before = self.decision.replace(decision);
        if before.is_none_or(|before| (before.serves, before.why) != (decision.serves, decision.why)) {
            log_decision(decision);
        }
        if !decision.serves && served {
            self.controller.stop();
        }
        self.show_serving();
        if decision.serves != served {
            self.end_of_run.request();
        }
    }

    /// Sets the metric. A controller that has not listed its inputs makes no slices, for example without the right to
    /// read pods.
    fn show_serving(&self) {
        self.is_serving.set(self.controller.is_ready().into());
    }

    fn watch_state(&mut self, source: Source, state: WatchState, requeue: &mut Vec<Key>) {
        let Source::Input(input) = source else {
            self.takeover.lease_view(state);
            return requeue.push(Key::Takeover);
        };
        let mut services = Vec::new();
        self.controller.watch_state(input, state, &mut services);
        self.show_serving();
        requeue.extend(services.into_iter().map(Key::Service));
        if input == Input::EndpointSlice {
            self.takeover.slices_view(state);
            requeue.push(Key::Takeover);
        }
        if state == WatchState::Absent {
            warn!(
                ?input,
                "the agent cannot make the EndpointSlices of this cluster, because it may not read that kind. Apply \
                 deploy/endpointslices.yaml, or set --endpointslices=off"
            );
        }
    }

    /// Handles the end of a write to a slice of a Service. A failure in a namespace that is being deleted counts as no
    /// failed sync and causes no Event, because the API server accepts no new slices there.
    fn ended(
        &mut self,
        service: &ObjectName,
        ended: WriteEnded<'_, Source, SliceReceipt>,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) -> Vec<Event<Source>> {
        let WriteEnded { request, end, receipt, failure, is_reported } = ended;
        let write = Written { service, slice: &request.name, verb: &request.verb, end };
        let mut services = Vec::new();
        self.controller.write_ended(&write, at, &mut services);
        requeue.extend(services.into_iter().map(Key::Service));
        self.report_foreign_change(requeue);
        if let Some(receipt) = receipt {
            self.controller.written(receipt.operation);
        }
        let Some(failure) = failure.filter(|failure| !failure.is_of_terminating_namespace()) else {
            return Vec::new();
        };
        self.controller.not_done(service, at);
        if is_reported { self.failed(service, failure) } else { Vec::new() }
    }

    fn failed(&self, service: &ObjectName, failure: &WriteFailure<Source>) -> Vec<Event<Source>> {
        let event = self.controller.rejected(service, failure.verb, &failure.name.name, &failure.message);
        event.map(record).into_iter().collect()
    }
}

impl Logic for Serving {
    type Source = Source;
    type Object = Watched;
    type Key = Key;
    type Receipt = SliceReceipt;
    type Effect = Effect;
    type Message = Infallible;

    fn observe(&mut self, source: Source, change: Change<Watched>, at: Timestamp, requeue: &mut Vec<Key>) {
        let mut services = Vec::new();
        match (source, change) {
            (_, Change::Applied(Watched::Input(object))) => self.controller.apply(*object, at, &mut services),
            (Source::Input(input), Change::Removed { name, .. }) => {
                self.controller.remove(input, &name.namespace, &name.name, at, &mut services);
            }
            (Source::Input(input), Change::Undecodable { name }) => {
                self.controller.undecodable(input, &name.namespace, &name.name, at, &mut services);
            }
            (_, Change::Applied(Watched::Lease(lease))) => {
                self.takeover.lease_seen(lease, at);
                requeue.push(Key::Takeover);
            }
            (Source::KubeControllerManagerLease, Change::Removed { .. }) => {
                self.takeover.lease_gone();
                requeue.push(Key::Takeover);
            }
            (Source::KubeControllerManagerLease, Change::Undecodable { .. }) => {}
        }
        requeue.extend(services.into_iter().map(Key::Service));
        self.report_foreign_change(requeue);
    }

    fn watch(&mut self, source: Source, news: WatchNews, _at: Timestamp, requeue: &mut Vec<Key>) {
        match news {
            WatchNews::State(state) => self.watch_state(source, state, requeue),
            // A lost connection changes no slice: the slices stay as they are until the connection is back.
            WatchNews::Connected(_) | WatchNews::Listing(_) | WatchNews::Restored => {}
        }
    }

    fn receive(&mut self, message: Infallible, _at: Timestamp, _requeue: &mut Vec<Key>) {
        match message {}
    }

    fn process(&mut self, news: ProcessNews, _at: Timestamp, requeue: &mut Vec<Key>) {
        match news {
            ProcessNews::Leads => {
                self.leads = true;
                requeue.push(Key::Takeover);
            }
            ProcessNews::Follows => {
                self.leads = false;
                requeue.push(Key::Takeover);
            }
            ProcessNews::ClockSet { microseconds } => self.takeover.clock_set(microseconds),
            ProcessNews::Stops => {} // slices stay as they are
        }
    }

    fn plan(&self, key: &Key, now: Timestamp) -> Plan<Source, SliceReceipt, Effect> {
        match key {
            Key::Takeover => {
                let decided = self.decide(now);
                Plan { again: decided.decision.again, effect: Some(Effect::Takeover(decided)), ..Plan::default() }
            }
            Key::Service(service) => plan(self.controller.plan(service, now)),
        }
    }

    fn planned(&mut self, key: &Key, effect: Effect, at: Timestamp) {
        match (key, effect) {
            (_, Effect::Takeover(decided)) => self.decided(decided),
            (Key::Service(service), Effect::Service(effect)) => self.controller.planned(service, *effect, at),
            (Key::Takeover, Effect::Service(_)) => {} // the plan of this key is a decision
        }
    }

    /// All Services share one flow. The decision whether the controller is active has its own flow, so that it does not
    /// wait behind them.
    fn flow(&self, key: &Key) -> Flow {
        match key {
            Key::Service(_) => {
                let (id, most_in_flight) = (FlowId::of("Services"), self.concurrent_syncs);
                Flow { most_in_flight, ..id.into() }
            }
            Key::Takeover => FlowId::of("takeover").into(),
        }
    }

    fn write(
        &mut self,
        key: &Key,
        news: WriteNews<'_, Source, SliceReceipt>,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) -> Vec<Event<Source>> {
        let Key::Service(service) = key else { return Vec::new() };
        match news {
            WriteNews::Begun(Request { name, receipt: Some(receipt), .. }) => {
                self.controller.write_begun(service, name, receipt);
                Vec::new()
            }
            WriteNews::Begun(_) => Vec::new(),
            WriteNews::Ended(ended) => self.ended(service, ended, at, requeue),
        }
    }

    fn fight(&mut self, key: &Key, fight: &Fight<Source>, _requeue: &mut Vec<Key>) -> Vec<Event<Source>> {
        let Key::Service(service) = key else { return Vec::new() };
        let Some(message) = fight.message() else { return Vec::new() };
        let event = self.controller.event_about(service, Severity::Warning, WRITES_UNDONE, message);
        event.map(record).into_iter().collect()
    }
}

fn plan(planned: Planned) -> Plan<Source, SliceReceipt, Effect> {
    let request = |write: SliceWrite| Request {
        source: Source::Input(Input::EndpointSlice),
        name: ObjectName::new(&*write.namespace, &*write.name),
        verb: write.verb,
        receipt: Some(write.receipt),
    };
    Plan {
        writes: planned.writes.into_iter().map(request).collect(),
        events: planned.events.into_iter().map(record).collect(),
        again: planned.again,
        effect: planned.effect.map(Effect::Service),
        renews: false,
    }
}

fn record(event: ServiceEvent) -> Event<Source> {
    Event {
        source: Source::Input(Input::Service),
        name: event.service,
        uid: (&*event.uid).into(),
        severity: event.severity,
        component: Controller::COMPONENT,
        reason: event.reason,
        message: event.message,
    }
}

fn log_decision(Decision { serves, why, again: _ }: Decision) {
    let reason = match why {
        Why::Configured => "set by --endpointslices",
        Why::NotKnown => "the agent does not know enough yet to decide, so the state stays as it was",
        Why::LeaseNotReadable => {
            "the agent may not read kube-controller-manager's Lease, so it cannot detect whether \
             kube-controller-manager serves. Apply deploy/endpointslices.yaml, or set --endpointslices=on or off"
        }
        Why::NoLease => {
            "the cluster has no Lease of kube-controller-manager, so the agent cannot detect whether another controller makes \
             them. Set --endpointslices=on if none does"
        }
        Why::LeaseRenewed => "kube-controller-manager renews its Lease",
        Why::SlicesChanged => "another writer changed slices under the manager's name",
        Why::Waiting => "another controller was active less than --endpointslices-takeover-after ago",
        Why::Nobody => "no other controller is active",
        Why::Follows => "another replica leads",
    };
    info!(serves, "EndpointSlices of this cluster: {reason}");
}

#[cfg(test)]
#[path = "serving_tests.rs"]
mod tests;
