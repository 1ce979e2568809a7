//! Names by which clients of an importing member call a Service, with the addresses and ports behind them.

use crate::explain::{imports, is_elsewhere, is_ours, is_requested, is_service, member_of, named};
use crate::order::distinct;
use crate::report::{Api, NameToCall};
use crate::snapshot::{Member, Snapshot};
use fleetnet_api::crd::mcs::ServiceImport;
use fleetnet_api::crd::{MergedServiceImport, MultiClusterService};
use fleetnet_api::names::labels;
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::ResourceExt as _;

/// Returns the names by which clients of a member call a Service. They are known only if the objects of the member were
/// read.
#[must_use]
pub fn names_to_call(snapshot: &Snapshot, service: &ObjectName, importer: &str) -> Vec<NameToCall> {
    let Some(member) = snapshot.member(importer) else { return Vec::new() };
    let of_fleet = member.multi_cluster_services.objects().filter(|request| imports(request, service));
    let is_known = !is_elsewhere(snapshot, member);
    let of_fleet = of_fleet.filter_map(|request| by_fleet(member, request)).filter(|_| is_known);
    let mcs = member.mcs_imports.known().unwrap_or_default();
    let import = named(mcs, &service.namespace, &service.name).filter(|import| is_ours(*import));
    of_fleet.chain(import.map(|import| by_mcs(member, import))).collect()
}

/// Returns the importers of a Service of which the hub knows, for example for the user of a ServiceExport. Each is
/// named once.
#[must_use]
pub fn importers(snapshot: &Snapshot, service: &ObjectName) -> Vec<String> {
    let hub = &snapshot.hub;
    let claims = hub.claims.objects().filter(|claim| {
        let reference = &claim.spec.service_import_reference;
        is_service(service, &reference.namespace, &reference.name)
    });
    let merged = hub.merged_imports.objects().filter(|merged: &&MergedServiceImport| {
        let reference = &merged.spec.service_reference;
        is_service(service, &reference.namespace, &reference.name) && is_requested(merged)
    });
    let namespaces = claims.map(|claim| claim.namespace()).chain(merged.map(|merged| merged.namespace()));
    distinct(namespaces.filter_map(member_of))
}

/// Returns the name of the derived Service, which is in a label of the MultiClusterService.
fn by_fleet(member: &Member, request: &MultiClusterService) -> Option<NameToCall> {
    let derived = request.labels().get(labels::DERIVED_SERVICE)?;
    let namespace = &member.agent.namespace;
    let service = named(member.services.known().unwrap_or_default(), namespace, derived);
    let external = request.status.iter().flat_map(|status| status.load_balancer.iter());
    let external = external.flat_map(|balancer| balancer.ingress.iter().flatten());
    let external = external.filter_map(|ingress| ingress.ip.clone().or_else(|| ingress.hostname.clone()));
    Some(NameToCall {
        importer: member.id.clone(),
        api: Api::Fleet,
        name: format!("{derived}.{namespace}.svc"),
        addresses: service.map(cluster_ips).into_iter().flatten().chain(external).collect(),
        ports: service.map(ports).unwrap_or_default(),
    })
}

/// Returns the name that the DNS of a cluster serves by the standard API.
fn by_mcs(member: &Member, import: &ServiceImport) -> NameToCall {
    let (name, namespace) = (import.name_any(), import.namespace().unwrap_or_default());
    let port = |port: i32, protocol: Option<&String>| format!("{port}/{}", protocol.map_or("TCP", String::as_str));
    NameToCall {
        importer: member.id.clone(),
        api: Api::Mcs,
        name: format!("{name}.{namespace}.svc.clusterset.local"),
        addresses: import.spec.ips.clone().unwrap_or_default(),
        ports: import.spec.ports.iter().map(|it| port(it.port, it.protocol.as_ref())).collect(),
    }
}

/// Returns the addresses of a Service inside of its cluster. A headless Service has none.
pub(crate) fn cluster_ips(service: &Service) -> Vec<String> {
    let spec = service.spec.iter();
    let addresses = spec.flat_map(|spec| match &spec.cluster_ips {
        Some(addresses) => addresses.clone(),
        None => spec.cluster_ip.iter().cloned().collect(),
    });
    addresses.filter(|address| !address.is_empty() && address != "None").collect()
}

fn ports(service: &Service) -> Vec<String> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let text = |port: &ServicePort| format!("{}/{}", port.port, port.protocol.as_deref().unwrap_or("TCP"));
    ports.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{app, built_in, healthy, meta, set};
    use crate::snapshot::Listing;
    use serde_json::json;

    /// Returns the name, the addresses and the ports of each name to call in `east`.
    fn called(snapshot: &Snapshot) -> Vec<(String, String, String)> {
        let found = names_to_call(snapshot, &app(), "east").into_iter();
        found.map(|call| (call.name, call.addresses.join(","), call.ports.join(","))).collect()
    }

    fn row(name: &str, addresses: &str, ports: &str) -> (String, String, String) {
        (name.to_owned(), addresses.to_owned(), ports.to_owned())
    }

    #[test]
    fn the_derived_service_has_the_name_in_the_label_of_the_multi_cluster_service() {
        let mut snapshot = healthy();
        assert_eq!(called(&snapshot), [row("shop-app.fleet-system.svc", "", "")]);
        let spec = json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
            "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]});
        set(&mut snapshot.members[0].services, "/spec", spec);
        let addresses = "10.0.0.1,fd00::1";
        assert_eq!(called(&snapshot), [row("shop-app.fleet-system.svc", addresses, "80/TCP,53/UDP")]);
        let balancer = json!({"ingress": [{"ip": "203.0.113.7"}, {"hostname": "lb.example"}]});
        set(&mut snapshot.members[0].multi_cluster_services, "/status/loadBalancer", balancer);
        assert_eq!(called(&snapshot)[0].1, "10.0.0.1,fd00::1,203.0.113.7,lb.example");
        // The name was in use, so the agent took another one.
        let labels = json!({"networking.fleet.azure.com/derived-service": "shop-app-baf40"});
        set(&mut snapshot.members[0].multi_cluster_services, "/metadata/labels", labels);
        assert_eq!(called(&snapshot), [row("shop-app-baf40.fleet-system.svc", "203.0.113.7,lb.example", "")]);
        set(&mut snapshot.members[0].multi_cluster_services, "/metadata/labels", json!({}));
        assert_eq!(called(&snapshot), []);
    }

    #[test]
    fn a_headless_service_has_no_address_and_a_member_that_was_not_read_has_no_names() {
        let mut snapshot = healthy();
        set(&mut snapshot.members[0].services, "/spec", json!({"clusterIP": "None", "clusterIPs": ["None"]}));
        assert_eq!(called(&snapshot), [row("shop-app.fleet-system.svc", "", "")]);
        assert_eq!(names_to_call(&snapshot, &app(), "west"), []);
        assert_eq!(names_to_call(&snapshot, &app(), "north"), []);
        snapshot.members[0].multi_cluster_services = Listing::NotAsked;
        assert_eq!(called(&snapshot), []);
    }

    #[test]
    fn the_mcs_api_has_a_name_in_the_clusterset() {
        let mut snapshot = healthy();
        snapshot.members[0].multi_cluster_services = Listing::of(Vec::new());
        let import = |writer: &str| {
            let mut metadata = meta("shop", "app");
            metadata["labels"] = json!({labels::WRITER: writer});
            let spec = json!({"type": "ClusterSetIP", "ips": ["10.0.0.9"], "ports": [{"port": 80}]});
            let json = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": metadata, "spec": spec});
            Listing::of(vec![built_in(json)])
        };
        snapshot.members[0].mcs_imports = import(labels::WRITER_MEMBER_AGENT);
        assert_eq!(called(&snapshot), [row("app.shop.svc.clusterset.local", "10.0.0.9", "80/TCP")]);
        snapshot.members[0].mcs_imports = import("another implementation");
        assert_eq!(called(&snapshot), []);
    }

    #[test]
    fn the_hub_knows_the_importers_of_an_exported_service() {
        assert_eq!(importers(&healthy(), &app()), ["east"]);
        let mut snapshot = healthy();
        snapshot.hub.claims = Listing::of(Vec::new());
        assert!(importers(&snapshot, &app()).is_empty());
    }
}
