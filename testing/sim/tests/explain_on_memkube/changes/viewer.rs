//! Person who runs `explain` and lacks one right in one cluster.

use super::endpoints::Difference;
use crate::world::{EXPORTER, IMPORTER, World, denied};
use anyhow::ensure;
use diagnosis::report::{Explanation, Outcome, Verdict};
use fastrand::Rng;
use memkube::faults::{Fault, Faults};
use memkube::{Call, Verb};
use sim::fleet::Place;
use sim::server::ADMIN;
use std::sync::Arc;

/// Resource that a viewer may not list: group and plural.
type Hidden = (&'static str, &'static str);

/// Resources that also the ClusterRole fleetnet-viewer does not grant. Without them, nothing is unknown that another
/// step does not show.
const NOT_FOR_VIEWERS: [&str; 2] = ["secrets", "subjectaccessreviews"];

const FLEET: &str = "networking.fleet.azure.com";
const MCS: &str = "multicluster.x-k8s.io";

const IN_HUB: [Hidden; 16] = [
    ("", "namespaces"),
    ("", "serviceaccounts"),
    ("", "resourcequotas"),
    ("", "events"),
    ("", "pods"),
    ("apps", "deployments"),
    ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    (FLEET, "memberagents"),
    (FLEET, "internalserviceexports"),
    (FLEET, "internalserviceimports"),
    (FLEET, "endpointsliceexports"),
    (FLEET, "endpointsliceimports"),
    (FLEET, "serviceimports"),
    (FLEET, "mergedserviceimports"),
];

const IN_MEMBER: [Hidden; 15] = [
    ("", "namespaces"),
    ("", "secrets"),
    ("", "events"),
    ("", "pods"),
    ("", "services"),
    ("discovery.k8s.io", "endpointslices"),
    ("apps", "deployments"),
    ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    (FLEET, "serviceexports"),
    (FLEET, "multiclusterservices"),
    (FLEET, "serviceimports"),
    (MCS, "serviceexports"),
    (MCS, "serviceimports"),
];

/// Viewer without one right in one cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewer {
    place: Place,
    hidden: Hidden,
}

impl Viewer {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let place = [Place::Hub, Place::Member(EXPORTER), Place::Member(IMPORTER)][rng.usize(..3)];
        let kinds: &[Hidden] = if place == Place::Hub { &IN_HUB } else { &IN_MEMBER };
        Self { place, hidden: kinds[rng.usize(..kinds.len())] }
    }

    /// Takes the right from the user of the diagnosis.
    pub(super) fn apply(self, world: &World) {
        world.memkube(self.place).set_faults(Some(Arc::new(self)));
    }

    /// Fails if the diagnosis of this viewer says that all is well, or does not name what it could not read.
    pub(super) fn judge(self, found: &Difference, explanation: &Explanation) -> anyhow::Result<()> {
        let ((_, plural), is_healthy) = (self.hidden, explanation.verdict == Verdict::Healthy);
        ensure!(!is_healthy || found.text.is_none(), "ok, although {:?}", found.text);
        if NOT_FOR_VIEWERS.contains(&plural) || explanation.pairs.is_empty() {
            return Ok(());
        }
        ensure!(!is_healthy, "ok without {plural} in {:?}", self.place);
        let mut steps = explanation.pairs.iter().flat_map(|pair| &pair.steps);
        let is_named = steps.any(|step| step.outcome != Outcome::Ok && step.detail.contains(plural));
        let is_of_other = explanation.not_known.iter().any(|text| text.contains(plural));
        ensure!(is_named || is_of_other, "nothing names {plural} in {:?}", self.place);
        Ok(())
    }
}

impl Faults for Viewer {
    fn request(&self, call: &Call) -> Fault {
        let (group, plural) = self.hidden;
        let is_hidden = &*call.user.name == ADMIN
            && matches!(call.verb, Verb::List | Verb::Create)
            && (&*call.target.group, &*call.target.resource) == (group, plural);
        Fault { refuse: is_hidden.then(denied), ..Fault::default() }
    }
}
