//! Steps FN1xx: access to the clusters, and installation.

use super::age::settled;
use super::evidence::{context_flag, created, missing_right};
use super::heartbeat::has_foreign_owner;
use super::installed::{
    agent, deployment, elsewhere, is_alive, is_elsewhere, is_expired, is_of_go_agents, is_planned, pods, ready,
    renewed_by_server, role, running_pod, waiting_reason,
};
use super::lookup::{need, optional};
use super::rights::{are_rights_enforced, namespace_policy};
use super::rule::Rule;
use super::slice_maker::slices_are_made;
use super::step_result::{Site, StepResult, Stop};
use super::text::listed;
use super::walk::Walk;
use crate::codes::Code::{self, *};
use crate::report::Evidence;
use crate::snapshot::{Failure, FailureClass, Listing, Reached, Snapshot};
use fleetnet_api::crds::{self, Form};
use fleetnet_api::names::{GROUP, annotations};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::names::cluster_of;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::ResourceExt as _;
use std::sync::LazyLock;

pub(super) const RULES: &[(Code, Rule)] = &[
    (FN101, Rule::Cluster(context)),
    (FN102, Rule::Cluster(connection)),
    (FN103, Rule::Cluster(credentials)),
    (FN104, Rule::Cluster(rights_of_user)),
    (FN105, Rule::Cluster(definitions)),
    (FN106, Rule::Cluster(definitions_are_current)),
    (FN107, Rule::Cluster(agent_runs)),
    (FN108, Rule::Cluster(agent_is_ready)),
    (FN109, Rule::Cluster(agent_leads)),
    (FN110, Rule::Cluster(rights_of_agent)),
    (FN111, Rule::Pair(namespace_is_listed)),
    (FN112, Rule::Member(slices_are_made)),
];

/// Definitions of this version. Their generation takes milliseconds, and each cluster of each pair needs them.
static CURRENT: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(|| crds::all(Form::Full));

/// FN101.
pub(crate) fn context(_: &Snapshot, site: Site<'_>) -> StepResult {
    match &site.connection().reached {
        Reached::No(failure) if failure.class == FailureClass::Context => Err(unreachable(site, failure)),
        Reached::No(_) | Reached::Yes => Ok(()),
        reached => Err(Stop::Skipped(no_context(site, reached))),
    }
}

/// FN102.
pub(crate) fn connection(_: &Snapshot, site: Site<'_>) -> StepResult {
    match &site.connection().reached {
        Reached::No(failure) => match failure.class {
            FailureClass::Timeout => {
                Err(Stop::Unknown(format!("{}: no answer in time from {}", site.cluster(), failure.host)))
            }
            FailureClass::Context | FailureClass::Unauthorized => Err(Stop::Skipped("another step reports it".into())),
            FailureClass::Dns | FailureClass::Tcp | FailureClass::Tls | FailureClass::Proxy | FailureClass::Http(_) => {
                Err(unreachable(site, failure))
            }
        },
        Reached::Yes => Ok(()),
        reached => Err(Stop::Unknown(no_context(site, reached))),
    }
}

/// FN103.
pub(crate) fn credentials(_: &Snapshot, site: Site<'_>) -> StepResult {
    match &site.connection().reached {
        Reached::No(failure) if failure.class == FailureClass::Unauthorized => Err(unreachable(site, failure)),
        reached => answered(site, reached),
    }
}

/// FN104.
pub(crate) fn rights_of_user(_: &Snapshot, site: Site<'_>) -> StepResult {
    answered(site, &site.connection().reached)?;
    let denied = states(site).into_iter().chain(further_states(site)).find_map(|(kind, state)| match state {
        State::Denied(message) => Some((kind, message)),
        State::NotDefined | State::Other => None,
    });
    let Some((kind, message)) = denied else { return Ok(()) };
    Err(shows(site, kind, "list", message))
}

/// FN105. The kind MemberAgent may be missing in the hub: then the agents write the Go form only.
pub(crate) fn definitions(_: &Snapshot, site: Site<'_>) -> StepResult {
    answered(site, &site.connection().reached)?;
    let is_missing = |state: &State<'_>| matches!(state, State::NotDefined);
    match states(site).into_iter().find(|(kind, state)| *kind != "memberagents" && is_missing(state)) {
        Some((kind, _)) => Err(site.lacks::<CustomResourceDefinition>("", &format!("{kind}.{GROUP}"))),
        None => Ok(()),
    }
}

/// FN106.
pub(crate) fn definitions_are_current(_: &Snapshot, site: Site<'_>) -> StepResult {
    let installed = optional(&agent(site).definitions, "CustomResourceDefinitions")?;
    for current in &*CURRENT {
        let Some(present) = installed.iter().find(|it| it.metadata.name == current.metadata.name) else {
            if matches!(site, Site::Hub(_)) && current.spec.names.kind == "MemberAgent" {
                return Err(site.lacks::<CustomResourceDefinition>("", &current.name_any()));
            }
            continue;
        };
        if let Some(missing) = missing_part(present, current) {
            return Err(site.broken(present, "spec.versions", format!("has no {missing}")));
        }
    }
    Ok(())
}

/// FN107.
pub(crate) fn agent_runs(snapshot: &Snapshot, site: Site<'_>) -> StepResult {
    let Some(deployment) = deployment(site)? else {
        if let Site::Member(member) = site
            && is_elsewhere(snapshot, member)
        {
            return Err(Stop::Unknown(elsewhere(member)));
        }
        if is_planned(snapshot, site) || is_alive(snapshot, site) {
            return Err(Stop::Skipped(format!("{}: the agent runs without a Deployment", site.cluster())));
        }
        return Err(site.lacks::<Deployment>(&agent(site).namespace, role(site).name()));
    };
    if ready(deployment) > 0 || running_pod(site, deployment).is_some() {
        return Ok(());
    }
    if is_planned(snapshot, site) {
        return Err(Stop::Skipped("the agent announced its stop".to_owned()));
    }
    if pods(site, deployment).next().is_none() && is_alive(snapshot, site) {
        return Err(Stop::Skipped(format!("{}: the agent runs outside of its Deployment", site.cluster())));
    }
    settled(site, created(deployment))?;
    let waiting = pods(site, deployment).find_map(|pod| Some((pod, waiting_reason(pod)?)));
    Err(match waiting {
        Some((pod, reason)) => site.broken(pod, "status.containerStatuses[0].state.waiting.reason", reason),
        None => site.broken(deployment, "status.readyReplicas", "0").at(created(deployment)),
    })
}

/// FN108. A member whose id another cluster owns is not ready on purpose: FN208 reports it.
pub(crate) fn agent_is_ready(snapshot: &Snapshot, site: Site<'_>) -> StepResult {
    let Some(deployment) = deployment(site)? else { return Err(Stop::Skipped("there is no Deployment".to_owned())) };
    if ready(deployment) > 0 {
        return Ok(());
    }
    if let Site::Member(member) = site
        && has_foreign_owner(snapshot, member)
    {
        return Err(Stop::Skipped("another cluster owns the cluster id".to_owned()));
    }
    let Some(pod) = running_pod(site, deployment) else { return Err(Stop::Skipped("no pod runs".to_owned())) };
    settled(site, created(pod))?;
    let condition = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = condition.into_iter().find(|condition| condition.type_ == "Ready");
    let message = condition.and_then(|condition| condition.message.clone()).unwrap_or_else(|| "False".to_owned());
    let since = condition.and_then(|condition| condition.last_transition_time.as_ref()).map(|time| time.0);
    Err(site.broken(pod, "status.conditions[Ready]", message).at(since))
}

/// FN109. Says nothing about a cluster in which no fleetnet agent is ready.
pub(crate) fn agent_leads(snapshot: &Snapshot, site: Site<'_>) -> StepResult {
    if deployment(site)?.is_none_or(|deployment| ready(deployment) <= 0) {
        return Err(Stop::Skipped("no agent is ready".to_owned()));
    }
    if is_planned(snapshot, site) {
        return Err(Stop::Skipped("the agent announced its stop".to_owned()));
    }
    let leases = need(&agent(site).leases, "Leases", site)?;
    for lease in leases.iter().filter(|lease| is_of_go_agents(lease)) {
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let renewed = renewed_by_server(snapshot, site, lease);
        if is_expired(snapshot, site, lease) {
            return Err(site.broken(lease, "spec.renewTime", "not renewed").at(renewed));
        }
        if !holder.is_empty() && !holder.starts_with(&format!("{}_", role(site).name())) {
            return Err(site.broken(lease, "spec.holderIdentity", holder).at(renewed));
        }
    }
    Ok(())
}

/// FN110.
pub(crate) fn rights_of_agent(_: &Snapshot, site: Site<'_>) -> StepResult {
    match optional(&agent(site).missing_rights, "rights of the agent")?.first() {
        Some(right) => Err(missing_right(site, right)),
        None => Ok(()),
    }
}

fn no_context(site: Site<'_>, reached: &Reached) -> String {
    format!("{}: {}", site.cluster(), reached.without_context().unwrap_or_default())
}

/// Skips a step about the answers of a cluster that was not reached: FN101 to FN103 report it.
fn answered(site: Site<'_>, reached: &Reached) -> StepResult {
    match reached {
        Reached::Yes => Ok(()),
        Reached::No(_) => Err(Stop::Skipped(format!("{}: not reached", site.cluster()))),
        reached => Err(Stop::Skipped(no_context(site, reached))),
    }
}

fn unreachable(site: Site<'_>, failure: &Failure) -> Stop {
    let connection = site.connection();
    let context = connection.context.clone().unwrap_or_default();
    let port = failure.port.map(|port| format!(":{port}")).unwrap_or_default();
    Stop::Broken(Box::new(Evidence {
        cluster: site.cluster().to_owned(),
        kind: "Context".to_owned(),
        namespace: String::new(),
        name: context,
        field: connection.server_url.clone(),
        value: format!("{} error at {}{port}: {}", failure.class, failure.host, failure.detail),
        command: format!("kubectl{} version", context_flag(site)),
        ..Evidence::default()
    }))
}

/// State of a listing without its objects.
enum State<'a> {
    Denied(&'a str),
    NotDefined,
    Other,
}

fn state<K>(listing: &Listing<K>) -> State<'_> {
    match listing {
        Listing::Denied(message) => State::Denied(message),
        Listing::NotDefined => State::NotDefined,
        Listing::Known { .. } | Listing::Unknown(_) | Listing::NotAsked => State::Other,
    }
}

/// Returns the states of the listings that the diagnosis needs, by the plural of the kind. Those of the standard API
/// are left out: a fleet can do without it.
fn states(site: Site<'_>) -> Vec<(&'static str, State<'_>)> {
    match site {
        Site::Hub(hub) => vec![
            ("namespaces", state(&hub.namespaces)),
            ("memberagents", state(&hub.member_agents)),
            ("internalserviceexports", state(&hub.internal_exports)),
            ("internalserviceimports", state(&hub.claims)),
            ("endpointsliceexports", state(&hub.slice_exports)),
            ("endpointsliceimports", state(&hub.distributed_slices)),
            ("serviceimports", state(&hub.service_imports)),
        ],
        Site::Member(member) => vec![
            ("serviceexports", state(&member.service_exports)),
            ("multiclusterservices", state(&member.multi_cluster_services)),
            ("serviceimports", state(&member.service_imports)),
            ("services", state(&member.services)),
            ("endpointslices", state(&member.slices)),
        ],
    }
}

/// Returns the states of further listings that the ClusterRole fleetnet-viewer lets a user read. Some steps do without
/// them.
fn further_states(site: Site<'_>) -> Vec<(&'static str, State<'_>)> {
    let agent = agent(site);
    let mut states = vec![
        ("deployments", state(&agent.deployments)),
        ("pods", state(&agent.pods)),
        ("leases", state(&agent.leases)),
        ("customresourcedefinitions", state(&agent.definitions)),
    ];
    states.extend(match site {
        Site::Hub(hub) => vec![
            ("mergedserviceimports", state(&hub.merged_imports)),
            ("serviceaccounts", state(&hub.accounts)),
            ("resourcequotas", state(&hub.quotas)),
            ("events", state(&hub.events)),
        ],
        Site::Member(member) => vec![
            ("serviceexports.multicluster.x-k8s.io", state(&member.mcs_exports)),
            ("serviceimports.multicluster.x-k8s.io", state(&member.mcs_imports)),
            ("namespaces", state(&member.namespaces)),
            ("pods", state(&member.pods)),
            ("events", state(&member.events)),
        ],
    });
    states
}

fn shows(site: Site<'_>, kind: &str, verb: &str, value: &str) -> Stop {
    let context = context_flag(site);
    Stop::Broken(Box::new(Evidence {
        cluster: site.cluster().to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        namespace: String::new(),
        name: kind.to_owned(),
        field: format!("right to {verb}"),
        value: value.to_owned(),
        command: format!("kubectl{context} auth can-i {verb} {kind} -A"),
        ..Evidence::default()
    }))
}

/// FN111.
fn namespace_is_listed(walk: &Walk<'_>) -> StepResult {
    open_namespaces(walk.snapshot, |namespace| *namespace.name_any() == *walk.service.namespace)
}

/// FN111 for the namespaces of the hub that meet a condition. A hub without any list is open on purpose.
pub(crate) fn open_namespaces(snapshot: &Snapshot, is_of_interest: impl Fn(&Namespace) -> bool) -> StepResult {
    /// Number of namespaces that a message names.
    const NAMED: usize = 10;
    let hub = Site::Hub(&snapshot.hub);
    if namespace_policy(snapshot) == NamespacePolicy::Listed {
        return Ok(());
    }
    if !are_rights_enforced(snapshot) {
        return Err(Stop::Skipped("the hub agent runs with --namespace-policy=off".to_owned()));
    }
    let namespaces = need(&snapshot.hub.namespaces, "Namespaces", hub)?;
    let is_listed = |namespace: &&Namespace| {
        [annotations::EXPORTERS, annotations::IMPORTERS].iter().any(|it| namespace.annotations().contains_key(*it))
    };
    if !namespaces.iter().any(|namespace| is_listed(&namespace)) {
        return Err(Stop::Skipped("no namespace of the hub lists clusters: every member may do everything".to_owned()));
    }
    let is_of_users = |namespace: &&Namespace| {
        let name = namespace.name_any();
        !name.starts_with("kube-") && name != *snapshot.hub.agent.namespace && cluster_of(&name).is_none()
    };
    let open = namespaces.iter().filter(is_of_users).filter(|it| !is_listed(it) && is_of_interest(it));
    let open: Vec<&Namespace> = open.collect();
    let Some(first) = open.first() else { return Ok(()) };
    let names: Vec<String> = open.iter().take(NAMED).map(|namespace| namespace.name_any()).collect();
    let more = open.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(hub.broken(*first, "metadata.annotations", format!("no list in {}{more}", names.join(", "))))
}

/// Returns the first version or field of the current definition that the installed one does not have.
fn missing_part(present: &CustomResourceDefinition, current: &CustomResourceDefinition) -> Option<String> {
    current.spec.versions.iter().find_map(|version| {
        let Some(same) = present.spec.versions.iter().find(|it| it.name == version.name && it.served) else {
            return Some(format!("version {}", version.name));
        };
        let missing = missing_fields(schema(same), schema(version), "");
        let first = missing.first()?;
        let others = listed(missing.iter().map(String::as_str));
        debug_assert!(!first.is_empty());
        Some(format!("{others} in version {}", version.name))
    })
}

fn schema(version: &CustomResourceDefinitionVersion) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn missing_fields(present: Option<&JSONSchemaProps>, current: Option<&JSONSchemaProps>, path: &str) -> Vec<String> {
    let Some(current) = current else { return Vec::new() };
    if present.is_some_and(|it| it.x_kubernetes_preserve_unknown_fields == Some(true)) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for (name, field) in current.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match present.and_then(|present| present.properties.as_ref()?.get(name)) {
            Some(same) => missing.extend(missing_fields(Some(same), Some(field), &path)),
            None => missing.push(path),
        }
    }
    let items = |schema: &JSONSchemaProps| match schema.items.clone() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(*items),
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
    };
    missing.extend(missing_fields(present.and_then(items).as_ref(), items(current).as_ref(), &format!("{path}[]")));
    missing
}
