//! Mistakes of users in running fleets, by which endpoints are missing although the agents work.

use crate::both::{explained, settled};
use crate::fault::{all_give_exactly, faults};
use crate::world::{EXPORTER, IMPORTER, NAMESPACE, SOON, THIRD, World, codes, show};
use anyhow::ensure;
use diagnosis::Code::*;
use diagnosis::explain::Filter;
use diagnosis::report::{Api, Explanation, Verdict};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

faults! {
    MISTAKES:
    FN303: the_namespace_in_the_hub_hangs_in_deletion,
    FN317: a_derived_service_is_exported,
    FN321: no_container_has_the_named_target_port,
    FN321: a_second_port_has_no_endpoints,
    FN322: an_endpoint_has_nine_addresses,
    FN323: an_exporter_serves_no_port_of_the_import,
    FN412: the_namespace_of_the_importer_hangs_in_deletion,
    FN412: the_importer_lacks_the_namespace,
    FN413: the_import_names_another_service,
    FN413: a_chosen_importer_names_another_service,
    FN617: two_exporters_have_different_session_affinities,
    FN707: two_clusters_have_the_same_pod_addresses,
    FN711: two_clusters_export_an_address_by_hand,
}

/// Deletes a namespace in which an object has a finalizer that nobody removes.
async fn delete_namespace(server: &sim::Server) -> anyhow::Result<()> {
    let user = harness::user::User::new(server.admin(), NAMESPACE);
    let stuck = json!({"metadata": {"name": "stuck", "finalizers": ["example.com/never"]}});
    user.create::<ConfigMap>(stuck).await?;
    kube::Api::<Namespace>::all(server.admin()).delete(NAMESPACE, &DeleteParams::default()).await?;
    sleep(SOON).await;
    Ok(())
}

async fn the_namespace_in_the_hub_hangs_in_deletion() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    delete_namespace(&world.fleet.hub).await?;
    explained(&world).await
}

async fn a_derived_service_is_exported() -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    let user = world.user(EXPORTER);
    user.serve("app", &["10.1.0.1"]).await?;
    let label = json!({"metadata": {"labels": {"multicluster.kubernetes.io/service-name": "other"}}});
    user.merge::<EndpointSlice>("app-1", label).await?;
    user.export("app").await?;
    world.imports().await?;
    settled(&world).await
}

/// Changes the exporter's only slice, as the EndpointSlice controller of Kubernetes does.
async fn with_slice(change: Value) -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    world.user(EXPORTER).merge::<EndpointSlice>("app-1", change).await?;
    settled(&world).await
}

async fn no_container_has_the_named_target_port() -> anyhow::Result<Explanation> {
    with_slice(json!({"ports": []})).await
}

async fn a_second_port_has_no_endpoints() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    let ports = json!([{"name": "http", "port": 80}, {"name": "metrics", "port": 81, "targetPort": "htttp"}]);
    world.user(EXPORTER).merge::<Service>("app", json!({"spec": {"ports": ports}})).await?;
    settled(&world).await
}

async fn an_endpoint_has_nine_addresses() -> anyhow::Result<Explanation> {
    let addresses: Vec<String> = (1..=9).map(|number| format!("10.1.0.{number}")).collect();
    with_slice(json!({"endpoints": [{"addresses": addresses}]})).await
}

async fn an_exporter_serves_no_port_of_the_import() -> anyhow::Result<Explanation> {
    let world = World::with_service(Api::Mcs, 3).await?;
    let user = world.user(THIRD);
    user.create_service_with_port("app", 81).await?;
    user.create_slice("app", "app-1", &["10.3.0.1"]).await?;
    user.export_mcs("app", json!({})).await?;
    sleep(SOON).await;
    // A change of endpoints that no client reaches is no reason to look for a fault of the agents.
    user.set_endpoints("app-1", &["10.3.0.2"]).await?;
    sleep(SOON).await;
    let mut explanation = explained(&world).await?;
    ensure!(explanation.notices.iter().any(|notice| notice.code == FN320), "{}", show(&explanation));
    explanation.notices.retain(|notice| notice.code != FN320);
    Ok(explanation)
}

async fn the_namespace_of_the_importer_hangs_in_deletion() -> anyhow::Result<Explanation> {
    let world = World::running(2).await?;
    delete_namespace(&world.fleet.members[IMPORTER].server).await?;
    world.explain(&Filter { to: Some("member-2".to_owned()), ..Filter::default() }).await
}

async fn the_importer_lacks_the_namespace() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    let namespaces = kube::Api::<Namespace>::all(world.fleet.members[THIRD].server.admin());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    sleep(SOON).await;
    world.explain(&Filter { to: Some("member-3".to_owned()), ..Filter::default() }).await
}

async fn misnamed(to: Option<&str>) -> anyhow::Result<Explanation> {
    let world = World::empty(2).await?;
    world.exports().await?;
    world.user(IMPORTER).import("app", "apq", harness::user::Consume::ClusterIp).await?;
    sleep(SOON).await;
    world.explain(&Filter { to: to.map(str::to_owned), ..Filter::default() }).await
}

async fn the_import_names_another_service() -> anyhow::Result<Explanation> {
    misnamed(None).await
}

async fn a_chosen_importer_names_another_service() -> anyhow::Result<Explanation> {
    misnamed(Some("member-2")).await
}

async fn two_exporters_have_different_session_affinities() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    let user = world.user(THIRD);
    user.create_service("app").await?;
    user.merge::<Service>("app", json!({"spec": {"sessionAffinity": "ClientIP"}})).await?;
    user.create_slice("app", "app-1", &["10.3.0.1"]).await?;
    user.export("app").await?;
    settled(&world).await
}

async fn two_clusters_have_the_same_pod_addresses() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    let of_pod = json!([{"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod", "name": "app-1"}}]);
    let other = world.user(THIRD);
    other.export_new("app", &["10.1.0.1"]).await?;
    for (user, slice) in [(&other, "app-1"), (&world.user(EXPORTER), "app-1")] {
        user.merge::<EndpointSlice>(slice, json!({"endpoints": of_pod})).await?;
    }
    settled(&world).await
}

async fn two_clusters_export_an_address_by_hand() -> anyhow::Result<Explanation> {
    let world = World::running(3).await?;
    let other = world.user(THIRD);
    other.export_new("app", &["10.1.0.1"]).await?;
    settled(&world).await
}

#[test]
fn each_mistake_of_a_user_gives_exactly_its_code() -> anyhow::Result<()> {
    all_give_exactly(MISTAKES.iter().map(|mistake| {
        let played = sim::paused((mistake.play)()).and_then(|explanation| {
            let expected = if mistake.code.entry().is_notice() { Verdict::Healthy } else { Verdict::Fault };
            ensure!(explanation.verdict == expected, "{:?}", explanation.verdict);
            Ok(explanation)
        });
        (mistake.code, played)
    }))
}

/// The agents leave out slices with host names on purpose, so this is no fault.
#[test]
fn a_slice_of_host_names_beside_addresses_is_no_fault() -> anyhow::Result<()> {
    for api in Api::ALL {
        sim::paused(async {
            let world = World::with_service(api, 2).await?;
            let slice = json!({
                "metadata": {"name": "app-names", "labels": {"kubernetes.io/service-name": "app"}},
                "addressType": "FQDN", "endpoints": [{"addresses": ["db.example"]}],
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            });
            world.user(EXPORTER).create::<EndpointSlice>(slice).await?;
            sleep(SOON).await;
            let explanation = explained(&world).await?;
            ensure!(codes(&explanation).is_empty(), "{}", show(&explanation));
            ensure!(explanation.verdict == Verdict::Healthy, "{}", show(&explanation));
            anyhow::Ok(())
        })?;
    }
    Ok(())
}
