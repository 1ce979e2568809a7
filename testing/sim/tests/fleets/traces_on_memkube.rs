//! Traces of changes of slices: the spans of real agents on simulated API servers with paused time.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use fleetnet_agent::flags::SAMPLED_OF;
use fleetnet_agent::traces::{CHANGE, Sampling, Sink, Span};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use fleetnet_api::names::annotations::{LAST_CHANGE_TRIGGER_TIME, TRACEPARENT};
use fleetnet_types::{Timestamp, Traceparent};
use harness::user::{Consume, User};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use scenarios::environment::Backend as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const HUB: Place = Place::Hub;
const EXPORTER: Place = Place::Member(0);
const IMPORTER: Place = Place::Member(1);
/// Time in which all agents announce their part in traces, and a new object is not new any more.
const SETTLES: Duration = Duration::from_secs(90);
/// Time in which a change and its objects arrive.
const ARRIVES: Duration = Duration::from_secs(10);

/// Spans of all agents, in the order of their ends.
#[derive(Clone, Debug, Default)]
struct Spans(Arc<Mutex<Vec<(Span, Timestamp)>>>);

impl Sink for Spans {
    fn take(&self, span: Span, end: Timestamp) {
        self.0.lock().push((span, end));
    }
}

impl Spans {
    fn sampling(&self, per_million: u32) -> Sampling {
        Sampling { per_million, sink: Arc::new(self.clone()) }
    }

    /// Returns the spans since the last call.
    fn take_all(&self) -> Vec<(Span, Timestamp)> {
        std::mem::take(&mut self.0.lock())
    }

    fn names(&self) -> Vec<&'static str> {
        self.take_all().iter().map(|(span, _)| span.name).collect()
    }
}

/// Fleet of two members, the first of which exports a Service to the second.
struct Traced {
    env: OnMemkube,
    spans: Spans,
}

impl Traced {
    /// Starts a fleet in which these agents take part in traces, with this rate.
    async fn start(places: &[Place], per_million: u32, slice_streams: bool) -> anyhow::Result<Self> {
        let spans = Spans::default();
        let mut options = Options { slice_streams, ..Options::members(2) };
        options.traces = places.iter().map(|place| (*place, spans.sampling(per_million))).collect();
        let mut env = OnMemkube(Fleet::new(options).await?);
        env.0.make_namespace("work").await?;
        env.start_agents().await?;
        let fleet = Self { env, spans };
        sleep(SETTLES).await;
        fleet.user(0).export_new("app", &["10.1.0.1"]).await?;
        fleet.user(1).import("app", "app", Consume::ClusterIp).await?;
        fleet.user(1).sees("app", &["10.1.0.1"]).await?;
        sleep(SETTLES).await;
        Ok(fleet)
    }

    fn user(&self, member: usize) -> User {
        User::new(self.env.0.members[member].server.admin(), "work")
    }

    /// Changes the exported slice as the EndpointSlice controller does, a second after its trigger.
    async fn change(&self, address: &str, triggered: Option<&str>) -> anyhow::Result<()> {
        self.user(0)
            .merge::<EndpointSlice>(
                "app-1",
                json!({
                    "metadata": { "annotations": { LAST_CHANGE_TRIGGER_TIME: triggered } },
                    "endpoints": [{ "addresses": [address] }],
                }),
            )
            .await?;
        self.user(1).sees("app", &[address]).await?;
        sleep(ARRIVES).await;
        Ok(())
    }

    /// Removes the endpoints of the exported slice in the hub, and waits until its exporter has repaired it.
    async fn empty_export(&self) -> anyhow::Result<()> {
        let exports: Api<EndpointSliceExport> = Api::namespaced(self.env.0.hub.admin(), "fleet-member-member-1");
        let export = only::<EndpointSliceExport>(self.env.0.hub.admin(), "fleet-member-member-1").await?;
        let edit = json!({ "spec": { "endpoints": [] } });
        exports.patch(&export.name_any(), &PatchParams::default(), &Patch::Merge(edit)).await?;
        sleep(SETTLES).await;
        let repaired = only::<EndpointSliceExport>(self.env.0.hub.admin(), "fleet-member-member-1").await?;
        ensure!(repaired.spec.endpoints.len() == 1, "the exporter has not repaired the slice: {repaired:#?}");
        Ok(())
    }

    /// Writes a change of the exported slice with this annotation, as another client of the member can. Returns the
    /// spans `distribute` after it.
    async fn distributed_after(&self, annotation: &str) -> anyhow::Result<Vec<Span>> {
        let hub = self.env.0.hub.admin();
        let export = only::<EndpointSliceExport>(hub.clone(), "fleet-member-member-1").await?;
        let exports: Api<EndpointSliceExport> = Api::namespaced(hub, "fleet-member-member-1");
        let generation = export.spec.endpoint_slice_reference.generation + 1;
        let edit = json!({
            "metadata": { "annotations": { TRACEPARENT: annotation } },
            "spec": { "endpointSliceReference": { "generation": generation } },
        });
        self.spans.take_all();
        exports.patch(&export.name_any(), &PatchParams::default(), &Patch::Merge(edit)).await?;
        sleep(ARRIVES).await;
        let spans = self.spans.take_all().into_iter().map(|(span, _)| span);
        Ok(spans.filter(|span| span.name == "distribute").collect())
    }

    /// Restarts the agent of a cluster with another part in traces.
    async fn restart(&mut self, place: Place, sampling: Option<Sampling>) -> anyhow::Result<()> {
        self.env.0.set_traces(place, sampling);
        self.env.0.stop(place).await?;
        self.env.0.start(place)?;
        self.env.0.ready().await?;
        sleep(SETTLES).await;
        Ok(())
    }

    /// Returns the annotations of the slice on its way: in the hub for the exporter and the importer, and imported.
    async fn annotations(&self) -> anyhow::Result<[Option<String>; 3]> {
        let hub = || self.env.0.hub.admin();
        let importer = self.env.0.members[1].server.admin();
        Ok([
            annotation(only::<EndpointSliceExport>(hub(), "fleet-member-member-1").await?),
            annotation(only::<EndpointSliceImport>(hub(), "fleet-member-member-2").await?),
            annotation(only::<EndpointSlice>(importer, "fleet-system").await?),
        ])
    }
}

fn annotation(object: impl Resource) -> Option<String> {
    object.meta().annotations.as_ref()?.get(TRACEPARENT).cloned()
}

/// Returns the only object of a kind in a namespace.
async fn only<K>(client: Client, namespace: &str) -> anyhow::Result<K>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    let mut items = Api::<K>::namespaced(client, namespace).list(&ListParams::default()).await?.items;
    ensure!(items.len() == 1, "{} objects in {namespace}: {items:#?}", items.len());
    items.pop().context("an object")
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    span.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string())
}

/// Rule TR1: A source slice changes, the change is sampled, and both agents announce traces
/// Then: The member agent writes the context of its span to the annotation `tracing.k8s.io/traceparent` of the
/// EndpointSliceExport, in the same write. The span starts with the trigger of the change. The hub agent and the
/// importing member agent carry the annotation on, and each makes a span with a link to the first one
#[test]
fn a_sampled_change_has_one_span_in_each_agent_linked_to_that_of_the_exporter() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = Traced::start(&[HUB, EXPORTER, IMPORTER], SAMPLED_OF, false).await?;
        let first = fleet.spans.take_all();
        let names: Vec<_> = first.iter().map(|(span, _)| span.name).collect();
        ensure!(names == ["export", "distribute", "import"], "the first export is a change too: {first:#?}");
        let now = fleet.env.0.now();
        let triggered = jiff::Timestamp::from_microsecond(now.0 - 1_000_000)?.to_string();
        fleet.change("10.1.0.2", Some(&triggered)).await?;
        let spans = fleet.spans.take_all();
        let [(export, exported), (distribute, distributed), (import, imported)] = &spans[..] else {
            anyhow::bail!("one span in each agent, not {spans:#?}");
        };
        ensure!((export.name, distribute.name, import.name) == ("export", "distribute", "import"), "{spans:#?}");
        ensure!(export.start.0 == now.0 - 1_000_000, "the span starts with the trigger: {export:#?}");
        ensure!(export.link.is_none(), "{export:#?}");
        ensure!([distribute, import].iter().all(|span| span.link == Some(export.context)), "{spans:#?}");
        ensure!(exported <= distributed && distributed <= imported, "{spans:#?}");
        ensure!(distribute.start >= export.start && import.start >= distribute.start, "{spans:#?}");
        let change = format!("{:032x}", export.context.trace);
        for (span, _) in &spans {
            let of_span =
                [CHANGE, "k8s.service.name", "fleetnet.exporter", "fleetnet.slice"].map(|key| attribute(span, key));
            let expected = [change.as_str(), "app", "member-1", "app-1"].map(|value| Some(value.to_owned()));
            ensure!(of_span == expected, "{span:#?}");
        }
        ensure!(attribute(import, "fleetnet.importer").as_deref() == Some("member-2"), "{import:#?}");
        let annotations = fleet.annotations().await?;
        ensure!(annotations == [(); 3].map(|()| Some(export.context.to_string())), "{annotations:?}");
        Ok(())
    })
}

/// Rule TR2: The change goes over a slice stream
/// Then: The preview has the context too, and the hub agent makes a span for the preview and one for the object
#[test]
fn a_preview_carries_the_trace_of_its_change() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = Traced::start(&[HUB, EXPORTER, IMPORTER], SAMPLED_OF, true).await?;
        fleet.spans.take_all();
        fleet.change("10.1.0.2", None).await?;
        let spans = fleet.spans.take_all();
        let names: Vec<_> = spans.iter().map(|(span, _)| span.name).collect();
        ensure!(names == ["export", "preview", "import", "distribute"], "{spans:#?}");
        let exported = spans[0].0.context;
        ensure!(spans[1..].iter().all(|(span, _)| span.link == Some(exported)), "{spans:#?}");
        ensure!(fleet.annotations().await? == [(); 3].map(|()| Some(exported.to_string())));
        Ok(())
    })
}

/// Returns all writes of the agents, and the slices on their way, after a first export and two changes.
async fn played(places: &[Place], per_million: u32, slice_streams: bool) -> anyhow::Result<(Value, Value)> {
    let fleet = Traced::start(places, per_million, slice_streams).await?;
    fleet.change("10.1.0.2", None).await?;
    fleet.change("10.1.0.3", None).await?;
    let ledger = fleet.env.ledger().await.objects();
    let writes: Vec<_> = ledger.clusters().map(|ledger| ledger.counts()).collect();
    let hub = || fleet.env.0.hub.admin();
    let importer = fleet.env.0.members[1].server.admin();
    let slices = json!([
        only::<EndpointSliceExport>(hub(), "fleet-member-member-1").await?,
        only::<EndpointSliceImport>(hub(), "fleet-member-member-2").await?,
        only::<EndpointSlice>(importer, "fleet-system").await?,
    ]);
    Ok((json!(writes), slices))
}

/// Rule TR3: Traces are on
/// Then: They cause no write, and no other generation. The objects of a change that is not sampled have the same bytes
#[test]
fn traces_cost_no_write_and_an_unsampled_change_has_the_same_bytes() -> anyhow::Result<()> {
    for slice_streams in [false, true] {
        let played = |places: &'static [Place], per_million| sim::paused(played(places, per_million, slice_streams));
        let (writes, slices) = played(&[], 0)?;
        let (with_traces, unsampled) = played(&[HUB, EXPORTER, IMPORTER], 0)?;
        ensure!(with_traces == writes, "{with_traces:#} instead of {writes:#}");
        ensure!(unsampled == slices, "{unsampled:#} instead of {slices:#}");
        let (with_traces, mut sampled) = played(&[HUB, EXPORTER, IMPORTER], SAMPLED_OF)?;
        ensure!(with_traces == writes, "{with_traces:#} instead of {writes:#}");
        for slice in sampled.as_array_mut().context("slices")? {
            let annotations = slice["metadata"]["annotations"].as_object_mut().context("annotations")?;
            ensure!(annotations.remove(TRACEPARENT).is_some_and(|text| text.is_string()), "{slice:#}");
        }
        let generations = |slices: &Value| -> Vec<Value> {
            slices.as_array().into_iter().flatten().map(|slice| slice["metadata"]["generation"].clone()).collect()
        };
        ensure!(generations(&sampled) == generations(&slices), "{sampled:#} instead of {slices:#}");
    }
    Ok(())
}

/// Rule TR4: A slice has the annotation of an earlier change, and its next change is not sampled
/// Then: The write of this change removes the annotation, also if the agent does not take part in traces any more
#[test]
fn the_next_change_that_is_not_sampled_removes_the_annotation_in_its_own_write() -> anyhow::Result<()> {
    sim::paused(async {
        for still_part in [true, false] {
            let mut fleet = Traced::start(&[HUB, EXPORTER, IMPORTER], SAMPLED_OF, false).await?;
            ensure!(fleet.annotations().await?.iter().all(Option::is_some));
            let unsampled = still_part.then(|| fleet.spans.sampling(0));
            fleet.restart(EXPORTER, unsampled).await?;
            ensure!(fleet.annotations().await?.iter().all(Option::is_some), "a restart writes nothing");
            fleet.spans.take_all();
            let mark = fleet.env.mark().await?;
            fleet.change("10.1.0.2", None).await?;
            ensure!(fleet.annotations().await? == [const { None }; 3]);
            ensure!(fleet.spans.names().is_empty());
            let ledger = fleet.env.since(&mark).await?.objects();
            let slices = |entry: &&harness::audit::Entry| entry.resource.starts_with("endpointslice");
            let writes: usize = ledger.clusters().map(|ledger| ledger.0.iter().filter(slices).count()).sum();
            ensure!(writes == 3, "one write of each agent, not {writes}");
        }
        Ok(())
    })
}

/// Rule TR5: One of two agents does not announce traces
/// Then: No object for it has the annotation, and the trace ends before it
#[test]
fn only_agents_whose_peer_takes_part_too_carry_a_trace() -> anyhow::Result<()> {
    sim::paused(async {
        // Agents that take part, whether each slice on the way has the annotation, names of the spans.
        let table: [(&[Place], [bool; 3], &[&str]); 4] = [
            (&[EXPORTER, IMPORTER], [false; 3], &[]),
            (&[HUB, IMPORTER], [false; 3], &[]),
            (&[HUB, EXPORTER], [true, false, false], &["export"]),
            (&[HUB, EXPORTER, IMPORTER], [true; 3], &["export", "distribute", "import"]),
        ];
        for (places, annotated, names) in table {
            let fleet = Traced::start(places, SAMPLED_OF, false).await?;
            fleet.spans.take_all();
            fleet.change("10.1.0.2", None).await?;
            let annotations = fleet.annotations().await?;
            ensure!(annotations.each_ref().map(Option::is_some) == annotated, "{places:?}: {annotations:?}");
            let spans = fleet.spans.names();
            ensure!(spans == names, "{places:?}: {spans:?}");
        }
        Ok(())
    })
}

/// Rule TR6: An agent repairs a slice, or a member imports a Service that exists already
/// Then: The write has no span. The annotation of an earlier change stays, unless the write has a newer generation
#[test]
fn repairs_and_new_importers_belong_to_no_trace() -> anyhow::Result<()> {
    sim::paused(async {
        let fleet = Traced::start(&[HUB, EXPORTER, IMPORTER], SAMPLED_OF, false).await?;
        fleet.spans.take_all();
        let hub = || fleet.env.0.hub.admin();
        let [exported, ..] = fleet.annotations().await?;
        ensure!(exported.is_some());
        let importer = fleet.env.0.members[1].server.admin();
        let imported = only::<EndpointSlice>(importer.clone(), "fleet-system").await?;
        let slices: Api<EndpointSlice> = Api::namespaced(importer, "fleet-system");
        let edit = Patch::Merge(json!({ "endpoints": [] }));
        slices.patch(&imported.name_any(), &PatchParams::default(), &edit).await?;
        fleet.user(1).sees("app", &["10.1.0.1"]).await?;
        ensure!(fleet.spans.names().is_empty(), "the importer has repaired its slice");
        let before = only::<EndpointSliceImport>(hub(), "fleet-member-member-2").await?;
        let distributed: Api<EndpointSliceImport> = Api::namespaced(hub(), "fleet-member-member-2");
        distributed.delete(&before.name_any(), &DeleteParams::default()).await?;
        fleet.empty_export().await?;
        let after = only::<EndpointSliceImport>(hub(), "fleet-member-member-2").await?;
        ensure!(after.uid() != before.uid(), "it is there again");
        let annotations = fleet.annotations().await?;
        ensure!(annotations == [exported, None, None], "the other slices are made again: {annotations:?}");
        ensure!(fleet.spans.names().is_empty());

        // An endpoint that is not ready raises the generation, and is not carried.
        let ready = json!({ "addresses": ["10.1.0.1"] });
        let down = json!({ "addresses": ["10.1.0.9"], "conditions": { "ready": false, "serving": false } });
        fleet.user(0).merge::<EndpointSlice>("app-1", json!({ "endpoints": [ready, down] })).await?;
        fleet.empty_export().await?;
        ensure!(fleet.annotations().await? == [const { None }; 3]);
        ensure!(fleet.spans.names().is_empty());

        fleet.user(1).delete::<fleetnet_api::crd::MultiClusterService>("app").await?;
        sleep(SETTLES).await;
        fleet.user(1).import("app", "app", Consume::ClusterIp).await?;
        fleet.user(1).sees("app", &["10.1.0.1"]).await?;
        sleep(SETTLES).await;
        ensure!(fleet.spans.names().is_empty());
        Ok(())
    })
}

/// Rule TR7: A member writes an annotation of its choice
/// Then: The spans of other agents have ids of their own, and at most a link to the ids in the annotation. An
/// annotation of another form, or of an earlier generation, counts as absent
#[test]
fn a_forged_annotation_is_only_linked_to_and_a_stale_or_malformed_one_is_not_read() -> anyhow::Result<()> {
    sim::paused(async {
        let forged = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let fleet = Traced::start(&[HUB, EXPORTER, IMPORTER], 0, false).await?;
        // The second one is that of an earlier generation: its writer does not know the annotation.
        for (text, is_read) in [(forged, true), (forged, false), ("00-<script>-00f067aa0ba902b7-01", false)] {
            let of_hub = fleet.distributed_after(text).await?;
            ensure!(of_hub.len() == usize::from(is_read), "{text}: {of_hub:#?}");
            if let [span] = &of_hub[..] {
                ensure!(span.link == Traceparent::read(forged), "{span:#?}");
                ensure!(span.context.trace != Traceparent::read(forged).context("a context")?.trace, "{span:#?}");
            }
        }
        let fleet = Traced::start(&[HUB, IMPORTER], 0, false).await?;
        let of_hub = fleet.distributed_after(forged).await?;
        ensure!(of_hub.is_empty(), "the exporter does not take part: {of_hub:#?}");
        let fleet = Traced::start(&[IMPORTER], 0, false).await?;
        let hub = fleet.env.0.hub.admin();
        let distributed = only::<EndpointSliceImport>(hub.clone(), "fleet-member-member-2").await?;
        let slices: Api<EndpointSliceImport> = Api::namespaced(hub, "fleet-member-member-2");
        let generation = distributed.spec.slice.endpoint_slice_reference.generation + 1;
        let edit = Patch::Merge(json!({
            "metadata": { "annotations": { TRACEPARENT: forged } },
            "spec": { "endpointSliceReference": { "generation": generation }, "endpoints": [] },
        }));
        slices.patch(&distributed.name_any(), &PatchParams::default(), &edit).await?;
        sleep(ARRIVES).await;
        ensure!(fleet.spans.names().is_empty(), "the hub agent does not take part");
        Ok(())
    })
}
