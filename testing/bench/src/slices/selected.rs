//! Measurement of the search for the Services whose selectors match a pod.

use crate::slices::meter::Meter;
use crate::slices::scenario::Scenario;
use crate::slices::scenario_result::ScenarioResult;
use anyhow::{Context as _, ensure};
use endpointslice::selector::{SelectorIndex, selects};
use std::collections::BTreeSet;
use std::hint::black_box;

/// Measures the search for the Services that select the first pod.
///
/// # Errors
/// If the scenario has no pod, or the index returns a wrong result.
pub fn measure(scenario: &Scenario, meter: Meter) -> anyhow::Result<ScenarioResult> {
    let Scenario { name, services, pods, .. } = scenario;
    let labels = &pods.first().context("a scenario with Services has a pod")?.metadata.labels;
    let mut index = SelectorIndex::default();
    for service in services {
        index.insert(&service.metadata.name, &service.spec.selector);
    }
    let found = index.selecting(labels);
    let selecting = services.iter().filter(|service| selects(&service.spec.selector, labels));
    let selecting: BTreeSet<_> = selecting.map(|service| service.metadata.name.clone()).collect();
    ensure!(found == selecting, "the index finds {found:?}, not {selecting:?}");
    let cost = meter.measure(|| {
        black_box(index.selecting(black_box(labels)));
        Ok(())
    })?;
    Ok(ScenarioResult { endpoints: found.len(), ..ScenarioResult::of(name, "selected", services.len(), cost) })
}
