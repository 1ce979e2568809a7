//! Fleet with the objects that Go agents left.
//!
//! `fixtures/go-agents.json` has the objects of a hub, an exporting and an importing cluster in five states. Each state
//! follows from the one before it, so the file has only the differences.

use anyhow::{Context as _, ensure};
use harness::routes::Routes;
use harness::user::User;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use memkube::audit::Entry;
use serde_json::{Map, Value};
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

const FIXTURES: &str = include_str!("../../fixtures/go-agents.json");
pub(crate) const STATES: [&str; 5] = ["1-settled", "2-conflict", "3-unexported", "4-mcs-deleted", "5-weight-zero"];
const CLUSTERS: [&str; 3] = ["hub", "exporter", "importer"];

/// Objects of each cluster, by kind, namespace and name.
type Objects = BTreeMap<&'static str, BTreeMap<String, Map<String, Value>>>;

fn key(object: &Value) -> anyhow::Result<String> {
    let (kind, metadata) = (object["kind"].as_str().context("a kind")?, &object["metadata"]);
    let of = |field: &str| metadata[field].as_str().context("a name");
    Ok(format!("{kind} {}/{}", of("namespace")?, of("name")?))
}

/// Returns the objects of a state.
fn objects(state: &str) -> anyhow::Result<Objects> {
    let all: Value = serde_json::from_str(FIXTURES)?;
    let mut objects = Objects::new();
    for step in STATES {
        for cluster in CLUSTERS {
            let (changes, objects) = (&all[step][cluster], objects.entry(cluster).or_default());
            for gone in changes["gone"].as_array().context("a list")? {
                objects.remove(gone.as_str().context("a text")?).context("it was there")?;
            }
            for object in changes["objects"].as_array().context("a list")? {
                objects.insert(key(object)?, object.as_object().context("an object")?.clone());
            }
        }
        if step == state {
            return Ok(objects);
        }
    }
    anyhow::bail!("there is no state {state}")
}

/// Fleet with the objects of the Go agents, and no agents yet.
pub(crate) struct Taken {
    pub(crate) fleet: Fleet,
    /// Routes of each derived Service in the importing cluster, and the endpoints that it has.
    routes: Vec<(Routes, BTreeSet<String>)>,
    names: BTreeSet<String>,
}

impl Taken {
    pub(crate) async fn new(state: &str) -> anyhow::Result<Self> {
        let cluster_ids = vec!["exporter".to_owned(), "importer0".to_owned()];
        let fleet = Fleet::new(Options { cluster_ids, ..Options::members(2) }).await?;
        fleet.make_namespace("work").await?;
        let mut objects = objects(state)?;
        for (cluster, (_, server)) in CLUSTERS.into_iter().zip(fleet.servers()) {
            let objects = objects.remove(cluster).context("its objects")?;
            server.memkube().load(objects.into_values()).map_err(anyhow::Error::msg)?;
        }
        let importer = User::new(fleet.members[1].server.admin(), "work");
        let mut taken = Self { fleet, routes: Vec::new(), names: BTreeSet::new() };
        taken.names = taken.slice_names().await?;
        for service in ["svc0", "svc1", "svc2"] {
            let endpoints = taken.exported_and_imported(service).await?;
            if !endpoints.is_empty() {
                taken.routes.push((importer.routes(service), endpoints));
            }
        }
        sleep(Duration::from_secs(1)).await; // the watches have seen the present routes
        Ok(taken)
    }

    /// Returns the endpoints of the exporter's Service that the importer has, as addresses with ports.
    async fn exported_and_imported(&self, service: &str) -> anyhow::Result<BTreeSet<String>> {
        let addresses = async |member: usize, namespace: &str, service: &str| -> anyhow::Result<BTreeSet<String>> {
            let slices: Api<EndpointSlice> = Api::namespaced(self.fleet.members[member].server.admin(), namespace);
            let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
            let slices = slices.list(&of_service).await?.items;
            let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            Ok(endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(|it| format!("{it}:8080"))).collect())
        };
        let exported = addresses(0, "work", service).await?;
        let imported = addresses(1, "fleet-system", &format!("work-{service}")).await?;
        Ok(exported.intersection(&imported).cloned().collect())
    }

    /// Returns the names of exported, distributed and imported slices.
    async fn slice_names(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for kind in ["endpointsliceexports", "endpointsliceimports"] {
            let path = format!("/apis/networking.fleet.azure.com/v1alpha1/{kind}");
            let list: Value = self.fleet.hub.admin().request(http::Request::get(path).body(Vec::new())?).await?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            names.extend(
                items.iter().map(|it| format!("{kind} {}", it["metadata"]["name"].as_str().unwrap_or_default())),
            );
        }
        let slices: Api<EndpointSlice> = Api::namespaced(self.fleet.members[1].server.admin(), "fleet-system");
        let imported = slices.list(&ListParams::default()).await?.items;
        names.extend(
            imported.into_iter().filter_map(|it| it.metadata.name).map(|name| format!("endpointslices {name}")),
        );
        Ok(names)
    }

    /// Adds the present slices to the names that are known.
    pub(crate) async fn adds_names(&mut self) -> anyhow::Result<()> {
        self.names = self.slice_names().await?;
        Ok(())
    }

    /// Returns the writes of the agents so far, without heartbeats, Leases and Events, such as
    /// `hub patch endpointsliceexports x`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let line = |entry: &Entry| {
            let target = &entry.call.target;
            let part = if target.subresource.is_empty() { String::new() } else { format!("/{}", target.subresource) };
            format!("{:?} {}{part} {}", entry.call.verb, target.resource, target.name).to_lowercase()
        };
        self.fleet.agent_writes().iter().map(line).collect()
    }

    /// Checks that the importer had each endpoint at each moment, and has no other ones now. No object has a new name.
    pub(crate) async fn nothing_was_lost(&mut self) -> anyhow::Result<()> {
        for (routes, endpoints) in &mut self.routes {
            let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
            routes.always_had(&endpoints)?;
            routes.are(&endpoints).await?;
        }
        let added: Vec<String> = self.slice_names().await?.difference(&self.names).cloned().collect();
        ensure!(added.is_empty(), "new names: {added:?}");
        Ok(())
    }
}
