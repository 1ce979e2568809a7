//! Healthy fleet of a seed: one or two clusters export `app`, and member-2 imports it.

use super::installation;
use super::rights::EndOfWatches;
use crate::world::{EXPORTER, SOON, THIRD, World, mcs_api};
use diagnosis::report::Api;
use fastrand::Rng;
use fleetnet_api::crd::ServiceExport;
use harness::user::User;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;
use sim::Options;
use std::sync::Arc;
use tokio::time::sleep;

/// Form of the exported Service.
#[derive(Clone, Copy, Debug)]
struct Form {
    is_headless: bool,
    /// True if the Service has an IPv6 slice too. memkube gives Services no IPv6 address, so kube-proxy uses it for no
    /// Service with an address.
    is_dual_stack: bool,
    slices: usize,
}

/// Starts the fleet of a seed, and waits until it rests.
pub(super) async fn start(rng: &mut Rng, seed: u64) -> anyhow::Result<World> {
    let api = if rng.bool() { Api::Fleet } else { Api::Mcs };
    let form = Form { is_headless: rng.usize(..4) == 0, is_dual_stack: rng.usize(..4) == 0, slices: rng.usize(1..=2) };
    let exporters: &[usize] = if rng.bool() { &[EXPORTER] } else { &[EXPORTER, THIRD] };
    let mut world = World::new(Options { mcs_api: mcs_api(api), seed, ..Options::members(3) }).await?;
    for place in world.fleet.places() {
        installation::install(&world, place).await?;
        world.memkube(place).set_faults(Some(Arc::new(EndOfWatches::default())));
    }
    world.fleet.start_agents().await?;
    sleep(SOON).await;
    for exporter in exporters {
        export(&world.user(*exporter), *exporter, api, form).await?;
    }
    world.imports().await?;
    sleep(SOON).await;
    Ok(world)
}

async fn export(user: &User, member: usize, api: Api, form: Form) -> anyhow::Result<()> {
    let mut spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    if form.is_headless {
        spec["clusterIP"] = json!("None");
    }
    user.create::<Service>(json!({"metadata": {"name": "app"}, "spec": spec})).await?;
    for slice in 1..=form.slices {
        let addresses = [1, 2].map(|number| format!("10.{}.{slice}.{number}", member + 1));
        let addresses = addresses.each_ref().map(String::as_str);
        user.create_slice("app", &format!("app-{slice}"), &addresses).await?;
    }
    if form.is_dual_stack {
        let slice = json!({
            "metadata": {"name": "app-six", "labels": {"kubernetes.io/service-name": "app"}},
            "addressType": "IPv6", "endpoints": [{"addresses": [format!("fd00:{}::1", member + 1)]}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        user.create::<EndpointSlice>(slice).await?;
    }
    match api {
        Api::Fleet => {
            let annotations = json!({"networking.fleet.azure.com/export-headless": form.is_headless.to_string()});
            let export = json!({"metadata": {"name": "app", "annotations": annotations}});
            user.create::<ServiceExport>(export).await.map(drop)
        }
        Api::Mcs => user.export_mcs("app", json!({})).await.map(drop),
    }
}

/// Adds an endpoint to the first slice of each exporter that has it, as a user does who scales.
pub(super) async fn change_endpoints(world: &World) -> anyhow::Result<()> {
    for exporter in [EXPORTER, THIRD] {
        let user = world.user(exporter);
        let slice = user.api::<EndpointSlice>().get_opt("app-1").await?;
        let Some(slice) = slice.filter(|slice| slice.metadata.deletion_timestamp.is_none()) else { continue };
        let mut endpoints = json!(slice.endpoints.unwrap_or_default());
        let further = json!({"addresses": [format!("10.{}.9.9", exporter + 1)], "conditions": {"ready": true}});
        endpoints.as_array_mut().expect("a list").push(further);
        user.merge::<EndpointSlice>("app-1", json!({"endpoints": endpoints})).await?;
    }
    Ok(())
}
