//! Takeover of a fleet of Go agents, on paused time: our agents start on the objects that the Go agents left. No endpoint is lost, no
//! export gets another name, and no write is made without need.
//!
//! `fixtures/go-agents.json` has the objects of a hub, an exporting and an importing cluster in five states. Each state follows from the
//! one before it, so the file has only the differences.

use anyhow::{Context as _, ensure};
use harness::routes::Routes;
use harness::user::User;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use memkube::audit::Entry;
use serde_json::{Map, Value};
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

const FIXTURES: &str = include_str!("fixtures/go-agents.json");
const STATES: [&str; 5] = ["1-settled", "2-conflict", "3-unexported", "4-mcs-deleted", "5-weight-zero"];
const CLUSTERS: [&str; 3] = ["hub", "exporter", "importer"];
/// Time in which the agents take over. It is longer than the grace periods for objects that disappeared.
const SETTLES: Duration = Duration::from_secs(120);

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
struct Taken {
    fleet: Fleet,
    /// Routes of each derived Service in the importing cluster, and the endpoints that it has.
    routes: Vec<(Routes, BTreeSet<String>)>,
    names: BTreeSet<String>,
}

impl Taken {
    async fn new(state: &str) -> anyhow::Result<Self> {
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

    /// Returns the writes of the agents so far, without heartbeats, Leases and Events, such as `hub patch endpointsliceexports x`.
    fn writes(&self) -> Vec<String> {
        let line = |entry: &Entry| {
            let target = &entry.call.target;
            let part = if target.subresource.is_empty() { String::new() } else { format!("/{}", target.subresource) };
            format!("{:?} {}{part} {}", entry.call.verb, target.resource, target.name).to_lowercase()
        };
        self.fleet.agent_writes().iter().map(line).collect()
    }

    /// Checks that the importer had each endpoint at each moment, and has no other ones now. No object has a new name.
    async fn nothing_was_lost(&mut self) -> anyhow::Result<()> {
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

/// Returns the writes that a takeover of a state needs, sorted.
fn needed(state: &str) -> Vec<&'static str> {
    // The hub agent stores since when each export has its ports.
    let stamp = |service| match service {
        0 => "patch internalserviceexports work-svc0",
        1 => "patch internalserviceexports work-svc1",
        _ => "patch internalserviceexports work-svc2",
    };
    let stamps: &[usize] = match state {
        "1-settled" => &[0, 1, 2],
        "2-conflict" => &[0, 0, 1, 2],
        "3-unexported" | "4-mcs-deleted" => &[0, 0, 2],
        _ => &[0, 0],
    };
    let others: &[&str] = match state {
        // The Go agents exported `svc2-1` twice (bug B1b). The older export goes.
        "1-settled" | "2-conflict" | "3-unexported" => &[
            "delete endpointsliceexports exporter-work-svc2-1-dc6ab",
            "delete endpointsliceimports exporter-work-svc2-1-dc6ab",
            "delete endpointslices exporter-work-svc2-1-dc6ab",
            "patch endpointsliceexports exporter-work-svc2-1-dc6ab",
            "patch endpointsliceimports exporter-work-svc2-1-dc6ab",
        ],
        "4-mcs-deleted" => &[],
        // The Go agents left these when the weight became 0 (bug B8).
        _ => &[
            "delete endpointsliceexports exporter-work-svc2-0-1f827",
            "delete endpointsliceexports exporter-work-svc2-1-e1859",
        ],
    };
    let mut writes: Vec<&str> = stamps.iter().map(|service| stamp(*service)).chain(others.iter().copied()).collect();
    writes.sort_unstable();
    writes
}

/// Lets our agents take a state over. `pause` is the time between the starts of two agents.
async fn takes_over(state: &str, order: [Place; 3], pause: Duration) -> anyhow::Result<()> {
    let mut taken = Taken::new(state).await?;
    for place in order {
        taken.fleet.start(place)?;
        sleep(pause).await;
    }
    taken.fleet.ready().await?;
    sleep(SETTLES).await;
    taken.nothing_was_lost().await?;
    let mut found = taken.writes();
    found.sort();
    ensure!(found == needed(state), "{state} {order:?}: {found:#?}\nnot {:#?}", needed(state));

    // A restart costs nothing, and a change costs three writes.
    for place in order {
        taken.fleet.stop(place).await?;
        taken.fleet.start(place)?;
    }
    taken.fleet.ready().await?;
    sleep(SETTLES).await;
    ensure!(taken.writes().len() == found.len(), "after a restart: {:#?}", taken.writes());
    let exporter = User::new(taken.fleet.members[0].server.admin(), "work");
    exporter.set_endpoints("svc0-0", &["10.1.0.77"]).await?;
    sleep(Duration::from_secs(5)).await;
    let change = &taken.writes()[found.len()..];
    ensure!(change.len() == 3, "a change of endpoints: {change:#?}");
    Ok(())
}

/// Time between the starts of two agents. It is longer than the 6 minutes that peers have for their first announcement.
const ONE_BY_ONE: Duration = Duration::from_secs(420);
const EXPORTER: Place = Place::Member(0);
const IMPORTER: Place = Place::Member(1);

#[test]
fn each_state_of_the_go_agents_is_taken_over_without_a_lost_endpoint_or_a_needless_write() -> anyhow::Result<()> {
    for state in STATES {
        sim::paused(async { takes_over(state, [Place::Hub, EXPORTER, IMPORTER], Duration::ZERO).await })?;
    }
    Ok(())
}

#[test]
fn a_fleet_is_taken_over_agent_by_agent_in_any_order() -> anyhow::Result<()> {
    let orders = [
        ("1-settled", [Place::Hub, EXPORTER, IMPORTER]),
        ("2-conflict", [Place::Hub, IMPORTER, EXPORTER]),
        ("3-unexported", [EXPORTER, Place::Hub, IMPORTER]),
        ("4-mcs-deleted", [EXPORTER, IMPORTER, Place::Hub]),
        ("5-weight-zero", [IMPORTER, Place::Hub, EXPORTER]),
        ("2-conflict", [IMPORTER, EXPORTER, Place::Hub]),
    ];
    for (state, order) in orders {
        sim::paused(async { takes_over(state, order, ONE_BY_ONE).await })?;
    }
    Ok(())
}
