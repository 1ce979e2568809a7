//! Namespaces and API group of the measured objects: one world for the agents, one for the baseline.

use crate::environment::{Environment, Role};
use fleetnet_api::names::GROUP;
use harness::fleet::FLEET_SYSTEM;

/// API group of the baseline: copies of the fleet's CRDs that no agent watches.
pub const BASELINE_GROUP: &str = "baseline.fleetnet.test";

/// Kinds of objects that an import writes, in the order of the writes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    Service,
    Slice,
    ServiceExport,
    InternalServiceExport,
    HubServiceImport,
    EndpointSliceExport,
    MultiClusterService,
    ServiceImport,
    InternalServiceImport,
    EndpointSliceImport,
    DerivedService,
    ImportedSlice,
}

impl Kind {
    pub const ALL: [Self; 12] = [
        Self::Service,
        Self::Slice,
        Self::ServiceExport,
        Self::InternalServiceExport,
        Self::HubServiceImport,
        Self::EndpointSliceExport,
        Self::MultiClusterService,
        Self::ServiceImport,
        Self::InternalServiceImport,
        Self::EndpointSliceImport,
        Self::DerivedService,
        Self::ImportedSlice,
    ];

    /// Returns the role whose cluster has the objects of this kind.
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Self::Service | Self::Slice | Self::ServiceExport => Role::Exporter,
            Self::InternalServiceExport
            | Self::HubServiceImport
            | Self::EndpointSliceExport
            | Self::InternalServiceImport
            | Self::EndpointSliceImport => Role::Hub,
            Self::MultiClusterService | Self::ServiceImport | Self::DerivedService | Self::ImportedSlice => {
                Role::Importer
            }
        }
    }
}

/// Namespaces and API group of either the agents' objects or the baseline's.
#[derive(Clone, Debug)]
pub struct World {
    group: String,
    users: String,
    exporter: String,
    importer: String,
    system: String,
}

impl World {
    /// Returns the namespaces and the API group of the agents' objects.
    #[must_use]
    pub fn of_agents(environment: &Environment) -> Self {
        let [exporter, importer] = [&environment.fleet.members[0], &environment.fleet.members[1]];
        Self {
            group: GROUP.to_owned(),
            users: environment.namespace.clone(),
            exporter: exporter.hub_namespace.clone(),
            importer: importer.hub_namespace.clone(),
            system: FLEET_SYSTEM.to_owned(),
        }
    }

    /// Returns the namespaces and the API group of the baseline's objects.
    #[must_use]
    pub fn of_baseline() -> Self {
        let [users, exporter, importer, system] =
            ["baseline", "baseline-exporter", "baseline-importer", "baseline-system"];
        Self {
            group: BASELINE_GROUP.to_owned(),
            users: users.to_owned(),
            exporter: exporter.to_owned(),
            importer: importer.to_owned(),
            system: system.to_owned(),
        }
    }

    #[must_use]
    pub fn namespaces(&self) -> [&str; 4] {
        [&self.users, &self.exporter, &self.importer, &self.system]
    }

    /// Returns the URL path of the collection of a kind.
    #[must_use]
    pub fn collection(&self, kind: Kind) -> String {
        let Self { group, users, exporter, importer, system } = self;
        let ours = |version: &str, namespace: &str, plural: &str| {
            format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
        };
        match kind {
            Kind::Service => format!("/api/v1/namespaces/{users}/services"),
            Kind::Slice => format!("/apis/discovery.k8s.io/v1/namespaces/{users}/endpointslices"),
            Kind::ServiceExport => ours("v1beta1", users, "serviceexports"),
            Kind::InternalServiceExport => ours("v1alpha1", exporter, "internalserviceexports"),
            Kind::HubServiceImport | Kind::ServiceImport => ours("v1alpha1", users, "serviceimports"),
            Kind::EndpointSliceExport => ours("v1alpha1", exporter, "endpointsliceexports"),
            Kind::MultiClusterService => ours("v1alpha1", users, "multiclusterservices"),
            Kind::InternalServiceImport => ours("v1alpha1", importer, "internalserviceimports"),
            Kind::EndpointSliceImport => ours("v1alpha1", importer, "endpointsliceimports"),
            Kind::DerivedService => format!("/api/v1/namespaces/{system}/services"),
            Kind::ImportedSlice => format!("/apis/discovery.k8s.io/v1/namespaces/{system}/endpointslices"),
        }
    }

    /// Returns the apiVersion of objects: their API group and this version.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }
}
