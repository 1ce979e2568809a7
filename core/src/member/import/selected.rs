//! Cluster selection in the importing cluster: the part of a distributed slice that kube-proxy gets. Gateways and DNS
//! servers get the whole slice.
//!
//! A slice loses its last endpoint for a port only after the clusters that are chosen instead serve the port.

use crate::member::selection::{Choice, Rank};
use crate::member::view::Reader;
use crate::member::view::selections::{Selected, Selection};
use crate::member::view::serving::{Clients, Served};
use crate::model::{Endpoint, EndpointSlice, HubSlice, SliceContent};
use fleetnet_types::{ClusterId, ObjectName, Timestamp};
use std::borrow::Cow;

/// Returns the part of a slice's content that kube-proxy gets: the ports for which the slice's cluster is chosen.
/// Without such a port, it has no endpoints.
pub(super) fn content<'a>(
    view: Reader<'_>,
    of: &Selected,
    distributed: &HubSlice,
    content: Cow<'a, SliceContent>,
    service: &ObjectName,
    now: Timestamp,
) -> Cow<'a, SliceContent> {
    let Some(selection) = view.selection(of) else { return content };
    let cluster = &distributed.spec.reference.cluster;
    let own_choice = |it: &Served| choice(view, selection, it, now).filter(|choice| choice.clusters.contains(cluster));
    let choices: Vec<Option<Choice>> =
        Served::by(Clients::KubeProxy, service, &content).iter().map(own_choice).collect();
    // An endpoint serves all ports of its slice, so the first chosen port decides which endpoints serve.
    let last = choices.iter().flatten().next().and_then(|choice| choice.last.get(cluster));
    if choices.iter().all(Option::is_some) && last.is_none() {
        return content;
    }
    let mut content = content.into_owned();
    if choices.iter().any(Option::is_some) {
        let mut chosen = choices.iter().map(Option::is_some);
        content.ports.retain(|_| chosen.next() == Some(true));
        let serves =
            |endpoint: &Endpoint| last.is_none() || Rank::of(&view.settings().cluster, endpoint).as_ref() <= last;
        content.endpoints.retain(serves);
    } else {
        content.endpoints.clear();
        content.draining.clear();
    }
    Cow::Owned(content)
}

/// True if a chosen cluster with ready endpoints does not serve a port yet that an imported slice serves.
pub(super) fn is_awaited(view: Reader<'_>, of: &Selected, removed: &EndpointSlice, now: Timestamp) -> bool {
    let Some(selection) = view.selection(of).filter(|_| !removed.content.endpoints.is_empty()) else { return false };
    let Some(service) = Clients::KubeProxy.service(removed) else { return false };
    let service = ObjectName::new(of.namespace.clone(), service.clone());
    Served::by(Clients::KubeProxy, &service, &removed.content).into_iter().any(|served| {
        let Some(choice) = choice(view, selection, &served, now) else { return false };
        let serves = |cluster: &ClusterId| view.exporters_that_serve(served.clone()).any(|it| it == cluster);
        let is_ready = |cluster: &&ClusterId| selection.ports[&served][*cluster].ready > 0;
        choice.clusters.iter().filter(is_ready).any(|cluster| !serves(cluster))
    })
}

/// Returns the time at which other clusters may be chosen although nothing changes.
pub(super) fn again(view: Reader<'_>, of: &Selected, now: Timestamp) -> Option<Timestamp> {
    let selection = view.selection(of)?;
    selection.ports.keys().filter_map(|served| choice(view, selection, served, now)?.again).min()
}

/// Returns what is chosen for a port. `None` if no cluster has it.
fn choice(view: Reader<'_>, selection: &Selection, served: &Served, now: Timestamp) -> Option<Choice> {
    let mut candidates = Cow::Borrowed(selection.ports.get(served)?);
    // The list of silent members counts only while a hub agent maintains it.
    if candidates.values().any(|candidate| candidate.treatment.is_some()) {
        let all = candidates.to_mut().iter_mut();
        all.for_each(|(cluster, candidate)| candidate.treatment = view.treatment_of(cluster, now));
    }
    Some(selection.choose(&candidates, now))
}
