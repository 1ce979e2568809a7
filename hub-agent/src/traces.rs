//! Part of the hub agent in traces: it carries the traceparent of an exported slice to the importers that take part.

use fleetnet_agent::traces::{Cause, Span, Step, Traces, is_change};
use fleetnet_core::hub::Planner;
use fleetnet_core::model::{HubSliceSpec, Kind};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::{ObjectName, Text, Timestamp};

/// Returns the part of a write in a trace.
pub(crate) fn step(view: &Planner, traces: &Traces, write: &Write, now: Timestamp) -> Step {
    let (Action::Create(Desired::EndpointSliceImport(spec))
    | Action::Patch { patch: Patch::EndpointSliceImport(spec), resource_version: _ }) = &write.action
    else {
        return Step::default();
    };
    let Some(export) = view.slice_exports.get(&export_name(spec, &write.at.name)) else { return Step::default() };
    let present = view.distributed_slices.get(&write.at).map(|slice| slice.spec.reference.generation);
    if !is_change(spec.reference.generation, present, export.meta.created, now) {
        return Step::default();
    }
    let cause = cause(view, traces, spec, &write.at);
    let span = cause.and_then(|cause| follow(traces, "distribute", cause, &write.at.namespace, spec));
    let carried = cause.filter(|_| span.is_some()).map(|cause| cause.traceparent);
    traces.step(Kind::EndpointSliceImport, &write.at, carried, span)
}

/// Returns the cause and the span of a preview for an importer.
pub(crate) fn preview(
    view: &Planner,
    traces: &Traces,
    spec: &HubSliceSpec,
    (slice, importer): (&Text, &Text),
) -> Option<(Cause, Span)> {
    let at = ObjectName { namespace: importer.clone(), name: slice.clone() };
    let cause = cause(view, traces, spec, &at)?;
    Some((cause, follow(traces, "preview", cause, importer, spec)?))
}

fn follow(traces: &Traces, name: &'static str, cause: Cause, importer: &Text, spec: &HubSliceSpec) -> Option<Span> {
    traces.follow(name, cause, &names::cluster_of(importer)?, spec)
}

/// Returns the cause of a change of the distributed slice `at`, if its importer takes part in traces.
fn cause(view: &Planner, traces: &Traces, spec: &HubSliceSpec, at: &ObjectName) -> Option<Cause> {
    let name = export_name(spec, &at.name);
    let cause = traces.cause(Kind::EndpointSliceExport, &name)?;
    let is_of_change = |generation| generation == spec.reference.generation;
    view.slice_exports.get(&name).filter(|export| is_of_change(export.spec.reference.generation))?;
    let importer = view.member_agents.get(&names::member_agent(&names::cluster_of(&at.namespace)?))?;
    importer.member.has_traces().then_some(cause)
}

/// Returns the name of the exported slice with this content.
fn export_name(spec: &HubSliceSpec, name: &Text) -> ObjectName {
    ObjectName { namespace: names::member_namespace(&spec.reference.cluster), name: name.clone() }
}
