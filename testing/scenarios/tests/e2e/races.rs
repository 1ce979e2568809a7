//! Tests of races between two members that claim a Service within one second. Only the hub agent runs, on a real API
//! server.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{InternalServiceExport, InternalServiceImport, ServiceImport};
use futures::StreamExt as _;
use harness::eventually::{self, Deadline, Shown};
use harness::fleet::Fleet;
use harness::run;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchParams};
use kube::core::{ResourceExt as _, WatchEvent};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Milliseconds from the first claim to the second. Each race uses the next value of this list.
const GAPS: [u64; 6] = [0, 5, 10, 15, 20, 25];
const RECORD: &str = "networking.fleet.azure.com/service-in-use-by";

/// Namespaces of the members in the hub. In alphabetical order, the first claimer's namespace comes after the second
/// claimer's. So if the order of names decided between the claims, the second claimer would win and the test would
/// fail.
const EXPORTER: &str = "fleet-member-exporter";
const FIRST: &str = "fleet-member-racer-2";
const SECOND: &str = "fleet-member-racer-1";

/// Recorder of all states of all objects of a kind since its start, in order, from a watch.
struct History<K> {
    states: Arc<Mutex<Vec<K>>>,
    watching: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl<K: Shown + Send + 'static> History<K>
where
    K::DynamicType: Default,
{
    async fn begin(api: Api<K>) -> anyhow::Result<Self> {
        let listed = api.list(&ListParams::default()).await?;
        let version = listed.metadata.resource_version.context("a list has a version")?;
        let states: Arc<Mutex<Vec<K>>> = Arc::default();
        let seen = Arc::clone(&states);
        let watching = tokio::spawn(async move {
            let mut events = api.watch(&WatchParams::default().timeout(290), &version).await?.boxed();
            while let Some(event) = events.next().await {
                match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => seen.lock().push(object),
                    WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(status) => anyhow::bail!("the watch failed: {status:?}"),
                }
            }
            Ok(())
        });
        Ok(Self { states, watching })
    }

    /// Returns all states up to the first for which `is_last` is true.
    async fn until(self, what: &str, is_last: impl Fn(&K) -> bool) -> anyhow::Result<Vec<K>> {
        let deadline = Deadline::start();
        while !self.states.lock().iter().any(&is_last) {
            ensure!(!self.watching.is_finished(), "the watch ended before {what}");
            deadline.pause(|| format!("no {what}")).await?;
        }
        self.watching.abort();
        Ok(self.states.lock().clone())
    }
}

/// Outcome of all races in which both claims were created within one second.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    races: usize,
    first_recorded_in_the_end: usize,
    first_answered_in_the_end: usize,
    second_recorded_at_some_time: usize,
    second_answered_at_some_time: usize,
    records_taken_away: usize,
    answers_taken_away: usize,
}

/// True if the state changes from true to false at some time: a member has lost a granted claim.
fn was_lost(states: &[bool]) -> bool {
    states.windows(2).any(|pair| pair == [true, false])
}

fn reference(namespace: &str, name: &str, cluster: &str) -> serde_json::Value {
    json!({
        "clusterId": cluster, "kind": "ServiceImport", "namespace": namespace, "name": name, "resourceVersion": "1",
        "generation": 1, "uid": format!("uid-{cluster}-{name}"), "namespacedName": format!("{namespace}/{name}"),
    })
}

struct Hub {
    client: kube::Client,
    namespace: String,
}

impl Hub {
    fn name(&self, service: usize) -> String {
        format!("{}-app-{service}", self.namespace)
    }

    async fn export(&self, service: usize) -> anyhow::Result<()> {
        let export: InternalServiceExport = serde_json::from_value(json!({
            "metadata": { "name": self.name(service) },
            "spec": {
                "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
                "serviceReference": reference(&self.namespace, &format!("app-{service}"), "exporter"),
            },
        }))?;
        let api: Api<InternalServiceExport> = Api::namespaced(self.client.clone(), EXPORTER);
        api.create(&PostParams::default(), &export).await?;
        Ok(())
    }

    async fn claim(&self, namespace: &str, service: usize) -> anyhow::Result<InternalServiceImport> {
        let cluster = namespace.trim_start_matches("fleet-member-");
        let claim: InternalServiceImport = serde_json::from_value(json!({
            "metadata": { "name": self.name(service) },
            "spec": { "serviceImportReference": reference(&self.namespace, &format!("app-{service}"), cluster) },
        }))?;
        let api = Api::namespaced(self.client.clone(), namespace);
        Ok(api.create(&PostParams::default(), &claim).await?)
    }

    /// Runs races until `races` of them count. A race counts if both claims were created within one second. Returns the
    /// Services of the races that count.
    async fn race(&self, races: usize) -> anyhow::Result<Vec<usize>> {
        let mut counted = Vec::new();
        for service in 0..2 * races {
            if counted.len() == races {
                break;
            }
            let first = self.claim(FIRST, service).await?;
            sleep(Duration::from_millis(GAPS[service % GAPS.len()])).await;
            let second = self.claim(SECOND, service).await?;
            if first.metadata.creation_timestamp == second.metadata.creation_timestamp {
                counted.push(service);
            }
        }
        ensure!(counted.len() == races, "only {} of {} races were within one second", counted.len(), 2 * races);
        Ok(counted)
    }

    fn outcome(&self, counted: &[usize], imports: &[ServiceImport], claims: &[InternalServiceImport]) -> Outcome {
        let mut outcome = Outcome { races: counted.len(), ..Outcome::default() };
        for service in counted {
            let records = |namespace: &str| -> Vec<bool> {
                let of_service = imports.iter().filter(|import| import.name_any() == format!("app-{service}"));
                let names = |import: &ServiceImport| {
                    import.annotations().get(RECORD).is_some_and(|record| record.contains(&format!("\"{namespace}\"")))
                };
                of_service.map(names).collect()
            };
            let answers = |namespace: &str| -> Vec<bool> {
                let is_this = |claim: &&InternalServiceImport| {
                    claim.name_any() == self.name(*service) && claim.namespace().as_deref() == Some(namespace)
                };
                claims.iter().filter(is_this).map(is_answered).collect()
            };
            let [of_first, of_second] = [FIRST, SECOND].map(|namespace| (records(namespace), answers(namespace)));
            outcome.first_recorded_in_the_end += usize::from(of_first.0.last() == Some(&true));
            outcome.first_answered_in_the_end += usize::from(of_first.1.last() == Some(&true));
            outcome.second_recorded_at_some_time += usize::from(of_second.0.contains(&true));
            outcome.second_answered_at_some_time += usize::from(of_second.1.contains(&true));
            outcome.records_taken_away += usize::from(was_lost(&of_first.0) || was_lost(&of_second.0));
            outcome.answers_taken_away += usize::from(was_lost(&of_first.1) || was_lost(&of_second.1));
        }
        outcome
    }
}

fn is_answered(claim: &InternalServiceImport) -> bool {
    claim.status.iter().flat_map(|status| &status.clusters).flatten().count() > 0
}

async fn race_claims(races: usize) -> anyhow::Result<Outcome> {
    let fleet = Fleet::take(0).await?;
    let hub = Hub { client: fleet.hub.admin(), namespace: fleet.namespace("races").await? };
    for namespace in [EXPORTER, FIRST, SECOND] {
        fleet.hub.create_namespace(namespace).await?;
    }
    let _agent = fleet.hub_agent().await?.start_ready().await?;
    let services = 2 * races;
    for service in 0..services {
        hub.export(service).await?;
    }
    let imports: Api<ServiceImport> = Api::namespaced(hub.client.clone(), &hub.namespace);
    let is_resolved =
        |import: &ServiceImport| import.status.iter().flat_map(|status| &status.import.clusters).flatten().count() > 0;
    eventually::objects(&imports, &WatchParams::default(), "all Services to be resolved", |objects| {
        objects.values().filter(|import| is_resolved(import)).count() == services
    })
    .await?;

    let (of_imports, of_claims) = tokio::try_join!(
        History::begin(imports),
        History::begin(Api::<InternalServiceImport>::all(hub.client.clone())),
    )?;
    let counted = hub.race(races).await?;
    let claims: Api<InternalServiceImport> = Api::all(hub.client.clone());
    let is_raced = |claim: &InternalServiceImport| counted.iter().any(|service| claim.name_any() == hub.name(*service));
    eventually::objects(&claims, &WatchParams::default(), "one claim of each race to be answered", |objects| {
        objects.values().filter(|claim| is_raced(claim) && is_answered(claim)).count() >= races
    })
    .await?;
    // Export and claim one more Service. When the hub agent has handled this claim, it has also made all its writes for
    // the earlier claims: three writes for a claim, one after the other.
    hub.export(services).await?;
    hub.claim(FIRST, services).await?;
    let is_last_claim = |claim: &InternalServiceImport| claim.name_any() == hub.name(services) && is_answered(claim);
    let is_last_import = |import: &ServiceImport| {
        import.name_any() == format!("app-{services}") && import.annotations().contains_key(RECORD)
    };
    let (imports, claims) = tokio::try_join!(
        of_imports.until("record of the last claim", is_last_import),
        of_claims.until("answer to the last claim", is_last_claim)
    )?;
    Ok(hub.outcome(&counted, &imports, &claims))
}

/// Also rule C12.
#[test]
fn of_two_claims_of_one_second_the_first_is_granted() -> anyhow::Result<()> {
    run(async {
        let races = 30;
        // The first claim is granted, the second claim never is, and nothing is removed.
        let fair =
            Outcome { races, first_recorded_in_the_end: races, first_answered_in_the_end: races, ..Outcome::default() };
        assert_eq!(race_claims(races).await?, fair);
        Ok(())
    })
}

#[test]
fn a_state_is_lost_where_one_without_it_follows() {
    assert!(was_lost(&[false, true, false]) && was_lost(&[true, false, true]));
    assert!(!was_lost(&[false, false, true, true]) && !was_lost(&[]));
}
