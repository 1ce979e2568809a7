//! Changes of one slice for many importers, first with objects alone and then with slice streams. Measured from the
//! exporter's change in the hub on.

use super::Size;
use super::certificate::Certificate;
use super::subscribers::Subscribers;
use crate::environment::{Memory, memory_of, processor_time};
use crate::follow::Follow;
use crate::limits::{CHECK_INTERVAL, SETTLED};
use crate::quantiles::Quantiles;
use crate::scale;
use crate::scale::content::cluster_id;
use crate::scale::fleet::Fleet;
use crate::scale::scenario::{Api, Scenario};
use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fleetnet_core::names::member_namespace;
use fleetnet_proto::TOKEN_AUDIENCE;
use harness::agent::Agent;
use harness::eventually::Deadline;
use hub_agent::OBJECT_LAG;
use memkube::User;
use serde::Serialize;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Results for one number of importers.
#[derive(Clone, Debug, Serialize)]
pub struct FanOut {
    pub importers: u32,
    /// Changes with objects alone, at each rate.
    pub objects: Vec<Changes>,
    /// Changes with a stream of each importer, at each rate.
    pub streams: Vec<Changes>,
    /// Memory of the hub agent after the changes with objects alone.
    pub memory_of_objects: Memory,
    /// Memory of the hub agent after the changes with streams.
    pub memory_of_streams: Memory,
}

/// Changes at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Changes {
    /// Changes per second.
    pub rate: u32,
    pub changes: usize,
    /// Time from the exporter's change in the hub until it arrived at an importer: over its stream, or at a watch of
    /// the copies.
    pub arrived: Quantiles,
    /// Number of arrivals that never came, because a later change replaced the change.
    pub overtaken: usize,
    /// Number of writes in the hub for each change: that of the exporter, and those of the copies.
    pub hub_writes_per_change: f64,
    /// Processor time of the hub agent for each arrival.
    pub hub_microseconds_per_arrival: f64,
}

/// Place where changes arrive.
enum Way {
    Objects(Follow),
    Streams(Subscribers),
}

impl Way {
    fn of(&mut self, marker: u32) -> anyhow::Result<Vec<Instant>> {
        match self {
            Self::Objects(copies) => copies.times(marker),
            Self::Streams(subscribers) => subscribers.of(marker),
        }
    }
}

/// Measures changes for one number of importers.
pub async fn measure(importers: u32, size: &Size) -> anyhow::Result<FanOut> {
    // Member 0, which would need an agent, neither exports nor imports. Member 1 exports.
    let scenario = Scenario { api: Api::Fleet, members: importers + 2, services: 1, importers, shared: 0 };
    let fleet_size =
        scale::size::Size { endpoints: size.endpoints, write_delay: size.write_delay, ..scale::size::Size::smoke() };
    let mut fleet = Fleet::start(scenario, &fleet_size).await?;
    let _others = fleet.others();
    let certificate = Certificate::make()?;
    let agent = certificate.served_by(fleet.hub_agent()).start_ready().await?;
    fleet.distributed().await?;

    let mut way = Way::Objects(fleet.copies().await?);
    let objects = changes(&mut fleet, &agent, &mut way, size).await?;
    let memory_of_objects = memory_of(agent.pid())?;

    let members = scenario.importers(0).map(|member| {
        let cluster = cluster_id(member);
        let name = format!("system:serviceaccount:{}:member-agent", &*member_namespace(&cluster));
        let (token, user) = (token_of(&name), User::new(&name));
        fleet.hub().memkube.set_token_for(&token, TOKEN_AUDIENCE, Some(user));
        (cluster, token)
    });
    let address = agent.slice_stream_address().await?;
    way = Way::Streams(Subscribers::open(members.collect(), address, &certificate.authority()).await?);
    let streams = changes(&mut fleet, &agent, &mut way, size).await?;
    let memory_of_streams = memory_of(agent.pid())?;
    drop(way);
    Fleet::stop(&agent).await?;
    Ok(FanOut { importers, objects, streams, memory_of_objects, memory_of_streams })
}

async fn changes(fleet: &mut Fleet, agent: &Agent, way: &mut Way, size: &Size) -> anyhow::Result<Vec<Changes>> {
    let mut changes = Vec::new();
    for rate in size.rates.iter().copied() {
        changes.push(change(fleet, agent, way, rate, size.seconds).await?);
    }
    Ok(changes)
}

/// Makes changes at a steady rate, and waits until the last one has arrived everywhere and its objects are written.
async fn change(fleet: &mut Fleet, agent: &Agent, way: &mut Way, rate: u32, seconds: u32) -> anyhow::Result<Changes> {
    let before = (fleet.hub_agent_writes().0, processor_time(agent.pid())?);
    let made = fleet.changes(&[0], rate, seconds).await?;
    let importers = usize::try_from(fleet.scenario.importers)?;
    let (_, last, _) = made.last().context("a change")?;
    let deadline = Deadline::after(SETTLED);
    while way.of(*last)?.len() < importers {
        deadline.check().context("the last change does not arrive everywhere")?;
        sleep(CHECK_INTERVAL).await;
    }
    if matches!(way, Way::Streams(_)) {
        sleep(OBJECT_LAG + Duration::from_secs(1)).await;
    }
    let (writes, processor) = (fleet.hub_agent_writes().0 - before.0, processor_time(agent.pid())? - before.1);
    let mut arrived = Vec::new();
    for (_, marker, sent) in &made {
        arrived.extend(way.of(*marker)?.into_iter().map(|at| at - *sent));
    }
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    let per = |value: f64, count: usize| value / count as f64;
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    let hub_writes_per_change = 1.0 + per(writes as f64, made.len());
    Ok(Changes {
        rate,
        changes: made.len(),
        overtaken: made.len() * importers - arrived.len(),
        hub_writes_per_change,
        hub_microseconds_per_arrival: per(processor.as_secs_f64() * 1e6, arrived.len()),
        arrived: Quantiles::of(arrived),
    })
}

/// Returns what a member sends as its token. The hub agent reads the claims, and its API server knows the whole token.
fn token_of(account: &str) -> String {
    let claims = serde_json::json!({ "sub": account, "aud": [TOKEN_AUDIENCE], "exp": u32::MAX });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part("{}"), part(&claims.to_string()), part("signed"))
}
