//! Interruptions of the work of a fleet, while clients send requests: [`Interruption`].

use crate::limits::SETTLED;
use crate::pair::Pair;
use crate::workload::Servers;
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::crd::{MultiClusterService, ServiceExport as ServiceExportOfFleet, ServiceImportType};
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// Something that interrupts the work of the fleet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// During a rolling update, the leader of each agent in turn is frozen (SIGSTOP), and goes on later.
    LeadersFrozen,
    /// During a rolling update, the leader of each agent in turn has no connections to its API servers, and later has
    /// them again. It runs on, and the other replica takes over. Needs [`crate::Settings::gates`].
    LeadersCutOff,
    /// All replicas of the exporter's agent are killed, until the exporter counts as silent and importers drain its
    /// endpoints. Then they start again. The exporter's pods answer all the time.
    ExporterSilent,
    /// The hub's API server does not answer. No endpoint changes.
    HubDown,
    /// The same during a rolling update. The importer keeps endpoints of pods that are gone.
    HubDownInRollout,
    /// The API server of each cluster in turn does not answer.
    ServersDown,
    /// Each replica of each agent stops and starts again, as in an upgrade.
    AgentsRestarted,
    /// A user ends the export, and begins it again before the grace period of the derived Service ends.
    Reexport,
    /// A user gives the Deployment twice as many pods, and takes them away.
    Scaled,
    /// A user adds a port to the Service, and removes it.
    Ports,
    /// A user also exports and imports the Service by the fleet's API, and ends that.
    BothApis,
    /// The ServiceAccounts of the members in the hub are replaced. So the members' tokens are not valid any more, and
    /// they get new ones.
    TokensReplaced,
    /// The importer exports a headless Service with the same name. It loses the conflict, and the export ends.
    ConflictWon,
    /// The same, but the exporter begins its export again meanwhile, so that it loses the conflict.
    ConflictLost,
    /// A user replaces the Service by a headless one, and replaces that by the first one.
    Headless,
}

/// Seconds of the preStop hook with which no request may be lost: longer than a takeover from a frozen leader.
pub const PRE_STOP: u32 = 10;
/// Longest time for which a leader is frozen or cut off: twice as long as its Lease.
const FROZEN: Duration = Duration::from_secs(6);
/// Longest time for which an API server of a member does not answer.
const SERVER_DOWN: Duration = Duration::from_secs(10);
/// ServiceAccount of a member in its namespace of the hub.
const ACCOUNT: &str = "member-agent";
/// Time between the end of an export and its new beginning. The grace period is 30 s.
const UNEXPORTED: Duration = Duration::from_secs(5);

impl Interruption {
    pub const ALL: [Self; 15] = [
        Self::LeadersFrozen,
        Self::LeadersCutOff,
        Self::ExporterSilent,
        Self::HubDown,
        Self::HubDownInRollout,
        Self::ServersDown,
        Self::AgentsRestarted,
        Self::Reexport,
        Self::Scaled,
        Self::Ports,
        Self::BothApis,
        Self::TokensReplaced,
        Self::ConflictWon,
        Self::ConflictLost,
        Self::Headless,
    ];

    /// Returns what happens, in words.
    #[must_use]
    pub fn detail(self) -> &'static str {
        match self {
            Self::LeadersFrozen => "leaders are frozen in rolling updates",
            Self::LeadersCutOff => "leaders are cut off in rolling updates",
            Self::ExporterSilent => "an exporter is silent",
            Self::HubDown => "the hub is down",
            Self::HubDownInRollout => "the hub is down in rolling updates",
            Self::ServersDown => "API servers are down",
            Self::AgentsRestarted => "agents are replaced",
            Self::Reexport => "the export ends and begins again",
            Self::Scaled => "the Deployment is scaled up and down",
            Self::Ports => "a port comes and goes",
            Self::BothApis => "the fleet's API comes and goes",
            Self::TokensReplaced => "tokens are replaced",
            Self::ConflictWon => "a conflict is won",
            Self::ConflictLost => "a conflict is lost",
            Self::Headless => "the Service becomes headless for a while",
        }
    }

    /// True if the importer's clients lose requests for a reason that no agent can change.
    #[must_use]
    pub fn loses(self) -> bool {
        // The importer cannot know of the new pods. Who ends an export or deletes a Service wants no requests.
        matches!(self, Self::HubDownInRollout | Self::Reexport | Self::ConflictLost | Self::Headless)
    }

    /// True if the address of the import changes, so that clients must use its name.
    #[must_use]
    pub fn changes_address(self) -> bool {
        matches!(self, Self::ConflictLost | Self::Headless)
    }

    /// Lets it happen. `outage` is the time for which the hub does not answer. If it is short, it is also the time for
    /// which API servers of members do not answer, and for which leaders are frozen or cut off. `number` is the number
    /// of the next rolling update.
    pub async fn happen(
        self,
        pair: &mut Pair,
        servers: Servers<'_>,
        outage: Duration,
        number: u32,
    ) -> anyhow::Result<()> {
        match self {
            Self::LeadersFrozen => {
                let freeze = async {
                    for agent in &pair.agents {
                        agent.freeze_leader(outage.min(FROZEN)).await?;
                    }
                    anyhow::Ok(())
                };
                futures::try_join!(servers.roll(&pair.exporter, number), freeze).map(drop)
            }
            Self::LeadersCutOff => {
                let cut = async {
                    for agent in &pair.agents {
                        agent.cut_leader_off(outage.min(FROZEN)).await?;
                    }
                    anyhow::Ok(())
                };
                futures::try_join!(servers.roll(&pair.exporter, number), cut).map(drop)
            }
            Self::ExporterSilent => silence(pair, servers.name).await,
            Self::HubDown => down(pair, 0, outage).await,
            Self::HubDownInRollout => {
                futures::try_join!(down(pair, 0, outage), servers.roll(&pair.exporter, number)).map(drop)
            }
            Self::ServersDown => {
                for cluster in 0..=pair.fleet.members.len() {
                    down(pair, cluster, outage.min(SERVER_DOWN)).await?;
                    tokio::time::sleep(SETTLED).await;
                }
                Ok(())
            }
            Self::AgentsRestarted => {
                for agent in &mut pair.agents {
                    agent.replace().await?;
                }
                Ok(())
            }
            Self::Reexport => reexport(pair, servers.name).await,
            Self::Scaled => {
                let more = Servers { replicas: servers.replicas * 2, ..servers };
                more.scale(&pair.exporter).await?;
                tokio::time::sleep(SETTLED).await;
                servers.scale(&pair.exporter).await
            }
            Self::Ports => ports(pair, servers.name).await,
            Self::BothApis => both_apis(pair, servers.name).await,
            Self::TokensReplaced => replace_tokens(pair).await,
            Self::ConflictWon => conflict(pair, servers.name, false).await,
            Self::ConflictLost => conflict(pair, servers.name, true).await,
            Self::Headless => headless(pair, servers).await,
        }
    }
}

/// Freezes the API server of a cluster for a while: 0 for the hub, then the members.
async fn down(pair: &Pair, cluster: usize, time: Duration) -> anyhow::Result<()> {
    let servers = &pair.fleet.servers;
    let server = match cluster {
        0 => &servers.hub,
        member => &servers.members[member - 1].control_plane,
    };
    server.freeze().await?;
    tokio::time::sleep(time).await;
    server.thaw().await
}

/// Lets the exporter fall silent and return. The importer must use its endpoints meanwhile only if no other cluster
/// exports the Service.
async fn silence(pair: &mut Pair, service: &str) -> anyhow::Result<()> {
    let import: ServiceImport = pair.importer.api().get(service).await?;
    let is_alone = import.status.is_some_and(|status| status.clusters.is_none_or(|clusters| clusters.len() == 1));
    pair.agents[1].kill().await?;
    pair.exporter_is_silent(true).await?;
    pair.exporter_is_used(service, is_alone).await?;
    tokio::time::sleep(SETTLED).await;
    pair.exporter_is_used(service, is_alone).await?;
    pair.agents[1].replace().await?;
    pair.exporter_is_silent(false).await?;
    pair.exporter_is_used(service, true).await
}

async fn reexport(pair: &Pair, service: &str) -> anyhow::Result<()> {
    pair.exporter.delete::<ServiceExport>(service).await?;
    tokio::time::sleep(UNEXPORTED).await;
    pair.export(service).await.map(drop)
}

async fn ports(pair: &Pair, service: &str) -> anyhow::Result<()> {
    let before: Service = pair.exporter.api().get(service).await?;
    let ports = before.spec.and_then(|spec| spec.ports).unwrap_or_default();
    let mut more = serde_json::to_value(&ports)?;
    if let Some(more) = more.as_array_mut() {
        more.push(json!({"name": "more", "port": 9090, "targetPort": 8080}));
    }
    for (wanted, count) in [(more, ports.len() + 1), (serde_json::to_value(&ports)?, ports.len())] {
        pair.exporter.merge::<Service>(service, json!({"spec": {"ports": wanted}})).await?;
        let has_ports = |import: &ServiceImport| import.spec.ports.len() == count;
        let imports = pair.importer.api::<ServiceImport>();
        eventually::object(&imports, service, &format!("the import to have {count} ports"), has_ports).await?;
        tokio::time::sleep(SETTLED).await;
    }
    Ok(())
}

async fn both_apis(pair: &Pair, service: &str) -> anyhow::Result<()> {
    let Pair { exporter, importer, .. } = pair;
    exporter.export(service).await?;
    importer.import(service, service, Consume::ClusterIp).await?;
    importer.derived_service(service).await?;
    tokio::time::sleep(SETTLED).await;
    importer.delete::<MultiClusterService>(service).await?;
    exporter.delete::<ServiceExportOfFleet>(service).await?;
    importer.no_derived_service(service).await
}

async fn replace_tokens(pair: &Pair) -> anyhow::Result<()> {
    let hub = &pair.fleet.servers.hub;
    for member in &pair.fleet.servers.members {
        let accounts: Api<ServiceAccount> = Api::namespaced(hub.admin(), &member.hub_namespace);
        let old = accounts.get(ACCOUNT).await?;
        accounts.delete(ACCOUNT, &DeleteParams::default()).await?;
        let metadata = ObjectMeta { name: old.metadata.name, labels: old.metadata.labels, ..ObjectMeta::default() };
        accounts.create(&PostParams::default(), &ServiceAccount { metadata, ..ServiceAccount::default() }).await?;
        // The agents read this file.
        hub.access(&member.hub_user).await?.write_token(hub.folder())?;
    }
    pair.fleet.are_connected().await
}

/// Lets the importer export a headless Service with the same name, and ends that. If `lost` is true, the exporter
/// begins its export again meanwhile, so that its export is the younger one.
async fn conflict(pair: &Pair, service: &str, lost: bool) -> anyhow::Result<()> {
    let Pair { exporter, importer, .. } = pair;
    importer.create::<Service>(json!({"metadata": {"name": service}, "spec": {"clusterIP": "None"}})).await?;
    importer.export_mcs(service, json!({})).await?;
    conflicts(importer, service).await?;
    if lost {
        exporter.delete::<ServiceExport>(service).await?;
        eventually::gone(&exporter.api::<ServiceExport>(), service).await?;
        exporter.export_mcs(service, json!({})).await?;
        conflicts(exporter, service).await?;
    }
    tokio::time::sleep(SETTLED).await;
    importer.delete::<ServiceExport>(service).await?;
    importer.delete::<Service>(service).await?;
    importer.sees_ready_import(service, &[pair.exporting()]).await.map(drop)
}

/// Waits until an export of the standard API shows a conflict.
async fn conflicts(user: &User, service: &str) -> anyhow::Result<()> {
    let is_shown = |export: &ServiceExport| {
        let conditions = export.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Conflict" && condition.status == "True")
    };
    let what = format!("the export of {service} to show a conflict");
    eventually::object(&user.api::<ServiceExport>(), service, &what, is_shown).await.map(drop)
}

async fn headless(pair: &Pair, servers: Servers<'_>) -> anyhow::Result<()> {
    let Pair { exporter, importer, .. } = pair;
    for (more, kind) in
        [(json!({"clusterIP": "None"}), ServiceImportType::Headless), (json!({}), ServiceImportType::ClusterSetIP)]
    {
        exporter.delete::<Service>(servers.name).await?;
        servers.create_service_with(exporter, &more).await?;
        let has_type = |import: &ServiceImport| import.spec.type_ == kind;
        importer.sees_service_import(servers.name, &format!("to be {kind:?}"), has_type).await?;
        importer.sees_ready_import(servers.name, &[pair.exporting()]).await?;
        tokio::time::sleep(SETTLED).await;
    }
    Ok(())
}
