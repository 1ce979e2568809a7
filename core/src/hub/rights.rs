//! Rights: which members may export from a namespace of the hub, and which may import from it.
//!
//! Annotations on a namespace may list its exporters and its importers; without a list, every member has the right. While a
//! list is unknown, or the hub agent has no right to list namespaces, the hub agent grants nothing new and withdraws nothing.
//! An operator can turn off these rules ([`NamespacePolicy::Off`]), or have every member denied in a namespace that the hub does
//! not have ([`NamespacePolicy::Strict`]).

use crate::hub::view::NamespacePolicy;
use crate::hub::view::reader::Reader;
use crate::model::{InternalServiceImport, Kind, Namespace};
use crate::names;
use crate::plan::{self, Event};
use crate::ranges::SourceRanges;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ObjectName, Text};
use std::collections::BTreeSet;

const COMPONENT: &str = "internalserviceimport-controller";

/// Message that the hub agent logs at start if rights are not enforced.
pub const NOT_ENFORCED: &str = "--namespace-policy=off: the hub agent ignores the annotations of the hub's namespaces \
                                that list exporters and importers. Every member may export and import";

/// Right of a cluster to export or import a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Granted,
    Denied,
    /// The right is not known: existing grants stay, and nothing new is granted.
    Unknown,
}

/// Returns the right of a cluster to export a Service: granted, denied or unknown. While the policy of the namespace is
/// unknown, exporters that are already accepted keep the right.
pub(crate) fn of_exporter(view: Reader<'_>, service: &ObjectName, cluster: &ClusterId) -> Right {
    match policy(view, &service.namespace) {
        Policy::Of(namespace) => named(namespace.exporters.as_ref(), cluster),
        Policy::Open => Right::Granted,
        Policy::Closed => Right::Denied,
        Policy::Unknown => {
            let accepted = view.exporters(service).is_some_and(|exporters| exporters.contains(cluster));
            // fault T15.2: if accepted { Right::Granted } else { ~> { let _ = accepted;
            if accepted { Right::Granted } else { Right::Unknown }
        }
    }
}

/// Returns the right of a cluster to import a Service: granted, denied or unknown.
pub(crate) fn of_importer(view: Reader<'_>, service: &ObjectName, cluster: &ClusterId) -> Right {
    match policy(view, &service.namespace) {
        Policy::Of(namespace) => named(namespace.importers.as_ref(), cluster),
        Policy::Open => Right::Granted,
        Policy::Closed => Right::Denied,
        Policy::Unknown => Right::Unknown,
    }
}

static ANY: SourceRanges = SourceRanges::Any;

/// Returns the addresses that the member with this member namespace may export; `None` while they are not known.
pub(crate) fn source_ranges<'a>(view: Reader<'a>, member: &Text) -> Option<&'a SourceRanges> {
    match policy(view, member) {
        Policy::Of(namespace) => Some(&namespace.source_ranges),
        Policy::Open | Policy::Closed => Some(&ANY),
        Policy::Unknown => None,
    }
}

/// Policy of a namespace of the hub, which decides the members that may export from the namespace and import from the
/// namespace.
enum Policy<'a> {
    /// The annotations of this namespace decide.
    Of(&'a Namespace),
    /// Every member has all rights: the namespace does not exist, or policies are not enforced.
    Open,
    /// No member has rights: the namespace does not exist, and the policy is strict.
    Closed,
    Unknown,
}

fn policy<'a>(view: Reader<'a>, namespace: &Text) -> Policy<'a> {
    // fault T16.1: if view.namespace_policy() == NamespacePolicy::Off { return Policy::Open; } ~>
    if view.namespace_policy() == NamespacePolicy::Off {
        return Policy::Open;
    }
    let name = ObjectName::new("", namespace.clone());
    let is_known = view.complete(&[Kind::Namespace]) && !view.is_undecodable(Kind::Namespace, &name);
    if !is_known {
        // fault T15.1: Policy::Unknown ~> Policy::Open
        return Policy::Unknown;
    }
    // fault T39.1: == NamespacePolicy::Strict ~> == NamespacePolicy::Off
    let of_missing = if view.namespace_policy() == NamespacePolicy::Strict { Policy::Closed } else { Policy::Open };
    view.lists_of(namespace).map_or(of_missing, Policy::Of)
}

fn named(clusters: Option<&BTreeSet<ClusterId>>, cluster: &ClusterId) -> Right {
    // fault T9.2: contains ~> is_empty() || clusters.contains
    // fault T19.1: | clusters. ~> | !clusters.
    if clusters.is_none_or(|clusters| clusters.contains(cluster)) { Right::Granted } else { Right::Denied }
}

/// Returns the message for an export whose cluster has no right to export.
pub(crate) fn exporter_denial_message(view: Reader<'_>, service: &ObjectName, cluster: &str) -> String {
    denial_message(view, &service.namespace, cluster, "export from", "exporters")
}

/// Returns the Event for a claim whose cluster has no right to import.
pub(crate) fn importer_event(view: Reader<'_>, claim: &InternalServiceImport) -> Event {
    let cluster = names::cluster_of(&claim.meta.name.namespace).unwrap_or_default();
    let message = denial_message(view, &claim.reference.source.namespace, &cluster, "import from", "importers");
    plan::event(COMPONENT, Kind::InternalServiceImport, &claim.meta, Reason::ImporterNotAllowed, message)
}

fn denial_message(view: Reader<'_>, namespace: &Text, cluster: &str, what: &str, annotation: &str) -> String {
    if view.lists_of(namespace).is_none() {
        return format!(
            "cluster {cluster} may not {what} namespace {namespace}: the hub has no namespace {namespace}, and its agent \
             runs with --namespace-policy=strict. Create the namespace in the hub"
        );
    }
    format!(
        "cluster {cluster} may not {what} namespace {namespace} of the hub: the annotation \"{annotation}\" does not \
         list it. Add {cluster} there, or remove the annotation so that every cluster may"
    )
}
