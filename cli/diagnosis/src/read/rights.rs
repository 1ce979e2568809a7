//! Rights of the agents' accounts, from SubjectAccessReviews. A review creates nothing on the server.

use super::server::Server;
use crate::agents::Agent;
use crate::explain::{arguments, imports_by_mcs_api};
use crate::snapshot::{AgentObjects, Listing, MissingRight, Snapshot};
use fleetnet_api::names::{GROUP, MCS_GROUP};
use fleetnet_core::names::member_namespace;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::ResourceExt as _;
use serde_json::json;

/// Right of an agent: verb, API group, resource, and where.
type Right = (&'static str, &'static str, &'static str, Where);

/// Namespaces in which an agent needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    All,
    /// Namespace of the agent.
    Own,
}

/// Rights without which the hub agent does not carry out its job. deploy/hub-agent.yaml grants them. A watch also lists
/// a kind, except on old API servers.
const HUB_AGENT: &[Right] = &[
    ("watch", "", "namespaces", Where::All),
    ("watch", GROUP, "memberagents", Where::All),
    ("watch", GROUP, "internalserviceexports", Where::All),
    ("watch", GROUP, "internalserviceimports", Where::All),
    ("watch", GROUP, "endpointsliceexports", Where::All),
    ("watch", GROUP, "serviceimports", Where::All),
    ("watch", GROUP, "endpointsliceimports", Where::All),
    ("list", GROUP, "internalserviceexports", Where::All),
    ("patch", GROUP, "internalserviceexports/status", Where::All),
    ("patch", GROUP, "internalserviceimports/status", Where::All),
    ("patch", GROUP, "endpointsliceexports", Where::All),
    ("create", GROUP, "serviceimports", Where::All),
    ("create", GROUP, "endpointsliceimports", Where::All),
    ("patch", GROUP, "endpointsliceimports", Where::All),
];

/// Rights without which the member agent does not carry out its job in its own cluster. deploy/member-agent.yaml grants
/// them.
const MEMBER_AGENT: &[Right] = &[
    ("watch", "", "services", Where::All),
    ("watch", "discovery.k8s.io", "endpointslices", Where::All),
    ("watch", GROUP, "serviceexports", Where::All),
    ("watch", GROUP, "multiclusterservices", Where::All),
    ("watch", GROUP, "serviceimports", Where::All),
    ("list", "", "services", Where::All),
    ("list", "discovery.k8s.io", "endpointslices", Where::All),
    ("patch", GROUP, "serviceexports", Where::All),
    ("patch", GROUP, "serviceexports/status", Where::All),
    ("patch", GROUP, "multiclusterservices", Where::All),
    ("create", GROUP, "serviceimports", Where::All),
    ("create", "", "services", Where::Own),
    ("create", "discovery.k8s.io", "endpointslices", Where::Own),
    ("patch", "discovery.k8s.io", "endpointslices", Where::Own),
];

/// Rights of a member agent with `--multicluster-api` in its own cluster. deploy/multicluster-api.yaml grants them.
const MCS_API: &[Right] = &[
    ("watch", MCS_GROUP, "serviceexports", Where::All),
    ("watch", MCS_GROUP, "serviceimports", Where::All),
    ("watch", "", "namespaces", Where::All),
    ("list", MCS_GROUP, "serviceexports", Where::All),
    ("patch", MCS_GROUP, "serviceexports/status", Where::All),
    ("create", MCS_GROUP, "serviceimports", Where::All),
    ("patch", MCS_GROUP, "serviceimports/status", Where::All),
    ("list", "", "namespaces", Where::All),
    ("create", "", "services", Where::All),
    ("create", "discovery.k8s.io", "endpointslices", Where::All),
    ("patch", "discovery.k8s.io", "endpointslices", Where::All),
];

/// Rights of a member agent that makes EndpointSlices of pods, in its own cluster. deploy/endpointslices.yaml grants
/// them.
const SLICES: &[Right] = &[
    ("list", "", "pods", Where::All),
    ("list", "", "nodes", Where::All),
    ("create", "discovery.k8s.io", "endpointslices", Where::All),
    ("update", "discovery.k8s.io", "endpointslices", Where::All),
];

/// Rights of the member agent in its namespace of the hub. deploy/hub-member.yaml grants them.
const MEMBER_AGENT_IN_HUB: &[(&str, &str)] = &[
    ("watch", "memberagents"),
    ("watch", "internalserviceexports"),
    ("watch", "internalserviceimports"),
    ("watch", "endpointsliceexports"),
    ("watch", "endpointsliceimports"),
    ("create", "internalserviceexports"),
    ("create", "internalserviceimports"),
    ("create", "endpointsliceexports"),
    ("patch", "endpointsliceexports"),
    ("list", "endpointsliceimports"),
    ("patch", "memberagents"),
];

/// Further rights of a member agent that announces the standard API.
const MCS_API_IN_HUB: &[(&str, &str)] =
    &[("watch", "mergedserviceimports"), ("list", "mergedserviceimports"), ("patch", "mergedserviceimports")];

/// Returns the rights that the hub agent lacks in the hub.
pub(super) async fn of_hub_agent(server: &Server<'_>, agent: &AgentObjects) -> Listing<MissingRight> {
    let is_off = |argument: &str| argument == "--namespace-policy=off";
    let needs_namespaces = agent.deployment(Agent::Hub).is_some_and(|deployment| !arguments(deployment).any(is_off));
    let is_needed = |right: &&Right| needs_namespaces || right.2 != "namespaces";
    let rights: Vec<Right> = HUB_AGENT.iter().filter(is_needed).copied().collect();
    of_agent(server, agent, Agent::Hub, &rights).await
}

/// Returns the rights that the member agent lacks in its own cluster.
pub(super) async fn of_member_agent(server: &Server<'_>, agent: &AgentObjects) -> Listing<MissingRight> {
    let is_flag = |argument: &str| ["--multicluster-api", "--multicluster-api=true"].contains(&argument);
    let has_api = agent.deployment(Agent::Member).is_some_and(|deployment| arguments(deployment).any(is_flag));
    let rights = if has_api { [MEMBER_AGENT, MCS_API].concat() } else { MEMBER_AGENT.to_vec() };
    of_agent(server, agent, Agent::Member, &rights).await
}

/// Returns the rights that the member agent lacks to make EndpointSlices of pods.
pub(super) async fn of_slices(server: &Server<'_>, agent: &AgentObjects) -> Listing<MissingRight> {
    of_agent(server, agent, Agent::Member, SLICES).await
}

/// Reads the rights that the members' accounts lack in the hub. FN202 reports members without an account.
pub(super) async fn of_members_in_hub(server: &Server<'_>, snapshot: &mut Snapshot) {
    let accounts: Vec<(String, String)> =
        snapshot.hub.accounts.objects().map(|it| (it.namespace().unwrap_or_default(), it.name_any())).collect();
    let reviews = snapshot.members.iter().map(|member| {
        let namespace = member_namespace(&member.id).to_string();
        let subject = member.hub_secret.objects().find_map(|secret| secret.token.as_ref()?.subject.rsplit(':').next());
        let account = subject.unwrap_or("member-agent").to_owned();
        let further = if imports_by_mcs_api(snapshot, member) { MCS_API_IN_HUB } else { &[] };
        let exists = accounts.iter().any(|(of, name)| *of == namespace && *name == account);
        async move {
            if !exists {
                return Listing::NotAsked;
            }
            let user = format!("system:serviceaccount:{namespace}:{account}");
            let rights = MEMBER_AGENT_IN_HUB.iter().chain(further).map(|(verb, resource)| MissingRight {
                user: user.clone(),
                verb: (*verb).to_owned(),
                group: GROUP.to_owned(),
                resource: (*resource).to_owned(),
                namespace: namespace.clone(),
            });
            missing(server, rights.collect()).await
        }
    });
    let found = join_all(reviews).await;
    for (member, rights) in snapshot.members.iter_mut().zip(found) {
        member.missing_hub_rights = rights;
    }
}

/// Asks for the rights of an agent's ServiceAccount. An agent without a Deployment has an account that is not known.
async fn of_agent(
    server: &Server<'_>,
    objects: &AgentObjects,
    agent: Agent,
    rights: &[Right],
) -> Listing<MissingRight> {
    let Some(deployment) = objects.deployment(agent) else { return Listing::NotAsked };
    let namespace = &objects.namespace;
    let user = format!("system:serviceaccount:{namespace}:{}", account(deployment).unwrap_or(agent.name()));
    let right = |(verb, group, resource, place): &Right| MissingRight {
        user: user.clone(),
        verb: (*verb).to_owned(),
        group: (*group).to_owned(),
        resource: (*resource).to_owned(),
        namespace: if *place == Where::Own { namespace.to_string() } else { String::new() },
    };
    missing(server, rights.iter().map(right).collect()).await
}

fn account(deployment: &Deployment) -> Option<&str> {
    deployment.spec.template.spec.as_ref()?.service_account_name.as_deref()
}

/// Returns those rights that the server does not grant.
async fn missing(server: &Server<'_>, rights: Vec<MissingRight>) -> Listing<MissingRight> {
    let reviews = rights.into_iter().map(|right| async move {
        let allowed = is_allowed(server, &right).await;
        (right, allowed)
    });
    let mut missing = Vec::new();
    for (right, allowed) in join_all(reviews).await {
        match allowed {
            Ok(true) => {}
            Ok(false) => missing.push(right),
            Err(problem) => return problem,
        }
    }
    Listing::of(missing)
}

async fn is_allowed(server: &Server<'_>, right: &MissingRight) -> Result<bool, Listing<MissingRight>> {
    let MissingRight { user, verb, group, resource, namespace } = right;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let mut groups = vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
    groups.extend(user.split(':').nth(2).map(|namespace| format!("system:serviceaccounts:{namespace}")));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": user,
            "groups": groups,
            "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
            },
        },
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    match server.post::<SubjectAccessReview>(path, &review).await {
        Ok(review) => Ok(review.status.is_some_and(|status| status.allowed)),
        Err(problem) => Err(server.unlisted(problem)),
    }
}
