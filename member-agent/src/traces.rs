//! Part of the member agent in traces: it begins the trace of an exported change, and ends that of an imported one.

use fleetnet_agent::traces::{Step, Traces, is_change};
use fleetnet_core::member::Planner;
use fleetnet_core::model::{HubSliceSpec, Kind};
use fleetnet_core::plan::{Action, Desired, ImportedSlice, Patch, Write};
use fleetnet_types::{ObjectName, Timestamp};

/// Returns the part of a write in a trace.
pub(crate) fn step(view: &Planner, traces: &Traces, write: &Write, now: Timestamp) -> Step {
    let step = match &write.action {
        Action::Create(Desired::EndpointSliceExport(spec))
        | Action::Patch { patch: Patch::EndpointSliceExport(spec), resource_version: _ } => {
            export(view, traces, &write.at, spec, now)
        }
        Action::Create(Desired::EndpointSlice(slice))
        | Action::Patch { patch: Patch::ImportedSlice(slice), resource_version: _ } => {
            import(view, traces, &write.at, slice, now)
        }
        Action::Create(_) | Action::Patch { .. } | Action::Delete { .. } => None,
    };
    step.unwrap_or_default()
}

fn export(view: &Planner, traces: &Traces, at: &ObjectName, spec: &HubSliceSpec, now: Timestamp) -> Option<Step> {
    let source = view.slices.get(&spec.reference.source)?;
    let present = view.slice_exports.get(at).map(|export| export.spec.reference.generation);
    if !is_change(spec.reference.generation, present, source.meta.created, now) {
        return None;
    }
    let span = if hub_takes_part(view) { traces.export(spec, now) } else { None };
    Some(traces.step(Kind::EndpointSliceExport, at, span.as_ref().map(|span| span.context), span))
}

/// True if the hub agent takes part in traces.
fn hub_takes_part(view: &Planner) -> bool {
    let agent = view.member_agents.get(&view.own_member_agent());
    agent.is_some_and(|agent| agent.status.announcement.has_traces())
}

fn import(view: &Planner, traces: &Traces, at: &ObjectName, slice: &ImportedSlice, now: Timestamp) -> Option<Step> {
    let name = view.in_hub(at.name.clone());
    let distributed = view.distributed_slices.get(&name)?;
    // A Go agent recorded no generation on the slices that it imported.
    let present = view.slices.get(at).map(|present| present.observed_generation.unwrap_or(i64::MIN));
    if !is_change(slice.observed_generation, present, distributed.meta.created, now) {
        return None;
    }
    let cause = traces.cause(Kind::EndpointSliceImport, &name);
    let span = cause.and_then(|cause| traces.follow("import", cause, &view.settings.cluster, &distributed.spec));
    let carried = cause.filter(|_| span.is_some()).map(|cause| cause.traceparent);
    Some(traces.step(Kind::EndpointSlice, at, carried, span))
}
