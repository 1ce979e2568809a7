//! Faults in running fleets, injected through the API servers of the fleet.

use crate::both::{self, explained, refused, settled};
use crate::fault::{all_give_exactly, faults};
use crate::world::{
    ADDRESSES, EXPORTER, HUB_URL, IMPORTER, LATER, NAMESPACE, SOON, THIRD, World, denied, hub_secret, rejected, service,
};
use anyhow::Context as _;
use diagnosis::Code::*;
use diagnosis::explain;
use diagnosis::explain::Filter;
use diagnosis::report::{self, Explanation};
use diagnosis::snapshot::Listing;
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport, MultiClusterService, ServiceExport};
use harness::user::Consume;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use memkube::Verb;
use serde_json::json;
use sim::Options;
use sim::fleet::Place;
use tokio::time::sleep;

faults! {
    FAULTS:
    FN104: the_operator_may_not_list_service_exports,
    FN105: a_definition_is_deleted,
    FN106: a_definition_lacks_a_field,
    FN201: the_members_namespace_is_deleted,
    FN202: the_members_account_is_deleted,
    FN203: the_token_has_expired,
    FN204: the_url_of_the_hub_is_wrong,
    FN205: an_agent_never_starts,
    FN207: an_importer_stops,
    FN208: a_second_cluster_has_the_id,
    FN211: no_hub_agent_answers,
    FN213: the_members_namespace_hangs_in_deletion,
    FN301: nobody_exports_the_service,
    FN302: the_exported_service_does_not_exist,
    FN303: the_namespace_is_missing_in_the_hub,
    FN304: a_headless_service_is_exported_without_the_annotation,
    FN305: the_weight_is_no_number,
    FN306: the_weight_is_zero,
    FN309: the_hub_rejects_the_export,
    FN311: the_hub_agent_cannot_judge,
    FN312: two_exporters_have_different_ports,
    FN313: the_export_cannot_be_deleted,
    FN317: a_service_has_neither_selector_nor_slices,
    FN318: a_ready_pod_is_in_no_slice,
    FN401: nobody_imports_the_service,
    FN402: the_imported_name_does_not_exist,
    FN403: the_hub_denies_the_claim,
    FN405: another_cluster_has_the_exclusive_claim,
    FN406: two_multi_cluster_services_import_one_service,
    FN506: an_export_is_undecodable,
    FN604: the_derived_service_loses_its_labels,
    FN605: another_slice_has_the_name_of_the_imported_slice,
    FN610: no_cloud_controller_gives_an_address,
    FN612: the_import_cannot_be_deleted,
}

async fn the_operator_may_not_list_service_exports() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.refuse_operator(Place::Member(EXPORTER), "serviceexports", denied());
    explained(&world).await
}

async fn a_definition_is_deleted() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.fleet.members[EXPORTER].server.admin());
    let name = "multiclusterservices.networking.fleet.azure.com";
    definitions.delete(name, &DeleteParams::default()).await?;
    settled(&world).await
}

async fn a_definition_lacks_a_field() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    change_definition(&world, "endpointsliceexports", |version| {
        let fields = version.pointer_mut("/schema/openAPIV3Schema/properties/spec/properties")?;
        fields.as_object_mut()?.remove("drainingEndpoints").map(drop)
    })
    .await?;
    settled(&world).await
}

/// Changes each version of a definition in the hub.
async fn change_definition(
    world: &World,
    plural: &str,
    change: impl Fn(&mut serde_json::Value) -> Option<()>,
) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.fleet.hub.admin());
    let name = format!("{plural}.networking.fleet.azure.com");
    let mut definition = serde_json::to_value(definitions.get(&name).await?)?;
    let mut versions = definition["spec"]["versions"].take();
    for version in versions.as_array_mut().into_iter().flatten() {
        change(version).context("the definition has the field")?;
    }
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn the_members_namespace_is_deleted() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    delete_hub_namespace(&world, EXPORTER).await?;
    settled(&world).await
}

async fn the_members_account_is_deleted() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.in_hub(EXPORTER).delete::<ServiceAccount>("member-agent").await?;
    world.cut_off(EXPORTER);
    sleep(LATER).await;
    explained(&world).await
}

async fn the_token_has_expired() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    let now = world.fleet.clock().now().0 / 1_000_000;
    replace_secret(&world, HUB_URL, Some(now)).await?;
    world.cut_off(EXPORTER);
    sleep(LATER).await;
    explained(&world).await
}

async fn the_url_of_the_hub_is_wrong() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    replace_secret(&world, "https://old-hub.example:6443", None).await?;
    world.cut_off(EXPORTER);
    sleep(LATER).await;
    explained(&world).await
}

async fn an_agent_never_starts() -> anyhow::Result<Explanation> {
    let mut world = World::new(Options::members(2)).await?;
    world.fleet.start(Place::Hub)?;
    world.fleet.start(Place::Member(IMPORTER))?;
    world.fleet.ready().await?;
    world.exports().await?;
    settled(&world).await
}

async fn an_importer_stops() -> anyhow::Result<Explanation> {
    let mut world = World::running(2).await?;
    world.fleet.stop(Place::Member(IMPORTER)).await?;
    sleep(LATER).await;
    let mut snapshot = world.snapshot().await?;
    for deployment in snapshot.members[IMPORTER].agent.deployments.objects_mut().into_iter().flatten() {
        deployment.spec.replicas = Some(0);
        deployment.status = None;
    }
    snapshot.members[IMPORTER].agent.pods = Listing::of(Vec::new());
    Ok(explain(&snapshot, &service("app"), &Filter::default()))
}

async fn a_second_cluster_has_the_id() -> anyhow::Result<Explanation> {
    let cluster_ids = ["member-1", "member-2", "member-1"].map(str::to_owned).into();
    let mut world = World::new(Options { cluster_ids, ..Options::members(3) }).await?;
    world.contexts = [("member-1".to_owned(), EXPORTER), ("member-2".to_owned(), IMPORTER)].into();
    for place in [Place::Hub, Place::Member(IMPORTER), Place::Member(THIRD)] {
        world.fleet.start(place)?;
    }
    world.fleet.ready().await?;
    sleep(SOON).await;
    world.fleet.start(Place::Member(EXPORTER))?;
    world.exports().await?;
    settled(&world).await
}

async fn no_hub_agent_answers() -> anyhow::Result<Explanation> {
    let mut world = World::new(Options::members(2)).await?;
    for member in [EXPORTER, IMPORTER] {
        world.fleet.start(Place::Member(member))?;
    }
    world.fleet.ready().await?;
    world.exports().await?;
    settled(&world).await
}

async fn the_members_namespace_hangs_in_deletion() -> anyhow::Result<Explanation> {
    let mut world = World::running(2).await?;
    world.fleet.kill(Place::Hub).await;
    delete_hub_namespace(&world, EXPORTER).await?;
    settled(&world).await
}

async fn nobody_exports_the_service() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.user(EXPORTER).serve("app", &ADDRESSES).await?;
    world.imports().await?;
    settled(&world).await
}

async fn the_exported_service_does_not_exist() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.user(EXPORTER).export("app").await?;
    world.imports().await?;
    settled(&world).await
}

async fn the_namespace_is_missing_in_the_hub() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    let namespaces: Api<Namespace> = Api::all(world.fleet.hub.admin());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    world.exports().await?;
    world.imports().await?;
    settled(&world).await
}

async fn a_headless_service_is_exported_without_the_annotation() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    let headless = json!({"metadata": {"name": "app"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    world.user(EXPORTER).create::<Service>(headless).await?;
    world.user(EXPORTER).create_slice("app", "app-1", &ADDRESSES).await?;
    world.user(EXPORTER).export("app").await?;
    world.imports().await?;
    settled(&world).await
}

async fn the_weight_is_no_number() -> anyhow::Result<Explanation> {
    weighted("many").await
}

async fn the_weight_is_zero() -> anyhow::Result<Explanation> {
    weighted("0").await
}

async fn weighted(weight: &str) -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.user(EXPORTER).serve("app", &ADDRESSES).await?;
    let annotations = json!({"networking.fleet.azure.com/weight": weight});
    let export = json!({"metadata": {"name": "app", "annotations": annotations}});
    world.user(EXPORTER).create::<ServiceExport>(export).await?;
    world.imports().await?;
    settled(&world).await
}

async fn the_hub_rejects_the_export() -> anyhow::Result<Explanation> {
    refused(report::Api::Fleet, Place::Hub, &[Verb::Create], "internalserviceexports", rejected()).await
}

async fn the_hub_agent_cannot_judge() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.refuse(Place::Hub, &[Verb::Patch], "internalserviceexports/status", denied());
    world.exports().await?;
    settled(&world).await
}

async fn two_exporters_have_different_ports() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    let user = world.user(THIRD);
    user.create_service_with_port("app", 81).await?;
    user.create_slice("app", "app-1", &["10.3.0.1"]).await?;
    user.export("app").await?;
    settled(&world).await
}

async fn the_export_cannot_be_deleted() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.refuse(Place::Hub, &[Verb::Delete], "internalserviceexports", denied());
    world.user(EXPORTER).delete::<ServiceExport>("app").await?;
    settled(&world).await
}

async fn a_service_has_neither_selector_nor_slices() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.user(EXPORTER).create_service("app").await?;
    world.user(EXPORTER).export("app").await?;
    world.imports().await?;
    settled(&world).await
}

async fn a_ready_pod_is_in_no_slice() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    let user = world.user(EXPORTER);
    user.merge::<Service>("app", json!({"spec": {"selector": {"app": "app"}}})).await?;
    let pod = json!({
        "metadata": {"name": "app-1", "labels": {"app": "app"}},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    });
    user.create::<Pod>(pod).await?;
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-01T00:00:00Z"}]);
    let status = json!({"phase": "Running", "podIP": "10.1.0.9", "podIPs": [{"ip": "10.1.0.9"}], "conditions": ready});
    user.merge_status::<Pod>("app-1", status).await?;
    settled(&world).await
}

async fn nobody_imports_the_service() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    world.explain(&Filter { to: Some("member-3".to_owned()), ..Filter::default() }).await
}

async fn the_imported_name_does_not_exist() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.imports().await?;
    settled(&world).await
}

async fn the_hub_denies_the_claim() -> anyhow::Result<Explanation> {
    refused(report::Api::Fleet, Place::Hub, &[Verb::Create], "internalserviceimports", denied()).await
}

async fn another_cluster_has_the_exclusive_claim() -> anyhow::Result<Explanation> {
    let world = World::empty(3).await?;
    world.exports().await?;
    world.user(IMPORTER).import("app", "app", Consume::LoadBalancer).await?;
    world.user(IMPORTER).sees("app", &ADDRESSES).await?;
    world.user(THIRD).import("app", "app", Consume::LoadBalancer).await?;
    sleep(SOON).await;
    world.explain(&Filter { to: Some("member-3".to_owned()), ..Filter::default() }).await
}

async fn two_multi_cluster_services_import_one_service() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.user(IMPORTER).import("second", "app", Consume::ClusterIp).await?;
    settled(&world).await
}

async fn an_export_is_undecodable() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    change_definition(&world, "internalserviceexports", |version| {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        *version.pointer_mut("/schema/openAPIV3Schema")? = anything;
        Some(())
    })
    .await?;
    let export = json!({"spec": {"serviceReference": {"name": ""}}});
    world.in_hub(EXPORTER).merge::<InternalServiceExport>("work-app", export).await?;
    settled(&world).await
}

async fn the_derived_service_loses_its_labels() -> anyhow::Result<Explanation> {
    let mut world = World::running(2).await?;
    world.fleet.kill(Place::Member(IMPORTER)).await;
    let labels = json!({
        "networking.fleet.azure.com/multi-cluster-service-name": null,
        "networking.fleet.azure.com/multi-cluster-service-namespace": null,
    });
    world.in_system(IMPORTER).merge::<Service>("work-app", json!({"metadata": {"labels": labels}})).await?;
    world.fleet.start(Place::Member(IMPORTER))?;
    world.fleet.ready().await?;
    settled(&world).await
}

async fn another_slice_has_the_name_of_the_imported_slice() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.exports().await?;
    sleep(SOON).await;
    let exported = world.in_hub(EXPORTER).api::<EndpointSliceExport>().list(&ListParams::default()).await?;
    let name = exported.items[0].name_any();
    let theirs = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [], "ports": []});
    world.in_system(IMPORTER).create::<EndpointSlice>(theirs).await?;
    world.imports().await?;
    settled(&world).await
}

async fn no_cloud_controller_gives_an_address() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.exports().await?;
    world.user(IMPORTER).import("app", "app", Consume::LoadBalancer).await?;
    settled(&world).await
}

async fn the_import_cannot_be_deleted() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.refuse(Place::Member(IMPORTER), &[Verb::Delete], "services", denied());
    world.user(IMPORTER).delete::<MultiClusterService>("app").await?;
    settled(&world).await
}

async fn delete_hub_namespace(world: &World, member: usize) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(world.fleet.hub.admin());
    namespaces.delete(&world.fleet.members[member].hub_namespace, &DeleteParams::default()).await?;
    Ok(())
}

async fn replace_secret(world: &World, url: &str, expires: Option<i64>) -> anyhow::Result<()> {
    let hub_namespace = world.fleet.members[EXPORTER].hub_namespace.to_string();
    world.in_system(EXPORTER).merge::<Secret>("fleetnet-hub", hub_secret(&hub_namespace, url, expires)).await
}

/// Plays every fourth fault, from this one: four tests run in parallel.
fn play_from(first: usize) -> anyhow::Result<()> {
    let own = FAULTS.iter().map(|fault| (fault.code, (fault.play)()));
    let of_both = both::FAULTS.iter().map(|fault| (fault.code, (fault.play)(report::Api::Fleet)));
    let played = own.chain(of_both).skip(first).step_by(4);
    all_give_exactly(played.map(|(code, played)| (code, sim::paused(played))))
}

#[test]
fn each_first_fault_in_a_running_fleet_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(0)
}

#[test]
fn each_second_fault_in_a_running_fleet_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(1)
}

#[test]
fn each_third_fault_in_a_running_fleet_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(2)
}

#[test]
fn each_fourth_fault_in_a_running_fleet_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(3)
}
