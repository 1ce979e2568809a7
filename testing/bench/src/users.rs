//! Writes of simulated users, for the agents and for the baseline.

use crate::bare::Bare;
use crate::environment::{Environment, Role};
use crate::objects::{service, service_name, slice, slice_name};
use crate::size::Size;
use crate::world::{Kind, World};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clients of users in both members and in the hub.
pub struct Users {
    /// Namespaces and API group of the users' objects.
    pub world: World,
    clients: BTreeMap<Role, Bare>,
}

/// resourceVersions of a user's writes for one Service. The baseline waits until its watches show these versions.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// resourceVersion of the ServiceExport.
    pub export: u64,
    /// resourceVersion of the MultiClusterService.
    pub import: u64,
}

impl Users {
    /// Returns clients for users who write in the namespaces and the API group of `world`.
    pub async fn of(environment: &Environment, world: World) -> anyhow::Result<Arc<Self>> {
        let mut clients = BTreeMap::new();
        for role in Role::ALL {
            clients.insert(role, environment.bare(role).await?);
        }
        Ok(Arc::new(Self { world, clients }))
    }

    /// Returns the client for the cluster that has the objects of this kind.
    #[must_use]
    pub fn client(&self, kind: Kind) -> &Bare {
        &self.clients[&kind.role()]
    }

    /// Returns the number of writes that these users have made.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.clients.values().map(Bare::writes).sum()
    }

    pub async fn create(&self, kind: Kind, body: &serde_json::Value) -> anyhow::Result<u64> {
        self.client(kind).create(&self.world.collection(kind), body).await
    }

    /// Patches an object, or its status if `part` is `/status`. Returns the new resourceVersion.
    pub async fn patch(&self, kind: Kind, name: &str, part: &str, body: &serde_json::Value) -> anyhow::Result<u64> {
        self.client(kind).patch(&format!("{}/{name}{part}", self.world.collection(kind)), body).await
    }

    /// Exports a Service with its slices, and imports the Service, with the same writes as a real user. For two slices,
    /// these are five writes.
    pub async fn export_and_import(&self, number: u32, size: Size) -> anyhow::Result<Written> {
        let name = service_name(number);
        let export = async {
            self.create(Kind::Service, &service(&name)).await?;
            for index in 0..size.slices {
                let marker = number * size.slices + index;
                let body = slice(&name, &slice_name(number, index), marker, size.endpoints);
                self.create(Kind::Slice, &body).await?;
            }
            let export = json!({
                "apiVersion": self.world.api_version("v1beta1"), "kind": "ServiceExport", "metadata": {"name": name},
            });
            self.create(Kind::ServiceExport, &export).await
        };
        let import = json!({
            "apiVersion": self.world.api_version("v1alpha1"), "kind": "MultiClusterService",
            "metadata": {"name": name}, "spec": {"serviceImport": {"name": name}},
        });
        let (export, import) = futures::try_join!(export, self.create(Kind::MultiClusterService, &import))?;
        Ok(Written { export, import })
    }
}
