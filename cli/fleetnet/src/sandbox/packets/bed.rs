//! Second process of `--packets`: [`play`]. It has the fleet, whose last member imports a Service of all others.

use super::access;
use super::counts::{AT, between};
use crate::args::Options;
use crate::limits::{ANSWER, ANSWER_ONCE, REQUESTS_REPORT};
use crate::sandbox::describe::NAMESPACE;
use crate::sandbox::ending::Ending;
use crate::sandbox::event::{Event, Traffic};
use crate::sandbox::page::FleetPage;
use crate::sandbox::stop::Stop;
use crate::sandbox::view::Stage;
use ::packets::fleet::Agents;
use ::packets::image::result::Totals;
use ::packets::limits::SETTLED;
use ::packets::workload::{self, Client, Servers};
use ::packets::{Fleet, Settings, listeners};
use anyhow::Context as _;
use futures::future::try_join_all;
use harness::user::User;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// Servers in each exporter. The hook gives each kube-proxy time to learn that a pod ends.
const SERVERS: Servers<'static> = Servers { name: "app", replicas: 3, pre_stop: Some(5), probe_delay: 0 };
/// Name of the client's pod.
const CLIENT: &str = "client";
/// Version of the servers' template in the rolling update.
const NEXT_VERSION: u32 = 2;

/// Runs the fleet until the user stops it, or with `--once` until the end of a rolling update.
pub(super) async fn play(options: &Options, stage: &Stage, stop: &Stop) -> anyhow::Result<Ending> {
    stage.emit(Event::starting(options)).await;
    let shown = stop.unless_requested(Box::pin(show(options, stage))).await;
    shown.unwrap_or_else(|| Ok(Ending::stopped(options, None)))
}

async fn show(options: &Options, stage: &Stage) -> anyhow::Result<Ending> {
    let mut listeners = listeners::take()?;
    // The first ones are those of the kubeconfigs.
    let of_kubeconfigs = options.kubeconfigs.as_ref().map_or(0, |_| usize::from(options.members()) + 1);
    let page = FleetPage::open(listeners.drain(of_kubeconfigs.min(listeners.len())..).next(), stage).await;
    let bed = Bed::start(options).await?;
    page.iter().for_each(|page| page.show(access::targets(&bed.fleet)));
    let _forwardings = match &options.kubeconfigs {
        Some(folder) => access::publish(&bed.fleet, listeners, folder, stage).await?,
        None => Vec::new(),
    };
    let address = bed.export().await?;
    let client = bed.client(options, &address).await?;
    let traffic = bed.traffic(options, address);
    page.iter().for_each(|page| page.show_traffic(&traffic));
    stage.emit(Event::Traffic(traffic)).await;
    let before = client.totals().await?;
    let reports = report(&client, &before, stage, page.as_ref());
    if !options.once {
        match reports.await? {}
    }
    tokio::select! {
        rolled = bed.roll() => rolled?,
        never = reports => match never? {},
    }
    let counts = between(&before, &client.stop().await?);
    let all_answered = bed.exporters().all(|cluster| counts.answers_by_cluster.get(cluster).is_some_and(|it| *it > 0));
    let passed = counts.lost == 0 && all_answered;
    let cluster = bed.exporters().next().unwrap_or_default().to_owned();
    stage.emit(Event::Rollout { cluster, passed, counts }).await;
    Ok(if passed { Ending::Passed } else { Ending::Failed })
}

/// Running fleet.
struct Bed {
    exporters: Vec<User>,
    importer: User,
    _agents: Agents,
    fleet: Fleet,
}

impl Bed {
    async fn start(options: &Options) -> anyhow::Result<Self> {
        let members = usize::from(options.members());
        let fleet = Fleet::start(Settings { nodes: vec![1; members], ..Settings::default() }).await?;
        let servers = fleet.servers.members.iter().map(|member| &member.control_plane);
        try_join_all(std::iter::once(&fleet.servers.hub).chain(servers).map(|it| it.create_namespace(NAMESPACE)))
            .await?;
        let agents = fleet.start_agents().await?;
        let exporters = (0..members - 1).map(|index| fleet.user(index, NAMESPACE)).collect();
        Ok(Self { exporters, importer: fleet.user(members - 1, NAMESPACE), _agents: agents, fleet })
    }

    /// Returns the cluster ids of the exporters.
    fn exporters(&self) -> impl Iterator<Item = &str> {
        self.fleet.servers.members.iter().take(self.exporters.len()).map(|member| &*member.cluster_id)
    }

    /// Starts servers in the exporters, and exports their Services. Returns the IPv4 address of the import.
    async fn export(&self) -> anyhow::Result<String> {
        let clusters: Vec<&str> = self.exporters().collect();
        let exporters = self.exporters.iter().zip(&clusters);
        try_join_all(exporters.map(async |(user, cluster)| {
            SERVERS.create_with(user, &answers_of(cluster)).await?;
            SERVERS.create_service(user).await?;
            user.export_mcs(SERVERS.name, json!({})).await
        }))
        .await?;
        workload::imported_address(&self.importer, SERVERS.name, &clusters).await
    }

    /// Starts the client, and waits until it has answers of all servers and kube-proxy has settled.
    async fn client(&self, options: &Options, address: &str) -> anyhow::Result<Client> {
        let limit = if options.once { ANSWER_ONCE } else { ANSWER };
        let settings = [format!("--rate={}", options.requests_per_second), format!("--timeout={}", limit.as_millis())];
        let target = format!("http://{address}:80");
        let client = Client::create(&self.importer, CLIENT, &target, &settings.each_ref().map(|it| &**it)).await?;
        let servers = self.exporters.len() * usize::try_from(SERVERS.replicas)?;
        client.counts("answers of all servers", |totals| totals.servers.len() == servers).await?;
        sleep(SETTLED).await;
        Ok(client)
    }

    fn traffic(&self, options: &Options, address: String) -> Traffic {
        let importer = self.fleet.servers.members.last().map(|member| member.cluster_id.clone()).unwrap_or_default();
        let command = options.kubeconfigs.as_ref().map(|folder| {
            format!(
                "kubectl --kubeconfig {} exec -n {NAMESPACE} {CLIENT} -- curl -s http://{}.{NAMESPACE}.svc.clusterset.local",
                access::path(folder, &importer).display(),
                SERVERS.name
            )
        });
        Traffic {
            service: format!("{NAMESPACE}/{}", SERVERS.name),
            exporters: self.exporters().map(str::to_owned).collect(),
            importer,
            address,
            client: format!("{NAMESPACE}/{CLIENT}"),
            requests_per_second: options.requests_per_second,
            command,
        }
    }

    /// Replaces all pods of the first exporter.
    async fn roll(&self) -> anyhow::Result<()> {
        let exporter = self.exporters.first().context("a fleet has an exporter")?;
        SERVERS.roll(exporter, NEXT_VERSION).await?;
        // The last rules of kube-proxy are part of the rolling update.
        sleep(SETTLED).await;
        Ok(())
    }
}

/// Returns fields of a container, whose server answers with the names of its pod and its cluster.
fn answers_of(cluster: &str) -> Value {
    json!({
        "args": [format!("--name=$(POD){AT}{cluster}")],
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    })
}

/// Reports the requests of each second. Never returns, except for an error.
async fn report(
    client: &Client,
    before: &Totals,
    stage: &Stage,
    page: Option<&FleetPage>,
) -> anyhow::Result<Infallible> {
    let mut ticks = interval(REQUESTS_REPORT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut then, mut last) = (Instant::now(), before.clone());
    loop {
        ticks.tick().await;
        let totals = client.totals().await?;
        let (now, counts) = (Instant::now(), between(&last, &totals));
        let milliseconds = u64::try_from((now - then).as_millis())?.max(1);
        let requests_per_second = (counts.requests * 1000 + milliseconds / 2) / milliseconds;
        let lost_so_far = totals.lost - before.lost;
        page.iter().for_each(|page| page.add_requests(&counts));
        stage.emit(Event::Requests { requests_per_second, lost_so_far, counts }).await;
        (then, last) = (now, totals);
    }
}
