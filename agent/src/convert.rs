//! Conversion between core and the runtime: decoders for watches, requests for writes, and Kubernetes Events.

use crate::traces::Span;
use fleetnet_api::encode::TraceChange;
use fleetnet_api::{decode, encode, resources};
use fleetnet_core::model::{Kind, Meta, Object};
use fleetnet_core::plan::{Action, Desired, Event as CoreEvent, Patch, Plan as CorePlan, Sample, Write, event_about};
use fleetnet_core::reasons::Reason;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::{
    Event, Fight, Logic, Observed, Plan, Request, SourceSpec, Undecodable, Verb, WriteEnd, WriteFailure,
};
use fleetnet_types::{ObjectName, Text, Uid};
use std::sync::Arc;

/// Data that the agent attaches to a write. The runtime returns the data to the agent after the write has succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// Events to emit for users.
    pub events: Vec<CoreEvent>,
    /// Latency sample to observe.
    pub sample: Option<Sample>,
    /// Set for a write of an imported slice only: the name of the imported slice, and the generation of the source
    /// slice that the write records.
    pub imported: Option<(Text, i64)>,
    /// Span that ends with the write.
    pub span: Option<Box<Span>>,
}

/// Returns the specification of a watch for the runtime: one kind in one cluster, and in one namespace if `namespace`
/// is set.
pub fn source<L>(kind: Kind, cluster: &Arc<Cluster>, namespace: Option<&str>) -> SourceSpec<L>
where
    L: Logic<Source = Kind, Object = Object>,
{
    let decode = Arc::new(move |json: &[u8]| observe(kind, json));
    SourceSpec {
        label: resources::watch_label(kind),
        namespace: namespace.map(str::to_owned),
        metadata_only: matches!(kind, Kind::Namespace | Kind::SystemNamespace | Kind::Node),
        ..SourceSpec::new(kind, Arc::clone(cluster), resources::resource(kind), decode)
    }
}

/// Decodes the JSON of an object.
///
/// # Errors
/// If the object is undecodable. The error contains the metadata that could be decoded.
pub fn observe(kind: Kind, json: &[u8]) -> Result<Observed<Object>, Undecodable> {
    let object = decode::decode(kind, json)?;
    let Meta { name, uid, resource_version, .. } = object.meta();
    Ok(Observed { name: name.clone(), uid: uid.clone(), resource_version: *resource_version, object })
}

/// Converts a plan of core to a plan of the runtime. `step` returns the verb of a write, and the span that ends with
/// it.
pub fn plan<E>(plan: CorePlan, step: impl Fn(&Write) -> (Verb, Option<Box<Span>>)) -> Plan<Kind, Receipt, E> {
    let writes = plan.writes.into_iter().map(|write| {
        let (verb, span) = step(&write);
        with_verb(write, verb, span)
    });
    Plan { writes: writes.collect(), again: plan.again, ..Plan::default() }
}

/// Converts a write of core that belongs to no trace to a request of the runtime.
pub fn request(write: Write) -> Request<Kind, Receipt> {
    let verb = verb(&write, TraceChange::Keep);
    with_verb(write, verb, None)
}

/// Returns the verb of a write, with its serialized body.
pub fn verb(write: &Write, change: TraceChange) -> Verb {
    match encode::encode_traced(write, change) {
        encode::Body::Create { body } => Verb::Create { body: body.into() },
        encode::Body::Patch { subresource, resource_version, body } => {
            Verb::Patch { subresource, resource_version, body: body.into() }
        }
        encode::Body::Delete { uid } => Verb::Delete { uid },
    }
}

fn with_verb(write: Write, verb: Verb, span: Option<Box<Span>>) -> Request<Kind, Receipt> {
    let imported = match &write.action {
        Action::Create(Desired::EndpointSlice(slice))
        | Action::Patch { patch: Patch::ImportedSlice(slice), resource_version: _ } => {
            Some((write.at.name.clone(), slice.observed_generation))
        }
        Action::Create(_) | Action::Patch { .. } | Action::Delete { .. } => None,
    };
    let source = write.kind();
    let receipt = Receipt { events: write.events, sample: write.sample, imported, span };
    let reported = !receipt.events.is_empty() || receipt.sample.is_some() || receipt.span.is_some();
    Request { source, name: write.at, verb, receipt: reported.then_some(receipt) }
}

/// Converts Events of core to Events of the runtime.
pub fn events(events: Vec<CoreEvent>) -> Vec<Event<Kind>> {
    events.into_iter().map(|event| event.map(|kind| kind, Reason::as_str)).collect()
}

/// Returns the Event about a failed write. The Event is about the user's object `about`, for which the agent made the
/// write.
pub fn failure_event(
    about: Option<(Kind, ObjectName, Uid)>,
    end: WriteEnd,
    failure: &WriteFailure<Kind>,
    component: &'static str,
) -> Vec<Event<Kind>> {
    match end {
        WriteEnd::Rejected => rejection_event(about, failure, component),
        _ => denial_event(about, failure, component),
    }
}

/// Returns the Event about a write that the server rejected for its content. The Event is about the user's object
/// `about`, for which the agent made the write.
fn rejection_event(
    about: Option<(Kind, ObjectName, Uid)>,
    failure: &WriteFailure<Kind>,
    component: &'static str,
) -> Vec<Event<Kind>> {
    not_written(about, Reason::WriteRefused, rejection_message(failure), component)
}

/// Returns the message about a failed write, with the server's text. `None` if no user needs to act
/// ([`denial_message`]).
pub fn failure_message(end: WriteEnd, failure: &WriteFailure<Kind>) -> Option<String> {
    if end == WriteEnd::Rejected { Some(rejection_message(failure)) } else { denial_message(failure) }
}

fn rejection_message(failure: &WriteFailure<Kind>) -> String {
    format!(
        "cluster {} rejected the request to {} {}: {}. The agent retries every 10 minutes, and when the content \
         changes",
        failure.cluster,
        failure.verb,
        target(failure),
        failure.message
    )
}

/// Returns the Event about a denied write: the agent has no right to make the write, or the namespace or CRD is
/// missing.
fn denial_event(
    about: Option<(Kind, ObjectName, Uid)>,
    failure: &WriteFailure<Kind>,
    component: &'static str,
) -> Vec<Event<Kind>> {
    let message = denial_message(failure);
    message.map_or_else(Vec::new, |message| not_written(about, Reason::WriteDenied, message, component))
}

/// Returns the message about a denied write. `None` if no user needs to act: for a write without an HTTP response, and
/// for a write to a namespace that is being deleted.
fn denial_message(failure: &WriteFailure<Kind>) -> Option<String> {
    if failure.status == 0 || failure.is_of_terminating_namespace() {
        return None;
    }
    Some(format!(
        "cluster {} denied the request to {} {}: {}. Check the agent's role in that cluster, and that the namespace \
         and the CRD exist. The agent retries by itself",
        failure.cluster,
        failure.verb,
        target(failure),
        failure.message
    ))
}

/// Returns the Event about a fight, in which another writer undoes this agent's writes to an object. The Event is about
/// the user's object `about`. Returns no Event if the fight is over.
pub fn fight_event(
    about: Option<(Kind, ObjectName, Uid)>,
    fight: &Fight<Kind>,
    component: &'static str,
) -> Vec<Event<Kind>> {
    fight.message().map_or_else(Vec::new, |message| not_written(about, Reason::WritesUndone, message, component))
}

fn target<S>(failure: &WriteFailure<S>) -> String {
    format!("{} {}", failure.kind, failure.name)
}

fn not_written(
    about: Option<(Kind, ObjectName, Uid)>,
    reason: Reason,
    message: String,
    component: &'static str,
) -> Vec<Event<Kind>> {
    events(about.map(|about| event_about(about, component, reason, message)).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_runtime::NAMESPACE_TERMINATING;

    const TERMINATING: &str = "unable to create new content in namespace work because it is being terminated";

    fn reported(status: u16, message: &str) -> Vec<(&'static str, String)> {
        let failure = WriteFailure {
            source: Kind::InternalServiceExport,
            cluster: "hub".to_owned(),
            kind: "InternalServiceExport".to_owned(),
            name: ObjectName::new("fleet-member-west", "work-app"),
            verb: "create",
            status,
            reason: if message == TERMINATING { NAMESPACE_TERMINATING } else { "" }.to_owned(),
            message: message.to_owned(),
        };
        let about = Some((Kind::ServiceExport, ObjectName::new("work", "app"), "uid".into()));
        let reported = if status == 422 {
            rejection_event(about, &failure, "member-agent")
        } else {
            denial_event(about, &failure, "member-agent")
        };
        assert!(
            reported
                .iter()
                .all(|event| (&*event.name.name, event.severity) == ("app", fleetnet_types::Severity::Warning))
        );
        reported.into_iter().map(|event| (event.reason, event.message)).collect()
    }

    /// Rule R11: A server rejects or denies a write
    /// Then: The agent emits `WriteRefused` or `WriteDenied` on the object for which the write is made, at the first of
    /// several failures in a row. The agent emits no Event if the failure may end without an action by a user, or if
    /// the namespace is being deleted
    #[test]
    fn a_rejected_write_is_reported_with_object_cluster_and_remedy() {
        let expected = "cluster hub rejected the request to create InternalServiceExport fleet-member-west/work-app: \
                        spec.ports: too many. The agent retries every 10 minutes, and when the content changes";
        assert_eq!(reported(422, "spec.ports: too many"), [("WriteRefused", expected.to_owned())]);
        let denied = "cluster hub denied the request to create InternalServiceExport fleet-member-west/work-app: not \
                      yours. Check the agent's role in that cluster, and that the namespace and the CRD exist. The \
                      agent retries by itself";
        assert_eq!(reported(403, "not yours"), [("WriteDenied", denied.to_owned())]);
        assert_eq!(reported(404, "not yours"), [("WriteDenied", denied.to_owned())]);
    }

    #[test]
    fn a_foreign_writer_is_reported_with_its_name_the_object_and_the_cluster_and_the_end_is_not() {
        let fight = |by: Option<&str>| Fight {
            source: Kind::EndpointSlice,
            cluster: "member".to_owned(),
            kind: "EndpointSlice",
            name: ObjectName::new("fleet-system", "app-1"),
            by: by.map(str::to_owned),
        };
        let about = || Some((Kind::MultiClusterService, ObjectName::new("work", "app"), "uid".into()));
        let reported = fight_event(about(), &fight(Some("field manager \"x\" (endpoints)")), "member-agent");
        let message = "another writer undoes the agent's writes to EndpointSlice fleet-system/app-1 of cluster \
                       member, so the agent repairs it once a minute only: field manager \"x\" (endpoints). Stop that \
                       writer";
        assert_eq!(reported.len(), 1);
        assert_eq!(
            (reported[0].reason, &*reported[0].message, &*reported[0].name.name),
            ("WritesUndone", message, "app")
        );
        assert_eq!(fight_event(about(), &fight(None), "member-agent"), []);
        assert_eq!(fight(None).message(), None);
    }

    /// Rule G5: A write is denied
    /// Then: The agent emits `WriteDenied`. The agent emits no Event for a failure that may end without an action by a
    /// user, or for a namespace that is being deleted
    ///
    /// Also rule R11.
    #[test]
    fn passing_failures_and_terminating_namespaces_are_not_reported() {
        assert_eq!(reported(0, "connection refused"), []);
        assert_eq!(reported(403, TERMINATING), []);
    }
}
