//! Claims: who may import a Service (spec 2.13; design section 4, `MultiClusterService.spec.type`).
//!
//! An import of type LoadBalancer has one claimer in the fleet, and keeps it; of type ClusterIP any number may claim.
//! Neither blocks the other. Every fulfilled claimer stands in the `service-in-use-by` annotation of the hub's
//! ServiceImport, each marked with a finalizer before it does.

use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::hub::{View, live};
use crate::ids::{ObjectName, Text, Timestamp};
use crate::model::{Claims, ConsumerType, ImportStatus, InternalServiceImport, Kind, Meta, ServiceImport};
use crate::names;
use crate::plan::{Event, Hindrance, Patch, Plan, Write};
use crate::reasons::Reason;
use crate::rights::{self, Right};
use std::collections::{BTreeMap, BTreeSet};

const COMPONENT: &str = "internalserviceimport-controller";

/// Who should hold a claim.
#[derive(Default)]
pub(crate) struct Rightful {
    /// Hub namespace to cluster id.
    pub(crate) importers: BTreeMap<Text, Text>,
    /// Hub namespace of the one of type LoadBalancer.
    load_balancer: Option<Text>,
}

impl Rightful {
    /// The cluster id of a claim that its member should hold. Beside a shared claim an exclusive one is not granted unless it
    /// is the one of the fleet.
    fn cluster_of(&self, claim: &InternalServiceImport) -> Option<&Text> {
        let namespace = &claim.meta.name.namespace;
        // fault C13.1 (change_of_type::where_another_cluster_holds_loadbalancer_the_import_stays_and_its_user_is_told): is_shared(claim) || self.load_balancer.as_ref() == Some(namespace) ~> true
        let is_granted = is_shared(claim) || self.load_balancer.as_ref() == Some(namespace);
        self.importers.get(namespace).filter(|_| is_granted)
    }
}

/// Who should hold a claim: a function of the objects alone. Who holds one that may be there and cannot be read keeps it, and
/// as that may be the one of type LoadBalancer, nobody else becomes that. A headless Service is for those only who understand
/// that: others would make a load balancer of it. A member that may understand it keeps its claim and gets no new one.
pub(crate) fn rightful(view: &View, service: &ObjectName, now: Timestamp) -> Rightful {
    let recorded = view.imports.get(service).map(|import| &import.claims).filter(|claims| claims.present);
    let headless = view.imports.live(service).is_some_and(|import| import.status.is_headless());
    let understands = |claim: &&InternalServiceImport| {
        let features = view.features_of(&claim.meta.name.namespace, now);
        // fault U13.3: || features.is_assumed() && holds(recorded, claim) ~>
        // fault U13.4: && holds(recorded, claim) ~>
        // fault F7.1: features ~> true || features
        !headless || features.has(Feature::Headless) || features.is_assumed() && holds(recorded, claim)
    };
    let sharers = sharers(view, service);
    let holds_alone = |claim: &InternalServiceImport| match recorded {
        Some(claims) => holds_alone(claims, claim, &sharers),
        None => holds(recorded, claim) && !sharers.contains(&claim.meta.name.namespace),
    };
    let may_claim = |claim: &&InternalServiceImport| match right(view, service, &claim.meta.name.namespace) {
        Right::Granted => true,
        // fault T14.1: false ~> true
        Right::Refused => false,
        Right::Unknown => {
            if is_shared(claim) {
                holds(recorded, claim)
            } else {
                holds_alone(claim)
            }
        }
    };
    let claims = || live(&view.internal_imports, view.internal_imports_of.get(service));
    // fault F8.2: .filter(understands) ~> ; let _ = understands
    let claimers = || claims().filter(may_claim).filter(understands);
    let alone =
        // fault C2.1: (!holds_alone(claim), Precedence::of(claim) ~> Precedence::of(claim
        claimers().filter(|claim| !is_shared(claim)).min_by_key(|claim| (!holds_alone(claim), Precedence::of(claim)));
    let kept: BTreeMap<Text, Text> = recorded
        .into_iter()
        .flat_map(|claims| &claims.importers)
        .filter(|(namespace, _)| may_be(view, service, namespace))
        // fault T18.2: .filter(|(namespace, _)| right(view, service, namespace) != Right::Refused) ~>
        .filter(|(namespace, _)| right(view, service, namespace) != Right::Refused)
        .map(|(namespace, cluster)| (namespace.clone(), cluster.clone()))
        .collect();
    let named = recorded.and_then(|claims| claims.load_balancer.as_ref());
    let kept_alone = named.filter(|namespace| kept.contains_key(*namespace));
    let may_be_kept = kept_alone.is_some() || named.is_none() && !kept.is_empty();
    let alone = alone.filter(|claim| !may_be_kept || holds_alone(claim));
    let load_balancer = alone.map(|claim| &claim.meta.name.namespace).or(kept_alone).cloned();
    // fault C2.2: claim))) ~> claim) && recorded.is_none()))
    let claimed = alone.into_iter().chain(claimers().filter(|claim| is_shared(claim))).filter_map(|claim| {
        let namespace = &claim.meta.name.namespace;
        Some((namespace.clone(), names::cluster_of(namespace)?))
    });
    Rightful { importers: claimed.chain(kept).collect(), load_balancer }
}

/// Order of exclusive claims that nobody holds: first come, first served.
///
/// creationTimestamps have whole seconds. Within one second a marked claim precedes an unmarked one: the hub has begun to
/// grant it, and the record may not be in the view yet. Among unmarked claims the resourceVersion decides: of new ones the
/// lower was created first. A member that writes to its own claim only falls back.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Precedence<'a> {
    created: Timestamp,
    /// The resourceVersion of an unmarked claim. 0 if it is marked, also because the hub's own writes change the version.
    version: u64,
    name: &'a ObjectName,
}

impl<'a> Precedence<'a> {
    fn of(claim: &'a InternalServiceImport) -> Self {
        let Meta { name, created, resource_version, finalizers, .. } = &claim.meta;
        // fault C12.1: if finalizers.ours { 0 } else { *resource_version ~> { let _ = (finalizers, resource_version); 0
        // fault C12.3: if finalizers.ours { 0 } else { *resource_version } ~> *resource_version
        // fault C12.4: *created ~> if finalizers.ours { Timestamp(0) } else { *created }
        Self { created: *created, version: if finalizers.ours { 0 } else { *resource_version }, name }
    }
}

/// Whether who makes a claim holds one.
fn holds(recorded: Option<&Claims>, claim: &InternalServiceImport) -> bool {
    match recorded {
        Some(claims) => claims.importers.contains_key(&claim.meta.name.namespace),
        // The import is made anew: the answers tell who held it.
        // fault C9.1: !claim.status.clusters.is_empty() ~> false
        None => !claim.status.clusters.is_empty(),
    }
}

/// True if a claim is recorded as the exclusive one. The record names it beside others, since the type of a claim stands where
/// its member may write: nobody becomes the one by saying so. A record that names none, as the Go agents write it, is of the
/// exclusive claim, unless its member shares the Service.
fn holds_alone(recorded: &Claims, claim: &InternalServiceImport, sharers: &BTreeSet<&Text>) -> bool {
    let namespace = &claim.meta.name.namespace;
    match &recorded.load_balancer {
        // fault C10.1: named) => named == namespace ~> _) => recorded.importers.contains_key(namespace)
        Some(named) => named == namespace,
        // fault C10.2: && !sharers.contains(namespace) ~>
        None => recorded.importers.contains_key(namespace) && !sharers.contains(namespace),
    }
}

/// True if the record says that a claim is granted.
fn is_recorded(recorded: &Claims, claim: &InternalServiceImport, sharers: &BTreeSet<&Text>) -> bool {
    if is_shared(claim) {
        return recorded.importers.contains_key(&claim.meta.name.namespace);
    }
    holds_alone(recorded, claim, sharers)
}

/// Hub namespaces of the members that have a shared claim of a Service.
fn sharers<'a>(view: &'a View, service: &ObjectName) -> BTreeSet<&'a Text> {
    let claims = live(&view.internal_imports, view.internal_imports_of.get(service));
    claims.filter(|claim| is_shared(claim)).map(|claim| &claim.meta.name.namespace).collect()
}

fn is_shared(claim: &InternalServiceImport) -> bool {
    claim.consumer_type == ConsumerType::ClusterIp
}

/// Whether who claims from a hub namespace may import a Service. Only members import.
pub(crate) fn right(view: &View, service: &ObjectName, namespace: &Text) -> Right {
    // fault T2.2: Refused ~> Granted
    names::cluster_of(namespace).map_or(Right::Refused, |cluster| rights::of_importer(view, service, &cluster))
}

/// Whether a claim of a Service may be there and not be readable: nothing is known of one from that hub namespace, and an
/// object is there of which only the content tells what it claims.
pub(crate) fn may_be(view: &View, service: &ObjectName, namespace: &Text) -> bool {
    view.unreadable.any_in(Kind::InternalServiceImport, namespace)
        && view.internal_imports_of.get(service).all(|claim| claim.namespace != *namespace)
}

/// The recorded importers of a Service that claim it, or may: a record is text, and others than we can write it too. Who does
/// not claim it is about to be struck out.
pub(crate) fn claiming<'a>(view: &View, service: &ObjectName, recorded: &'a Claims) -> BTreeSet<&'a Text> {
    let claims = live(&view.internal_imports, view.internal_imports_of.get(service));
    let claims: BTreeSet<&Text> = claims.map(|claim| &claim.meta.name.namespace).collect();
    // fault T34.3: || may_be(view, service, namespace) ~>
    let is_claimed = |namespace: &&Text| claims.contains(namespace) || may_be(view, service, namespace);
    let may_import =
        // fault T34.2: names::is_member_namespace(namespace) && ~>
        |namespace: &&Text| names::is_member_namespace(namespace) && right(view, service, namespace) != Right::Refused;
    recorded.importers.keys().filter(is_claimed).filter(may_import).collect()
}

/// Plans the claims of a Service. `beside` is what the same plan already writes: one write to one object at a time. Where
/// it is `offered` and the import is gone nevertheless (its namespace was deleted), the claims wait for it as they are.
pub(crate) fn plan(view: &View, service: &ObjectName, offered: bool, beside: &Plan, now: Timestamp) -> Plan {
    if !view.knows_features() {
        return Plan::default(); // what who is told depends on it
    }
    let import = view.imports.get(service);
    let granting = import.filter(|import| !import.meta.deleting && !import.status.clusters.is_empty());
    let alive = import.is_some_and(|import| !import.meta.deleting);
    let rightful = if alive { rightful(view, service, now) } else { Rightful::default() };
    let sharers = sharers(view, service);
    let mut plan = Plan::default();
    let mut recorded = Rightful::default();
    let names = view.internal_imports_of.get(service);
    for claim in names.filter_map(|name| view.internal_imports.get(name)) {
        let namespace = &claim.meta.name.namespace;
        let granted = import.is_some_and(|import| is_recorded(&import.claims, claim, &sharers));
        match rightful.cluster_of(claim).filter(|_| !claim.meta.deleting) {
            Some(cluster) => {
                let is_marked = claim.meta.finalizers.ours;
                // Nothing new is granted without exporters. A recorded claim stays recorded, also while its mark is missing:
                // marks and record are written one by one, and a plan may see some of these writes before the others.
                // fault C1.1: is_marked && ~>
                // fault C6.1: granted || ~>
                // fault C12.2: granted || is_marked && granting.is_some( ~> is_marked && (granted || granting.is_some()
                if granted || is_marked && granting.is_some() {
                    recorded.importers.insert(namespace.clone(), cluster.clone());
                    if !is_shared(claim) {
                        recorded.load_balancer = Some(namespace.clone());
                    }
                }
                // fault C6.2: && (granted || granting.is_some()) ~>
                if !is_marked && (granted || granting.is_some()) {
                    plan.push(Write::finalizer(Kind::InternalServiceImport, &claim.meta, true));
                }
                // Who was answered before the import was made anew is recorded first.
                if is_marked && (granted || !offered) {
                    plan.join(answer(claim, granting.filter(|_| granted), view.features_of(namespace, now)));
                }
            }
            // fault H19.1: None if offered && !alive && !claim.meta.deleting => {} ~>
            None if offered && !alive && !claim.meta.deleting => {}
            None => {
                // The record comes first. Where another claim of the member is granted, the record is that one's.
                let recorded = import.is_some_and(|import| import.claims.importers.contains_key(namespace));
                // fault C11.1: && !rightful.importers.contains_key(namespace) ~>
                let is_in_record = recorded && !rightful.importers.contains_key(namespace);
                // fault C7.1: deleting { plan ~> deleting && granting.is_none() { continue; } if claim.meta.deleting { plan
                if claim.meta.deleting {
                    plan.join(release(claim, is_in_record));
                    continue;
                }
                match right(view, service, namespace) {
                    Right::Granted => plan
                        .join(release(claim, is_in_record).hindered_by(waiting(view, claim, import, &rightful, now))),
                    Right::Refused => plan.join(refuse(claim, is_in_record)),
                    // fault T15.4: Unknown => {} } } } ~> Unknown => plan.join(release(claim, is_in_record)), } } }
                    Right::Unknown => {}
                }
            }
        }
    }
    let unreadable = |(namespace, _): &(Text, Text)| may_be(view, service, namespace);
    recorded.load_balancer = recorded.load_balancer.or_else(|| {
        let kept = rightful.load_balancer.as_ref();
        kept.filter(|namespace| may_be(view, service, namespace)).cloned()
    });
    recorded.importers.extend(rightful.importers.into_iter().filter(unreadable));
    if let Some(import) = import
        && beside.writes.iter().all(|write| write.kind != Kind::ServiceImport)
    {
        plan.join(record(import, recorded, &sharers));
    }
    plan
}

/// A fulfilled claim shows what the exports were resolved to, as far as its member understands that.
fn answer(claim: &InternalServiceImport, import: Option<&ServiceImport>, features: FeatureSet) -> Plan {
    let status = import.map_or_else(ImportStatus::default, |import| features.import(&import.status));
    let is_kept = import
        // fault U12.4: (import.status.is_headless() || claim.status == import.status ~> import.status.is_headless(
        .is_some_and(|import| features.is_assumed() && (import.status.is_headless() || claim.status == import.status));
    let again = features.again(is_kept && (claim.status != status || status.is_headless()));
    let mut plan = if is_kept { Plan::default() } else { say(claim, status) };
    plan.look_again(again);
    plan
}

fn say(claim: &InternalServiceImport, status: ImportStatus) -> Plan {
    // fault H20.1: == status ~> .clusters.is_empty() == status.clusters.is_empty()
    if claim.status == status {
        return Plan::default();
    }
    Plan::one(Write::patch(Kind::InternalServiceImport, &claim.meta, Patch::ImportStatus(status)))
}

/// A claim that is not (or no longer) rightful: the annotation first, then its status, then its mark.
fn release(claim: &InternalServiceImport, is_in_record: bool) -> Plan {
    if is_in_record {
        return Plan::default();
    }
    // fault C5.1: !claim.meta.deleting && claim.status != ImportStatus::default() ~> false && !claim.meta.deleting
    if !claim.meta.deleting && claim.status != ImportStatus::default() {
        return say(claim, ImportStatus::default());
    }
    if claim.meta.finalizers.ours {
        return Plan::one(Write::finalizer(Kind::InternalServiceImport, &claim.meta, false));
    }
    Plan::default()
}

/// A claim of a cluster that may not import: struck out, then told so, once. Its mark remembers that it was told.
fn refuse(claim: &InternalServiceImport, is_in_record: bool) -> Plan {
    if is_in_record || names::cluster_of(&claim.meta.name.namespace).is_none() {
        return Plan::default();
    }
    let mut plan = say(claim, ImportStatus::default());
    if plan.writes.is_empty() && !claim.meta.finalizers.ours {
        plan.push(Write::finalizer(Kind::InternalServiceImport, &claim.meta, true));
    }
    // fault T14.2: plan.writes.iter_mut().for_each(|write| write.events.push(rights::importer_event(claim))); ~>
    plan.writes.iter_mut().for_each(|write| write.events.push(rights::importer_event(claim)));
    plan
}

/// Why a claim waits that may be granted.
fn waiting(
    view: &View,
    claim: &InternalServiceImport,
    import: Option<&ServiceImport>,
    rightful: &Rightful,
    now: Timestamp,
) -> Option<Hindrance> {
    let import = import.filter(|import| !import.meta.deleting)?;
    let (name, cluster) = (&claim.meta.name, names::cluster_of(&claim.meta.name.namespace)?);
    let service = &import.meta.name;
    if import.status.is_headless() && !view.features_of(&name.namespace, now).has(Feature::Headless) {
        let message = format!(
            "InternalServiceImport {name} of cluster {cluster} waits: service {service} is headless, and that cluster's agent \
             does not announce that it takes headless Services: upgrade it"
        );
        return Some(Hindrance { reason: Reason::NotUnderstood, message });
    }
    let is_holder = |namespace: &Text| rightful.load_balancer.as_ref().is_none_or(|holder| holder == namespace);
    let holders = rightful.importers.iter().filter(|(namespace, _)| is_holder(namespace));
    let holders: Vec<&str> = holders.map(|(_, holder)| &**holder).collect();
    let message = format!(
        "InternalServiceImport {name} of cluster {cluster} waits: service {service} is imported by {} already, and of type \
         LoadBalancer one cluster may import it; ask for it with type ClusterIP, or delete the other's MultiClusterService",
        holders.join(", ")
    );
    Some(Hindrance { reason: Reason::ImportHeldByAnother, message })
}

/// Who imports a Service now: told with the write that records it, which remembers it.
fn importers_event(import: &ServiceImport, importers: &BTreeMap<Text, Text>) -> Option<Event> {
    // fault R8.1: importers { return ~> importers || true { return
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
    Some(Event::new(COMPONENT, Kind::ServiceImport, &import.meta, Reason::ImportersChanged, message))
}

/// Writes the claims down: a single one as the Go agents do.
fn record(import: &ServiceImport, rightful: Rightful, sharers: &BTreeSet<&Text>) -> Plan {
    let Rightful { importers, load_balancer } = rightful;
    let ours = !importers.is_empty();
    // fault C10.3 (hub::a_claim_is_marked_then_recorded_then_answered): namespace| importers.len() > 1 || sharers.contains(namespace) ~> _| sharers.len() < 100
    // fault C13.2: || sharers.contains(namespace) ~>
    let load_balancer = load_balancer.filter(|namespace| importers.len() > 1 || sharers.contains(namespace));
    let said = (&import.claims.importers, &import.claims.load_balancer);
    // fault C8.1: if ours { said == (&importers, &load_balancer) } else { !import.claims.present } ~> said == (&importers, &load_balancer)
    let annotated = if ours { said == (&importers, &load_balancer) } else { !import.claims.present };
    if annotated && import.meta.finalizers.ours == ours {
        return Plan::default();
    }
    let event = importers_event(import, &importers);
    let patch = Patch::Claims { importers, load_balancer, finalizers: import.meta.finalizers.with_ours(ours) };
    Plan::one(Write::patch(Kind::ServiceImport, &import.meta, patch).telling(event))
}
