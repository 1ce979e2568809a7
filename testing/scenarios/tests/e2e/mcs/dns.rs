//! Specs 17 to 22 of the conformance suite of `sigs.k8s.io/mcs-api`: a real CoreDNS answers from the objects that the
//! member agents write. The suite asks in a pod of each cluster; these tests ask the CoreDNS of each cluster
//! themselves.

use super::suite::{HELLO, Spec, clusters, headless};
use super::{agents, fleet};
use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::ServiceImport;
use harness::coredns::{Answer, CLUSTERSET, CoreDns, RCODE, TYPE};
use harness::fleet::Fleet;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

/// Families of addresses, with the type of their records.
const FAMILIES: [(&str, TYPE); 2] = [("IPv4", TYPE::A), ("IPv6", TYPE::AAAA)];

fn name(spec: &Spec, before: &str) -> String {
    format!("{before}{HELLO}.{}.svc.{CLUSTERSET}", spec.namespace)
}

fn is(records: &[String]) -> impl Fn(&Answer) -> bool {
    let mut expected = records.to_vec();
    expected.sort();
    move |answer| answer.code == RCODE::NoError && answer.records == expected
}

/// Returns the addresses of a family.
fn of_family(addresses: impl IntoIterator<Item = String>, family: &str) -> Vec<String> {
    addresses.into_iter().filter(|address| address.contains(':') == (family == "IPv6")).collect()
}

/// Returns the addresses of the pods of the Service in the exporting cluster.
async fn pod_addresses(spec: &Spec) -> anyhow::Result<Vec<String>> {
    let selection = ListParams::default().labels(&format!("app={HELLO}"));
    let pods = spec.users[0].api::<Pod>().list(&selection).await?;
    let addresses = pods.items.into_iter().filter_map(|pod| pod.status?.pod_ips).flatten();
    Ok(addresses.map(|address| address.ip).collect())
}

/// 17 and 18: the name of an imported Service has the addresses of its ServiceImport, and its ports. 19: the name in
/// the cluster stays.
async fn a_cluster_ip_has_its_addresses_and_ports(fleet: &Fleet, servers: &[CoreDns]) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "17", json!({})).await?;
    spec.export(0, json!({})).await?;
    for (cluster, server) in servers.iter().enumerate() {
        let has_ips = |import: &ServiceImport| import.spec.ips.iter().flatten().count() == 2;
        let ips = spec.imports(cluster, "to have addresses", has_ips).await?.spec.ips.unwrap_or_default();
        for (family, record) in FAMILIES {
            server.answers(&name(&spec, ""), record, is(&of_family(ips.clone(), family))).await?;
        }
        let srv = [format!("42 {}", name(&spec, ""))];
        for port in ["_tcp._tcp.", "_udp._udp."] {
            server.answers(&name(&spec, port), TYPE::SRV, is(&srv)).await?;
        }
        let none = server.ask(&name(&spec, "_http._tcp."), TYPE::SRV).await?;
        ensure!(none.records.is_empty(), "{none:?}");
    }
    let service = spec.users[0].api::<Service>().get(HELLO).await?.spec.context("a spec")?;
    let local = format!("{HELLO}.{}.svc.cluster.local", spec.namespace);
    for (family, record) in FAMILIES {
        let own = of_family(service.cluster_ips.clone().unwrap_or_default(), family);
        servers[0].answers(&local, record, is(&own)).await?;
    }
    spec.unexport(0).await?;
    for server in servers {
        server.answers(&name(&spec, ""), TYPE::A, |answer| answer.code == RCODE::NameError).await?;
    }
    Ok(())
}

/// 20 and 22: the name of a headless Service has the addresses of all ready endpoints, and a port for each.
async fn a_headless_service_has_all_endpoints(fleet: &Fleet, servers: &[CoreDns]) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "20", headless()).await?;
    spec.export(0, json!({})).await?;
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    let selection = kube::api::WatchParams::default().labels(&format!("app={HELLO}"));
    harness::eventually::objects(&spec.users[0].api::<Pod>(), &selection, "a running pod", |pods| {
        !pods.is_empty() && pods.values().all(is_running)
    })
    .await?;
    let addresses = pod_addresses(&spec).await?;
    for server in servers {
        for (family, record) in FAMILIES {
            server.answers(&name(&spec, ""), record, is(&of_family(addresses.clone(), family))).await?;
        }
        // One target for each endpoint: its address with dashes, in its cluster.
        let target = |address: &String| {
            let host = address.replace(['.', ':'], "-");
            format!("42 {}", name(&spec, &format!("{host}.{}.", spec.clusters[0])))
        };
        let targets: Vec<String> = addresses.iter().map(target).collect();
        server.answers(&name(&spec, "_tcp._tcp."), TYPE::SRV, is(&targets)).await?;
    }
    Ok(())
}

/// 21: each pod of a StatefulSet has a name with the id of its cluster.
async fn a_pod_has_a_name_with_its_cluster(fleet: &Fleet, servers: &[CoreDns]) -> anyhow::Result<()> {
    let spec = Spec::begin(fleet, "21", headless()).await?;
    let container = json!({"name": HELLO, "image": "alpine/socat:1.7.4.4", "ports": [{"containerPort": 42}]});
    let set = json!({
        "metadata": {"name": "set"},
        "spec": {
            "replicas": 2, "serviceName": HELLO, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": HELLO, "set": "set"}},
            "template": {"metadata": {"labels": {"app": HELLO, "set": "set"}}, "spec": {"containers": [container]}},
        },
    });
    spec.users[0].create::<StatefulSet>(set).await?;
    spec.export(0, json!({})).await?;
    for pod in ["set-0", "set-1"] {
        let is_running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
        let pod = harness::eventually::object(&spec.users[0].api::<Pod>(), pod, "a running pod", is_running).await?;
        let addresses: Vec<String> =
            pod.status.iter().flat_map(|it| it.pod_ips.iter().flatten()).map(|it| it.ip.clone()).collect();
        let host = name(&spec, &format!("{}.{}.", pod.name_any(), spec.clusters[0]));
        for server in servers {
            for (family, record) in FAMILIES {
                server.answers(&host, record, is(&of_family(addresses.clone(), family))).await?;
            }
        }
    }
    Ok(())
}

#[test]
fn coredns_answers_from_the_objects_of_the_agents() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = fleet(2).await?;
        let clusters = clusters(&fleet).await?;
        let agents = agents(&fleet, "all").await?;
        let mut servers = Vec::new();
        for member in &fleet.members {
            servers.push(CoreDns::start(&member.control_plane.admin_kubeconfig()?).await?);
        }
        a_cluster_ip_has_its_addresses_and_ports(&fleet, &servers).await.context("17 to 19")?;
        a_headless_service_has_all_endpoints(&fleet, &servers).await.context("20 and 22")?;
        a_pod_has_a_name_with_its_cluster(&fleet, &servers).await.context("21")?;
        drop((agents, clusters));
        Ok(())
    })
}
