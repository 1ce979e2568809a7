//! Part of the hub agent in traces: it carries the traceparent of an exported slice to the importers that take part.

use fleetnet_agent::traces::{Cause, Span, Step, Traces, is_new};
use fleetnet_core::hub::Planner;
use fleetnet_core::model::{HubSliceSpec, Kind};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::{MemberNamespace, ObjectName, Text, Timestamp};

/// Returns the part of a write in a trace.
pub(crate) fn step(view: &Planner, traces: &Traces, write: &Write, now: Timestamp) -> Step {
    let (Action::Create(Desired::EndpointSliceImport(spec))
    | Action::Patch { patch: Patch::EndpointSliceImport(spec), resource_version: _ }) = &write.action
    else {
        return Step::default();
    };
    let cause = cause(view, traces, spec, &write.at).filter(|_| is_change(view, spec, &write.at, now));
    let span = cause.and_then(|cause| follow(traces, "distribute", cause, &write.at, spec));
    traces.step((Kind::EndpointSliceImport, &write.at, spec.reference.generation), span)
}

/// True if a write to a distributed slice brings a change, and is neither a repair nor for a new importer.
fn is_change(view: &Planner, spec: &HubSliceSpec, at: &ObjectName, now: Timestamp) -> bool {
    match view.distributed_slices.get(at) {
        Some(present) => spec.reference.generation > present.spec.reference.generation,
        None => {
            let export = view.slice_exports.get(&export_name(spec, &at.name));
            export.is_some_and(|export| is_new(export.meta.created, now))
        }
    }
}

/// Returns the span of a preview for an importer.
pub(crate) fn preview(
    view: &Planner,
    traces: &Traces,
    spec: &HubSliceSpec,
    (slice, importer): (&Text, &MemberNamespace),
) -> Option<Span> {
    let at = ObjectName::new(importer, slice.clone());
    follow(traces, "preview", cause(view, traces, spec, &at)?, &at, spec)
}

fn follow(traces: &Traces, name: &'static str, cause: Cause, at: &ObjectName, spec: &HubSliceSpec) -> Option<Span> {
    traces.follow(name, cause, (at, &names::cluster_of(&at.namespace)?), spec)
}

/// Returns the cause of a change of the distributed slice `at`, if its exporter and its importer take part in traces.
fn cause(view: &Planner, traces: &Traces, spec: &HubSliceSpec, at: &ObjectName) -> Option<Cause> {
    let export = export_name(spec, &at.name);
    let cause = traces.cause(Kind::EndpointSliceExport, &export, spec.reference.generation)?;
    [&export.namespace, &at.namespace].iter().all(|member| takes_part(view, member)).then_some(cause)
}

/// True if the member with this member namespace takes part in traces.
fn takes_part(view: &Planner, member: &str) -> bool {
    let name = names::cluster_of(member).map(|cluster| names::member_agent(&cluster));
    let agent = name.and_then(|name| view.member_agents.get(&name));
    agent.is_some_and(|agent| agent.member.has_traces())
}

/// Returns the name of the exported slice with this content.
fn export_name(spec: &HubSliceSpec, name: &Text) -> ObjectName {
    ObjectName::new(names::member_namespace(&spec.reference.cluster), name.clone())
}
