//! Test of traces: spans of real agents on real control planes. With
//! `FLEETNET_COLLECTOR=$(cargo xtask collector)`, they go to a real OpenTelemetry Collector.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::EndpointSliceImport;
use fleetnet_runtime::clock::Clock;
use harness::agent::{Agent, AgentSpec};
use harness::collector::{Collector, Span};
use harness::eventually::{self, Deadline};
use harness::fleet::{Fleet, manifests};
use harness::gate::GateProxy;
use harness::pods::Pods;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::WatchParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of a picture for the time from the first start to the last end.
const COLUMNS: u64 = 48;
const CHANGE: &str = "fleetnet.change.trace_id";

/// Fleet whose agents send the spans of all changes.
struct Traced {
    exporter: User,
    importer: User,
    collector: Collector,
    _agents: [Agent; 3],
    _gate: GateProxy,
    _pods: Pods,
    _controllers: harness::process::Process,
    fleet: Fleet,
}

impl Traced {
    async fn start() -> anyhow::Result<Self> {
        let (fleet, collector) = (Fleet::take(2).await?, Collector::start().await?);
        manifests::apply(&fleet.hub, manifests::SLICE_STREAM).await?;
        let namespace = fleet.namespace("traces").await?;
        let [one, two] = &fleet.members[..] else { anyhow::bail!("two members") };
        let [exporter, importer] = [one, two].map(|member| User::new(member.control_plane.admin(), &namespace));
        let controllers = one.control_plane.start_controller_manager(&["endpointslice-controller"], &[]).await?;
        let pods = Pods::run(one.control_plane.admin(), 1).await?;
        let traced = |agent: AgentSpec| {
            agent.flag("--tracing-endpoint", &collector.endpoint).flag("--tracing-sampling-rate-per-million", "1000000")
        };
        let gate = GateProxy::start_shut().await?;
        let hub_agent = traced(fleet.hub_agent().await?)
            .flag("--slice-stream-bind-address", "127.0.0.1:0")
            .flag("--slice-stream-advertise-address", gate.address())
            .start_ready()
            .await?;
        gate.open_to(hub_agent.slice_stream_address().await?);
        let agents = [
            hub_agent,
            traced(fleet.member_agent(one).await?).start_ready().await?,
            traced(fleet.member_agent(two).await?).start_ready().await?,
        ];
        agents[2].metrics_have("fleetnet_slice_stream_connected 1").await?;
        Ok(Self {
            exporter,
            importer,
            collector,
            _agents: agents,
            _gate: gate,
            _pods: pods,
            _controllers: controllers,
            fleet,
        })
    }

    /// Runs a pod of the Service `app` in the exporter, and waits until the importer has `number` endpoints.
    async fn run_pod(&self, name: &str, number: usize) -> anyhow::Result<()> {
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": "app" } },
            "spec": { "containers": [{ "name": "app", "image": "app" }] },
        });
        self.exporter.create::<Pod>(pod).await?;
        let ready = |slices: &BTreeMap<String, EndpointSlice>| {
            slices.values().map(|slice| slice.endpoints.as_ref().map_or(0, Vec::len)).sum::<usize>() == number
        };
        self.importer.sees_slices("app", &format!("to have {number} endpoints"), ready).await.map(drop)
    }

    /// Waits until the importer's finalizer is on the distributed slice. Only then a change goes over the slice stream.
    async fn importer_holds_slice(&self) -> anyhow::Result<()> {
        let namespace = &self.fleet.members[1].hub_namespace;
        let api: Api<EndpointSliceImport> = Api::namespaced(self.fleet.hub.admin(), namespace);
        let held = |slices: &BTreeMap<String, EndpointSliceImport>| {
            !slices.is_empty() && slices.values().all(|slice| !slice.finalizers().is_empty())
        };
        let what = "the finalizer of the importer on its distributed slice";
        eventually::objects(&api, &WatchParams::default(), what, held).await.map(drop)
    }
}

/// Waits for the next second. Kubernetes writes the trigger of a change in whole seconds, and not twice in a second.
async fn next_second() -> anyhow::Result<()> {
    let clock = Clock::system();
    let (begun, deadline) = (clock.now().whole_seconds(), Deadline::start());
    while clock.now().whole_seconds() == begun {
        deadline.pause(|| "the next second").await?;
    }
    Ok(())
}

/// Returns the spans of the last change that the exporter sampled, in the order of their starts, if all are there.
fn last_change(spans: &[Span], number: usize) -> Option<Vec<Span>> {
    let root = spans.iter().filter(|span| span.name == "export").max_by_key(|span| span.start)?;
    let of_change = |span: &&Span| span.attributes.get(CHANGE) == Some(&root.trace);
    let mut change: Vec<Span> = spans.iter().filter(of_change).cloned().collect();
    change.sort_by_key(|span| (span.start, span.end));
    (change.len() == number).then_some(change)
}

/// Draws spans as a picture: one line for each, with its time in milliseconds after the first start. The bars end with
/// the import, because the importer has the change then.
fn picture(spans: &[Span]) -> String {
    let begin = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let imported = spans.iter().filter(|span| span.name == "import").map(|span| span.end).max().unwrap_or_default();
    let column = |time: u64| {
        let width = imported.saturating_sub(begin).max(1);
        usize::try_from((time - begin).min(width) * COLUMNS / width).unwrap_or_default()
    };
    let millis = |time: u64| (time - begin) / 1_000_000;
    let mut text = String::new();
    for span in spans {
        let (first, last) = (column(span.start), column(span.end));
        let bar = format!("{}{}", " ".repeat(first), "━".repeat((last - first).max(1)));
        let later = if span.end > imported { "▸" } else { "" };
        let cluster = span.attributes.get("k8s.cluster.name").map_or("?", String::as_str);
        let (from, to) = (millis(span.start), millis(span.end));
        let _ = writeln!(text, "{cluster:<12} {:<11} {from:>5} to {to:>5} ms  {bar}{later}", span.name);
    }
    text
}

#[test]
fn one_change_is_one_picture_from_the_pod_to_the_importer() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Traced::start().await?;
        let ports = json!([{ "port": 80 }]);
        let service =
            json!({ "metadata": { "name": "app" }, "spec": { "selector": { "app": "app" }, "ports": ports } });
        fleet.exporter.create::<Service>(service).await?;
        fleet.exporter.export("app").await?;
        fleet.importer.import("app", "app", Consume::ClusterIp).await?;
        fleet.run_pod("app-1", 1).await?;
        fleet.importer_holds_slice().await?;
        next_second().await?;
        fleet.run_pod("app-2", 2).await?;
        let names = ["export", "preview", "import", "distribute"];
        let change =
            fleet.collector.find("the spans of the last change", |spans| last_change(spans, names.len())).await?;
        println!("{}", picture(&change));
        let of_name = |name: &str| change.iter().find(|span| span.name == name).with_context(|| format!("no {name}"));
        let root = of_name("export")?;
        ensure!(root.links.is_empty(), "{root:#?}");
        let exporter = &fleet.fleet.members[0].cluster_id;
        for name in &names[1..] {
            let span = of_name(name)?;
            ensure!(span.links == [(root.trace.clone(), root.id.clone())] && span.trace != root.trace, "{change:#?}");
            ensure!(span.start >= root.start && span.end >= span.start, "{change:#?}");
        }
        for (name, service, cluster) in [
            ("export", "member-agent", exporter.as_str()),
            ("preview", "hub-agent", "hub"),
            ("distribute", "hub-agent", "hub"),
            ("import", "member-agent", fleet.fleet.members[1].cluster_id.as_str()),
        ] {
            let span = of_name(name)?;
            let values = ["service.name", "k8s.cluster.name", "k8s.service.name", "fleetnet.exporter"]
                .map(|key| span.attributes.get(key).map(String::as_str));
            ensure!(values == [service, cluster, "app", exporter].map(Some), "{span:#?}");
        }
        ensure!(root.start % 1_000_000_000 == 0, "the trace starts with the pod, in whole seconds: {change:#?}");
        Ok(())
    })
}
