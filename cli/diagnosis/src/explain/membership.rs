//! Steps FN2xx: membership of a cluster in the fleet.

use super::age::{age, older_than};
use super::deletion::remaining;
use super::evidence::{created, missing_right};
use super::heartbeat::{clock_offset, has_foreign_owner, is_heard, member_agent, renewed};
use super::installed::{holder, is_of_go_agents};
use super::lookup::{hub_namespace, in_namespace, need, optional};
use super::mcs;
use super::rule::Rule;
use super::step_result::{Site, StepResult, Stop, worst};
use super::walk::Walk;
use crate::codes::Code::{self, *};
use crate::limits::{ANSWERED_SECONDS, CLOCK_MILLISECONDS, SILENT_SECONDS};
use crate::snapshot::{HubSecret, Listing, Member, Snapshot, TokenClaims};
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::ranges::IpNet;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret, ServiceAccount};
use kube::ResourceExt as _;
use std::net::IpAddr;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN201, Rule::Member(namespace)),
    (FN202, Rule::Member(account)),
    (FN203, Rule::Member(token)),
    (FN204, Rule::Member(address_of_hub)),
    (FN205, Rule::Member(was_heard)),
    (FN206, Rule::Pair(is_not_silent)),
    (FN207, Rule::Member(is_not_stopped)),
    (FN208, Rule::Member(owns_its_id)),
    (FN209, Rule::Member(has_one_id)),
    (FN210, Rule::Member(version)),
    (FN211, Rule::Member(is_answered)),
    (FN212, Rule::Member(clock)),
    (FN213, Rule::Member(namespace_stays)),
    (FN214, Rule::Mcs(mcs::is_on)),
    (FN215, Rule::Member(has_its_own_addresses)),
];

/// FN201.
pub(crate) fn namespace(snapshot: &Snapshot, member: &Member) -> StepResult {
    if found_namespace(snapshot, member)?.is_none() {
        return Err(Site::Hub(&snapshot.hub).lacks::<Namespace>("", &hub_namespace(member)));
    }
    Ok(())
}

/// FN202. A member that the hub hears has an account, perhaps under another name.
pub(crate) fn account(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let hub = Site::Hub(&snapshot.hub);
    let rights = optional(&member.missing_hub_rights, "rights of the member agent in the hub");
    if let Some(right) = rights.as_ref().ok().and_then(|rights| rights.first()) {
        return Err(missing_right(hub, right));
    }
    if is_heard(snapshot, member) {
        return Ok(());
    }
    let accounts = optional(&snapshot.hub.accounts, "ServiceAccounts")?;
    let namespace = hub_namespace(member);
    let name = claims(member).and_then(|claims| claims.subject.rsplit(':').next()).unwrap_or("member-agent");
    if accounts.iter().any(|account| in_namespace(account, &namespace) && account.name_any() == name) {
        return Ok(());
    }
    Err(hub.lacks::<ServiceAccount>(&namespace, name))
}

/// FN203.
pub(crate) fn token(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    if is_heard(snapshot, member) {
        return Ok(());
    }
    let secret = secret_of_unheard(snapshot, member)?;
    let Some(claims) = &secret.token else { return Err(Stop::Skipped("the token is no JWT".to_owned())) };
    let site = Site::Member(member);
    if let (Some(expires), Some(now)) = (claims.expires, snapshot.now())
        && expires <= now
    {
        return Err(broken_secret(site, secret, "data.token (claim exp)", &expires.to_string()).at(Some(expires)));
    }
    let accounts = optional(&snapshot.hub.accounts, "ServiceAccounts")?;
    let namespace = hub_namespace(member);
    let account = accounts.iter().find(|it| in_namespace(*it, &namespace) && claims.subject.ends_with(&it.name_any()));
    match (account.and_then(|account| account.metadata.uid.as_ref()), &claims.account_uid) {
        (Some(uid), Some(of_token)) if uid != of_token => {
            let value = format!("issued for an account with UID {of_token}, which is now {uid}");
            Err(broken_secret(site, secret, "data.token (claim sub)", &value))
        }
        _ => Ok(()),
    }
}

/// FN204. Members may reach the hub at another address than people, so a difference alone is no fault.
pub(crate) fn address_of_hub(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    if is_heard(snapshot, member) || stopped(snapshot, member)?.is_some() {
        return Ok(());
    }
    let (secret, site, hub) = (secret_of_unheard(snapshot, member)?, Site::Member(member), &snapshot.hub.connection);
    let plain = |url: &str| url.trim_end_matches('/').to_ascii_lowercase();
    if !hub.server_url.is_empty() && plain(&secret.url) != plain(&hub.server_url) {
        return Err(broken_secret(site, secret, "data.url", &format!("{}, the hub is {}", secret.url, hub.server_url)));
    }
    match (&secret.authority, &hub.authority) {
        (Some(of_member), Some(of_hub)) if of_member.trim() != of_hub.trim() => {
            Err(broken_secret(site, secret, "data.certificate-authority", "differs from that of the hub"))
        }
        _ => Ok(()),
    }
}

/// FN205.
pub(crate) fn was_heard(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let Some(namespace) = found_namespace(snapshot, member)? else {
        return Err(Stop::Skipped("the member has no namespace".to_owned()));
    };
    if member_agent(snapshot, member)?.is_some() {
        return Ok(());
    }
    if has_objects(snapshot, member) {
        return Err(Stop::Skipped("a Go agent wrote the objects of this member".to_owned()));
    }
    let hub = Site::Hub(&snapshot.hub);
    older_than(ANSWERED_SECONDS, hub, created(namespace))?;
    Err(hub.lacks::<MemberAgent>(&hub_namespace(member), &member.id))
}

/// FN206. FN703 reports a silent exporter whose endpoints are still imported.
pub(crate) fn is_not_silent(walk: &Walk<'_>) -> StepResult {
    let is_imported = |member: &Member| {
        walk.exporter.is_some_and(|exporter| exporter.id == member.id)
            && walk.imported_slices().is_ok_and(|slices| !slices.is_empty())
    };
    worst(walk.members().map(|member| match hears(walk.snapshot, member) {
        Err(Stop::Broken(_)) if is_imported(member) => Ok(()),
        found => found,
    }))
}

/// Fails if the member is silent.
pub(crate) fn hears(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    let hub = Site::Hub(&snapshot.hub);
    let renewed = renewed(agent);
    if agent.spec.planned_stop_time.is_some() || age(hub, Some(renewed)).is_none_or(|age| age <= SILENT_SECONDS) {
        return Ok(());
    }
    Err(hub.broken(agent, "spec.renewTime", renewed.to_string()).at(Some(renewed)))
}

/// FN207.
pub(crate) fn is_not_stopped(snapshot: &Snapshot, member: &Member) -> StepResult {
    match stopped(snapshot, member)? {
        Some((agent, time)) => {
            Err(Site::Hub(&snapshot.hub).broken(agent, "spec.plannedStopTime", time.to_string()).at(Some(time)))
        }
        None => Ok(()),
    }
}

/// FN208.
pub(crate) fn owns_its_id(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    let hub = Site::Hub(&snapshot.hub);
    if has_foreign_owner(snapshot, member) {
        let (owner, own) = (agent.spec.cluster_uid.clone().unwrap_or_default(), member.cluster_uid.as_deref());
        let value = format!("{owner}, this cluster is {}", own.unwrap_or_default());
        return Err(hub.broken(agent, "spec.clusterUid", value).at(Some(renewed(agent))));
    }
    let Some(writer) = agent.spec.leader_identity.as_deref().filter(|_| is_heard(snapshot, member)) else {
        return Ok(());
    };
    let site = Site::Member(member);
    let mut leases: Vec<&Lease> = member.agent.leases.objects().filter(|lease| is_of_go_agents(lease)).collect();
    leases.retain(|lease| holder(lease).is_some_and(|holder| holder.starts_with("member-agent_")));
    if leases.is_empty() || leases.iter().any(|lease| holder(lease) == Some(writer)) {
        return Ok(());
    }
    let acquired = leases.iter().filter_map(|lease| Some(lease.spec.as_ref()?.acquire_time.as_ref()?.0)).max();
    older_than(ANSWERED_SECONDS, site, acquired)?;
    Err(hub.broken(agent, "spec.leaderIdentity", format!("{writer} holds no Lease of {}", member.id)))
}

/// FN209.
pub(crate) fn has_one_id(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    let Some(uid) = &agent.spec.cluster_uid else { return Err(Stop::Skipped("the cluster has no UID".to_owned())) };
    let is_other =
        |other: &&MemberAgent| other.spec.cluster_uid.as_ref() == Some(uid) && other.namespace() != agent.namespace();
    match snapshot.hub.member_agents.objects().find(is_other) {
        Some(other) => {
            let value = format!("{uid}, also in {}", other.namespace().unwrap_or_default());
            Err(Site::Hub(&snapshot.hub).broken(agent, "spec.clusterUid", value))
        }
        None => Ok(()),
    }
}

/// FN210.
pub(crate) fn version(snapshot: &Snapshot, member: &Member) -> StepResult {
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    let of_hub = agent.status.as_ref().and_then(|status| status.version.as_deref());
    let (Some(of_hub), Some(of_member)) = (of_hub.and_then(minor), minor(&agent.spec.version)) else { return Ok(()) };
    if of_hub.0 == of_member.0 && of_hub.1.abs_diff(of_member.1) <= 1 {
        return Ok(());
    }
    let version = agent.status.as_ref().and_then(|status| status.version.clone()).unwrap_or_default();
    let value = format!("{}, the hub agent has {version}", agent.spec.version);
    Err(Site::Hub(&snapshot.hub).broken(agent, "spec.version", value))
}

/// FN211.
pub(crate) fn is_answered(snapshot: &Snapshot, member: &Member) -> StepResult {
    stays(snapshot, member)?;
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    if agent.status.as_ref().is_some_and(|status| status.version.is_some()) {
        return Ok(());
    }
    let is_go_agent = |lease: &Lease| holder(lease).is_some_and(|it| !it.is_empty() && !it.starts_with("hub-agent_"));
    if snapshot.hub.agent.leases.objects().any(|lease| is_of_go_agents(lease) && is_go_agent(lease)) {
        return Err(Stop::Skipped("the hub agent is a Go agent, which does not answer".to_owned()));
    }
    let hub = Site::Hub(&snapshot.hub);
    older_than(ANSWERED_SECONDS, hub, created(agent))?;
    Err(hub.broken(agent, "status.version", "empty").at(created(agent)))
}

/// FN212.
pub(crate) fn clock(snapshot: &Snapshot, member: &Member) -> StepResult {
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(()) };
    let Some(offset) = clock_offset(agent) else { return Err(Stop::Skipped("the clock is not known".to_owned())) };
    if offset.as_millis().abs() <= i128::from(CLOCK_MILLISECONDS) {
        return Ok(());
    }
    let value = format!("differs by {} ms from the clock of the hub", offset.as_millis());
    Err(Site::Hub(&snapshot.hub).broken(agent, "spec.renewTime", value).at(Some(renewed(agent))))
}

/// FN213.
pub(crate) fn namespace_stays(snapshot: &Snapshot, member: &Member) -> StepResult {
    let Some(namespace) = found_namespace(snapshot, member)? else { return Ok(()) };
    let Some(deleted) = &namespace.metadata.deletion_timestamp else { return Ok(()) };
    let value = format!("{} {}", deleted.0, remaining(namespace));
    Err(Site::Hub(&snapshot.hub).broken(namespace, "metadata.deletionTimestamp", value.trim()).at(Some(deleted.0)))
}

/// FN215.
pub(crate) fn has_its_own_addresses(snapshot: &Snapshot, member: &Member) -> StepResult {
    let nodes = optional(&member.nodes, "Nodes")?;
    for other in snapshot.members.iter().filter(|other| other.id != member.id) {
        let theirs = other.nodes.objects().flat_map(ranges).map(|(_, range)| range).collect();
        let theirs = IpNet::aggregate(&theirs);
        for (node, (field, range)) in nodes.iter().flat_map(|node| ranges(node).map(move |range| (node, range))) {
            if let Some(same) = theirs.iter().find(|it| it.contains(&range) || range.contains(*it)) {
                let value = format!("{range}, and {same} is in cluster {}", other.id);
                return Err(Site::Member(member).broken(node, field, value));
            }
        }
    }
    Ok(())
}

/// Returns the pod ranges and the addresses of a Node, each with its field.
fn ranges(node: &Node) -> impl Iterator<Item = (&'static str, IpNet)> {
    let of_pods = node.spec.iter().flat_map(|spec| spec.pod_cidrs.iter().flatten());
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let of_pods = of_pods.filter_map(|range| range.parse().ok()).map(|range| ("spec.podCIDRs", range));
    // Addresses of other types are names, and external addresses can be those of a NAT that clusters share.
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    let internal = internal.filter_map(|it| it.address.parse::<IpAddr>().ok()).map(IpNet::from);
    of_pods.chain(internal.map(|address| ("status.addresses", address)))
}

/// Skips a step about a member whose namespace is terminating: FN213 reports it.
fn stays(snapshot: &Snapshot, member: &Member) -> StepResult {
    let namespace = found_namespace(snapshot, member)?;
    if namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
        return Err(Stop::Skipped("the namespace of the member is terminating".to_owned()));
    }
    Ok(())
}

fn found_namespace<'a>(snapshot: &'a Snapshot, member: &Member) -> Result<Option<&'a Namespace>, Stop> {
    let namespaces = need(&snapshot.hub.namespaces, "Namespaces", Site::Hub(&snapshot.hub))?;
    let name = hub_namespace(member);
    Ok(namespaces.iter().find(|namespace| namespace.name_any() == name))
}

/// True if the member has exports, claims or exported slices in the hub.
pub(crate) fn has_objects(snapshot: &Snapshot, member: &Member) -> bool {
    let (hub, namespace) = (&snapshot.hub, hub_namespace(member));
    hub.internal_exports.objects().any(|it| in_namespace(it, &namespace))
        || hub.claims.objects().any(|it| in_namespace(it, &namespace))
        || hub.slice_exports.objects().any(|it| in_namespace(it, &namespace))
}

fn stopped<'a>(snapshot: &'a Snapshot, member: &Member) -> Result<Option<(&'a MemberAgent, Timestamp)>, Stop> {
    stays(snapshot, member)?;
    let Some(agent) = member_agent(snapshot, member)? else { return Ok(None) };
    Ok(agent.spec.planned_stop_time.as_ref().map(|time| (agent, time.0)))
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn claims(member: &Member) -> Option<&TokenClaims> {
    secret(member).ok()?.token.as_ref()
}

/// Returns the Secret of a member that the hub does not hear. A viewer may not read Secrets, so it is not known if the
/// Secret is the cause.
fn secret_of_unheard<'a>(snapshot: &Snapshot, member: &'a Member) -> Result<&'a HubSecret, Stop> {
    if matches!(member.hub_secret, Listing::Denied(_)) && stopped(snapshot, member)?.is_none() {
        return Err(Stop::Unknown(format!("{}: this user may not read Secrets", member.id)));
    }
    secret(member)
}

fn secret(member: &Member) -> Result<&HubSecret, Stop> {
    let secrets = optional(&member.hub_secret, "Secrets")?;
    secrets.first().ok_or_else(|| Stop::Skipped("there is no Secret fleetnet-hub".to_owned()))
}

fn broken_secret(site: Site<'_>, secret: &HubSecret, field: &str, value: &str) -> Stop {
    let mut object = Secret::default();
    object.metadata.name = Some(secret.name.clone());
    object.metadata.namespace = Some(secret.namespace.clone());
    let stop = site.broken(&object, field, value);
    let Stop::Broken(mut evidence) = stop else { return stop };
    // The whole Secret contains the token, so the command shows one part only.
    let get = evidence.command.trim_end_matches(" -o yaml").to_owned();
    evidence.command = match field.split_once(" (claim") {
        None => format!("{get} -o jsonpath='{{.{field}}}' | base64 -d"),
        Some((field, _)) => format!("{get} -o jsonpath='{{.{field}}}' | base64 -d | cut -d. -f2 | base64 -d"),
    };
    Stop::Broken(evidence)
}
