//! Claims: the members' requests to import a Service. The rules decide which claims are granted.
//!
//! A Service has at most one granted exclusive claim (type LoadBalancer) in the fleet; a later exclusive claim does not
//! replace it. Shared claims (type ClusterIP) are not limited. Neither type blocks the other type. The
//! `service-in-use-by` annotation of the hub's ServiceImport records each granted claim. The hub agent adds the
//! finalizer to a claim before it records the claim.

use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::hub::rights::{self, Right};
use crate::hub::selection;
use crate::hub::view::reader::{Reader, live};
use crate::model::{
    Claims, ClusterSelection, ConsumerType, ImportStatus, InternalServiceImport, Kind, Meta, ServiceImport,
};
use crate::names;
use crate::plan::{self, BlockingReason, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const COMPONENT: &str = "internalserviceimport-controller";

/// Claims of a Service that the hub agent must grant.
#[derive(Default)]
pub(crate) struct Grants {
    /// Map from the member namespace of each granted claim to the importer's cluster id.
    pub(crate) importers: BTreeMap<MemberNamespace, ClusterId>,
    /// Member namespace of the granted exclusive claim.
    load_balancer: Option<MemberNamespace>,
}

impl Grants {
    /// Returns the importer's cluster id if the claim must be granted, otherwise `None`. A member can have a shared and
    /// an exclusive claim of one Service, and one granted claim puts the member into `importers`. So for an exclusive
    /// claim, `load_balancer` must name the member too.
    fn cluster_of(&self, claim: &InternalServiceImport) -> Option<&ClusterId> {
        let namespace = &claim.meta.name.member_namespace();
        let is_granted = is_shared(claim) || self.load_balancer.as_ref() == Some(namespace);
        self.importers.get(namespace).filter(|_| is_granted)
    }
}

/// Returns the claims to grant. Only the objects in the view decide.
///
/// - The claim of an importer may be undecodable. This importer keeps its grant. The undecodable claim may be
///   exclusive, so no exclusive claim of another member is granted.
/// - Claims of a headless Service are granted only to members that support headless Services: other members would
///   create a load balancer for the Service.
/// - While the agent only assumes that a member lacks this support, the member keeps a granted claim and gets no new
///   grant.
pub(crate) fn grants(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Grants {
    let import = view.hub_imports().get(service);
    let sharing = shared(view, service);
    let recorded =
        Recorded { claims: import.map(|import| &import.claims).filter(|claims| claims.present), shared: &sharing };
    let is_headless = import.is_some_and(|import| !import.meta.deleting && import.status.is_headless());
    let supports_service = |claim: &&InternalServiceImport| {
        let features = view.features_of(&claim.meta.name.member_namespace(), now);
        !is_headless || features.has(Feature::Headless) || features.is_assumed() && recorded.has_member(claim)
    };
    let may_claim = |claim: &&InternalServiceImport| match right(view, service, &claim.meta.name.member_namespace()) {
        Right::Granted => true,
        Right::Denied => false,
        Right::Unknown => recorded.has(claim),
    };
    let claims = live(view.claims(), view.claims_of(service)).filter(may_claim).filter(supports_service);
    let (shared, exclusive): (Vec<_>, Vec<_>) = claims.partition(|claim| is_shared(claim));
    let undecodable = undecodable(view, service, recorded);
    let named = recorded.claims.and_then(|claims| claims.load_balancer.as_ref());
    let kept = named.filter(|namespace| undecodable.contains_key(*namespace));
    let may_be_kept = kept.is_some() || named.is_none() && !undecodable.is_empty();
    let first = exclusive.into_iter().min_by_key(|claim| (!recorded.has(claim), Precedence::of(claim)));
    let exclusive = first.filter(|claim| !may_be_kept || recorded.has(claim));
    let load_balancer = exclusive.map(|claim| claim.meta.name.member_namespace()).or_else(|| kept.cloned());
    let claimed = exclusive.into_iter().chain(shared).filter_map(|claim| {
        let namespace = &claim.meta.name.member_namespace();
        Some((namespace.clone(), names::cluster_of(namespace)?))
    });
    Grants { importers: claimed.chain(undecodable).collect(), load_balancer }
}

/// Returns the recorded importers whose granted claim may be undecodable.
fn undecodable(view: Reader<'_>, service: &ObjectName, recorded: Recorded<'_>) -> BTreeMap<MemberNamespace, ClusterId> {
    let importers = recorded.claims.into_iter().flat_map(|claims| &claims.importers);
    let kept = importers.filter(|(namespace, _)| {
        may_hold(view, service, namespace) && right(view, service, namespace) != Right::Denied
    });
    kept.map(|(namespace, cluster)| (namespace.clone(), cluster.clone())).collect()
}

/// Order in which exclusive claims are granted, while none is granted: the claim that was created first comes first.
///
/// creationTimestamps have whole seconds. Claims of the same second have this order:
///
/// - Claims with our finalizer come first. The hub agent has begun to grant such a claim, and the view may not show the
///   record yet.
/// - Of the other claims, a lower resourceVersion comes first, because it means an earlier creation. A member that
///   writes to its claim raises the resourceVersion, so the claim can only move back.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Precedence<'a> {
    created: Timestamp,
    /// resourceVersion of a claim without our finalizer. 0 for a claim with our finalizer, because the hub agent's own
    /// writes change the resourceVersion of such a claim.
    version: u64,
    name: &'a ObjectName,
}

impl<'a> Precedence<'a> {
    fn of(claim: &'a InternalServiceImport) -> Self {
        let Meta { name, created, resource_version, finalizers, .. } = &claim.meta;
        Self { created: *created, version: if finalizers.ours { 0 } else { *resource_version }, name }
    }
}

/// Claims of a Service that were granted before.
#[derive(Clone, Copy)]
struct Recorded<'a> {
    /// Record of granted claims on the ServiceImport.
    claims: Option<&'a Claims>,
    /// Member namespaces that have a shared claim.
    shared: &'a BTreeSet<MemberNamespace>,
}

impl Recorded<'_> {
    /// True if the claim was granted.
    fn has(self, claim: &InternalServiceImport) -> bool {
        if is_shared(claim) { self.has_member(claim) } else { self.has_exclusive(claim) }
    }

    /// True if the claim's member is an importer.
    fn has_member(self, claim: &InternalServiceImport) -> bool {
        match self.claims {
            Some(claims) => claims.importers.contains_key(&*claim.meta.name.namespace),
            // A ServiceImport that was created again has no record yet. Then a claim with a status was granted before.
            None => !claim.status.clusters.is_empty(),
        }
    }

    /// True if this exclusive claim was granted.
    ///
    /// - The record names the exclusive importer: the claim must be of this importer. The type in a claim is no proof,
    ///   because the member can change it.
    /// - The record names no exclusive importer, as when a Go agent wrote it: the claim must be of a recorded importer
    ///   without a shared claim.
    fn has_exclusive(self, claim: &InternalServiceImport) -> bool {
        let namespace = &claim.meta.name.member_namespace();
        match self.claims.and_then(|claims| claims.load_balancer.as_ref()) {
            Some(named) => named == namespace,
            None => self.has_member(claim) && !self.shared.contains(namespace),
        }
    }
}

/// Returns the member namespaces that have a shared claim of a Service.
fn shared(view: Reader<'_>, service: &ObjectName) -> BTreeSet<MemberNamespace> {
    let claims = live(view.claims(), view.claims_of(service));
    claims.filter(|claim| is_shared(claim)).map(|claim| claim.meta.name.member_namespace()).collect()
}

fn is_shared(claim: &InternalServiceImport) -> bool {
    claim.consumer_type == ConsumerType::ClusterIp
}

/// Returns the right of the member with this member namespace to import a Service. The right is denied if the namespace
/// is no member namespace.
pub(crate) fn right(view: Reader<'_>, service: &ObjectName, namespace: &MemberNamespace) -> Right {
    names::cluster_of(namespace).map_or(Right::Denied, |cluster| rights::of_importer(view, service, &cluster))
}

/// True if the member may have an undecodable claim of the Service: the member has any undecodable claim, and has no
/// decodable claim of this Service.
pub(crate) fn may_be(view: Reader<'_>, service: &ObjectName, namespace: &MemberNamespace) -> bool {
    view.has_undecodable(Kind::InternalServiceImport, namespace) && view.claims_in(service, namespace).next().is_none()
}

/// True if a recorded importer may have a granted claim of the Service that is undecodable. The member has any
/// undecodable claim, and no decodable claim of this Service has a grant. A claim without a grant may be the second
/// claim of a change of type.
fn may_hold(view: Reader<'_>, service: &ObjectName, namespace: &MemberNamespace) -> bool {
    let is_granted = |claim: &InternalServiceImport| !claim.status.clusters.is_empty();
    view.has_undecodable(Kind::InternalServiceImport, namespace)
        && !view.claims_in(service, namespace).filter_map(|name| view.claims().get(name)).any(is_granted)
}

/// True if a recorded importer has a claim, or may have an undecodable claim, and is not denied the right to import. A
/// recorded importer without a claim does not count, and is removed from the record: any client with access can edit
/// the record.
pub(crate) fn is_claiming(view: Reader<'_>, service: &ObjectName, importer: &MemberNamespace) -> bool {
    let is_claimed = || live(view.claims(), view.claims_in(service, importer)).next().is_some();
    let is_claimed = || is_claimed() || may_hold(view, service, importer);
    names::is_member_namespace(importer) && right(view, service, importer) != Right::Denied && is_claimed()
}

/// State of the exports of a Service. `Some` means that an export takes part in conflict resolution, or may do so
/// because the right of its cluster is unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exports {
    Some,
    None,
}

/// Plans the claims of a Service, and their record on the ServiceImport. `beside` has the other writes of the same
/// plan. If one of them writes the ServiceImport, the record waits for a later plan, because a plan writes each object
/// at most once.
///
/// The ServiceImport of an exported Service can be missing, for example because its namespace was deleted. Until the
/// ServiceImport exists again, claims stay unchanged, except those that are being deleted.
pub(crate) fn plan(view: Reader<'_>, service: &ObjectName, exports: Exports, beside: &Plan, now: Timestamp) -> Plan {
    if !view.knows_features() {
        return Plan::default(); // the features of the members decide the status of a claim, and are not known yet
    }
    let observed = Observed::of(view, service, exports, now);
    let claims = view.claims_of(service).filter_map(|name| view.claims().get(name));
    let verdicts: Vec<_> = claims.map(|claim| (claim, observed.verdict(claim))).collect();
    let mut plan = Plan::default();
    for (claim, verdict) in &verdicts {
        plan.join(observed.plan_claim(claim, verdict));
    }
    if let Some(import) = observed.import
        && beside.writes.iter().all(|write| write.kind() != Kind::ServiceImport)
    {
        plan.join(record(import, observed.desired_record(&verdicts), &observed.shared));
    }
    plan
}

/// State of a Service that decides about its claims.
struct Observed<'a> {
    view: Reader<'a>,
    service: &'a ObjectName,
    exports: Exports,
    now: Timestamp,
    import: Option<&'a ServiceImport>,
    /// The ServiceImport, unless it is being deleted.
    alive: Option<&'a ServiceImport>,
    /// The ServiceImport, if the Service has exporters.
    granting: Option<&'a ServiceImport>,
    /// Member namespaces that have a shared claim.
    shared: BTreeSet<MemberNamespace>,
    /// Claims that must be granted.
    grants: Grants,
}

/// Decision about a claim.
enum Verdict<'a> {
    /// The claim must be granted to this cluster.
    Granted(&'a ClusterId),
    /// Nothing is decided yet, or the object is no claim of a member.
    Unchanged,
    /// The claim is being deleted.
    Deleted,
    /// The cluster may import, but this claim cannot be granted now.
    Waiting,
    /// The cluster has no right to import.
    Denied,
}

/// Desired value of one part of a claim.
enum Part {
    /// True if the claim has our finalizer.
    Finalizer(bool),
    Status(ImportStatus),
    Selection(ClusterSelection),
}

impl<'a> Observed<'a> {
    fn of(view: Reader<'a>, service: &'a ObjectName, exports: Exports, now: Timestamp) -> Self {
        let import = view.hub_imports().get(service);
        let alive = import.filter(|import| !import.meta.deleting);
        let granting = alive.filter(|import| !import.status.clusters.is_empty());
        let grants = if alive.is_some() { grants(view, service, now) } else { Grants::default() };
        Self { view, service, exports, now, import, alive, granting, shared: shared(view, service), grants }
    }

    /// True if the ServiceImport records that this claim is granted.
    fn is_recorded(&self, claim: &InternalServiceImport) -> bool {
        let recorded = |import: &'a ServiceImport| Recorded { claims: Some(&import.claims), shared: &self.shared };
        self.import.is_some_and(|import| recorded(import).has(claim))
    }

    fn verdict(&self, claim: &InternalServiceImport) -> Verdict<'_> {
        let namespace = &claim.meta.name.member_namespace();
        if claim.meta.deleting {
            return Verdict::Deleted;
        }
        if let Some(cluster) = self.grants.cluster_of(claim) {
            return Verdict::Granted(cluster);
        }
        if self.exports == Exports::Some && self.alive.is_none() {
            return Verdict::Unchanged;
        }
        match right(self.view, self.service, namespace) {
            Right::Granted => Verdict::Waiting,
            Right::Denied if names::cluster_of(namespace).is_some() => Verdict::Denied,
            Right::Denied | Right::Unknown => Verdict::Unchanged,
        }
    }

    /// Returns the record of granted claims that the ServiceImport must have.
    ///
    /// A new claim is recorded only while the Service has exporters. A recorded claim stays recorded even without its
    /// finalizer: finalizer and record are separate writes, and a plan may see one before the other.
    fn desired_record(&self, verdicts: &[(&InternalServiceImport, Verdict<'_>)]) -> Grants {
        let mut record = Grants::default();
        for (claim, verdict) in verdicts {
            let is_new = claim.meta.finalizers.ours && self.granting.is_some();
            if let Verdict::Granted(cluster) = verdict
                && (is_new || self.is_recorded(claim))
            {
                let namespace = &claim.meta.name.member_namespace();
                record.importers.insert(namespace.clone(), (*cluster).clone());
                record.load_balancer = record.load_balancer.or((!is_shared(claim)).then(|| namespace.clone()));
            }
        }
        let recorded =
            |namespace: &MemberNamespace| self.import.is_some_and(|it| it.claims.importers.contains_key(namespace));
        let is_kept = |namespace: &MemberNamespace| recorded(namespace) && may_hold(self.view, self.service, namespace);
        let exclusive = self.grants.load_balancer.as_ref().filter(|namespace| is_kept(namespace));
        record.load_balancer = record.load_balancer.or(exclusive.cloned());
        let kept = self.grants.importers.iter().filter(|(namespace, _)| is_kept(namespace));
        record.importers.extend(kept.map(|(namespace, cluster)| (namespace.clone(), cluster.clone())));
        record
    }

    fn plan_claim(&self, claim: &InternalServiceImport, verdict: &Verdict<'_>) -> Plan {
        let namespace = &claim.meta.name.member_namespace();
        // A claim that is not granted is removed from the record first, and released in a later plan. The record has
        // one entry for each member. So the entry stays if another claim of the same member is granted.
        let is_in_record = self.import.is_some_and(|import| import.claims.importers.contains_key(namespace))
            && !self.grants.importers.contains_key(namespace);
        let unless_recorded = |desired: &[Part]| if is_in_record { Plan::default() } else { diff(claim, desired) };
        let cleared = Part::Status(ImportStatus::default());
        match verdict {
            Verdict::Granted(_) => self.plan_granted(claim),
            Verdict::Unchanged => Plan::default(),
            Verdict::Deleted => unless_recorded(&[Part::Finalizer(false)]),
            Verdict::Waiting => unless_recorded(&[cleared, Part::Finalizer(false)]).blocked_by(self.waiting(claim)),
            Verdict::Denied => {
                // The finalizer of a denied claim records that the Event was emitted.
                let mut plan = unless_recorded(&[cleared, Part::Finalizer(true)]);
                plan.writes.iter_mut().for_each(|write| write.events.push(rights::importer_event(self.view, claim)));
                plan
            }
        }
    }

    /// Plans a claim that must be granted. It gets the outcome of conflict resolution, reduced to the features of the
    /// importing member.
    ///
    /// A claim gets the outcome as its status only after it is recorded. A claim that is not recorded yet keeps its
    /// status, as after the ServiceImport was created again.
    fn plan_granted(&self, claim: &InternalServiceImport) -> Plan {
        let is_recorded = self.is_recorded(claim);
        if !claim.meta.finalizers.ours {
            let may_begin = is_recorded || self.granting.is_some();
            return if may_begin { diff(claim, &[Part::Finalizer(true)]) } else { Plan::default() };
        }
        let has_outcome = is_recorded || self.exports == Exports::None;
        if !has_outcome || is_still_shown(self.view, self.service, claim) {
            return Plan::default();
        }
        let features = self.view.features_of(&claim.meta.name.member_namespace(), self.now);
        let outcome = self.granting.filter(|_| is_recorded).map(|import| &import.status);
        let status = outcome.map_or_else(ImportStatus::default, |outcome| features.import(outcome));
        let is_kept =
            outcome.is_some_and(|outcome| features.is_assumed() && (outcome.is_headless() || claim.status == *outcome));
        let again = features.again((is_kept && (claim.status != status || status.is_headless())).then_some(claim));
        let mut plan = if is_kept { Plan::default() } else { diff(claim, &[Part::Status(status)]) };
        plan.plan_again_at(again);
        if let Some(outcome) = outcome.filter(|_| plan.writes.is_empty() && !features.is_assumed()) {
            plan.join(self.select(claim, features, outcome));
        }
        plan
    }

    /// Writes the selection for the importer to its claim.
    fn select(&self, claim: &InternalServiceImport, features: FeatureSet, outcome: &ImportStatus) -> Plan {
        if !features.has(Feature::ClusterSelection) {
            return diff(claim, &[Part::Selection(ClusterSelection::default())]);
        }
        let clusters: Vec<&ClusterId> = outcome.clusters.iter().collect();
        let exports = live(self.view.internal_exports(), self.view.internal_exports_of(self.service));
        let weights = selection::weights(exports);
        let request = selection::Request { selectors: &claim.selectors, clusters: &clusters, weights: &weights };
        let (selected, blocked) = request.select(self.view, &claim.meta.name.member_namespace(), &claim.selection);
        diff(claim, &[Part::Selection(selected)]).blocked_by(blocked)
    }
}

/// Writes the first part of a claim that is not as desired. A plan writes each object at most once.
fn diff(claim: &InternalServiceImport, desired: &[Part]) -> Plan {
    let write = desired.iter().find_map(|part| match part {
        Part::Finalizer(ours) if claim.meta.finalizers.ours == *ours => None,
        Part::Finalizer(true) => Some(Write::add_finalizer(Kind::InternalServiceImport, &claim.meta)),
        Part::Finalizer(false) => Some(Write::remove_finalizer(Kind::InternalServiceImport, &claim.meta)),
        Part::Status(status) if claim.status == *status => None,
        Part::Status(status) => Some(Write::patch(&claim.meta, Patch::InternalServiceImportStatus(status.clone()))),
        Part::Selection(selection) if claim.selection == *selection => None,
        Part::Selection(selection) => Some(Write::patch(&claim.meta, Patch::ClaimSelection(selection.clone()))),
    });
    write.map_or_else(Plan::default, Plan::one)
}

/// True while the exclusive claim of another member still shows its grant, although this exclusive claim has the grant
/// now. Of two writes of one plan, the API server may store either first.
fn is_still_shown(view: Reader<'_>, service: &ObjectName, claim: &InternalServiceImport) -> bool {
    let mut others = live(view.claims(), view.claims_of(service));
    let shows_grant = |other: &InternalServiceImport| !is_shared(other) && !other.status.clusters.is_empty();
    // The hub agent does not write to claims outside of member namespaces.
    let is_of_member = |other: &InternalServiceImport| names::is_member_namespace(&other.meta.name.namespace);
    let is_revoked = |other: &InternalServiceImport| shows_grant(other) && is_of_member(other);
    !is_shared(claim) && claim.status.clusters.is_empty() && others.any(is_revoked)
}

impl Observed<'_> {
    /// Returns the blocking reason of a claim that is not granted: another member has the exclusive claim, or the
    /// Service is headless and the claiming member does not support headless Services.
    fn waiting(&self, claim: &InternalServiceImport) -> Option<BlockingReason> {
        let import = self.alive?;
        let (name, cluster) = (&claim.meta.name, names::cluster_of(&claim.meta.name.namespace)?);
        let service = &import.meta.name;
        if import.status.is_headless()
            && !self.view.features_of(&name.member_namespace(), self.now).has(Feature::Headless)
        {
            let message = format!(
                "InternalServiceImport {name} of cluster {cluster} waits: service {service} is headless, and the agent of \
                 that cluster does not announce support for headless Services. Upgrade that agent"
            );
            return Some(BlockingReason { reason: Reason::NotUnderstood, message });
        }
        let grants = &self.grants;
        let is_holder =
            |namespace: &MemberNamespace| grants.load_balancer.as_ref().is_none_or(|holder| holder == namespace);
        let holders = grants.importers.iter().filter(|(namespace, _)| is_holder(namespace));
        let holders: Vec<&str> = holders.map(|(_, holder)| &**holder).collect();
        let message = format!(
            "InternalServiceImport {name} of cluster {cluster} waits: service {service} is imported by {} already, and \
             only one cluster may import it with type LoadBalancer. Use type ClusterIP, or delete the MultiClusterService \
             of the other cluster",
            holders.join(", ")
        );
        Some(BlockingReason { reason: Reason::ImportHeldByAnother, message })
    }
}

/// Returns the Event about new importers of a Service; `None` if the importers stay the same. The Event is emitted with
/// the write of the record.
fn importers_event(import: &ServiceImport, importers: &BTreeMap<MemberNamespace, ClusterId>) -> Option<Event> {
    if import.claims.importers == *importers {
        return None;
    }
    let clusters: Vec<&str> = importers.values().map(|cluster| &**cluster).collect();
    let by = match clusters[..] {
        [] => "no cluster any more".to_owned(),
        [only] => format!("cluster {only}"),
        _ => format!("clusters {}", clusters.join(", ")),
    };
    let message = format!("service {} is imported by {by}", import.meta.name);
    Some(plan::event(COMPONENT, Kind::ServiceImport, &import.meta, Reason::ImportersChanged, message))
}

/// Writes the record of granted claims to the ServiceImport. A record with a single claim has the form that the Go
/// agents write.
fn record(import: &ServiceImport, grants: Grants, shared: &BTreeSet<MemberNamespace>) -> Plan {
    let Grants { importers, load_balancer } = grants;
    let ours = !importers.is_empty();
    let load_balancer = load_balancer.filter(|namespace| importers.len() > 1 || shared.contains(namespace));
    let recorded = (&import.claims.importers, &import.claims.load_balancer);
    let annotated = if ours { recorded == (&importers, &load_balancer) } else { !import.claims.present };
    if annotated && import.meta.finalizers.ours == ours {
        return Plan::default();
    }
    let event = importers_event(import, &importers);
    let present = &import.meta.finalizers;
    let finalizers = if ours { present.with_ours() } else { present.without_ours() };
    let patch = Patch::Claims { importers, load_balancer, finalizers };
    Plan::one(Write::patch(&import.meta, patch).with_events(event))
}
