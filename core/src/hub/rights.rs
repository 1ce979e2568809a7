//! Rights: which members may export from a namespace of the hub, and which may import from it.
//!
//! Annotations on a namespace may list its exporters and its importers; without a list, every member has the right.
//! While a list is unknown, or the hub agent has no right to list namespaces, the hub agent grants nothing new and
//! withdraws nothing. An operator can turn off these rules ([`NamespacePolicy::Off`]). An operator can also have every
//! member denied in a namespace that the hub does not have ([`NamespacePolicy::Strict`]), or also in one without a list
//! ([`NamespacePolicy::Listed`]).

use crate::annotations::{EXPORTERS, IMPORTERS};
use crate::hub::view::NamespacePolicy;
use crate::hub::view::reader::Reader;
use crate::model::{InternalServiceImport, Kind, Namespace};
use crate::names;
use crate::plan::{self, Event};
use crate::ranges::SourceRanges;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text};
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
        Policy::Of(namespace) => named(view, namespace.exporters.as_ref(), cluster),
        Policy::Open => Right::Granted,
        Policy::Closed => Right::Denied,
        Policy::Unknown => {
            let accepted = view.exporters(service).is_some_and(|exporters| exporters.contains(cluster));
            if accepted { Right::Granted } else { Right::Unknown }
        }
    }
}

/// Returns the right of a cluster to import a Service: granted, denied or unknown.
pub(crate) fn of_importer(view: Reader<'_>, service: &ObjectName, cluster: &ClusterId) -> Right {
    match policy(view, &service.namespace) {
        Policy::Of(namespace) => named(view, namespace.importers.as_ref(), cluster),
        Policy::Open => Right::Granted,
        Policy::Closed => Right::Denied,
        Policy::Unknown => Right::Unknown,
    }
}

static ANY: SourceRanges = SourceRanges::Any;

/// Returns the addresses that the member with this member namespace may export; `None` while they are not known.
pub(crate) fn source_ranges<'a>(view: Reader<'a>, member: &MemberNamespace) -> Option<&'a SourceRanges> {
    match policy(view, member.as_text()) {
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
    /// No member has rights: the namespace does not exist, and the policy requires it.
    Closed,
    Unknown,
}

fn policy<'a>(view: Reader<'a>, namespace: &Text) -> Policy<'a> {
    if view.namespace_policy() == NamespacePolicy::Off {
        return Policy::Open;
    }
    let name = ObjectName::new("", namespace.clone());
    let is_known = view.complete(&[Kind::Namespace]) && !view.is_undecodable(Kind::Namespace, &name);
    if !is_known {
        return Policy::Unknown;
    }
    let of_missing = if view.namespace_policy().needs_namespace() { Policy::Closed } else { Policy::Open };
    view.lists_of(namespace).map_or(of_missing, Policy::Of)
}

fn named(view: Reader<'_>, clusters: Option<&BTreeSet<ClusterId>>, cluster: &ClusterId) -> Right {
    let of_all = view.namespace_policy() != NamespacePolicy::Listed;
    if clusters.map_or(of_all, |clusters| clusters.contains(cluster)) { Right::Granted } else { Right::Denied }
}

/// Returns the message for an export whose cluster has no right to export.
pub(crate) fn exporter_denial_message(view: Reader<'_>, service: &ObjectName, cluster: &str) -> String {
    let is_listed = |namespace: &Namespace| namespace.exporters.is_some();
    denial_message(view, &service.namespace, cluster, ("export from", EXPORTERS), is_listed)
}

/// Returns the Event for a claim whose cluster has no right to import.
pub(crate) fn importer_event(view: Reader<'_>, claim: &InternalServiceImport) -> Event {
    let cluster = names::cluster_of(&claim.meta.name.namespace).unwrap_or_default();
    let is_listed = |namespace: &Namespace| namespace.importers.is_some();
    let service = &claim.reference.source;
    let message = denial_message(view, &service.namespace, &cluster, ("import from", IMPORTERS), is_listed);
    plan::event(COMPONENT, Kind::InternalServiceImport, &claim.meta, Reason::ImporterNotAllowed, message)
}

fn denial_message(
    view: Reader<'_>,
    namespace: &Text,
    cluster: &str,
    (what, annotation): (&str, &str),
    is_listed: impl Fn(&Namespace) -> bool,
) -> String {
    let found = view.lists_of(namespace);
    let only_listed = view.namespace_policy() == NamespacePolicy::Listed;
    if only_listed && !found.is_some_and(is_listed) {
        let missing = if found.is_some() { "has no such annotation" } else { "does not exist in the hub" };
        return format!(
            "cluster {cluster} may not {what} namespace {namespace} of the hub: its agent runs with \
             --namespace-policy=listed, and the namespace {missing}. Add {cluster} to the annotation {annotation} of the \
             namespace in the hub"
        );
    }
    if found.is_none() {
        return format!(
            "cluster {cluster} may not {what} namespace {namespace}: the hub has no namespace {namespace}, and its agent \
             runs with --namespace-policy=strict. Create the namespace in the hub"
        );
    }
    format!(
        "cluster {cluster} may not {what} namespace {namespace} of the hub: the annotation {annotation} does not \
         list it. Add {cluster} there, or remove the annotation so that every cluster may"
    )
}
