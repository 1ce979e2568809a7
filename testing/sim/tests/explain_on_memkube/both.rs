//! Faults in running fleets that give the same code with each API.

use crate::world::{ADDRESSES, EXPORTER, IMPORTER, LATER, NAMESPACE, SOON, World, denied, failed, rejected};
use diagnosis::Code::{self, *};
use diagnosis::explain::Filter;
use diagnosis::report::{Api, Explanation};
use fleetnet_api::crd::EndpointSliceExport;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use memkube::Verb;
use memkube::status::Status;
use serde_json::json;
use sim::Options;
use sim::fleet::Place;
use tokio::time::sleep;

/// Fault, and the code that the diagnosis must give.
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) play: fn(Api) -> LocalBoxFuture<'static, anyhow::Result<Explanation>>,
}

macro_rules! faults {
    ($($code:ident: $play:ident,)+) => {
        pub(crate) const FAULTS: &[Fault] = &[$(Fault { code: $code, play: |api| Box::pin($play(api)) }),+];
    };
}

faults! {
    FN206: an_importer_is_cut_off,
    FN307: the_exporter_is_not_allowed,
    FN310: the_hub_denies_the_export,
    FN314: the_hub_denies_the_slice,
    FN315: the_hub_denies_a_change_of_the_slice,
    FN316: no_endpoint_is_ready,
    FN404: the_importer_is_not_allowed,
    FN501: the_hub_fails_to_create_the_distributed_slice,
    FN503: the_hub_denies_a_change_of_the_distributed_slice,
    FN505: the_hub_rejects_the_distributed_slice,
    FN601: the_importer_denies_the_derived_service,
    FN605: the_importer_denies_the_imported_slice,
    FN606: the_importer_denies_a_change_of_the_imported_slice,
    FN607: an_address_is_outside_of_the_declared_ranges,
    FN608: a_port_of_a_slice_is_invalid,
    FN703: an_exporter_is_cut_off,
}

/// Exports and imports `app` while a server answers these requests of agents with a fault.
pub(crate) async fn refused(
    api: Api,
    place: Place,
    verbs: &'static [Verb],
    resource: &'static str,
    status: Status,
) -> anyhow::Result<Explanation> {
    let world = World::with_agents(api, 2).await?;
    world.refuse(place, verbs, resource, status);
    world.exports().await?;
    world.imports().await?;
    settled(&world).await
}

/// Changes the endpoints of a running export while a server denies patches of a resource.
async fn refused_change(api: Api, place: Place, resource: &'static str) -> anyhow::Result<Explanation> {
    let world = World::with_service(api, 2).await?;
    world.refuse(place, &[Verb::Patch], resource, denied());
    world.user(EXPORTER).set_endpoints("app-1", &["10.1.0.7"]).await?;
    settled(&world).await
}

async fn cut_off(api: Api, member: usize) -> anyhow::Result<Explanation> {
    let world = World::with_service(api, 2).await?;
    world.cut_off(member);
    sleep(LATER).await;
    explained(&world).await
}

async fn limited(api: Api, annotation: &str) -> anyhow::Result<Explanation> {
    let world = World::with_agents(api, 2).await?;
    limit(&world, annotation).await?;
    world.exports().await?;
    world.imports().await?;
    settled(&world).await
}

async fn an_importer_is_cut_off(api: Api) -> anyhow::Result<Explanation> {
    cut_off(api, IMPORTER).await
}

async fn an_exporter_is_cut_off(api: Api) -> anyhow::Result<Explanation> {
    cut_off(api, EXPORTER).await
}

async fn the_exporter_is_not_allowed(api: Api) -> anyhow::Result<Explanation> {
    limited(api, "exporters").await
}

async fn the_importer_is_not_allowed(api: Api) -> anyhow::Result<Explanation> {
    limited(api, "importers").await
}

async fn the_hub_denies_the_export(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Hub, &[Verb::Create], "internalserviceexports", denied()).await
}

async fn the_hub_denies_the_slice(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Hub, &[Verb::Create], "endpointsliceexports", denied()).await
}

async fn the_hub_denies_a_change_of_the_slice(api: Api) -> anyhow::Result<Explanation> {
    refused_change(api, Place::Hub, "endpointsliceexports").await
}

async fn no_endpoint_is_ready(api: Api) -> anyhow::Result<Explanation> {
    let world = World::with_service(api, 2).await?;
    let endpoints = json!([{"addresses": [ADDRESSES[0]], "conditions": {"ready": false}}]);
    world.user(EXPORTER).merge::<EndpointSlice>("app-1", json!({"endpoints": endpoints})).await?;
    settled(&world).await
}

async fn the_hub_fails_to_create_the_distributed_slice(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Hub, &[Verb::Create], "endpointsliceimports", failed()).await
}

async fn the_hub_rejects_the_distributed_slice(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Hub, &[Verb::Create], "endpointsliceimports", rejected()).await
}

async fn the_hub_denies_a_change_of_the_distributed_slice(api: Api) -> anyhow::Result<Explanation> {
    refused_change(api, Place::Hub, "endpointsliceimports").await
}

async fn the_importer_denies_the_derived_service(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Member(IMPORTER), &[Verb::Create], "services", denied()).await
}

async fn the_importer_denies_the_imported_slice(api: Api) -> anyhow::Result<Explanation> {
    refused(api, Place::Member(IMPORTER), &[Verb::Create], "endpointslices", denied()).await
}

async fn the_importer_denies_a_change_of_the_imported_slice(api: Api) -> anyhow::Result<Explanation> {
    refused_change(api, Place::Member(IMPORTER), "endpointslices").await
}

async fn an_address_is_outside_of_the_declared_ranges(api: Api) -> anyhow::Result<Explanation> {
    let source_ranges = [("member-1".into(), vec![fleetnet_core::ranges::parse("10.1.0.0/31")?])].into();
    let world = World::with_options(api, Options { source_ranges, ..Options::members(2) }).await?;
    world.exports().await?;
    world.imports().await?;
    settled(&world).await
}

async fn a_port_of_a_slice_is_invalid(api: Api) -> anyhow::Result<Explanation> {
    let mut world = World::with_service(api, 2).await?;
    world.fleet.kill(Place::Member(EXPORTER)).await;
    let in_hub = world.in_hub(EXPORTER);
    let exported = in_hub.api::<EndpointSliceExport>().list(&ListParams::default()).await?;
    let ports =
        json!([{"name": "http", "protocol": "TCP", "port": 8080}, {"name": "bad", "protocol": "TCP", "port": 70000}]);
    in_hub.merge::<EndpointSliceExport>(&exported.items[0].name_any(), json!({"spec": {"ports": ports}})).await?;
    settled(&world).await
}

pub(crate) async fn explained(world: &World) -> anyhow::Result<Explanation> {
    world.explain(&Filter::default()).await
}

/// Returns the diagnosis after all effects of the last change are visible.
pub(crate) async fn settled(world: &World) -> anyhow::Result<Explanation> {
    sleep(SOON).await;
    explained(world).await
}

/// Allows only a cluster that does not exist.
async fn limit(world: &World, annotation: &str) -> anyhow::Result<()> {
    let annotations = json!({format!("networking.fleet.azure.com/{annotation}"): "nobody"});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let namespaces: kube::Api<Namespace> = kube::Api::all(world.fleet.hub.admin());
    namespaces.patch(NAMESPACE, &PatchParams::default(), &patch).await?;
    Ok(())
}
