//! Specs 1 to 16 and 23 of the conformance suite of `sigs.k8s.io/mcs-api`: those that need API servers and controllers,
//! and no network. Each function does the steps of its spec as the suite does, in a namespace of its own.
//! docs/contributors/conformance.md lists all specs.

use super::suite::{HELLO, Spec, clusters, exported, headless, ports};
use super::{agents, fleet};
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::names::labels;
use harness::eventually;
use harness::fleet::Fleet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::sleep;

/// Steps of a spec.
type Steps<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// Time for which the suite looks at what must not change.
const CONSISTENTLY: Duration = Duration::from_secs(5);

fn import_type(import: &ServiceImport) -> String {
    serde_json::to_value(import.spec.type_).ok().and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default()
}

/// 1: A ServiceImport exists only while a cluster exports.
async fn an_import_exists_only_while_a_cluster_exports(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "1", json!({})).await?;
    spec.export_both(json!({}), json!({}), json!({})).await?;
    let of_both =
        |import: &ServiceImport| import.status.as_ref().is_some_and(|it| it.clusters.iter().flatten().count() == 2);
    spec.all_import("of both clusters", of_both).await?;
    spec.unexport(0).await?;
    sleep(CONSISTENTLY).await;
    spec.all_import("to stay", |_| true).await?;
    spec.unexport(1).await?;
    spec.nobody_imports().await
}

/// 2: Only exported labels and annotations are propagated.
async fn only_exported_labels_are_propagated(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "2", json!({})).await?;
    let own = json!({"metadata": {"labels": {"test-service": "no"}, "annotations": {"test-service": "no"}}});
    spec.users[0].merge::<Service>(HELLO, own).await?;
    let exported_values =
        json!({"exportedLabels": {"test-label": "a"}, "exportedAnnotations": {"test-annotation": "b"}});
    spec.export(0, exported_values).await?;
    let own = json!({"metadata": {"labels": {"test-export": "no"}}});
    spec.users[0].merge::<ServiceExport>(HELLO, own).await?;
    for import in spec.all_import("with labels", |import| !exported(import).is_empty()).await? {
        ensure!(exported(&import) == ["test-label=a", "test-annotation=b"], "{import:?}");
    }
    Ok(())
}

/// 3: Of conflicting labels and annotations, those of the oldest export win.
async fn labels_of_the_oldest_export_win(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "3", json!({})).await?;
    let values = |value: &str| json!({"exportedLabels": {"test-label": value}, "exportedAnnotations": {"test-annotation": value}});
    spec.export_both(values("first"), json!({}), values("second")).await?;
    spec.conflict().await?;
    for import in spec.all_import("to exist", |_| true).await? {
        ensure!(exported(&import) == ["test-label=first", "test-annotation=first"], "{import:?}");
    }
    Ok(())
}

/// 4 and 12: Each cluster has a ServiceImport of the right type, which goes with the export.
async fn each_cluster_has_a_service_import(
    fleet: &Fleet,
    name: &str,
    change: Value,
    expected: &str,
) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, name, change).await?;
    spec.export(0, json!({})).await?;
    spec.shows(0, "Valid", "True").await?;
    spec.all_import("of the right type", |import| import_type(import) == expected).await?;
    spec.unexport(0).await?;
    spec.nobody_imports().await
}

/// 5 to 9: The ServiceImport has the properties of the Service.
async fn the_properties_are_those_of_the_service(fleet: &Fleet) -> anyhow::Result<()> {
    let ports_with_protocol = json!([
        {"name": "tcp", "port": 42, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"},
        {"name": "udp", "port": 42, "protocol": "UDP"},
    ]);
    let change = json!({
        "internalTrafficPolicy": "Cluster", "trafficDistribution": "PreferClose", "ports": ports_with_protocol,
    });
    let spec = Spec::begin(fleet, "5", change).await?;
    spec.export(0, json!({})).await?;
    // 8: the suite looks once, as soon as there are addresses.
    let has_ips = |import: &ServiceImport| import.spec.ips.iter().flatten().count() > 0;
    for import in spec.all_import("to have addresses", has_ips).await? {
        let (ips, families) = (import.spec.ips.clone(), import.spec.ip_families.clone());
        let (ips, families) = (ips.unwrap_or_default(), families.unwrap_or_default());
        ensure!(ips.len() == families.len() && ips.len() == 2, "{ips:?} {families:?}");
        for (ip, family) in ips.iter().zip(&families) {
            ensure!(ip.contains(':') == (family == "IPv6"), "{ips:?} {families:?}");
        }
        ensure!(import.spec.session_affinity.as_deref() == Some("ClientIP"), "{import:?}");
        let config = serde_json::to_value(&import.spec.session_affinity_config)?;
        ensure!(config == json!({"clientIP": {"timeoutSeconds": 10}}), "{config}");
        ensure!(import.spec.internal_traffic_policy.as_deref() == Some("Cluster"), "{import:?}");
        ensure!(import.spec.traffic_distribution.as_deref() == Some("PreferClose"), "{import:?}");
        ensure!(ports(&import) == ["tcp TCP/42", "udp UDP/42"], "{import:?}");
        let of_tcp = import.spec.ports.iter().find(|port| port.name.as_deref() == Some("tcp")).context("a port")?;
        ensure!(of_tcp.app_protocol.as_deref() == Some("kubernetes.io/h2c"), "{of_tcp:?}");
    }
    Ok(())
}

/// 10: The ports are the union of the ports of all exports.
async fn the_ports_are_the_union(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "10", json!({})).await?;
    let second = json!([
        {"name": "tcp", "port": 42, "protocol": "TCP"},
        {"name": "stcp", "port": 142, "protocol": "SCTP"},
    ]);
    spec.export_both(json!({}), json!({"ports": second}), json!({})).await?;
    spec.conflict().await?;
    let union = |import: &ServiceImport| ports(import) == ["stcp SCTP/142", "tcp TCP/42", "udp UDP/42"];
    spec.all_import("to have all ports", union).await.map(drop)
}

/// 11: Of two ports with one name, that of the oldest export wins.
async fn of_conflicting_ports_the_oldest_wins(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "11", json!({})).await?;
    let second =
        json!([{"name": "tcp", "port": 43, "protocol": "TCP"}, {"name": "udp", "port": 42, "protocol": "UDP"}]);
    spec.export_both(json!({}), json!({"ports": second}), json!({})).await?;
    spec.conflict().await?;
    let of_first = |import: &ServiceImport| ports(import) == ["tcp TCP/42", "udp UDP/42"];
    spec.all_import("to have the ports of the first export", of_first).await.map(drop)
}

/// 13: The ServiceImport of a headless Service has no address.
async fn a_headless_import_has_no_address(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "13", headless()).await?;
    spec.export(0, json!({})).await?;
    spec.all_import("to be headless", |import| import_type(import) == "Headless").await?;
    sleep(CONSISTENTLY).await;
    spec.all_import("to have no address", |import| import.spec.ips.iter().flatten().count() == 0).await.map(drop)
}

/// 14: A Service of type ExternalName is not exported.
async fn an_external_name_is_not_exported(fleet: &Fleet) -> anyhow::Result<()> {
    let external = json!({
        "type": "ExternalName", "externalName": "example.com", "sessionAffinity": null, "sessionAffinityConfig": null,
        "ipFamilyPolicy": null, "selector": null,
    });
    let spec = Spec::begin(fleet, "14", external).await?;
    spec.export(0, json!({})).await?;
    spec.shows(0, "Valid", "False").await?;
    sleep(CONSISTENTLY).await;
    spec.nobody_imports().await
}

/// 15: Of conflicting types, that of the oldest export wins.
async fn of_conflicting_types_the_oldest_wins(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "15", json!({})).await?;
    spec.export_both(json!({}), headless(), json!({})).await?;
    spec.conflict().await?;
    spec.all_import("of the first type", |import| import_type(import) == "ClusterSetIP").await.map(drop)
}

/// 16: Each cluster has EndpointSlices of the imported Service, for each family. They go with the export.
async fn each_cluster_has_endpoint_slices(fleet: &Fleet, name: &str, change: Value) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, name, change).await?;
    spec.export(0, json!({})).await?;
    let imports = spec.all_import("to have families", |import| import.spec.ip_families.is_some()).await?;
    let selection = format!("{}={HELLO}", labels::MCS_SERVICE_NAME);
    let selection = kube::api::WatchParams::default().labels(&selection);
    for (user, import) in spec.users.iter().zip(imports) {
        let families = import.spec.ip_families.unwrap_or_default();
        let is_right = |slice: &EndpointSlice, family: &String| {
            let label = |name: &str| slice.labels().get(name).map(String::as_str);
            let managed_by = label("endpointslice.kubernetes.io/managed-by").unwrap_or_default();
            slice.address_type == *family
                && !slice.endpoints.iter().flatten().collect::<Vec<_>>().is_empty()
                && label("multicluster.kubernetes.io/source-cluster") == Some(&*spec.clusters[0])
                && !managed_by.is_empty()
                && managed_by != "endpointslice-controller.k8s.io"
        };
        let have_all = |slices: &BTreeMap<String, EndpointSlice>| {
            families.iter().all(|family| slices.values().any(|slice| is_right(slice, family)))
        };
        let what = format!("slices of the families {families:?}");
        eventually::objects(&user.api::<EndpointSlice>(), &selection, &what, have_all).await?;
    }
    spec.unexport(0).await?;
    for user in &spec.users {
        eventually::objects(&user.api::<EndpointSlice>(), &selection, "no slices", BTreeMap::is_empty).await?;
    }
    Ok(())
}

/// 23: A Service that is not exported cannot be reached: no other cluster has anything of it.
async fn a_service_that_is_not_exported_is_in_its_own_cluster_only(fleet: &Fleet) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "23", json!({})).await?;
    sleep(CONSISTENTLY).await;
    spec.nobody_imports().await?;
    let other = &spec.users[1];
    ensure!(other.api::<Service>().list(&ListParams::default()).await?.items.is_empty());
    ensure!(other.api::<EndpointSlice>().list(&ListParams::default()).await?.items.is_empty());
    Ok(())
}

#[test]
fn the_specs_that_need_no_network_pass() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = fleet(2).await?;
        let clusters = clusters(&fleet).await?;
        let agents = agents(&fleet, "all").await?;
        let fleet = &fleet;
        let specs: Vec<(&str, Steps<'_>)> = vec![
            ("1", Box::pin(an_import_exists_only_while_a_cluster_exports(fleet))),
            ("2", Box::pin(only_exported_labels_are_propagated(fleet))),
            ("3", Box::pin(labels_of_the_oldest_export_win(fleet))),
            ("4", Box::pin(each_cluster_has_a_service_import(fleet, "4", json!({}), "ClusterSetIP"))),
            ("5 to 9", Box::pin(the_properties_are_those_of_the_service(fleet))),
            ("10", Box::pin(the_ports_are_the_union(fleet))),
            ("11", Box::pin(of_conflicting_ports_the_oldest_wins(fleet))),
            ("12", Box::pin(each_cluster_has_a_service_import(fleet, "12", headless(), "Headless"))),
            ("13", Box::pin(a_headless_import_has_no_address(fleet))),
            ("14", Box::pin(an_external_name_is_not_exported(fleet))),
            ("15", Box::pin(of_conflicting_types_the_oldest_wins(fleet))),
            ("16, ClusterSetIP", Box::pin(each_cluster_has_endpoint_slices(fleet, "16", json!({})))),
            ("16, headless", Box::pin(each_cluster_has_endpoint_slices(fleet, "16-headless", headless()))),
            ("23", Box::pin(a_service_that_is_not_exported_is_in_its_own_cluster_only(fleet))),
        ];
        // At the same time, because most specs wait.
        let outcomes = specs.into_iter().map(async |(name, steps)| steps.await.err().map(|error| (name, error)));
        let failed: Vec<_> = futures::future::join_all(outcomes).await.into_iter().flatten().collect();
        ensure!(failed.is_empty(), "{failed:#?}");
        drop((agents, clusters));
        Ok(())
    })
}
