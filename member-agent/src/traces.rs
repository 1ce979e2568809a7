//! Part of the member agent in traces: it begins the trace of an exported change, and ends that of an imported one.

use crate::limits::CAUSE_AGE;
use fleetnet_agent::traces::{Step, Traces, is_new};
use fleetnet_core::member::Planner;
use fleetnet_core::model::{HubSliceSpec, Kind};
use fleetnet_core::plan::{Action, Desired, ImportedSlice, Patch, Write};
use fleetnet_types::{ObjectName, Timestamp};

/// Returns the part of a write in a trace.
pub(crate) fn step(view: &Planner, traces: &Traces, write: &Write, now: Timestamp) -> Step {
    let step = match &write.action {
        Action::Create(Desired::EndpointSliceExport(spec))
        | Action::Patch { patch: Patch::EndpointSliceExport(spec), resource_version: _ } => {
            Some(export(view, traces, &write.at, spec))
        }
        Action::Create(Desired::EndpointSlice(slice))
        | Action::Patch { patch: Patch::ImportedSlice(slice), resource_version: _ } => {
            import(view, traces, &write.at, slice, now)
        }
        Action::Create(_) | Action::Patch { .. } | Action::Delete { .. } => None,
    };
    step.unwrap_or_default()
}

fn export(view: &Planner, traces: &Traces, at: &ObjectName, spec: &HubSliceSpec) -> Step {
    let present = view.slice_exports.get(at).map(|export| export.spec.reference.generation);
    let span = if hub_takes_part(view) { traces.export(spec, present) } else { None };
    traces.step((Kind::EndpointSliceExport, at, spec.reference.generation), span)
}

/// True if the hub agent takes part in traces.
fn hub_takes_part(view: &Planner) -> bool {
    let agent = view.member_agents.get(&view.own_member_agent());
    agent.is_some_and(|agent| agent.status.announcement.has_traces())
}

fn import(view: &Planner, traces: &Traces, at: &ObjectName, slice: &ImportedSlice, now: Timestamp) -> Option<Step> {
    let name = view.in_hub(at.name.clone());
    let distributed = view.distributed_slices.get(&name)?;
    let generation = slice.observed_generation;
    // A slice without a record was edited, so this write is a repair.
    let is_change = match view.slices.get(at) {
        Some(present) => present.observed_generation.is_some_and(|observed| generation > observed),
        None => is_new(distributed.meta.created, now),
    };
    let cause = traces.cause(Kind::EndpointSliceImport, &name, generation);
    let cause = cause.filter(|cause| is_change && hub_takes_part(view) && now.since(cause.since) <= CAUSE_AGE);
    let span = cause.and_then(|cause| traces.follow("import", cause, (at, &view.settings.cluster), &distributed.spec));
    Some(traces.step((Kind::EndpointSlice, at, generation), span))
}
