//! Changes of objects before Go agents start in place of fleetnet.
//!
//! Go agents find the export of a source slice by an annotation of the slice, fleetnet finds it by the UID of the
//! slice. Without the annotation, Go agents export the slice a second time, under another name.

use super::find::{go_name, is_of};
use crate::agents::Agent;
use crate::explain::{
    Site, Stop, age, agent as installed, has_foreign_owner, holder, is_by, is_expired, is_held_by_member_agent,
    is_imported, is_of_go_agents, is_requested, need, renewed,
};
use crate::limits::LEASE_SECONDS;
use crate::report::Api;
use crate::snapshot::{Listing, Member, Snapshot};
use fleetnet_api::crd::shared::ExportedObjectReference;
use fleetnet_api::crd::{
    AddressType, EndpointSliceExport, EndpointSliceExportSpec, InternalServiceExport, MemberAgent, MemberAgentStatus,
    MergedServiceImport,
};
use fleetnet_api::names::{MCS_GROUP, annotations, labels};
use fleetnet_core::model::SilencePhase;
use fleetnet_core::names::{ENDPOINT_SLICE_LEASE, cluster_of};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Resource, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Return of one cluster to Go agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    /// MemberAgent of the member, which goes last. `None` for the hub, and if it is gone.
    pub agent: Option<Object>,
    /// True if the hub agent treats the member as silent. Go agents send no heartbeat, so nothing would end this.
    pub is_silent: bool,
    pub changes: Vec<Change>,
}

/// Change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Annotations of a source slice in the member.
    Annotate(Annotated),
    /// Deletion of an object in the hub.
    Delete { object: Object, why: &'static str },
    /// Object in the hub that stays although Go agents do not continue it.
    Keep { object: Object, why: &'static str },
    /// End of the announcement of the hub agent in a MemberAgent.
    Revoke(Object),
}

/// Source slice with the annotations that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotated {
    pub namespace: String,
    pub name: String,
    /// UID that the slice must still have.
    pub uid: String,
    pub annotations: BTreeMap<&'static str, String>,
}

/// Object of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: String,
    pub plural: String,
    pub namespace: String,
    pub name: String,
    /// UID that the object must still have.
    pub uid: String,
}

impl Object {
    fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }
}

/// Reason why the changes cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Something must be done first. The text has the remedy.
    First(String),
    /// Not everything could be read.
    NotKnown(String),
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Skipped(why) | Stop::Unknown(why) | Stop::Waiting(why) => Self::NotKnown(why),
            Stop::Broken(evidence) => Self::NotKnown(evidence.value),
        }
    }
}

/// Returns the changes before Go agents start in a member.
///
/// # Errors
/// If an agent of the member still runs, if the cluster is another one, or if not everything could be read.
pub fn of_member(snapshot: &Snapshot, id: &str) -> Result<Rollback, Refused> {
    let Some(member) = snapshot.member(id) else {
        let members: Vec<&str> = snapshot.members.iter().map(|member| member.id.as_str()).collect();
        return Err(Refused::First(format!("the hub has no member {id}: its members are {}", members.join(", "))));
    };
    let (here, hub) = (Site::Member(member), Site::Hub(&snapshot.hub));
    let slices = need(&member.slices, "EndpointSlices", here)?;
    let slice_exports = need(&snapshot.hub.slice_exports, "EndpointSliceExports", hub)?;
    let exports = need(&snapshot.hub.internal_exports, "InternalServiceExports", hub)?;
    let agents = member_agents(snapshot)?;
    let agent = agents.iter().find(|agent| is_of(*agent, member) && agent.name_any() == id);
    nobody_leads(snapshot, here, need(&member.agent.leases, "Leases", here)?)?;
    nobody_renews(hub, agent)?;
    is_the_cluster(snapshot, member, slices, agent)?;
    nobody_imports_by_mcs_api(merged_imports(snapshot)?.iter().filter(|merged| is_of(*merged, member)))?;

    let own = || exports.iter().filter(|export| is_of(*export, member));
    let ended: BTreeSet<(&str, &str)> =
        own().filter(|export| ends(export).is_some()).map(|export| named(&export.spec.service_reference)).collect();
    let continued = continued(slices, slice_exports, member, &ended);
    let mut changes: Vec<Change> = continued.values().filter_map(|(slice, export)| annotate(slice, export)).collect();
    let kept: BTreeSet<&str> = continued.values().filter_map(|(_, export)| export.metadata.name.as_deref()).collect();
    for export in slice_exports.iter().filter(|export| is_of(*export, member)) {
        if !kept.contains(export.name_any().as_str()) {
            let is_ipv6 = export.spec.address_type == AddressType::IPv6;
            let why = if is_ipv6 { "Go agents export no IPv6 slices" } else { "Go agents do not continue it" };
            changes.push(Change::Delete { object: Object::of(export), why });
        }
    }
    for (export, why) in own().filter_map(|export| Some((export, ends(export)?))) {
        changes.push(Change::Delete { object: Object::of(export), why });
    }
    let ordinary = exports.iter().filter(|export| ends(export).is_none());
    changes.extend(with_other_names(ordinary, member, |export| &export.spec.service_reference));
    let claims = need(&snapshot.hub.claims, "InternalServiceImports", hub)?;
    changes.extend(with_other_names(claims.iter(), member, |claim| &claim.spec.service_import_reference));
    Ok(Rollback { agent: agent.map(Object::of), is_silent: is_silent(snapshot, agents, member), changes })
}

/// Returns why Go agents do not continue an export; `None` if they do.
fn ends(export: &InternalServiceExport) -> Option<&'static str> {
    match () {
        () if export.spec.headless == Some(true) => Some("Go agents export no headless Services"),
        () if !is_by(export, Api::Fleet) => Some("Go agents do not know the standard API"),
        () => None,
    }
}

/// Returns the changes before the Go hub agent starts: the announcements of the hub agent end, and the
/// MergedServiceImports go.
///
/// # Errors
/// If the hub agent still runs, if a member imports by the standard API, or if not everything could be read.
pub fn of_hub(snapshot: &Snapshot) -> Result<Rollback, Refused> {
    let hub = Site::Hub(&snapshot.hub);
    let agents = member_agents(snapshot)?;
    nobody_leads(snapshot, hub, need(&snapshot.hub.agent.leases, "Leases", hub)?)?;
    let is_announced = |agent: &&MemberAgent| {
        let status = agent.status.as_ref();
        status.is_some_and(|it| {
            it.features.as_ref().is_some_and(|features| !features.is_empty()) || it.silent_members.is_some()
        })
    };
    let merged = merged_imports(snapshot)?;
    nobody_imports_by_mcs_api(merged.iter())?;
    let revoked = agents.iter().filter(is_announced).map(|agent| Change::Revoke(Object::of(agent)));
    let why = "Go agents do not know the standard API";
    let deleted = merged.iter().map(|merged| Change::Delete { object: Object::of(merged), why });
    Ok(Rollback { changes: revoked.chain(deleted).collect(), ..Rollback::default() })
}

/// True if an export in the hub has nothing that Go agents take for something else.
#[must_use]
pub fn is_go_export(export: &InternalServiceExport) -> bool {
    ends(export).is_none()
}

/// True if a slice in the hub has nothing that Go agents do not have.
#[must_use]
pub fn is_go_form(slice: &EndpointSliceExportSpec) -> bool {
    let mut endpoints = slice.endpoints.iter();
    slice.address_type == AddressType::IPv4
        && slice.draining_endpoints.is_none()
        && endpoints.all(|endpoint| endpoint.hostname.is_none() && endpoint.zone.is_none())
}

/// Returns the MemberAgents; none if the hub does not have the kind.
fn member_agents(snapshot: &Snapshot) -> Result<&[MemberAgent], Refused> {
    let listing = &snapshot.hub.member_agents;
    if *listing == Listing::NotDefined { Ok(&[]) } else { Ok(need(listing, "MemberAgents", Site::Hub(&snapshot.hub))?) }
}

/// Returns the MergedServiceImports; none if the hub does not have the kind.
fn merged_imports(snapshot: &Snapshot) -> Result<&[MergedServiceImport], Refused> {
    let listing = &snapshot.hub.merged_imports;
    let hub = Site::Hub(&snapshot.hub);
    if *listing == Listing::NotDefined { Ok(&[]) } else { Ok(need(listing, "MergedServiceImports", hub)?) }
}

/// Fails if a member agent has imported a Service by the standard API: only the agent can remove what it made in the
/// namespaces of users.
fn nobody_imports_by_mcs_api<'a>(mut merged: impl Iterator<Item = &'a MergedServiceImport>) -> Result<(), Refused> {
    let Some(import) = merged.find(|merged| is_requested(merged)) else { return Ok(()) };
    let (namespace, service) = (import.namespace().unwrap_or_default(), &import.spec.service_reference.namespaced_name);
    let member = cluster_of(&namespace).map_or(namespace, |id| id.to_string());
    Err(Refused::First(format!(
        "{member} imports {service} by the standard API, and only its fleetnet agent can end that: start it with --multicluster-api and \
         --multicluster-api-import=labelled, remove the label {} from its namespaces, wait until no ServiceImport of {MCS_GROUP} \
         with the label {}={} is left, stop the agent, and run the command again. If the member is gone, run fleetnet leave --force",
        labels::IMPORT,
        labels::WRITER,
        labels::WRITER_MEMBER_AGENT
    )))
}

/// Fails if an agent of fleetnet holds a Lease. An agent that still runs would undo the changes.
fn nobody_leads(snapshot: &Snapshot, site: Site<'_>, leases: &[Lease]) -> Result<(), Refused> {
    for lease in leases {
        let (name, holder) = (lease.name_any(), holder(lease).unwrap_or_default());
        // A hub can be a member of its own fleet.
        let is_of_another = match site {
            Site::Hub(_) => is_held_by_member_agent(lease),
            Site::Member(_) => holder.starts_with(Agent::Hub.name()),
        };
        let is_ours = is_of_go_agents(lease) || name == ENDPOINT_SLICE_LEASE;
        let is_go = Agent::ALL.iter().any(|agent| agent.is_go(holder));
        if holder.is_empty() || is_of_another || !is_ours || is_go || is_expired(snapshot, site, lease) {
            continue;
        }
        return Err(Refused::First(format!(
            "{}: the agent {holder} holds the Lease {name}: stop it by scaling its Deployment in {} to 0 replicas, and run the \
             command again. After a crash, a Lease counts for {LEASE_SECONDS} s",
            site.cluster(),
            installed(site).namespace,
        )));
    }
    Ok(())
}

/// Fails if the member agent sends heartbeats. Not each agent has a Lease in the namespace of the agents.
fn nobody_renews(hub: Site<'_>, agent: Option<&MemberAgent>) -> Result<(), Refused> {
    let Some(agent) = agent.filter(|agent| agent.spec.planned_stop_time.is_none()) else { return Ok(()) };
    match age(hub, Some(renewed(agent))) {
        Some(age) if age <= LEASE_SECONDS => Err(Refused::First(format!(
            "the agent of {} sent a heartbeat {age} s ago: stop it by scaling its Deployment to 0 replicas, and run the command again. \
             After a crash, a heartbeat counts for {LEASE_SECONDS} s",
            agent.name_any()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Fails if this is not the cluster whose exports are in the hub: then all of its exports would be deleted.
fn is_the_cluster(
    snapshot: &Snapshot,
    member: &Member,
    slices: &[EndpointSlice],
    agent: Option<&MemberAgent>,
) -> Result<(), Refused> {
    let context = member.connection.context.as_deref().unwrap_or_default();
    let wrong = |why: &str| {
        Err(Refused::First(format!(
            "context {context} is not the cluster of the member {}: {why}: use --context",
            member.id
        )))
    };
    if has_foreign_owner(snapshot, member) {
        return wrong("the hub knows another UID of its namespace kube-system");
    }
    if agent.is_some_and(|agent| agent.spec.cluster_uid.is_some()) {
        return Ok(());
    }
    let exported = snapshot.hub.slice_exports.objects().filter(|export| is_of(*export, member));
    let exported: BTreeSet<&str> = exported.map(|export| export.spec.endpoint_slice_reference.uid.as_str()).collect();
    let mut sources =
        slices.iter().filter(|slice| !is_imported(slice)).filter_map(|slice| slice.metadata.uid.as_deref());
    if !exported.is_empty() && !sources.any(|uid| exported.contains(uid)) {
        return wrong("it has no source slice of the member's exports");
    }
    Ok(())
}

/// True if the hub agent treats the member as silent. A Go hub agent does not.
fn is_silent(snapshot: &Snapshot, agents: &[MemberAgent], member: &Member) -> bool {
    let leases = &snapshot.hub.agent.leases;
    let is_go_hub = leases.objects().any(|lease| holder(lease).is_some_and(|holder| Agent::Hub.is_go(holder)));
    let mut with_status = agents.iter().filter_map(|agent| Some((agent, agent.status.as_ref()?)));
    !is_go_hub
        && with_status.any(|(agent, status)| {
            let mut listed = status.silent_members.iter().flatten();
            (is_of(agent, member) && is_judged(status)) || listed.any(|silent| silent.cluster == member.id)
        })
}

/// True if the hub agent has judged a member since its last renewal, or does not trust it yet.
#[must_use]
pub fn is_judged(status: &MemberAgentStatus) -> bool {
    status.silence.as_ref().is_some_and(|silence| silence.phase != SilencePhase::Returned.name())
}

fn named(reference: &ExportedObjectReference) -> (&str, &str) {
    (&reference.namespace, &reference.name)
}

/// Returns what happens to the exports or claims of a member that do not have the name of the Go agents. They go when
/// the Go agents have written their own: before, the Service would be without an export or claim.
fn with_other_names<'a, K: Resource<DynamicType = ()> + 'a>(
    objects: impl Iterator<Item = &'a K>,
    member: &Member,
    reference: fn(&K) -> &ExportedObjectReference,
) -> Vec<Change> {
    let own: Vec<&K> = objects.filter(|object| is_of(*object, member)).collect();
    let has_go_name = |object: &K| {
        let (namespace, name) = named(reference(object));
        object.name_any() == go_name(namespace, name)
    };
    let written: BTreeSet<(&str, &str)> =
        own.iter().filter(|object| has_go_name(object)).map(|object| named(reference(object))).collect();
    let others = own.iter().filter(|object| !has_go_name(object));
    let changes = others.map(|other| {
        let object = Object::of(*other);
        if written.contains(&named(reference(other))) {
            Change::Delete { object, why: "Go agents have written it under their name" }
        } else {
            Change::Keep { object, why: "run the command again when the Go agents have written it under their name" }
        }
    });
    changes.collect()
}

/// Returns the source slices that Go agents continue to export, by UID, each with its export. Of several exports of one
/// slice, the first by name counts.
fn continued<'a>(
    slices: &'a [EndpointSlice],
    exports: &'a [EndpointSliceExport],
    member: &Member,
    ended: &BTreeSet<(&str, &str)>,
) -> BTreeMap<&'a str, (&'a EndpointSlice, &'a EndpointSliceExport)> {
    let sources: BTreeMap<&str, &EndpointSlice> =
        slices.iter().filter_map(|slice| Some((slice.metadata.uid.as_deref()?, slice))).collect();
    let mut continued = BTreeMap::new();
    let mut exports: Vec<&EndpointSliceExport> = exports.iter().filter(|export| is_of(*export, member)).collect();
    exports.sort_by_key(|export| export.name_any());
    for export in exports {
        let (reference, owner) = (&export.spec.endpoint_slice_reference, &export.spec.owner_service_reference);
        let Some(slice) = sources.get(reference.uid.as_str()) else { continue };
        let is_ended = ended.contains(&(owner.namespace.as_str(), owner.name.as_str()));
        let is_live = export.metadata.deletion_timestamp.is_none();
        if export.spec.address_type == AddressType::IPv4 && !is_ended && is_live {
            continued.entry(reference.uid.as_str()).or_insert((*slice, export));
        }
    }
    continued
}

/// Returns the annotations that a source slice lacks; `None` if it lacks none.
fn annotate(slice: &EndpointSlice, export: &EndpointSliceExport) -> Option<Change> {
    let reference = &export.spec.endpoint_slice_reference;
    let mut annotations = BTreeMap::from([(annotations::FLEET_UNIQUE_NAME, export.name_any())]);
    // Without both, a Go agent takes the present time, and its latency would contain the time of the migration.
    if let Some(since) = &reference.exported_since {
        let seconds = since.0.as_second();
        let since = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        annotations.insert(annotations::LAST_SEEN_GENERATION, reference.generation.to_string());
        annotations.insert(annotations::LAST_SEEN_TIMESTAMP, since.to_string());
    }
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    // Go agents write the time in their time zone.
    let is_same =
        |present: &String, value: &String| present == value || time(present).is_some() && time(present) == time(value);
    let present = slice.annotations();
    annotations.retain(|key, value| !present.get(*key).is_some_and(|present| is_same(present, value)));
    (!annotations.is_empty()).then(|| {
        Change::Annotate(Annotated {
            namespace: slice.namespace().unwrap_or_default(),
            name: slice.name_any(),
            uid: slice.uid().unwrap_or_default(),
            annotations,
        })
    })
}
