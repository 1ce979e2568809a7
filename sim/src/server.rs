//! An API server in memory with what every cluster of a fleet has.

use crate::line::Line;
use anyhow::Context as _;
use fleetnet_api::crds::{self, Form};
use fleetnet_runtime::client::Cluster;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use memkube::{MemKube, Options, User};

/// The namespace of the fleet's own objects in every cluster.
pub const FLEET_SYSTEM: &str = "fleet-system";
/// The user that furnishes the server; no agent.
pub const ADMIN: &str = "admin";

/// A server.
#[derive(Clone, Debug)]
pub struct Server(MemKube);

impl Server {
    /// A server with the definitions and [`FLEET_SYSTEM`].
    ///
    /// # Errors
    /// Where it refuses them.
    pub async fn start(name: &str, options: Options) -> anyhow::Result<Self> {
        Self::with_definitions(name, options, Form::Full).await
    }

    /// The same with the definitions in another form.
    ///
    /// # Errors
    /// Where it refuses them.
    pub async fn with_definitions(name: &str, options: Options, form: Form) -> anyhow::Result<Self> {
        let server = Self(MemKube::new(options));
        for definition in crds::all(form) {
            let made = Api::all(server.admin()).create(&PostParams::default(), &definition).await;
            made.with_context(|| format!("{name} refuses a definition"))?;
        }
        server.make_namespace(FLEET_SYSTEM).await?;
        Ok(server)
    }

    /// memkube itself.
    #[must_use]
    pub fn memkube(&self) -> &MemKube {
        &self.0
    }

    /// A client of [`ADMIN`].
    #[must_use]
    pub fn admin(&self) -> kube::Client {
        self.0.client(User::new(ADMIN))
    }

    /// The server as an agent reaches it: in the role `name`, as `user`.
    #[must_use]
    pub fn cluster(&self, name: &str, user: &str) -> Cluster {
        let client = self.0.client(User::new(user));
        Cluster::from_clients(name, client.clone(), client)
    }

    /// The same over a line.
    #[must_use]
    pub fn cluster_over(&self, line: &Line, name: &str, user: &str) -> Cluster {
        let client = kube::Client::new(line.to(self.0.service(User::new(user))), "default");
        Cluster::from_clients(name, client.clone(), client)
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// Where the server refuses.
    pub async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let made = Api::all(self.admin()).create(&PostParams::default(), &namespace).await;
        made.map(drop).with_context(|| format!("cannot make the namespace {name}"))
    }
}
