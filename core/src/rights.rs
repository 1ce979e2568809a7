//! Rights: who may export from a namespace of the hub, and who may import from it (design section 8).
//!
//! A namespace may name its exporters and its importers; one that names none is open to all. While it is not known what it
//! names, also because the hub agent may not list namespaces, nothing is granted anew and nothing is taken away. Only an
//! operator turns that off ([`NamespacePolicy::Off`]).

use crate::hub::View;
use crate::ids::{ObjectName, Text};
use crate::model::{InternalServiceImport, Kind, Namespace};
use crate::names;
use crate::plan::Event;
use crate::reasons::Reason;
use std::collections::BTreeSet;

const COMPONENT: &str = "internalserviceimport-controller";

/// What the log says once where rights are not enforced.
pub const NOT_ENFORCED: &str = "--namespace-policy=off: annotations of the hub's namespaces that name who exports from them and \
                                who imports are not enforced, every member may do both";

/// What namespaces of the hub decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespacePolicy {
    /// Namespaces decide who exports from them and who imports.
    #[default]
    Enforce,
    /// Every member may do both.
    Off,
}

/// Whether a cluster may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// It may.
    Granted,
    /// It may not.
    Refused,
    /// That is not known: what it was granted before stays, and nothing comes to it.
    Unknown,
}

/// Whether a cluster may export a Service. Where that is not known, who is accepted as an exporter stays one.
pub(crate) fn of_exporter(view: &View, service: &ObjectName, cluster: &Text) -> Right {
    match rule(view, &service.namespace) {
        Some(namespace) => named(namespace.and_then(|namespace| namespace.exporters.as_ref()), cluster),
        None => {
            let accepted = view.imports.get(service).is_some_and(|import| import.status.clusters.contains(cluster));
            // fault T15.2: if accepted { Right::Granted } else { ~> { let _ = accepted;
            if accepted { Right::Granted } else { Right::Unknown }
        }
    }
}

/// Whether a cluster may import a Service.
pub(crate) fn of_importer(view: &View, service: &ObjectName, cluster: &Text) -> Right {
    rule(view, &service.namespace).map_or(Right::Unknown, |namespace| {
        named(namespace.and_then(|namespace| namespace.importers.as_ref()), cluster)
    })
}

/// The namespace that says so, if there is one; `None` where that is not known.
fn rule<'a>(view: &'a View, namespace: &Text) -> Option<Option<&'a Namespace>> {
    // fault T16.1: if view.namespace_policy == NamespacePolicy::Off { return Some(None); } ~>
    if view.namespace_policy == NamespacePolicy::Off {
        return Some(None);
    }
    let name = ObjectName::new("", namespace.clone());
    let is_known = view.watches.complete(&[Kind::Namespace]) && !view.unreadable.has(Kind::Namespace, &name);
    // fault T15.1: is_known.then(|| view.namespaces.get(&name ~> Some(is_known.then(|| view.namespaces.get(&name)).flatten(
    is_known.then(|| view.namespaces.get(&name))
}

fn named(clusters: Option<&BTreeSet<Text>>, cluster: &Text) -> Right {
    // fault T9.2: contains ~> is_empty() || clusters.contains
    // fault T19.1: | clusters. ~> | !clusters.
    if clusters.is_none_or(|clusters| clusters.contains(cluster)) { Right::Granted } else { Right::Refused }
}

/// What an export that is refused is told.
pub(crate) fn exporter_refused(service: &ObjectName, cluster: &str) -> String {
    refused(&service.namespace, cluster, "export from", "exporters")
}

/// What a claim that is refused is told, once.
pub(crate) fn importer_event(claim: &InternalServiceImport) -> Event {
    let cluster = names::cluster_of(&claim.meta.name.namespace).unwrap_or_default();
    let message = refused(&claim.reference.source.namespace, &cluster, "import from", "importers");
    Event::new(COMPONENT, Kind::InternalServiceImport, &claim.meta, Reason::ImporterNotAllowed, message)
}

fn refused(namespace: &str, cluster: &str, what: &str, annotation: &str) -> String {
    format!(
        "cluster {cluster} may not {what} namespace {namespace} of the hub, whose annotation \"{annotation}\" does not name \
         it: add {cluster} there, or take the annotation away so that every cluster may"
    )
}
