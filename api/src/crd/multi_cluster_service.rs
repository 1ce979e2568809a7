//! MultiClusterService: a user's request to import a Service of other clusters.
#![expect(unreachable_pub, reason = "the derived schema repeats the struct inside a function")]

use super::shared::{ADDED, QUALIFIED_NAME, conditions_schema};
use crate::wire::{Maybe, OrTcp, Plain, Sparse, record};
use fleetnet_core::model::{self, PortNumber};
use fleetnet_types::Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Service to import, and the way to publish it in this cluster.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "MultiClusterService",
    plural = "multiclusterservices",
    shortname = "mcs",
    category = "fleet-networking",
    namespaced,
    status = "MultiClusterServiceStatus",
    derive = "PartialEq",
    doc = "MultiClusterService imports a Service that other clusters of the fleet export.",
    printcolumn(name = "Service-Import", type_ = "string", json_path = ".spec.serviceImport.name"),
    printcolumn(
        name = "Derived-Service",
        type_ = "string",
        json_path = ".metadata.labels.networking\\.fleet\\.azure\\.com/derived-service"
    ),
    printcolumn(name = "External-IP", type_ = "string", json_path = ".status.loadBalancer.ingress[0].ip"),
    printcolumn(name = "Is-Valid", type_ = "string", json_path = ".status.conditions[?(@.type=='Valid')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) < 64").message("metadata.name max length is 63")
)]
pub struct MultiClusterServiceSpec {
    /// Service to import, by its name in this namespace in the clusters that export it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_import: Option<ServiceImportRef>,
    /// How the imported Service is offered: LoadBalancer (also when left out) gives it an external address and is
    /// granted to one cluster of the fleet; ClusterIP makes it reachable inside this cluster, in any number of
    /// clusters.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MultiClusterServiceType", extend("title" = ADDED))]
    pub type_: Option<MultiClusterServiceType>,
}

/// Reference to a ServiceImport in the same namespace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ServiceImportRef {
    /// Name of the Service.
    #[schemars(length(max = 63), regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))]
    pub name: String,
}

/// How an imported Service is offered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum MultiClusterServiceType {
    /// With an external address, in one cluster of the fleet at a time.
    LoadBalancer,
    /// With an address inside the cluster, in any number of clusters.
    ClusterIP,
}

/// State of the import.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterServiceStatus {
    /// External addresses of the derived Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerStatus>,
    /// Conditions of the import. Valid is true if the Service is found and imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

record! {
    /// External addresses of a Service, as in core/v1.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct LoadBalancerStatus: RawLoadBalancer => model::LoadBalancerStatus {
        /// The points where traffic for the Service enters.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
        ingress(default): Option<Vec<LoadBalancerIngress>> = ingress "ingress" as Sparse<Vec<RawIngress>>,
    }
}

record! {
    /// One point where traffic for a Service enters.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct LoadBalancerIngress: RawIngress => model::LoadBalancerIngress {
        /// The DNS name of the point.
        hostname(default): Option<String> = hostname "hostname" as Maybe<Text>,
        /// The address of the point.
        ip(default): Option<String> = ip "ip" as Maybe<Text>,
        /// How the address is reached: VIP or Proxy.
        ip_mode(default): Option<String> = ip_mode "ipMode" as Maybe<Text>,
        /// What became of each port of the Service.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
        ports(default): Option<Vec<PortStatus>> = ports "ports" as Sparse<Vec<RawPortStatus>>,
    }
}

record! {
    /// What became of one port of a load balancer.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct PortStatus: RawPortStatus => model::LoadBalancerPort {
        /// Why the port is not served, as CamelCase or domain/CamelCase.
        #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
        error(default): Option<String> = error "error" as Maybe<Text>,
        /// The port of the Service.
        port: i32 = port "port" as Plain<PortNumber>,
        /// The IP protocol of the port.
        #[schemars(extend("default" = "TCP"))]
        protocol: String = protocol "protocol" as OrTcp<Text>,
    }
}
