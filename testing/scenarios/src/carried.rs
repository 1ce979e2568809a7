//! Scenarios of the fields that the agents copy from exporter to importer. Without announced features the agents write
//! the Go form.

use crate::environment::{Backend, Environment};
use crate::ledger::{changes, counts};
use crate::rich;
use fleetnet_api::crd::{InternalServiceExport, ServiceExport, ServiceImport};
use harness::eventually;
use harness::fleet::FLEET_SYSTEM;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use serde_json::{Value, json};

/// Also rules F1, F2, F3, F4, F9, W4.
pub async fn all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes<B: Backend>(
    mut env: Environment<B>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    rich::is_exported(&env, &rich::in_hub()).await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees_import("app", "True").await?;
    let is_rich = |service: &Service| {
        let families: Vec<String> = spec(service).ip_families.unwrap_or_default();
        policy(service) == Some("PreferDualStack") && families == B::FAMILIES && rich::is_sticky(service)
    };
    importer.sees_derived("app", "to have both families and session affinity", is_rich).await?;

    slices_change(&env, &exporter, &importer).await?;
    session_affinity_changes(&env, &exporter, &importer).await?;

    let mark = env.backend.mark().await?;
    env.backend.stop_agents().await?;
    env.backend.start_agents().await?;
    let drained = json!([{"addresses": ["10.1.0.2"], "conditions": rich::draining(), "zone": "zone-3"}]);
    exporter.merge::<EndpointSlice>(rich::SLICE, json!({"endpoints": drained})).await?;
    let fours = rich::slice("IPv4", drained);
    let sixes = json!([{"addresses": ["fd00:1::1"]}, {"addresses": ["fd00:1::2"]}]);
    rich::arrives(&importer, &[fours.clone(), rich::slice("IPv6", sixes)]).await?;
    assert_eq!(env.ledger(&mark).await?, changes(&env, 1), "a restart costs nothing");

    exporter.delete::<EndpointSlice>(rich::SIXES).await?;
    rich::arrives(&importer, &[fours]).await?;
    let kept = importer.derived_service("app").await?;
    assert_eq!(policy(&kept), Some("PreferDualStack"), "who has addresses of both families keeps them");
    Ok(())
}

/// Changes exported fields and other fields of slices. Each change of an exported field costs the same writes, other
/// changes cost none.
async fn slices_change(env: &Environment<impl Backend>, exporter: &User, importer: &User) -> anyhow::Result<()> {
    let six = |addresses: &[&str]| {
        let endpoints: Value = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        rich::slice("IPv6", endpoints)
    };
    let sixes_at_first = rich::slice("IPv6", json!([{"addresses": ["fd00:1::1"], "zone": "zone-1"}]));
    let now = async |slice: &str, endpoints: Value| {
        exporter.merge::<EndpointSlice>(slice, json!({"endpoints": endpoints})).await
    };
    let mark = env.backend.mark().await?;

    let drains = json!([{"addresses": ["10.1.0.1"], "conditions": rich::draining(), "hostname": "web-0"}]);
    now(rich::SLICE, drains.clone()).await?;
    rich::arrives(importer, &[rich::slice("IPv4", drains), sixes_at_first.clone()]).await?;

    let in_zone = |zone: &str, node: &str| {
        json!([{"addresses": ["10.1.0.2"], "conditions": rich::ready(), "zone": zone, "nodeName": node,
                "hints": {"forZones": [{"name": zone}]}}])
    };
    now(rich::SLICE, in_zone("zone-2", "node-2")).await?;
    let four = |zone: &str| rich::slice("IPv4", json!([{"addresses": ["10.1.0.2"], "zone": zone}]));
    rich::arrives(importer, &[four("zone-2"), sixes_at_first.clone()]).await?;
    now(rich::SLICE, in_zone("zone-2", "node-3")).await?; // `nodeName` is not exported
    now(rich::SLICE, in_zone("zone-3", "node-3")).await?;
    rich::arrives(importer, &[four("zone-3"), sixes_at_first]).await?;

    let two = json!([{"addresses": ["fd00:1::1"]}, {"addresses": ["fd00:1::2"]}]);
    now(rich::SIXES, two).await?;
    rich::arrives(importer, &[four("zone-3"), six(&["fd00:1::1", "fd00:1::2"])]).await?;
    assert_eq!(env.ledger(&mark).await?, changes(env, 4));
    Ok(())
}

/// Changes the session affinity. The change costs one write for each object between exporter and importer that has this
/// field.
async fn session_affinity_changes(
    env: &Environment<impl Backend>,
    exporter: &User,
    importer: &User,
) -> anyhow::Result<()> {
    let [from, to] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let mark = env.backend.mark().await?;
    let none = json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}});
    exporter.merge::<Service>("app", none).await?;
    importer
        .sees_derived("app", "to have no session affinity", |service| {
            spec(service).session_affinity.as_deref() == Some("None")
        })
        .await?;
    let is_judged = |export: &InternalServiceExport| {
        let conditions = export.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.observed_generation == export.metadata.generation)
    };
    let name = format!("{}-app", env.namespace);
    eventually::object(&env.hub::<InternalServiceExport>(from), &name, "to be judged as it is", is_judged).await?;
    let user = &env.namespace;
    let of_hub = counts(&[
        (1, format!("patch internalserviceexports in {from} by member-agent")),
        (1, format!("patch internalserviceexports/status in {from} by hub-agent")),
        (1, format!("patch serviceimports/status in {user} by hub-agent")),
        (1, format!("patch internalserviceimports/status in {to} by hub-agent")),
    ]);
    let of_importer = counts(&[
        (1, format!("patch serviceimports/status in {user} by member-agent")),
        (1, format!("patch services in {FLEET_SYSTEM} by member-agent")),
    ]);
    assert_eq!(env.ledger(&mark).await?, [of_hub, counts(&[]), of_importer]);
    Ok(())
}

/// Also rules F5, F8.
pub async fn a_headless_service_arrives_headless_where_its_export_asks_for_it(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    create_headless(&exporter).await?;
    exporter.export("app").await?;
    exporter.sees_export("app", "Valid", "False", "ServiceIneligible").await?;
    exporter.sees_event("ServiceExport", "ServiceIneligible", "set the annotation").await?;

    exporter.merge::<ServiceExport>("app", rich::export_headless()).await?;
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    // This import has type LoadBalancer. A headless Service cannot have a load balancer, but the import works anyway.
    importer.import("app", "app", Consume::LoadBalancer).await?;
    let named =
        json!([{"addresses": ["10.1.0.1"], "hostname": "db-0"}, {"addresses": ["10.1.0.2"], "hostname": "db-1"}]);
    rich::arrives(&importer, &[rich::slice("IPv4", named)]).await?;
    importer.sees_import("app", "True").await?;
    let headless = importer.derived_service("app").await?;
    let shape = |service: &Service| (spec(service).type_, spec(service).cluster_ip.filter(|address| address == "None"));
    assert_eq!(shape(&headless), (Some("ClusterIP".to_owned()), Some("None".to_owned())));
    let imports: Api<ServiceImport> = env.hub(&env.namespace);
    let import = serde_json::to_value(imports.get("app").await?)?;
    assert_eq!(import["status"]["type"], "Headless");

    // A headless Service cannot get a cluster IP later. So the test deletes the Service and creates it again, and the
    // agent does the same with the derived Service.
    exporter.delete::<Service>("app").await?;
    exporter.create_service("app").await?;
    let is_ordinary = |service: &Service| shape(service) == (Some("LoadBalancer".to_owned()), None);
    let ordinary = importer.sees_derived("app", "to be created again with an address", is_ordinary).await?;
    assert_ne!(ordinary.metadata.uid, headless.metadata.uid);
    importer.sees("app", &["10.1.0.1", "10.1.0.2"]).await.map(drop)
}

/// Scenario for CRDs without fleetnet's fields. The caller checks that a settled fleet makes no writes.
///
/// Also rules F5, U13.
pub async fn go_form_fields_of_a_rich_service_arrive(env: &Environment<impl Backend>) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    importer.import("app", "app", Consume::LoadBalancer).await?;
    rich::arrives(&importer, &rich::in_go_form()).await?;
    rich::is_exported(env, &rich::in_go_form()).await?;
    importer.sees_import("app", "True").await?;
    let derived = importer.derived_service("app").await?;
    assert_eq!((policy(&derived), rich::is_sticky(&derived)), (Some("SingleStack"), false));

    exporter.create::<Service>(rich::headless_service("db")).await?;
    let mut export = rich::export_headless();
    export["metadata"]["name"] = json!("db");
    exporter.create::<ServiceExport>(export).await?;
    exporter.sees_export("db", "Valid", "False", "ServiceIneligible").await?;
    exporter.sees_event("ServiceExport", "ServiceIneligible", "apply the CRD of MemberAgent in the hub").await.map(drop)
}

async fn create_headless(exporter: &User) -> anyhow::Result<()> {
    exporter.create::<Service>(rich::headless_service("app")).await?;
    let endpoints = json!([
        {"addresses": ["10.1.0.1"], "conditions": rich::ready(), "hostname": "db-0"},
        {"addresses": ["10.1.0.2"], "conditions": rich::ready(), "hostname": "db-1"},
    ]);
    rich::create_slice(exporter, "app-1", "IPv4", endpoints).await
}

fn spec(service: &Service) -> ServiceSpec {
    service.spec.clone().unwrap_or_default()
}

fn policy(service: &Service) -> Option<&str> {
    service.spec.as_ref()?.ip_family_policy.as_deref()
}
