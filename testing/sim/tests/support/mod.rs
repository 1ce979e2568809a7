//! Simulated fleet on memkube, as an environment for the shared scenarios.

use anyhow::Context as _;
use fleetnet_core::ranges::{self, IpNet};
use harness::audit::{Entry, FleetLedger, FleetMark, Ledger, Mark};
use kube::Client;
use scenarios::environment::{self, Backend, FleetSpec, Member};
use sim::fleet::Place;
use sim::{Fleet, Options, Server};
use std::time::Duration;

/// Time in which all writes of an action are made, so that the ledger is final. The time is longer than the agents'
/// first back-offs, so that the ledger also counts retries.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) struct OnMemkube(pub(crate) Fleet);

impl Backend for OnMemkube {
    const FAMILIES: &'static [&'static str] = &["IPv4"];

    async fn create(spec: FleetSpec) -> anyhow::Result<Self> {
        let mut options = Options::members(spec.members);
        options.slice_streams = spec.slice_streams;
        options.derived_service_grace = spec.derived_service_grace.unwrap_or(options.derived_service_grace);
        if let Some(ranges) = spec.source_ranges {
            let ranges: Result<Vec<IpNet>, _> = ranges.split(',').map(ranges::parse).collect();
            options.source_ranges.insert("member-1".into(), ranges?);
        }
        Ok(Self(Fleet::new(options).await?))
    }

    fn hub(&self) -> Client {
        self.0.hub.admin()
    }

    fn members(&self) -> Vec<Member> {
        let member = |member: &sim::fleet::Member| Member {
            client: member.server.admin(),
            cluster_id: member.name.clone(),
            hub_namespace: member.hub_namespace.to_string(),
        };
        self.0.members.iter().map(member).collect()
    }

    async fn namespace(&self, name: &str) -> anyhow::Result<String> {
        self.0.make_namespace(name).await?;
        Ok(name.to_owned())
    }

    async fn start_agents(&mut self) -> anyhow::Result<()> {
        self.0.start_agents().await
    }

    async fn stop_agents(&mut self) -> anyhow::Result<()> {
        self.0.stop_agents().await
    }

    async fn start_agent(&mut self, place: environment::AgentPlace) -> anyhow::Result<()> {
        self.0.start(of(place))?;
        self.0.ready().await
    }

    async fn stop_agent(&mut self, place: environment::AgentPlace) -> anyhow::Result<()> {
        self.0.stop(of(place)).await
    }

    async fn metrics(&self, member: usize) -> anyhow::Result<String> {
        self.0.agent(Place::Member(member)).context("the member's agent runs")?.metrics()
    }

    async fn mark(&self) -> anyhow::Result<FleetMark> {
        let ledger = self.ledger().await;
        let members = ledger.members.iter().map(|member| Mark(member.count())).collect();
        Ok(FleetMark { hub: Mark(ledger.hub.count()), members })
    }

    async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        let FleetLedger { hub, members } = self.ledger().await;
        let members = members.into_iter().zip(&mark.members).map(|(ledger, mark)| after(ledger, *mark)).collect();
        Ok(FleetLedger { hub: after(hub, mark.hub), members })
    }
}

impl OnMemkube {
    /// Returns the ledger of all writes so far.
    pub(crate) async fn ledger(&self) -> FleetLedger {
        tokio::time::sleep(SETTLED).await;
        let members = self.0.members.iter().map(|member| writes(&member.server)).collect();
        FleetLedger { hub: writes(&self.0.hub), members }
    }
}

fn of(place: environment::AgentPlace) -> Place {
    match place {
        environment::AgentPlace::Hub => Place::Hub,
        environment::AgentPlace::Member(index) => Place::Member(index),
    }
}

fn after(ledger: Ledger, mark: Mark) -> Ledger {
    Ledger(ledger.0.into_iter().skip(mark.0).collect())
}

fn writes(server: &Server) -> Ledger {
    let audit = server.memkube().audit();
    assert_eq!(audit.forgotten, 0, "the ledger of the server is too short for this test");
    let writes = audit.entries.into_iter().filter(|entry| entry.call.verb.writes());
    Ledger(writes.map(entry).collect())
}

fn entry(entry: memkube::audit::Entry) -> Entry {
    let target = entry.call.target;
    let resource = match &*target.subresource {
        "" => target.resource.to_string(),
        subresource => format!("{}/{subresource}", target.resource),
    };
    Entry {
        user: entry.call.user.name.to_string(),
        verb: entry.call.verb.name().to_owned(),
        resource,
        namespace: target.namespace.to_string(),
        name: target.name.to_string(),
        status: entry.code,
    }
}
