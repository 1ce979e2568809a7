//! Measurement of the event of one pod, which the library plans from the incremental state of a Service.
//!
//! The state comes from the initial slices of a scenario. The event is the change of the one pod that differs from
//! these slices. Each run measures the change and its reversal, with plan, write and response. So every run starts from
//! the same state.

use crate::slices::full;
use crate::slices::memory::Memory;
use crate::slices::meter::{Meter, Stopwatch};
use crate::slices::outcome::Outcome;
use crate::slices::scenario::Scenario;
use crate::slices::scenario_result::ScenarioResult;
use anyhow::{Context as _, ensure};
use endpointslice::apply::Written;
use endpointslice::hints::ServiceHints;
use endpointslice::model::{Addresses, Endpoint, Pod, PodIp, TargetRef};
use endpointslice::plan::{Update, WriteCounts};
use endpointslice::{Incremental, NodeZones, PlanRequest, plan_pods};
use std::sync::Arc;

const ONE_UPDATE: WriteCounts = WriteCounts { creates: 0, updates: 1, deletes: 0 };

/// Measures the event of a scenario. Returns `None` if the scenario differs from its slices in more than one pod.
///
/// # Errors
/// If the scenario is malformed, or the event and a full reconcile give different results.
pub fn measure(scenario: &Scenario, meter: Meter) -> anyhow::Result<Option<ScenarioResult>> {
    let Some(event) = event(scenario)? else { return Ok(None) };
    let Some(mut world) = World::before(scenario, &event)? else { return Ok(None) };
    let full_plans = world.state.full_plans();
    let counts = world.take(&event.before, &event.after)?;
    let outcome = Outcome::of(&world.state.slices());
    let (wanted, wanted_counts) = full::reconcile(scenario)?;
    ensure!(counts == wanted_counts, "one event takes other writes than a full plan");
    ensure!(outcome == Outcome::of(&wanted), "one event leads to other slices than a full plan");
    world.take(&event.after, &event.before)?;

    let mut is_there = false;
    let cost = meter.measure(|| {
        let (from, to) = if is_there { (&event.after, &event.before) } else { (&event.before, &event.after) };
        is_there = !is_there;
        ensure!(world.take(from, to)? == ONE_UPDATE, "an event is one update");
        Ok(())
    })?;
    ensure!(world.state.full_plans() == full_plans, "an event was planned in full");
    let line = ScenarioResult::of(&scenario.name, "incremental", scenario.pods.len(), cost).after(&outcome, counts);
    Ok(Some(ScenarioResult { plan_ns_op: Some(world.planning.mean_nanoseconds()), ..line }))
}

/// Event of one pod: the state of the pod in the slices, and its present state. The names differ if the pod was
/// replaced.
struct Event {
    before: Pod,
    after: Pod,
}

/// Returns the event of a scenario. `None` if the plan of the scenario does anything else than replace one endpoint.
fn event(scenario: &Scenario) -> anyhow::Result<Option<Event>> {
    let Scenario { service, pods, existing, .. } = scenario;
    let config = scenario.config()?;
    let request = PlanRequest { service, existing, trigger_time: None, config: &config };
    let plan = plan_pods(&request, pods, &scenario.zones(), &mut scenario.hints());
    if plan.counts() != ONE_UPDATE {
        return Ok(None);
    }
    let update = plan.families.iter().flat_map(|family| &family.draft.updates).next().context("it is counted")?;
    let Some((gone, new)) = exchanged(update) else { return Ok(None) };
    let target = new.target_ref.as_deref().context("an endpoint of a pod names it")?;
    let after = pods.iter().find(|pod| pod.metadata.name == target.name).context("an endpoint names a pod")?;
    Ok(shown_by(gone, after).map(|before| Event { before, after: after.clone() }))
}

/// Returns the endpoint that an update removes and the endpoint that it adds. `None` unless there is exactly one of
/// each.
fn exchanged(update: &Update) -> Option<(&Endpoint, &Endpoint)> {
    let (before, after) = (&update.before.endpoints, &update.after.endpoints);
    let only = |those: &'_ [Endpoint], others: &[Endpoint]| {
        let mut those = those.iter().enumerate().filter(|(_, it)| !others.contains(it));
        those.next().filter(|_| those.next().is_none()).map(|(at, _)| at)
    };
    Some((&before[only(before, after)?], &after[only(after, before)?]))
}

/// Returns the pod in the state that its endpoint in a slice shows. The other fields are those of `pod`. `None` if the
/// endpoint has no reference to a pod, or several addresses.
fn shown_by(endpoint: &Endpoint, pod: &Pod) -> Option<Pod> {
    let Endpoint { addresses: Addresses::One(ip), target_ref: Some(target), .. } = endpoint else { return None };
    let TargetRef { name, uid, .. } = &**target;
    let mut pod = pod.clone();
    pod.metadata.name = name.clone();
    pod.metadata.uid = uid.clone();
    pod.spec.node_name = endpoint.node_name.clone().unwrap_or_default();
    pod.status.pod_ip = ip.clone();
    pod.status.pod_ips = vec![PodIp { ip: ip.clone() }];
    pod.status.readiness.is_ready = endpoint.is_ready();
    Some(pod)
}

/// State that the incremental planner (`Incremental`) keeps for one Service, with the other inputs of a plan.
struct World {
    state: Incremental,
    zones: NodeZones,
    hints: ServiceHints,
    memory: Memory,
    planning: Stopwatch,
}

impl World {
    /// Returns the state before `event`. `None` if this state needs writes, because other pods also differ from the
    /// slices.
    fn before(scenario: &Scenario, event: &Event) -> anyhow::Result<Option<Self>> {
        let config = scenario.config()?;
        let memory = Memory::new(&config, &scenario.existing)?;
        let state = Incremental::new(Arc::new(scenario.service.clone()), Arc::new(config));
        let (zones, hints) = (scenario.zones(), scenario.hints());
        let mut world = Self { state, zones, hints, memory, planning: Stopwatch::default() };
        let others = scenario.pods.iter().filter(|pod| pod.metadata.name != event.after.metadata.name);
        for pod in others.chain([&event.before]) {
            world.state.set_pod(pod, &world.zones);
        }
        for slice in &scenario.existing {
            world.state.set_slice(Arc::clone(slice));
        }
        let is_settled = world.state.plan(None, &mut world.hints).is_empty();
        Ok(is_settled.then_some(world))
    }

    /// Handles an event of one pod: plans the change, writes it, and stores the written slices.
    fn take(&mut self, from: &Pod, to: &Pod) -> anyhow::Result<WriteCounts> {
        self.planning.start();
        if from.metadata.name != to.metadata.name {
            self.state.remove_pod(&from.metadata.name);
        }
        self.state.set_pod(to, &self.zones);
        let plan = self.state.plan(None, &mut self.hints);
        self.planning.stop();
        for write in self.memory.apply(self.state.service(), &plan)? {
            match write {
                Written::Created(slice) | Written::Updated(slice) => self.state.set_slice(Arc::new(slice)),
                Written::Deleted(slice) => self.state.remove_slice(&slice.metadata.name),
            }
        }
        Ok(plan.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::scenario::fixtures::{pod, settled};
    use std::time::Duration;

    fn is_measured(change: impl FnOnce(&mut Scenario)) -> bool {
        let mut scenario = settled(6, 3);
        change(&mut scenario);
        measure(&scenario, Meter::new(Duration::ZERO)).unwrap().is_some()
    }

    #[test]
    fn only_what_is_about_one_pod_is_measured_and_nothing_else_is_an_error() {
        assert!(is_measured(|scenario| scenario.pods[1].status.readiness.is_ready = false));
        assert!(is_measured(|scenario| scenario.pods[1] = pod(8)));
        assert!(!is_measured(|_| ()));
        assert!(!is_measured(|scenario| {
            scenario.pods[1].status.readiness.is_ready = false;
            scenario.pods[2].status.readiness.is_ready = false;
        }));
        // In each case below, one endpoint is replaced and something else also changes. The bench must measure none of
        // these cases.
        assert!(!is_measured(|scenario| {
            scenario.pods[1].status.readiness.is_ready = false;
            Arc::make_mut(&mut scenario.existing[0]).metadata.labels.insert("team", "one");
        }));
        assert!(!is_measured(|scenario| {
            scenario.pods[1].status.readiness.is_ready = false;
            scenario.pods[1].status.pod_ips = vec![PodIp { ip: "10.0.0.77".into() }];
            let endpoints = &mut Arc::make_mut(&mut scenario.existing[0]).endpoints;
            endpoints.iter_mut().for_each(|endpoint| endpoint.conditions.terminating = None);
            endpoints.truncate(1);
        }));
        assert!(!is_measured(|scenario| {
            let slice = Arc::make_mut(&mut scenario.existing[0]);
            slice.endpoints[0].target_ref = None;
        }));
    }
}
