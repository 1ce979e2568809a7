//! EndpointSlice controller, and the decision whether the controller is active: [`Serving`].

use super::controller::{Controller, Effect, Planned, ServiceEvent, Timing, Written};
use super::takeover::{Decision, LeaseSeen, Mode, Takeover, Why};
use super::view::{Input, Object};
use super::writes::{Operation, SliceReceipt};
use crate::limits::{CONCURRENT_SYNCS_DEFAULT, SLICES_TAKEOVER};
use crate::metrics::ENDPOINTSLICES_SERVING;
use endpointslice::Config;
use endpointslice::metrics::{Metrics, MetricsOptions};
use fleetnet_runtime::WatchState;
use fleetnet_types::{ObjectName, Timestamp};
use prometheus::{IntGauge, Registry};
use std::time::Duration;
use tracing::{info, warn};

/// Settings of the EndpointSlice controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Value of `--endpointslices`. With [`Mode::Off`] the agent has no EndpointSlice controller.
    pub mode: Mode,
    /// Time without activity of another controller after which this controller becomes active, in [`Mode::Auto`].
    pub takeover_after: Duration,
    /// Name in the label `managed-by`, maximum size of slices and other settings of the `endpointslice` library.
    pub config: Config,
    /// Delays between a change of pods and the write of the slices.
    pub timing: Timing,
    /// Maximum number of writes in flight.
    pub concurrent_syncs: usize,
}

impl Settings {
    /// Returns settings with this mode and the default values of the flags.
    #[must_use]
    pub fn with_mode(mode: Mode) -> Self {
        Self {
            mode,
            takeover_after: SLICES_TAKEOVER,
            config: Config::default(),
            timing: Timing::with_batch_period(Duration::ZERO),
            concurrent_syncs: CONCURRENT_SYNCS_DEFAULT,
        }
    }
}

/// Decision whether the controller is active, and the observations that this decision has taken into account.
#[derive(Clone, Debug)]
pub struct Decided {
    takeover: Takeover,
    decision: Decision,
}

impl Decided {
    /// Returns the time of the next decision.
    #[must_use]
    pub const fn again(&self) -> Option<Timestamp> {
        self.decision.again
    }
}

/// EndpointSlice controller, with the state for the decision whether the controller is active.
pub struct Serving {
    controller: Controller,
    takeover: Takeover,
    decision: Option<Decision>,
    concurrent_syncs: usize,
    /// True once this replica leads. A replica that does not lead ignores foreign writes, because the leading replica may have
    /// made them.
    leads: bool,
    /// True after an observation that may change the decision whether the controller is active.
    has_news: bool,
    is_serving: IntGauge,
}

impl Serving {
    /// Returns an inactive controller with an empty cache.
    ///
    /// # Errors
    /// If the registry already has a metric of the controller.
    pub fn new(settings: &Settings, registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::new(registry, &settings.config, MetricsOptions::default())?;
        let is_serving = ENDPOINTSLICES_SERVING.gauge(registry)?;
        Ok(Self {
            controller: Controller::new(settings.config.clone(), settings.timing, Some(metrics)),
            takeover: Takeover::new(settings.mode, settings.takeover_after),
            decision: None,
            concurrent_syncs: settings.concurrent_syncs,
            leads: false,
            has_news: false,
            is_serving,
        })
    }

    /// True if the controller needs a watch of this input.
    #[must_use]
    pub fn wants(&self, input: Input) -> bool {
        self.controller.wants(input)
    }

    /// Relist epoch of an input. A higher number means that the input must be listed again.
    #[must_use]
    pub const fn reading(&self, input: Input) -> u64 {
        self.controller.reading(input)
    }

    /// Records that an input was listed again. Adds the Services to plan to `requeue`.
    pub fn relisted(&mut self, input: Input, requeue: &mut Vec<ObjectName>) {
        self.controller.relisted(input, requeue);
    }

    /// True if the agent needs a watch of kube-controller-manager's Lease.
    #[must_use]
    pub const fn wants_lease(&self) -> bool {
        self.takeover.wants_lease()
    }

    /// Maximum number of writes in flight.
    #[must_use]
    pub const fn concurrent_syncs(&self) -> usize {
        self.concurrent_syncs
    }

    /// True if there was an observation since the last call that may change the decision whether the controller is active.
    pub fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Records that this replica leads: from now on, the engine sends the writes of its plans.
    pub fn leads(&mut self, at: Timestamp) {
        self.leads = true;
        self.takeover.leads(at);
    }

    /// Moves stored times by a step of the wall clock, in microseconds, so that their age stays the same.
    pub fn clock_set(&mut self, microseconds: i64) {
        self.takeover.clock_set(microseconds);
    }

    /// Stores a new or changed object. Adds the Services to plan to `requeue`.
    pub fn apply(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        self.controller.apply(object, at, requeue);
        self.report_foreign_change();
    }

    /// Records that the engine sends a write to a slice of this Service.
    pub fn write_begun(&mut self, service: &ObjectName, slice: &ObjectName, receipt: &SliceReceipt) {
        self.controller.write_begun(service, slice, receipt);
    }

    /// Records the end of a write. Adds the Services to plan to `requeue`.
    pub fn write_ended(&mut self, write: &Written<'_>, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        self.controller.write_ended(write, at, requeue);
        self.report_foreign_change();
    }

    fn report_foreign_change(&mut self) {
        // fault Y4.3: self.leads ~> true
        if let Some(changed) = self.controller.take_foreign_change().filter(|_| self.leads) {
            self.takeover.slices_changed(changed);
            self.has_news = true;
        }
    }

    /// Removes an object. Adds the Services to plan to `requeue`.
    pub fn remove(&mut self, input: Input, namespace: &str, name: &str, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        self.controller.remove(input, namespace, name, at, requeue);
    }

    /// Records an undecodable object. Adds the Services to plan to `requeue`.
    pub fn undecodable(
        &mut self,
        input: Input,
        namespace: &str,
        name: &str,
        at: Timestamp,
        requeue: &mut Vec<ObjectName>,
    ) {
        self.controller.undecodable(input, namespace, name, at, requeue);
    }

    /// Records the new watch state of an input. Appends the Services that must be planned again to `requeue`.
    pub fn watch_state(&mut self, input: Input, state: WatchState, at: Timestamp, requeue: &mut Vec<ObjectName>) {
        self.controller.watch_state(input, state, requeue);
        if input == Input::EndpointSlice {
            self.takeover.slices_view(state, at);
            self.has_news = true;
        }
        if state == WatchState::Absent {
            warn!(
                ?input,
                "the agent cannot make the EndpointSlices of this cluster, because it may not read that kind. Apply \
                 deploy/endpointslices.yaml, or set --endpointslices=off"
            );
        }
    }

    /// Records the new watch state of kube-controller-manager's Lease.
    pub fn lease_view(&mut self, state: WatchState, at: Timestamp) {
        self.takeover.lease_view(state, at);
        self.has_news = true;
    }

    /// Records the current content of kube-controller-manager's Lease.
    pub fn lease_seen(&mut self, lease: LeaseSeen, at: Timestamp) {
        self.takeover.lease_seen(lease, at);
        self.has_news = true;
    }

    /// Records that kube-controller-manager's Lease was deleted.
    pub fn lease_gone(&mut self, at: Timestamp) {
        self.takeover.lease_gone(at);
        self.has_news = true;
    }

    /// Decides whether the controller is active. A replica that does not lead is inactive and caches nothing. It lists all inputs
    /// when it starts to lead.
    #[must_use]
    pub fn decide(&self, now: Timestamp) -> Decided {
        let mut takeover = self.takeover.clone();
        let decision = match takeover.decide(now) {
            // fault Y4.2: !self.leads ~> false
            decided if decided.serves && !self.leads => Decision { serves: false, why: Why::Follows, ..decided },
            decided => decided,
        };
        Decided { takeover, decision }
    }

    /// Applies a decision: the controller becomes active or inactive.
    pub fn decided(&mut self, decided: Decided) {
        let Decided { takeover, decision } = decided;
        self.takeover = takeover;
        let before = self.decision.replace(decision);
        if before.is_none_or(|before| (before.serves, before.why) != (decision.serves, decision.why)) {
            log_decision(decision);
        }
        // fault Y4.4: decision.serves && self.leads ~> true
        self.is_serving.set((decision.serves && self.leads).into());
        self.controller.set_serving(decision.serves);
    }

    /// Returns the writes and Events that a Service needs now.
    #[must_use]
    pub fn plan(&self, service: &ObjectName, now: Timestamp) -> Planned {
        self.controller.plan(service, now)
    }

    /// Applies the effect of a Service's plan.
    pub fn planned(&mut self, service: &ObjectName, effect: Effect, now: Timestamp) {
        self.controller.planned(service, effect, now);
    }

    /// Counts a successful write to a slice.
    pub fn written(&self, operation: Operation) {
        self.controller.written(operation);
    }

    /// Records that a write to a slice of this Service failed.
    pub fn not_done(&mut self, service: &ObjectName, at: Timestamp) {
        self.controller.not_done(service, at);
    }

    /// Returns the Event about a write that was denied, rejected or failed.
    #[must_use]
    pub fn rejected(&self, service: &ObjectName, verb: &str, slice: &str, why: &str) -> Option<ServiceEvent> {
        self.controller.rejected(service, verb, slice, why)
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
        Why::LeaseRenewed => "kube-controller-manager renews its Lease",
        Why::SlicesChanged => "another writer changed slices under the manager's name",
        Why::Waiting => "another controller was active less than --endpointslices-takeover-after ago",
        Why::Nobody => "no other controller is active",
        Why::Follows => "another replica leads",
    };
    info!(serves, "EndpointSlices of this cluster: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpointslice::model::{EndpointSlice, Metadata};
    use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

    /// Returns a controller with complete watches. No other controller is active, so this controller becomes active once it
    /// leads.
    fn serving() -> Serving {
        let settings = Settings::with_mode(Mode::Auto);
        let (long_ago, duration) = (NOON - Duration::from_secs(3_600), Duration::from_secs(15));
        let mut serving = Serving::new(&settings, &Registry::new()).expect("its metrics are the only ones");
        for input in [Input::Service, Input::EndpointSlice] {
            serving.watch_state(input, WatchState::Complete, NOON, &mut Vec::new());
        }
        serving.lease_seen(LeaseSeen { renewed: Some(long_ago), duration }, NOON);
        serving.lease_view(WatchState::Complete, NOON);
        assert_eq!(decide(&mut serving, NOON), Some(NOON + duration));
        assert_eq!(decide(&mut serving, NOON + duration), None);
        assert!(!serving.wants(Input::Pod) && serving.is_serving.get() == 0, "it does not lead");
        serving
    }

    /// Decides whether the controller is active, and applies the decision. Returns the time of the next decision.
    fn decide(serving: &mut Serving, now: Timestamp) -> Option<Timestamp> {
        let decided = serving.decide(now);
        let again = decided.again();
        serving.decided(decided);
        again
    }

    fn leading() -> Serving {
        let mut serving = serving();
        serving.leads(NOON);
        assert_eq!(decide(&mut serving, NOON + Duration::from_secs(15)), None);
        assert!(serving.wants(Input::Pod) && serving.is_serving.get() == 1);
        let _ = serving.has_news();
        serving
    }

    fn somebody_makes_a_slice(serving: &mut Serving, at: Timestamp) {
        let labels = [(LABEL_SERVICE_NAME, "web"), (LABEL_MANAGED_BY, "endpointslice-controller.k8s.io")];
        let metadata =
            Metadata { namespace: "ns".into(), name: "web-1".into(), labels: labels.into(), ..Metadata::default() };
        let slice = EndpointSlice { metadata, ..EndpointSlice::default() };
        serving.apply(Object::EndpointSlice(slice), at, &mut Vec::new());
    }

    #[test]
    fn who_leads_stops_when_another_changes_a_slice() {
        let mut serving = leading();
        let at = NOON + Duration::from_secs(1_000);
        somebody_makes_a_slice(&mut serving, at);
        assert!(serving.has_news());
        assert_eq!(decide(&mut serving, at), Some(at + Duration::from_secs(180)));
        assert!(!serving.wants(Input::Pod) && serving.is_serving.get() == 0);
    }

    #[test]
    fn who_does_not_lead_does_not_serve_and_takes_a_changed_slice_for_its_leaders() {
        let mut serving = serving();
        let _ = serving.has_news();
        let at = NOON + Duration::from_secs(1_000);
        somebody_makes_a_slice(&mut serving, at);
        assert!(!serving.has_news());
        assert_eq!(serving.is_serving.get(), 0, "another does");
        serving.leads(at);
        assert_eq!(decide(&mut serving, at), None, "it goes on where the leader was");
        assert!(serving.wants(Input::Pod) && serving.is_serving.get() == 1);
    }

    #[test]
    fn serving_beside_another_controller_still_waits_for_the_leader() {
        let mut serving = Serving::new(&Settings::with_mode(Mode::On), &Registry::new()).expect("its only metrics");
        assert!(!serving.wants(Input::Pod), "it holds nothing for what another does");
        assert_eq!(serving.is_serving.get(), 0);
        serving.leads(NOON);
        assert_eq!((decide(&mut serving, NOON), serving.is_serving.get()), (None, 1));
    }

    #[test]
    fn who_begins_to_lead_where_there_is_no_lease_looks_on_first() {
        let mut serving = serving();
        serving.lease_gone(NOON);
        let at = NOON + Duration::from_secs(1_000);
        assert_eq!(decide(&mut serving, at), None, "as a replica of who serves");
        somebody_makes_a_slice(&mut serving, at);
        serving.leads(at);
        assert_eq!(
            decide(&mut serving, at),
            Some(at + Duration::from_secs(180)),
            "it may have been another controller"
        );
    }
}
