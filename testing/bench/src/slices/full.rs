//! Measurement of a reconcile over all pods and slices of a Service.

use crate::slices::memory::{self, Memory};
use crate::slices::meter::Meter;
use crate::slices::outcome::Outcome;
use crate::slices::scenario::Scenario;
use crate::slices::scenario_result::ScenarioResult;
use endpointslice::model::EndpointSlice;
use endpointslice::plan::WriteCounts;
use endpointslice::{PlanRequest, plan_pods};
use std::hint::black_box;
use std::sync::Arc;

/// Measures a reconcile: conversion of pods to backends, plan and writes.
///
/// # Errors
/// If the scenario's limit of endpoints per slice is out of range.
pub fn measure(scenario: &Scenario, meter: Meter) -> anyhow::Result<ScenarioResult> {
    let Scenario { name, service, pods, existing, .. } = scenario;
    let (config, zones, mut hints) = (scenario.config()?, scenario.zones(), scenario.hints());
    let mut memory = Memory::new(&config, existing)?;
    let request = PlanRequest { service, existing, trigger_time: None, config: &config };
    let cost = meter.measure(|| {
        black_box(memory.apply(service, &plan_pods(&request, pods, &zones, &mut hints))?);
        Ok(())
    })?;
    let (slices, counts) = reconcile(scenario)?;
    Ok(ScenarioResult::of(name, "full", pods.len(), cost).after(&Outcome::of(&slices), counts))
}

/// Reconciles a scenario. Returns its slices afterwards, and the numbers of writes.
pub fn reconcile(scenario: &Scenario) -> anyhow::Result<(Vec<Arc<EndpointSlice>>, WriteCounts)> {
    let Scenario { service, pods, existing, .. } = scenario;
    let config = scenario.config()?;
    let request = PlanRequest { service, existing, trigger_time: None, config: &config };
    let plan = plan_pods(&request, pods, &scenario.zones(), &mut scenario.hints());
    let written = Memory::new(&config, existing)?.apply(service, &plan)?;
    Ok((memory::slices(existing, written), plan.counts()))
}
