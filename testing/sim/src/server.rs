//! Simulated API server (memkube) with the objects that every cluster of a fleet needs.

use crate::connection::Connection;
use anyhow::Context as _;
use fleetnet_api::crds::{self, Form};
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::io::client::Cluster;
use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use memkube::{MemKube, Options, User};
use tower::ServiceExt;

/// Namespace of the fleet's own objects in every cluster.
pub const FLEET_SYSTEM: &str = "fleet-system";
/// User name for the setup of servers and for the requests of tests. Agents have other user names.
pub const ADMIN: &str = "admin";

/// Simulated API server of one cluster.
#[derive(Clone, Debug)]
pub struct Server(MemKube);

impl Server {
    /// Starts a server with fleetnet's CustomResourceDefinitions and the namespace [`FLEET_SYSTEM`].
    pub async fn start(name: &str, options: Options) -> anyhow::Result<Self> {
        Self::with_definitions(name, options, Form::Full).await
    }

    /// Starts a server with this form of the CRDs, and the namespace [`FLEET_SYSTEM`].
    pub async fn with_definitions(name: &str, options: Options, form: Form) -> anyhow::Result<Self> {
        let server = Self(MemKube::new(options));
        server.install(&crds::all(form)).await.with_context(|| format!("{name} refuses a definition"))?;
        server.make_namespace(FLEET_SYSTEM).await?;
        Ok(server)
    }

    /// Creates CustomResourceDefinitions.
    pub async fn install(&self, definitions: &[CustomResourceDefinition]) -> anyhow::Result<()> {
        for definition in definitions {
            Api::all(self.admin()).create(&PostParams::default(), definition).await?;
        }
        Ok(())
    }

    /// Returns the memkube instance, for faults and recorded requests.
    #[must_use]
    pub fn memkube(&self) -> &MemKube {
        &self.0
    }

    /// Returns a client with all rights, for the user [`ADMIN`].
    #[must_use]
    pub fn admin(&self) -> kube::Client {
        self.0.client(User::new(ADMIN))
    }

    /// Returns a client with all rights for the diagnosis. Answers have the header `Date`, which each real API server
    /// sends and memkube does not.
    #[must_use]
    pub fn operator(&self, clock: &Clock) -> kube::Client {
        self.operator_as(ADMIN, clock)
    }

    /// Like [`Server::operator`], for another user.
    #[must_use]
    pub fn operator_as(&self, user: &str, clock: &Clock) -> kube::Client {
        let clock = clock.clone();
        let dated = move |mut response: http::Response<memkube::Body>| {
            let now = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&to_jiff(clock.now()));
            let now = HeaderValue::try_from(now.expect("the time is in range")).expect("a date is a header");
            response.headers_mut().insert(http::header::DATE, now);
            response
        };
        let service = self.0.service(User::new(user));
        kube::Client::new(ServiceExt::<Request<Body>>::map_response(service, dated), "default")
    }

    /// Returns a connection of an agent to this cluster. `name` is the role of the cluster (hub or member), and `user`
    /// is the user of the agent.
    #[must_use]
    pub fn cluster(&self, name: &str, user: &str) -> Cluster {
        let client = self.0.client(User::new(user));
        Cluster::from_clients(name, client.clone(), client)
    }

    /// Like [`Server::cluster`], but the requests of the agent use `connection`, which a test can cut. `group` is a
    /// group of the user.
    #[must_use]
    pub fn cluster_over(&self, connection: &Connection, name: &str, user: &str, group: &str) -> Cluster {
        let user = User::new(user).with_groups(vec![group.to_owned()]);
        let client = kube::Client::new(connection.to(self.0.service(user)), "default");
        Cluster::from_clients(name, client.clone(), client)
    }

    /// Replaces a CRD. The server then removes the fields that the new schema lacks.
    pub async fn replace_definition(&self, definition: &CustomResourceDefinition) -> anyhow::Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.admin());
        let name = definition.metadata.name.as_deref().context("a definition has a name")?;
        definitions.delete(name, &DeleteParams::default()).await?;
        definitions.create(&PostParams::default(), definition).await?;
        Ok(())
    }

    pub async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let made = Api::all(self.admin()).create(&PostParams::default(), &namespace).await;
        made.map(drop).with_context(|| format!("cannot make the namespace {name}"))
    }

    /// Makes a ServiceAccount, for which the server then issues tokens.
    pub async fn make_service_account(&self, namespace: &str, name: &str) -> anyhow::Result<()> {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(name.to_owned());
        let made = Api::namespaced(self.admin(), namespace).create(&PostParams::default(), &account).await;
        made.map(drop).with_context(|| format!("cannot make the ServiceAccount {namespace}/{name}"))
    }
}
