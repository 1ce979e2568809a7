//! Tests in which the CRD of MemberAgent is deleted in the hub and applied again, in a fleet that uses every feature.
//! Agents delete nothing because of the missing CRD.

use crate::support::OnMemkube;
use fleetnet_api::crd::ServiceExport;
use fleetnet_api::crds::{self, Form};
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use scenarios::rich;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::time::Duration;
use tokio::time::sleep;

/// Time for which the last announced features stay valid after the CRD is deleted.
const MINUTE: Duration = Duration::from_secs(60);
/// Duration in which the back-off grows to its maximum: after it, agents look for a missing kind only every five
/// minutes.
const LONG: Duration = Duration::from_secs(900);
/// Time within which all agents notice that the kind exists again, and announce their features: five minutes until the
/// next attempt, plus a reserve.
const ANNOUNCED: Duration = Duration::from_secs(370);

/// Returns a fleet with a Service `app` that uses every feature and a headless Service `db`, exported and imported.
async fn rich_fleet() -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::<OnMemkube>::create(FleetSpec::of(2)).await?;
    let (exporter, importer) = (env.user(0), env.user(1));
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    exporter.create::<Service>(rich::headless_service("db")).await?;
    exporter.create_slice("db", "db-1", &["10.2.0.1"]).await?;
    let mut export = rich::export_headless();
    export["metadata"]["name"] = json!("db");
    exporter.create::<ServiceExport>(export).await?;
    importer.import("db", "db", Consume::ClusterIp).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees("db", &["10.2.0.1"]).await?;
    Ok(env)
}

fn definitions(env: &Environment<OnMemkube>) -> (Api<CustomResourceDefinition>, CustomResourceDefinition) {
    let of_member_agents = |it: &CustomResourceDefinition| it.spec.names.plural == "memberagents";
    let definition = crds::all(Form::Full).into_iter().find(of_member_agents).expect("it is one of ours");
    (Api::all(env.backend.hub()), definition)
}

async fn set(exporter: &User, slice: &str, endpoints: Value) -> anyhow::Result<()> {
    exporter.merge::<EndpointSlice>(slice, json!({"endpoints": endpoints})).await
}

/// Returns a ready endpoint in a zone, as it is in the exporter's slice of `app`.
fn in_zone(address: &str, zone: &str) -> Value {
    json!([{"addresses": [address], "conditions": rich::ready(), "zone": zone}])
}

/// Returns a slice with one ready endpoint, as the importer should have it.
fn imported(family: &str, address: &str, zone: Option<&str>) -> Value {
    let endpoint =
        zone.map_or_else(|| json!({"addresses": [address]}), |it| json!({"addresses": [address], "zone": it}));
    rich::slice(family, json!([endpoint]))
}

/// Also rules U12, U14.
#[test]
fn changes_flow_while_the_definition_is_missing_and_features_return_with_it_and_nothing_is_deleted()
-> anyhow::Result<()> {
    sim::paused(async {
        let mut env = rich_fleet().await?;
        let (exporter, importer) = (env.user(0), env.user(1));
        let mut routes = importer.routes("app");
        routes.are(&["10.1.0.1:8080", "fd00:1::1:8080"]).await?;
        let (api, definition) = definitions(&env);
        let mark = env.backend.mark().await?;

        api.delete(&definition.name_any(), &DeleteParams::default()).await?;
        sleep(MINUTE / 2).await;
        set(&exporter, rich::SLICE, in_zone("10.1.0.4", "zone-2")).await?;
        let six = imported("IPv6", "fd00:1::1", Some("zone-1"));
        rich::arrives(&importer, &[imported("IPv4", "10.1.0.4", Some("zone-2")), six.clone()]).await?;

        sleep(MINUTE).await;
        rich::arrives(&importer, &[imported("IPv4", "10.1.0.4", Some("zone-2")), six.clone()]).await?;
        set(&exporter, rich::SLICE, in_zone("10.1.0.5", "zone-3")).await?;
        set(&exporter, rich::SIXES, in_zone("fd00:1::2", "zone-3")).await?;
        exporter.set_endpoints("db-1", &["10.2.0.2"]).await?;
        rich::arrives(&importer, &[imported("IPv4", "10.1.0.5", None), six.clone()]).await?;
        importer.sees("db", &["10.2.0.2"]).await?;

        for place in [Place::Hub, Place::Member(0), Place::Member(1)] {
            env.backend.0.stop(place).await?;
            env.backend.0.start(place)?;
        }
        sleep(MINUTE / 6).await;
        set(&exporter, rich::SLICE, in_zone("10.1.0.6", "zone-3")).await?;
        rich::arrives(&importer, &[imported("IPv4", "10.1.0.6", None), six.clone()]).await?;
        sleep(LONG).await;
        rich::arrives(&importer, &[imported("IPv4", "10.1.0.6", None), six]).await?;
        importer.sees_import("db", "True").await?;

        api.create(&PostParams::default(), &definition).await?;
        sleep(ANNOUNCED).await;
        let all = [("IPv4", "10.1.0.6"), ("IPv6", "fd00:1::2")];
        rich::arrives(&importer, &all.map(|(family, address)| imported(family, address, Some("zone-3")))).await?;
        importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
        exporter.set_endpoints("db-1", &["10.2.0.3"]).await?;
        importer.sees("db", &["10.2.0.3"]).await?;

        routes.never_empty()?;
        let ledger = env.backend.since(&mark).await?;
        for ledger in ledger.clusters() {
            let deletes = ledger.0.iter().filter(|entry| entry.verb == "delete" && entry.user.contains("agent"));
            assert_eq!(deletes.count(), 0, "{ledger}");
        }
        Ok(())
    })
}
