//! Simulated fleet whose objects the diagnosis reads.

use anyhow::Context as _;
use diagnosis::agents::AgentNamespaces;
use diagnosis::explain::Filter;
use diagnosis::read::{Limits, Scope, Target, read};
use diagnosis::report::{Api, Explanation, Outcome, Pair, Verdict};
use diagnosis::snapshot::{AgentObjects, Listing};
use diagnosis::{Code, Snapshot, explain};
use fleetnet_api::crd::mcs;
use fleetnet_api::names::FLEET_SYSTEM_NAMESPACE;
use fleetnet_core::member::McsApi;
use fleetnet_types::ObjectName;
use harness::user::{Consume, User};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use memkube::faults::{Fault, Faults};
use memkube::status::Status;
use memkube::{Call, MemKube, Verb};
use serde_json::json;
use sim::fleet::Place;
use sim::server::ADMIN;
use sim::{Fleet, Options, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Namespace of the Service to explain.
pub(crate) const NAMESPACE: &str = "work";
/// Addresses of the endpoints in the exporter.
pub(crate) const ADDRESSES: [&str; 2] = ["10.1.0.1", "10.1.0.2"];
/// Indexes of exporter, importer and a third member.
pub(crate) const EXPORTER: usize = 0;
pub(crate) const IMPORTER: usize = 1;
pub(crate) const THIRD: usize = 2;
/// URL of the hub in all kubeconfigs and Secrets.
pub(crate) const HUB_URL: &str = "https://hub.example:6443";
/// Base64 text of the hub's certificate authority in all kubeconfigs and Secrets.
const AUTHORITY: &str = "Q0E=";
/// Time after which each missing reaction is a fault, and a silent member is silent.
pub(crate) const LATER: Duration = Duration::from_secs(75);
/// Time after which each missing reaction is a fault, and no member is silent.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// Simulated fleet, with the kubeconfig contexts of an operator.
pub(crate) struct World {
    pub(crate) fleet: Fleet,
    /// API by which member-1 exports and member-2 imports.
    pub(crate) api: Api,
    /// Index of the cluster to which the context of each cluster id leads.
    pub(crate) contexts: BTreeMap<String, usize>,
}

impl World {
    /// Creates a fleet with the accounts and Secrets of its members. No agent runs. By the standard API, the namespace
    /// of member-2 imports.
    pub(crate) async fn new(options: Options) -> anyhow::Result<Self> {
        let api = if options.mcs_api == McsApi::Off { Api::Fleet } else { Api::Mcs };
        let fleet = Fleet::new(options).await?;
        fleet.make_namespace(NAMESPACE).await?;
        let contexts = fleet.members.iter().enumerate().map(|(index, member)| (member.name.clone(), index)).collect();
        let world = Self { fleet, api, contexts };
        for member in 0..world.fleet.members.len() {
            world.join(member).await?;
        }
        if api == Api::Mcs {
            world.user(IMPORTER).label_namespace(Some("true")).await?;
        }
        Ok(world)
    }

    /// Creates the account of a member in the hub, and the Secret in the member.
    async fn join(&self, member: usize) -> anyhow::Result<()> {
        let hub_namespace = self.fleet.members[member].hub_namespace.to_string();
        let in_hub = User::new(self.fleet.hub.admin(), &hub_namespace);
        if in_hub.api::<ServiceAccount>().get_opt("member-agent").await?.is_none() {
            in_hub.create::<ServiceAccount>(json!({"metadata": {"name": "member-agent"}})).await?;
        }
        self.in_system(member).create::<Secret>(hub_secret(&hub_namespace, HUB_URL, None)).await?;
        Ok(())
    }

    /// Returns a fleet of this number of members in which member-1 exports `app` and member-2 imports it.
    pub(crate) async fn running(members: usize) -> anyhow::Result<Self> {
        Self::with_service(Api::Fleet, members).await
    }

    /// Returns a fleet whose agents run, without Services.
    pub(crate) async fn empty(members: usize) -> anyhow::Result<Self> {
        Self::with_agents(Api::Fleet, members).await
    }

    /// Returns a fleet in which member-1 exports `app` and member-2 imports it, by this API.
    pub(crate) async fn with_service(api: Api, members: usize) -> anyhow::Result<Self> {
        let mut world = Self::new(Options { mcs_api: mcs_api(api), ..Options::members(members) }).await?;
        world.fleet.start_agents().await?;
        world.exports().await?;
        world.imports().await?;
        match api {
            Api::Fleet => world.user(IMPORTER).sees("app", &ADDRESSES).await.map(drop)?,
            Api::Mcs => {
                let expected = ADDRESSES.map(|address| format!("member-1 {address}"));
                world.user(IMPORTER).sees_mcs_slices("app", &expected.each_ref().map(String::as_str)).await?;
            }
        }
        sleep(SOON).await;
        Ok(world)
    }

    /// Returns a fleet whose agents run and use this API, without Services.
    pub(crate) async fn with_agents(api: Api, members: usize) -> anyhow::Result<Self> {
        Self::with_options(api, Options::members(members)).await
    }

    /// Returns a fleet whose agents run and use this API, without Services.
    pub(crate) async fn with_options(api: Api, options: Options) -> anyhow::Result<Self> {
        let mut world = Self::new(Options { mcs_api: mcs_api(api), ..options }).await?;
        world.fleet.start_agents().await?;
        sleep(SOON).await;
        Ok(world)
    }

    /// Exports `app` from member-1.
    pub(crate) async fn exports(&self) -> anyhow::Result<()> {
        let user = self.user(EXPORTER);
        user.serve("app", &ADDRESSES).await?;
        match self.api {
            Api::Fleet => user.export("app").await.map(drop),
            // A ServiceExport without `spec`.
            Api::Mcs => user.create::<mcs::ServiceExport>(json!({"metadata": {"name": "app"}})).await.map(drop),
        }
    }

    /// Imports `app` into member-2. By the standard API, the label of its namespace does so.
    pub(crate) async fn imports(&self) -> anyhow::Result<()> {
        match self.api {
            Api::Fleet => self.user(IMPORTER).import("app", "app", Consume::ClusterIp).await.map(drop),
            Api::Mcs => Ok(()),
        }
    }

    /// Returns a user of the namespace in a member.
    pub(crate) fn user(&self, member: usize) -> User {
        User::new(self.fleet.members[member].server.admin(), NAMESPACE)
    }

    /// Returns a user of fleet-system in a member.
    pub(crate) fn in_system(&self, member: usize) -> User {
        User::new(self.fleet.members[member].server.admin(), FLEET_SYSTEM_NAMESPACE)
    }

    /// Returns a user of a member's namespace in the hub.
    pub(crate) fn in_hub(&self, member: usize) -> User {
        User::new(self.fleet.hub.admin(), &self.fleet.members[member].hub_namespace)
    }

    /// Makes a server refuse requests of agents: these verbs on this resource.
    pub(crate) fn refuse(&self, place: Place, verbs: &'static [Verb], resource: &'static str, status: Status) {
        let refusal = Refusal { user: "agent".to_owned(), verbs, resource, status };
        self.memkube(place).set_faults(Some(Arc::new(refusal)));
    }

    /// Makes the hub refuse each request of a member's agent. The agent runs and reaches its own cluster.
    pub(crate) fn cut_off(&self, member: usize) {
        let user = self.fleet.members[member].hub_user.clone();
        let verbs = &[Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Patch, Verb::Update, Verb::Delete];
        let refusal = Refusal { user, verbs, resource: "", status: Status::plain(401, "Unauthorized", "Unauthorized") };
        self.memkube(Place::Hub).set_faults(Some(Arc::new(refusal)));
    }

    /// Makes a server refuse lists of a resource to the operator.
    pub(crate) fn refuse_operator(&self, place: Place, resource: &'static str, status: Status) {
        let refusal = Refusal { user: ADMIN.to_owned(), verbs: &[Verb::List], resource, status };
        self.memkube(place).set_faults(Some(Arc::new(refusal)));
    }

    pub(crate) fn memkube(&self, place: Place) -> &MemKube {
        self.server(place).memkube()
    }

    pub(crate) fn server(&self, place: Place) -> &Server {
        match place {
            Place::Hub => &self.fleet.hub,
            Place::Member(index) => &self.fleet.members[index].server,
        }
    }

    /// Reads the fleet, and adds the Deployments that memkube does not have.
    pub(crate) async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut snapshot = self.read(Limits::default()).await;
        dress(&mut snapshot)?;
        Ok(snapshot)
    }

    /// Reads the fleet as the command line does.
    pub(crate) async fn read(&self, limits: Limits) -> Snapshot {
        let hub = self.target(Place::Hub, "hub");
        let member = |(id, index): (&String, &usize)| (id.clone(), self.target(Place::Member(*index), id));
        let members = self.contexts.iter().map(member).collect();
        let agents = AgentNamespaces::default();
        read(Some(&hub), &members, &agents, &Scope::Service(service("app")), limits).await
    }

    fn target(&self, place: Place, context: &str) -> Target {
        let server_url =
            if place == Place::Hub { HUB_URL.to_owned() } else { format!("https://{context}.example:6443") };
        let authority = Some(AUTHORITY.to_owned());
        let client = self.server(place).operator(self.fleet.clock());
        Target { context: Some(context.to_owned()), server_url, authority, proxy: None, client: Ok(client) }
    }

    /// Explains the Service `app`, with all pairs.
    pub(crate) async fn explain(&self, filter: &Filter) -> anyhow::Result<Explanation> {
        Ok(explain(&self.snapshot().await?, &service("app"), filter))
    }
}

/// Returns the setting of agents that use this API.
pub(crate) fn mcs_api(api: Api) -> McsApi {
    match api {
        Api::Fleet => McsApi::Off,
        Api::Mcs => McsApi::LabelledNamespaces,
    }
}

pub(crate) fn service(name: &str) -> ObjectName {
    ObjectName { namespace: NAMESPACE.into(), name: name.into() }
}

/// Returns the Secret of a member with its access to the hub. `expires` is the time at which the token expires.
pub(crate) fn hub_secret(hub_namespace: &str, url: &str, expires: Option<i64>) -> serde_json::Value {
    use base64::Engine as _;
    let mut claims = json!({"sub": format!("system:serviceaccount:{hub_namespace}:member-agent")});
    if let Some(expires) = expires {
        claims["exp"] = json!(expires);
    }
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims.to_string());
    let data = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    json!({
        "metadata": {"name": "fleetnet-hub"},
        "data": {
            "url": data(url), "certificate-authority": data(AUTHORITY), "token": data(&format!("e30.{payload}.c2ln")),
        },
    })
}

/// Adds what an installation has and memkube does not serve: a Deployment with two ready replicas and a running pod for
/// each agent, and accounts with all rights.
pub(crate) fn dress(snapshot: &mut Snapshot) -> anyhow::Result<()> {
    dress_agent(&mut snapshot.hub.agent, "hub-agent")?;
    for member in &mut snapshot.members {
        if member.agent.leases != Listing::NotAsked {
            dress_agent(&mut member.agent, "member-agent")?;
            member.missing_hub_rights = Listing::of(Vec::new());
        }
    }
    Ok(())
}

fn dress_agent(agent: &mut AgentObjects, name: &str) -> anyhow::Result<()> {
    let deployment: Deployment = serde_json::from_value(agent_deployment(name, &[])).context("a Deployment")?;
    let pod: Pod = serde_json::from_value(agent_pod(name)).context("a pod")?;
    agent.deployments = Listing::of(vec![deployment]);
    agent.pods = Listing::of(vec![pod]);
    agent.missing_rights = Listing::of(Vec::new());
    Ok(())
}

/// Returns the Deployment of an agent with these arguments. It has two ready replicas.
pub(crate) fn agent_deployment(name: &str, arguments: &[&str]) -> serde_json::Value {
    let labels = json!({"app.kubernetes.io/name": name});
    json!({
        "metadata": {
            "name": name, "namespace": FLEET_SYSTEM_NAMESPACE, "creationTimestamp": "2027-01-01T00:00:00Z",
            "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "fleetnet"},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": name, "args": arguments}]},
            },
        },
        "status": {"readyReplicas": 2},
    })
}

/// Returns a running pod of an agent.
pub(crate) fn agent_pod(name: &str) -> serde_json::Value {
    json!({
        "metadata": {
            "name": format!("{name}-1"), "namespace": FLEET_SYSTEM_NAMESPACE,
            "labels": {"app.kubernetes.io/name": name}, "creationTimestamp": "2027-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": name, "image": name}]},
        "status": {
            "containerStatuses": [{
                "name": name, "image": name, "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}},
            }],
        },
    })
}

/// Returns all codes that an explanation reports: causes of pairs and notices.
pub(crate) fn codes(explanation: &Explanation) -> BTreeSet<Code> {
    let causes = explanation.pairs.iter().filter_map(|pair| pair.cause.as_ref());
    causes.chain(&explanation.notices).map(|finding| finding.code).collect()
}

/// Returns an explanation as text for messages of failed tests.
pub(crate) fn show(explanation: &Explanation) -> String {
    let mut text = format!("{:?}\n", explanation.verdict);
    for pair in &explanation.pairs {
        text += &format!("  {:?} -> {:?}: {:?}\n", pair.exporter, pair.importer, pair.verdict);
        let steps = pair.steps.iter().filter(|step| !matches!(step.outcome, Outcome::Ok | Outcome::Skipped));
        for step in steps {
            text += &format!("    {} {:?} {}\n", step.code, step.outcome, step.detail);
        }
    }
    text
}

/// Fails unless an explanation reports exactly this code. Everything before the cause must be known, except what FN104
/// is about.
pub(crate) fn is_exactly(explanation: &Explanation, code: Code) -> anyhow::Result<()> {
    let found = codes(explanation);
    let is_known = |pair: &Pair| pair.verdict != Verdict::NotKnown && !pair.earlier_unknown;
    let is_known = code == Code::FN104 || explanation.pairs.iter().all(is_known);
    anyhow::ensure!(found == BTreeSet::from([code]) && is_known, "{code}: found {found:?}\n{}", show(explanation));
    Ok(())
}

/// Refusal of requests.
struct Refusal {
    /// Part of the name of the users whose requests are refused.
    user: String,
    verbs: &'static [Verb],
    /// Resource; with a subresource, as `serviceexports/status`. Empty for all.
    resource: &'static str,
    status: Status,
}

impl Faults for Refusal {
    fn request(&self, call: &Call) -> Fault {
        let target = &call.target;
        let resource = match &*target.subresource {
            "" => target.resource.to_string(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        let is_refused = call.user.name.contains(&self.user)
            && self.verbs.contains(&call.verb)
            && (self.resource.is_empty() || resource == self.resource);
        Fault { refuse: is_refused.then(|| self.status.clone()), ..Fault::default() }
    }
}

/// Returns the answer of a server that denies a request.
pub(crate) fn denied() -> Status {
    Status::plain(403, "Forbidden", "a test denies it")
}

/// Returns the answer of a server that rejects the content of a write.
pub(crate) fn rejected() -> Status {
    Status::plain(422, "Invalid", "a test rejects it")
}

/// Returns the answer of a server with a temporary failure.
pub(crate) fn failed() -> Status {
    Status::plain(500, "InternalError", "a test lets it fail")
}
