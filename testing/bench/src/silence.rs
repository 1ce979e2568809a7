//! Measurement of a member that dies: how long importers use its endpoints, and how soon they use them again after it
//! has returned. Agents are processes; API servers are in memory.

use crate::limits::{CHECK_INTERVAL, IMPORT, SILENCE_LIMIT};
use crate::report::{self, target};
use crate::scale::content::cluster_id;
use crate::scale::fleet::server;
use anyhow::Context as _;
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::clock::Clock;
use futures::future::try_join_all;
use harness::agent::{Agent, AgentSpec};
use harness::eventually;
use harness::fleet::create_namespace;
use harness::in_memory::{Server, hub_agent, member_agent_of};
use harness::routes::Routes;
use harness::user::{Consume, User};
use kube::Api;
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// Namespace of the Services.
const NAMESPACE: &str = "silence";
/// Exporters: the first one dies, and the second one stays.
const EXPORTERS: u32 = 2;

/// How much there is of everything.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Size {
    /// Members that import all Services.
    #[arg(long, default_value_t = 10)]
    pub importers: u32,
    /// Services. The member that dies and another one export each.
    #[arg(long, default_value_t = 5)]
    pub services: u32,
    /// Slices of each Service in the member that dies.
    #[arg(long, default_value_t = 20)]
    pub slices: u32,
    /// How often it is measured, each time with a new fleet.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// `--silence-soft` of the hub agent, in seconds.
    #[arg(long, default_value_t = 60)]
    pub silence_soft: u32,
}

impl Size {
    /// Returns the size of the smoke run, which runs every step in a short time.
    #[must_use]
    pub fn smoke() -> Self {
        Self { importers: 2, services: 2, slices: 2, rounds: 1, silence_soft: 30 }
    }
}

/// Times of one death.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    /// From the last renewal of the member that dies until no importer uses one of its endpoints.
    pub out_of_use_seconds: f64,
    /// From the first renewal after its return until all importers use all of its endpoints.
    pub restored_seconds: f64,
}

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub rounds: Vec<Round>,
}

pub type Report = report::Report<Size, Figures>;

/// Measures deaths, each in a new fleet.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let mut rounds = Vec::new();
    for _ in 0..size.rounds {
        rounds.push(Fleet::start(size).await?.round(size).await?);
    }
    let longest = |of: fn(&Round) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
    let targets = vec![
        target(
            "endpoints of a dead member in use, seconds",
            f64::from(size.silence_soft + 2), // no limit: target of the measurement
            longest(|round| round.out_of_use_seconds),
        ),
        target("endpoints of a returned member not in use, seconds", 2.0, longest(|round| round.restored_seconds)),
    ];
    Ok(Report::new(size.clone(), Figures { rounds }, targets))
}

/// Fleet whose importers use all endpoints of both exporters.
struct Fleet {
    hub: Server,
    /// Settings of the agent of the member that dies.
    spec: AgentSpec,
    /// Agent of that member, while it lives.
    agent: Option<Agent>,
    /// Watch of each Service in each importer, with the number of the Service.
    routes: Vec<(u32, Routes)>,
    /// The other agents, and the servers of the members, which run as long as the fleet.
    _others: (Vec<Agent>, Vec<Server>),
}

impl Fleet {
    async fn start(size: &Size) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let hub = server("hub", &clock, 0).await?;
        let mut members = Vec::new();
        for number in 0..EXPORTERS + size.importers {
            members.push(server(&cluster_id(number), &clock, u64::from(number) + 1).await?);
            create_namespace(&hub.admin(), &member_namespace(&cluster_id(number))).await?;
        }
        for server in members.iter().chain([&hub]) {
            create_namespace(&server.admin(), NAMESPACE).await?;
        }
        let mut others = vec![hub_agent(&hub).flag("--silence-soft", format!("{}s", size.silence_soft)).start().await?];
        let spec = |number: u32, own: &Server| {
            let spec = member_agent_of(own, &hub).variable("MEMBER_CLUSTER_NAME", cluster_id(number));
            spec.flag("--endpointslices", "off")
        };
        let specs: Vec<AgentSpec> = (0..).zip(&members).map(|(number, own)| spec(number, own)).collect();
        let mut agents = try_join_all(specs.iter().map(AgentSpec::start)).await?;
        try_join_all(others.iter().chain(&agents).map(Agent::ready)).await?;
        let users: Vec<User> = members.iter().map(|member| User::new(member.admin(), NAMESPACE)).collect();
        let mut routes = Vec::new();
        for service in 0..size.services {
            let name = format!("app-{service}");
            for (exporter, user) in (0..EXPORTERS).zip(&users) {
                user.create_service(&name).await?;
                user.export(&name).await?;
                for slice in 0..slices_of(exporter, size) {
                    let addresses = [address(exporter, service, slice)];
                    user.create_slice(&name, &format!("{name}-{slice}"), &[&addresses[0]]).await?;
                }
            }
            for importer in users.iter().skip(usize::try_from(EXPORTERS)?) {
                importer.import(&name, &name, Consume::ClusterIp).await?;
                routes.push((service, importer.routes(&name)));
            }
        }
        let agent = Some(agents.remove(0));
        others.extend(agents);
        let spec = specs.into_iter().next().context("the settings of the first member")?;
        let mut fleet = Self { hub, spec, agent, routes, _others: (others, members) };
        fleet.use_endpoints_of(&[0, 1], size, IMPORT).await?;
        Ok(fleet)
    }

    /// Kills the first member's agent right after a renewal, and starts it again when nobody uses its endpoints any
    /// more.
    async fn round(mut self, size: &Size) -> anyhow::Result<Round> {
        self.renewal().await?;
        let renewed = Instant::now();
        self.agent.take().context("the agent of the member that dies")?.kill().await?;
        self.use_endpoints_of(&[1], size, SILENCE_LIMIT).await?;
        let out_of_use_seconds = renewed.elapsed().as_secs_f64();
        self.agent = Some(self.spec.start().await?);
        self.renewal().await?;
        let returned = Instant::now();
        self.use_endpoints_of(&[0, 1], size, SILENCE_LIMIT).await?;
        Ok(Round { out_of_use_seconds, restored_seconds: returned.elapsed().as_secs_f64() })
    }

    /// Waits until each importer uses exactly the endpoints of these exporters.
    async fn use_endpoints_of(&mut self, exporters: &[u32], size: &Size, limit: Duration) -> anyhow::Result<()> {
        for (service, routes) in &mut self.routes {
            let of = |exporter: &u32| {
                let (exporter, service) = (*exporter, *service);
                (0..slices_of(exporter, size)).map(move |slice| format!("{}:8080", address(exporter, service, slice)))
            };
            let expected: Vec<String> = exporters.iter().flat_map(of).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            routes.are_within(limit, &expected).await?;
        }
        Ok(())
    }

    /// Waits for the next renewal of the member that dies.
    async fn renewal(&self) -> anyhow::Result<()> {
        let member = cluster_id(0);
        eventually::renewal(&Api::namespaced(self.hub.admin(), &member_namespace(&member)), &member, CHECK_INTERVAL)
            .await
    }
}

fn slices_of(exporter: u32, size: &Size) -> u32 {
    if exporter == 0 { size.slices } else { 1 }
}

fn address(exporter: u32, service: u32, slice: u32) -> String {
    format!("10.{}.{service}.{}", exporter + 1, slice + 1)
}
