//! Candidates of cluster selection: for each port of an imported Service, the exporting clusters with their endpoints.

use super::binding;
use super::target::{self, Part, TargetState};
use crate::annotations::WEIGHTS;
use crate::member::mcs_import;
use crate::member::selection::{Candidate, Rank};
use crate::member::view::Reader;
use crate::member::view::selections::{Selected, Selection};
use crate::member::view::serving::{Clients, Served};
use crate::member::view::shares::Grant;
use crate::model::{ClusterSelection, HubSlice, SliceContent, Weights};
use crate::plan::BlockingReason;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ObjectName, Timestamp};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Returns the candidates of each port of an imported Service; `None` if the Service has neither selectors nor weights.
pub(crate) fn candidates(view: Reader<'_>, of: &Selected, now: Timestamp) -> Option<Selection> {
    let pace = view.settings().cluster_selection.as_ref()?.pace;
    let mut selection = Selection::new(declared(view, of)?, pace);
    let has_weights = !selection.weights.is_empty();
    let all = view.distributed_slices_of(&of.service).filter_map(|name| view.distributed_slices().live(name));
    for distributed in all {
        let cluster = &distributed.spec.reference.cluster;
        let Some((service, content)) = supplied(view, of, distributed, now).filter(|_| selection.weight(cluster) > 0)
        else {
            continue;
        };
        let rank = |endpoint| Rank::of(&view.settings().cluster, endpoint).filter(|_| has_weights);
        let ranks: BTreeSet<Rank> = content.endpoints.iter().filter_map(rank).collect();
        for served in Served::by(Clients::KubeProxy, &service, &content) {
            let candidate = selection.ports.entry(served).or_default().entry(cluster.clone()).or_default();
            candidate.ready += content.endpoints.len();
            candidate.draining += content.draining.len();
            candidate.ranks.extend(ranks.iter().cloned());
        }
    }
    for (served, of_port) in &mut selection.ports {
        for bound in view.exporters_that_serve(served.clone()) {
            of_port.entry(bound.clone()).or_default().is_bound = true;
        }
        let review = |(cluster, it): (&ClusterId, &mut Candidate)| it.treatment = view.treatment_of(cluster, now);
        of_port.iter_mut().for_each(review);
    }
    Some(selection)
}

/// Returns the results and weights of a Service by the API that imports it into a namespace. `None` without any. The
/// weights that the importer's users declare win over those of the exports.
fn declared(view: Reader<'_>, of: &Selected) -> Option<ClusterSelection> {
    let selection = if target::is_for_fleet_api(view, &of.namespace) {
        target::granted_claims(view, &of.service).map(|claim| &claim.selection).find(|it| !it.is_empty())
    } else {
        mcs_import::merged(view, &of.service).map(|merged| &merged.selection)
    };
    let own = users_weights(view, of).map(|(.., weights)| weights);
    let mut selection = selection.cloned().unwrap_or_default();
    // While the annotation has an error, the weights stay as they are.
    let before = || view.selection(of).map(|before| before.weights.clone());
    let own = own.and_then(|own| own.as_ref().map_or_else(|_| before(), |own| Some(own.clone())));
    selection.weights.extend(own.unwrap_or_default());
    (!selection.is_empty()).then_some(selection)
}

/// Returns the user's object that may declare weights, and its weights.
fn users_weights<'a>(view: Reader<'a>, of: &Selected) -> Option<(&'static str, &'a ObjectName, &'a Weights)> {
    if target::is_for_fleet_api(view, &of.namespace) {
        let request = binding(view, &of.service)?.derived_from.as_ref()?;
        let request = view.multi_cluster_services().live(request)?;
        return Some(("MultiClusterService", &request.meta.name, &request.weights));
    }
    let import = view.mcs_imports().live(&of.service)?;
    Some(("ServiceImport", &import.meta.name, &import.weights))
}

/// Returns the blocking reason about malformed weights. It does not name a slice, so its user gets one Event.
pub(super) fn malformed_weights(view: Reader<'_>, of: &Selected) -> Option<BlockingReason> {
    view.settings().cluster_selection.as_ref()?;
    let (kind, name, weights) = users_weights(view, of)?;
    let error = weights.as_ref().err()?;
    let cluster = &view.settings().cluster;
    let message = format!(
        "the annotation {WEIGHTS} of {kind} {name} in cluster {cluster} is malformed: {error}. The weights of the clusters stay as they \
         are. Correct the annotation"
    );
    Some(BlockingReason { reason: Reason::WeightsInvalid, message })
}

/// Returns what a distributed slice has for kube-proxy, whichever clusters are chosen, and the derived Service.
fn supplied<'a>(
    view: Reader<'a>,
    of: &Selected,
    distributed: &'a HubSlice,
    now: Timestamp,
) -> Option<(ObjectName, Cow<'a, SliceContent>)> {
    let at = Part::read_by(view, Clients::KubeProxy, &of.namespace).name(&of.namespace, distributed);
    let in_namespace = |service| ObjectName::new(of.namespace.clone(), service);
    match target::target(view, &at, distributed, now) {
        _ if view.grant(distributed) == Grant::Nothing || target::is_held_by_another(view, &at, distributed) => None,
        TargetState::Target(target) => {
            Some((in_namespace(target.service(Clients::KubeProxy, distributed)?), target.whole(view, distributed)))
        }
        TargetState::Waits(_) => {
            let present = target::imported(view, &at, distributed)?;
            Some((in_namespace(Clients::KubeProxy.service(present)?.clone()), Cow::Borrowed(&present.content)))
        }
        TargetState::Ended => None,
    }
}
