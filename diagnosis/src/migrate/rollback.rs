//! Changes of objects before Go agents start in place of fleetnet.
//!
//! Go agents find the export of a source slice by an annotation of the slice, fleetnet finds it by the UID of the slice. Without
//! the annotation, Go agents export the slice a second time, under another name.

use super::find::{go_name, is_of};
use crate::explain::{Site, age, is_held_by_member_agent, need};
use crate::limits::LEASE_SECONDS;
use crate::snapshot::{Member, Snapshot};
use fleetnet_api::crd::shared::ExportedObjectReference;
use fleetnet_api::crd::{AddressType, EndpointSliceExport, EndpointSliceExportSpec, MemberAgent};
use fleetnet_api::names::annotations;
use fleetnet_core::names::{AGENT_LEASE_PREFIX, ENDPOINT_SLICE_LEASE};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Resource, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Annotations of a source slice in the member.
    Annotate(Annotated),
    /// Deletion of an object in the hub.
    Delete(Deleted),
}

/// Source slice with the annotations that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotated {
    pub namespace: String,
    pub name: String,
    /// resourceVersion that the slice must still have.
    pub resource_version: String,
    pub annotations: BTreeMap<&'static str, String>,
}

/// Object of the hub that is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    pub kind: String,
    pub plural: String,
    pub namespace: String,
    pub name: String,
    /// UID that the object must still have.
    pub uid: String,
    pub why: &'static str,
}

/// Reason why the changes cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Something must be done first. The text has the remedy.
    First(String),
    /// Not everything could be read.
    NotKnown(String),
}

/// Returns the changes before Go agents start in a member. The MemberAgent is last, because it identifies the cluster.
///
/// # Errors
/// If an agent of the member still runs, if the member is silent, or if not everything could be read.
pub fn of_member(snapshot: &Snapshot, id: &str) -> Result<Vec<Change>, Refused> {
    let Some(member) = snapshot.member(id) else {
        let members: Vec<&str> = snapshot.members.iter().map(|member| member.id.as_str()).collect();
        return Err(Refused::First(format!("the hub has no member {id}: its members are {}", members.join(", "))));
    };
    let (here, hub) = (Site::Member(member), Site::Hub(&snapshot.hub));
    let slices = known(need(&member.slices, "EndpointSlices", here))?;
    let slice_exports = known(need(&snapshot.hub.slice_exports, "EndpointSliceExports", hub))?;
    let exports = known(need(&snapshot.hub.internal_exports, "InternalServiceExports", hub))?;
    let claims = known(need(&snapshot.hub.claims, "InternalServiceImports", hub))?;
    let agents = known(need(&snapshot.hub.member_agents, "MemberAgents", hub))?;
    nobody_leads(here, known(need(&member.agent.leases, "Leases", here))?)?;
    is_not_silent(agents, member)?;

    let headless: BTreeSet<(&str, &str)> = exports
        .iter()
        .filter(|export| is_of(*export, member) && export.spec.headless == Some(true))
        .map(|export| named(&export.spec.service_reference))
        .collect();
    let continued = continued(slices, slice_exports, member, &headless);
    let mut changes: Vec<Change> = continued.values().filter_map(|(slice, export)| annotate(slice, export)).collect();
    let kept: BTreeSet<&str> = continued.values().filter_map(|(_, export)| export.metadata.name.as_deref()).collect();
    for export in slice_exports.iter().filter(|export| is_of(*export, member)) {
        if !kept.contains(export.name_any().as_str()) {
            let is_ipv6 = export.spec.address_type == AddressType::IPv6;
            changes.push(delete(
                export,
                if is_ipv6 { "Go agents export no IPv6 slices" } else { "Go agents do not continue it" },
            ));
        }
    }
    for export in exports.iter().filter(|export| is_of(*export, member)) {
        let (namespace, name) = named(&export.spec.service_reference);
        if export.spec.headless == Some(true) {
            changes.push(delete(export, "Go agents export no headless Services"));
        } else if export.name_any() != go_name(namespace, name) {
            changes.push(delete(export, "Go agents use another name"));
        }
    }
    for claim in claims.iter().filter(|claim| is_of(*claim, member)) {
        let (namespace, name) = named(&claim.spec.service_import_reference);
        if claim.name_any() != go_name(namespace, name) {
            changes.push(delete(claim, "Go agents use another name"));
        }
    }
    changes.extend(agents.iter().filter(|agent| is_of(*agent, member)).map(|agent| delete(agent, OTHERS_FOLLOW)));
    Ok(changes)
}

const OTHERS_FOLLOW: &str = "without it, other agents write the Go form";

/// Returns the changes before the Go hub agent starts: the MemberAgents go. Member agents create them again, without the
/// announcement of the hub agent.
///
/// # Errors
/// If the hub agent still runs, or if not everything could be read.
pub fn of_hub(snapshot: &Snapshot) -> Result<Vec<Change>, Refused> {
    let hub = Site::Hub(&snapshot.hub);
    let agents = known(need(&snapshot.hub.member_agents, "MemberAgents", hub))?;
    nobody_leads(hub, known(need(&snapshot.hub.agent.leases, "Leases", hub))?)?;
    // A member agent has created this one since the hub agent stopped: it has no announcement.
    let is_announced = |agent: &&MemberAgent| agent.status.is_some();
    Ok(agents.iter().filter(is_announced).map(|agent| delete(agent, OTHERS_FOLLOW)).collect())
}

/// True if a slice in the hub has nothing that Go agents do not have, or is being deleted.
#[must_use]
pub fn is_go_form(slice: &EndpointSliceExportSpec) -> bool {
    let mut endpoints = slice.endpoints.iter();
    slice.address_type == AddressType::IPv4
        && slice.draining_endpoints.is_none()
        && endpoints.all(|endpoint| endpoint.hostname.is_none() && endpoint.zone.is_none())
}

fn known<T>(found: Result<T, crate::explain::Stop>) -> Result<T, Refused> {
    use crate::explain::Stop;
    found.map_err(|stop| match stop {
        Stop::Skipped(why) | Stop::Unknown(why) | Stop::Waiting(why) => Refused::NotKnown(why),
        Stop::Broken(evidence) => Refused::NotKnown(evidence.value),
    })
}

/// Fails if an agent holds a Lease. An agent that still runs would undo the changes.
fn nobody_leads(site: Site<'_>, leases: &[Lease]) -> Result<(), Refused> {
    let is_own = |lease: &Lease| match site {
        Site::Hub(_) => !is_held_by_member_agent(lease),
        // A hub can be a member of its own fleet.
        Site::Member(_) => !is_held_by_hub_agent(lease),
    };
    let is_of_agent = |lease: &&Lease| {
        let name = lease.name_any();
        is_own(lease) && (name.starts_with(AGENT_LEASE_PREFIX) || name == ENDPOINT_SLICE_LEASE)
    };
    for lease in leases.iter().filter(is_of_agent) {
        let Some(holder) =
            lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).filter(|it| !it.is_empty())
        else {
            continue;
        };
        let renewed = lease.spec.as_ref().and_then(|spec| Some(spec.renew_time.as_ref()?.0));
        if age(site, renewed).is_some_and(|age| age > LEASE_SECONDS) {
            continue;
        }
        let deployment = if matches!(site, Site::Hub(_)) { "hub-agent" } else { "member-agent" };
        return Err(Refused::First(format!(
            "{}: the agent {holder} holds the Lease {}: stop it with kubectl{} -n fleet-system scale deployment {deployment} \
             --replicas=0, and run the command again. After a crash, a Lease counts for {LEASE_SECONDS} s",
            site.cluster(),
            lease.name_any(),
            crate::explain::context_flag(site),
        )));
    }
    Ok(())
}

fn is_held_by_hub_agent(lease: &Lease) -> bool {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    holder.is_some_and(|holder| holder.starts_with("hub-agent") || holder.starts_with("hub-net-controller-manager"))
}

/// Fails if the hub agent treats the member as silent. Go agents send no heartbeat, so nothing would end that.
fn is_not_silent(agents: &[MemberAgent], member: &Member) -> Result<(), Refused> {
    let status = |agent: &'_ MemberAgent| agent.status.clone().unwrap_or_default();
    let judged = agents.iter().filter(|agent| is_of(*agent, member)).find_map(|agent| status(agent).silence);
    let is_judged = judged.is_some_and(|silence| silence.phase != "Returned");
    let is_listed =
        |agent: &MemberAgent| status(agent).silent_members.iter().flatten().any(|silent| silent.cluster == member.id);
    if !is_judged && !agents.iter().any(is_listed) {
        return Ok(());
    }
    Err(Refused::First(format!(
        "the hub agent treats {0} as silent, and Go agents send no heartbeat that ends this: start the fleetnet agent of {0} \
         until fleetnet status shows Ready, stop it, and run the command again within 10 minutes",
        member.id
    )))
}

fn named(reference: &ExportedObjectReference) -> (&str, &str) {
    (&reference.namespace, &reference.name)
}

/// Returns the source slices that Go agents continue to export, by UID, each with its export. Of several exports of one slice,
/// the first by name counts.
fn continued<'a>(
    slices: &'a [EndpointSlice],
    exports: &'a [EndpointSliceExport],
    member: &Member,
    headless: &BTreeSet<(&str, &str)>,
) -> BTreeMap<&'a str, (&'a EndpointSlice, &'a EndpointSliceExport)> {
    let sources: BTreeMap<&str, &EndpointSlice> =
        slices.iter().filter_map(|slice| Some((slice.metadata.uid.as_deref()?, slice))).collect();
    let mut continued = BTreeMap::new();
    let mut exports: Vec<&EndpointSliceExport> = exports.iter().filter(|export| is_of(*export, member)).collect();
    exports.sort_by_key(|export| export.name_any());
    for export in exports {
        let (reference, owner) = (&export.spec.endpoint_slice_reference, &export.spec.owner_service_reference);
        let Some(slice) = sources.get(reference.uid.as_str()) else { continue };
        let is_headless = headless.contains(&(owner.namespace.as_str(), owner.name.as_str()));
        if export.spec.address_type == AddressType::IPv4 && !is_headless && export.metadata.deletion_timestamp.is_none()
        {
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
    let present = slice.annotations();
    annotations.retain(|key, value| present.get(*key) != Some(value));
    (!annotations.is_empty()).then(|| {
        Change::Annotate(Annotated {
            namespace: slice.namespace().unwrap_or_default(),
            name: slice.name_any(),
            resource_version: slice.resource_version().unwrap_or_default(),
            annotations,
        })
    })
}

fn delete<K: Resource<DynamicType = ()>>(object: &K, why: &'static str) -> Change {
    Change::Delete(Deleted {
        kind: K::kind(&()).into_owned(),
        plural: K::plural(&()).into_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        why,
    })
}
