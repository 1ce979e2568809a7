//! Claims: the members' requests to import a Service. The rules decide which claims are granted.
//!
//! A Service has at most one granted exclusive claim (type LoadBalancer) in the fleet; a later exclusive claim does not
//! replace it. Shared claims (type ClusterIP) are not limited. Neither type blocks the other type. The
//! `service-in-use-by` annotation of the hub's ServiceImport records each granted claim. The hub agent adds the
//! finalizer to a claim before it records the claim.

use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::hub::rights::{self, Right};
use crate::hub::view::reader::{Reader, live};
use crate::model::{Claims, ConsumerType, ImportStatus, InternalServiceImport, Kind, Meta, ServiceImport};
use crate::names;
use crate::plan::{self, BlockingReason, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const COMPONENT: &str = "internalserviceimport-controller";

/// Claims of a Service that the hub agent must grant.
#[derive(Default)]
pub(crate) struct Grants {
    /// Map from the member namespace of each granted claim to the importer's cluster id.
    pub(crate) importers: BTreeMap<Text, ClusterId>,
    /// Member namespace of the granted exclusive claim.
    load_balancer: Option<Text>,
}

impl Grants {
    /// Returns the importer's cluster id if the claim must be granted, otherwise `None`. A member can have a shared and
    /// an exclusive claim of one Service, and one granted claim puts the member into `importers`. So for an exclusive
    /// claim, `load_balancer` must name the member too.
    fn cluster_of(&self, claim: &InternalServiceImport) -> Option<&ClusterId> {
        let namespace = &claim.meta.name.namespace;
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
    let recorded = view.hub_imports().get(service).map(|import| &import.claims).filter(|claims| claims.present);
    let headless = view.hub_imports().live(service).is_some_and(|import| import.status.is_headless());
    let supports_service = |claim: &&InternalServiceImport| {
        let features = view.features_of(&claim.meta.name.namespace, now);
        !headless || features.has(Feature::Headless) || features.is_assumed() && holds(recorded, claim)
    };
    let shared = shared(view, service);
    let holds_exclusively = |claim: &InternalServiceImport| match recorded {
        Some(claims) => holds_exclusively(claims, claim, &shared),
        None => holds(recorded, claim) && !shared.contains(&claim.meta.name.namespace),
    };
    let may_claim = |claim: &&InternalServiceImport| match right(view, service, &claim.meta.name.namespace) {
        Right::Granted => true,
        Right::Denied => false,
        Right::Unknown => {
            if is_shared(claim) {
                holds(recorded, claim)
            } else {
                holds_exclusively(claim)
            }
        }
    };
    let claims = || live(view.claims(), view.claims_of(service));
    let claimers = || claims().filter(may_claim).filter(supports_service);
    let exclusive = claimers()
        .filter(|claim| !is_shared(claim))
        .min_by_key(|claim| (!holds_exclusively(claim), Precedence::of(claim)));
    let kept: BTreeMap<Text, ClusterId> = recorded
        .into_iter()
        .flat_map(|claims| &claims.importers)
        .filter(|(namespace, _)| may_hold(view, service, namespace))
        .filter(|(namespace, _)| right(view, service, namespace) != Right::Denied)
        .map(|(namespace, cluster)| (namespace.clone(), cluster.clone()))
        .collect();
    let named = recorded.and_then(|claims| claims.load_balancer.as_ref());
    let kept_exclusive = named.filter(|namespace| kept.contains_key(*namespace));
    let may_be_kept = kept_exclusive.is_some() || named.is_none() && !kept.is_empty();
    let exclusive = exclusive.filter(|claim| !may_be_kept || holds_exclusively(claim));
    let load_balancer = exclusive.map(|claim| &claim.meta.name.namespace).or(kept_exclusive).cloned();
    let claimed = exclusive.into_iter().chain(claimers().filter(|claim| is_shared(claim))).filter_map(|claim| {
        let namespace = &claim.meta.name.namespace;
        Some((namespace.clone(), names::cluster_of(namespace)?))
    });
    Grants { importers: claimed.chain(kept).collect(), load_balancer }
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

/// True if the claim's member is an importer, according to the record of granted claims on the ServiceImport
/// (`recorded`).
fn holds(recorded: Option<&Claims>, claim: &InternalServiceImport) -> bool {
    match recorded {
        Some(claims) => claims.importers.contains_key(&claim.meta.name.namespace),
        // A ServiceImport that was created again has no record yet. Then a claim with a status was granted before.
        None => !claim.status.clusters.is_empty(),
    }
}

/// True if the record on the ServiceImport shows that this exclusive claim is granted.
///
/// - The record names the exclusive importer: the claim must be of this importer. The type in a claim is no proof,
///   because the member can change it.
/// - The record names no exclusive importer, as when a Go agent wrote it: the claim must be of a recorded importer
///   without a shared claim.
fn holds_exclusively(recorded: &Claims, claim: &InternalServiceImport, shared: &BTreeSet<&Text>) -> bool {
    let namespace = &claim.meta.name.namespace;
    match &recorded.load_balancer {
        Some(named) => named == namespace,
        None => recorded.importers.contains_key(namespace) && !shared.contains(namespace),
    }
}

/// True if the record on the ServiceImport shows that this claim is granted.
fn is_recorded(recorded: &Claims, claim: &InternalServiceImport, shared: &BTreeSet<&Text>) -> bool {
    if is_shared(claim) {
        return recorded.importers.contains_key(&claim.meta.name.namespace);
    }
    holds_exclusively(recorded, claim, shared)
}

/// Returns the member namespaces that have a shared claim of a Service.
fn shared<'a>(view: Reader<'a>, service: &ObjectName) -> BTreeSet<&'a Text> {
    let claims = live(view.claims(), view.claims_of(service));
    claims.filter(|claim| is_shared(claim)).map(|claim| &claim.meta.name.namespace).collect()
}

fn is_shared(claim: &InternalServiceImport) -> bool {
    claim.consumer_type == ConsumerType::ClusterIp
}

/// Returns the right of the member with this member namespace to import a Service. The right is denied if the namespace
/// is no member namespace.
pub(crate) fn right(view: Reader<'_>, service: &ObjectName, namespace: &Text) -> Right {
    names::cluster_of(namespace).map_or(Right::Denied, |cluster| rights::of_importer(view, service, &cluster))
}

/// True if the member may have an undecodable claim of the Service: the member has any undecodable claim, and has no
/// decodable claim of this Service.
pub(crate) fn may_be(view: Reader<'_>, service: &ObjectName, namespace: &Text) -> bool {
    view.has_undecodable(Kind::InternalServiceImport, namespace) && view.claims_in(service, namespace).next().is_none()
}

/// True if a recorded importer may have a granted claim of the Service that is undecodable. The member has any
/// undecodable claim, and no decodable claim of this Service has a grant. A claim without a grant may be the second
/// claim of a change of type.
fn may_hold(view: Reader<'_>, service: &ObjectName, namespace: &Text) -> bool {
    let is_granted = |claim: &InternalServiceImport| !claim.status.clusters.is_empty();
    view.has_undecodable(Kind::InternalServiceImport, namespace)
        && !view.claims_in(service, namespace).filter_map(|name| view.claims().get(name)).any(is_granted)
}

/// True if a recorded importer has a claim, or may have an undecodable claim, and is not denied the right to import. A
/// recorded importer without a claim does not count, and is removed from the record: any client with access can edit
/// the record.
pub(crate) fn is_claiming(view: Reader<'_>, service: &ObjectName, importer: &Text) -> bool {
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
    let import = view.hub_imports().get(service);
    let alive = import.filter(|import| !import.meta.deleting);
    let granting = alive.filter(|import| !import.status.clusters.is_empty());
    let grants = if alive.is_some() { grants(view, service, now) } else { Grants::default() };
    let shared = shared(view, service);
    let mut plan = Plan::default();
    let mut recorded = Grants::default();
    let names = view.claims_of(service);
    for claim in names.filter_map(|name| view.claims().get(name)) {
        let namespace = &claim.meta.name.namespace;
        let granted = import.is_some_and(|import| is_recorded(&import.claims, claim, &shared));
        match grants.cluster_of(claim).filter(|_| !claim.meta.deleting) {
            Some(cluster) => {
                let is_marked = claim.meta.finalizers.ours;
                // A new claim is recorded only while the Service has exporters. A recorded claim stays recorded even
                // without its finalizer: finalizer and record are separate writes, and a plan may see one before the
                // other.
                if granted || is_marked && granting.is_some() {
                    recorded.importers.insert(namespace.clone(), cluster.clone());
                    if !is_shared(claim) {
                        recorded.load_balancer = Some(namespace.clone());
                    }
                }
                if !is_marked && (granted || granting.is_some()) {
                    plan.push(Write::add_finalizer(Kind::InternalServiceImport, &claim.meta));
                }
                // A claim gets the outcome as its status only after it is recorded. A claim that is not recorded yet
                // keeps its status, as after the ServiceImport was created again.
                if is_marked && (granted || exports == Exports::None) && !is_still_shown(view, service, claim) {
                    plan.join(update_status(claim, granting.filter(|_| granted), view.features_of(namespace, now)));
                }
            }
            None if exports == Exports::Some && alive.is_none() && !claim.meta.deleting => {}
            None => {
                // A claim that is not granted is removed from the record first, and released in a later plan. The
                // record has one entry for each member. So the entry stays if another claim of the same member is
                // granted.
                let recorded = import.is_some_and(|import| import.claims.importers.contains_key(namespace));
                let is_in_record = recorded && !grants.importers.contains_key(namespace);
                let unrecorded = Some(claim).filter(|_| !is_in_record);
                if claim.meta.deleting {
                    plan.join(unrecorded.map_or_else(Plan::default, release));
                    continue;
                }
                match right(view, service, namespace) {
                    Right::Granted => {
                        plan.join(unrecorded.map_or_else(Plan::default, release));
                        plan.join(Plan::default().blocked_by(waiting(view, claim, import, &grants, now)));
                    }
                    Right::Denied => plan.join(unrecorded.map_or_else(Plan::default, |claim| deny(view, claim))),
                    Right::Unknown => {}
                }
            }
        }
    }
    keep_undecodable(view, service, grants, &mut recorded);
    if let Some(import) = import
        && beside.writes.iter().all(|write| write.kind() != Kind::ServiceImport)
    {
        plan.join(record(import, recorded, &shared));
    }
    plan
}

/// Adds the recorded importers whose granted claim may be undecodable to those that stay recorded.
fn keep_undecodable(view: Reader<'_>, service: &ObjectName, grants: Grants, recorded: &mut Grants) {
    let import = view.hub_imports().get(service);
    let is_kept = |namespace: &Text| {
        let is_recorded = import.is_some_and(|import| import.claims.importers.contains_key(namespace));
        is_recorded && may_hold(view, service, namespace)
    };
    let exclusive = grants.load_balancer.filter(|namespace| is_kept(namespace));
    recorded.load_balancer = recorded.load_balancer.take().or(exclusive);
    recorded.importers.extend(grants.importers.into_iter().filter(|(namespace, _)| is_kept(namespace)));
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

/// Writes the outcome of conflict resolution to the status of a granted claim. The outcome is reduced to the features
/// of the importing member.
fn update_status(claim: &InternalServiceImport, import: Option<&ServiceImport>, features: FeatureSet) -> Plan {
    let status = import.map_or_else(ImportStatus::default, |import| features.import(&import.status));
    let is_kept = import
        .is_some_and(|import| features.is_assumed() && (import.status.is_headless() || claim.status == import.status));
    let again = features.again((is_kept && (claim.status != status || status.is_headless())).then_some(claim));
    let mut plan = if is_kept { Plan::default() } else { set_status(claim, status) };
    plan.plan_again_at(again);
    plan
}

fn set_status(claim: &InternalServiceImport, status: ImportStatus) -> Plan {
    if claim.status == status {
        return Plan::default();
    }
    Plan::one(Write::patch(&claim.meta, Patch::InternalServiceImportStatus(status)))
}

/// Takes the grant of a claim back, after the claim was removed from the record: clears its status, and in a later plan
/// removes its finalizer.
fn release(claim: &InternalServiceImport) -> Plan {
    if !claim.meta.deleting && claim.status != ImportStatus::default() {
        return set_status(claim, ImportStatus::default());
    }
    if claim.meta.finalizers.ours {
        return Plan::one(Write::remove_finalizer(Kind::InternalServiceImport, &claim.meta));
    }
    Plan::default()
}

/// Denies a claim of a cluster that has no right to import: clears its status and emits an Event. A denied claim gets
/// the finalizer, which records that the Event was emitted.
fn deny(view: Reader<'_>, claim: &InternalServiceImport) -> Plan {
    if names::cluster_of(&claim.meta.name.namespace).is_none() {
        return Plan::default();
    }
    let mut plan = set_status(claim, ImportStatus::default());
    if plan.writes.is_empty() && !claim.meta.finalizers.ours {
        plan.push(Write::add_finalizer(Kind::InternalServiceImport, &claim.meta));
    }
    plan.writes.iter_mut().for_each(|write| write.events.push(rights::importer_event(view, claim)));
    plan
}

/// Returns the blocking reason of a claim that is not granted: another member has the exclusive claim, or the Service
/// is headless and the claiming member does not support headless Services.
fn waiting(
    view: Reader<'_>,
    claim: &InternalServiceImport,
    import: Option<&ServiceImport>,
    grants: &Grants,
    now: Timestamp,
) -> Option<BlockingReason> {
    let import = import.filter(|import| !import.meta.deleting)?;
    let (name, cluster) = (&claim.meta.name, names::cluster_of(&claim.meta.name.namespace)?);
    let service = &import.meta.name;
    if import.status.is_headless() && !view.features_of(&name.namespace, now).has(Feature::Headless) {
        let message = format!(
            "InternalServiceImport {name} of cluster {cluster} waits: service {service} is headless, and the agent of \
             that cluster does not announce support for headless Services. Upgrade that agent"
        );
        return Some(BlockingReason { reason: Reason::NotUnderstood, message });
    }
    let is_holder = |namespace: &Text| grants.load_balancer.as_ref().is_none_or(|holder| holder == namespace);
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

/// Returns the Event about new importers of a Service; `None` if the importers stay the same. The Event is emitted with
/// the write of the record.
fn importers_event(import: &ServiceImport, importers: &BTreeMap<Text, ClusterId>) -> Option<Event> {
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
fn record(import: &ServiceImport, grants: Grants, shared: &BTreeSet<&Text>) -> Plan {
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
