//! Servers of the conformance suite: memkube and real servers, with the custom kinds that the cases use.

use super::normal::normal;
use super::run::run_case;
use super::script::Case;
use anyhow::Context as _;
use fleetnet_api::crds::{Form, all, yaml};
use futures::{StreamExt as _, TryStreamExt as _};
use harness::control_plane::{ADMIN, ControlPlane, Options};
use harness::process::Process;
use harness::turn::Turn;
use kube::Client;
use memkube::auth::{Call, Policy, Target};
use memkube::{MemKube, User};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// CRDs of custom kinds that use the features of structural schemas.
pub const DEFINITIONS: &str = include_str!("definitions.yaml");
/// Number of cases to run at once on the real server. Many cases can run at once, because most of the time they only
/// wait for watches to end.
const AT_ONCE: usize = 16;
const MASTERS: &str = "system:masters";
/// Bearer token of the admin, as [`ControlPlane`] creates it.
const TOKEN: &str = "token-of-admin";
/// Time at which memkube's clock starts.
const EPOCH: &str = "2026-06-01T12:00:00Z";

fn documents() -> Vec<String> {
    let own = DEFINITIONS.split("\n---\n").map(str::to_owned);
    own.chain(all(Form::Full).iter().map(yaml)).collect()
}

/// Interval at which some servers compact their store, to drop watch history soon. A case that reads history must take
/// less time than this interval.
pub const COMPACTION: Duration = Duration::from_secs(5);

/// Real API server with the custom kinds, for one test at a time. Each test uses separate namespaces.
pub struct Real {
    pub server: Arc<ControlPlane>,
    _cleaners: Option<Process>,
    // Must be the last field. Rust drops the fields in order, so the next test gets the server only after the other
    // fields are dropped.
    _turn: Turn,
}

/// Returns the real server that all tests share.
pub async fn real() -> anyhow::Result<Real> {
    static SHARED: OnceCell<Arc<ControlPlane>> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = Turn::of(&TURN).await;
    let server = SHARED.get_or_try_init(|| real_with(None)).await?;
    Ok(Real { server: Arc::clone(server), _cleaners: None, _turn: turn })
}

/// Returns a real server for one test, with the controllers that collect garbage and empty namespaces that are being
/// deleted.
pub async fn real_cleaned() -> anyhow::Result<Real> {
    let real = real().await?;
    let cleaners = real.server.start_cleaners().await?;
    Ok(Real { _cleaners: Some(cleaners), ..real })
}

/// Starts a real server that soon drops its watch history.
pub async fn real_forgetful() -> anyhow::Result<Real> {
    let turn = Turn::with_own_servers().await;
    Ok(Real { server: real_with(Some(COMPACTION)).await?, _cleaners: None, _turn: turn })
}

async fn real_with(compaction_interval: Option<Duration>) -> anyhow::Result<Arc<ControlPlane>> {
    let options = Options { name: "conformance".to_owned(), compaction_interval, ..Options::default() };
    let server = ControlPlane::start(options).await?;
    server.apply_definitions(&documents()).await?;
    Ok(Arc::new(server))
}

/// Returns the user that makes the calls on memkube and on the real server.
#[must_use]
pub fn admin() -> User {
    User::new(ADMIN).with_groups(vec![MASTERS.to_owned()])
}

/// Authorization policy of memkube: the group `system:masters` has all rights, and other users have none. A real server
/// without roles does the same.
struct OfMasters;

impl OfMasters {
    fn allows_all(user: &User) -> bool {
        user.groups.iter().any(|group| group == MASTERS)
    }
}

impl Policy for OfMasters {
    fn allows(&self, call: &Call) -> bool {
        Self::allows_all(&call.user)
    }

    fn allows_other(&self, user: &User, _: &str, _: &Target) -> bool {
        Self::allows_all(user)
    }

    fn allows_path(&self, user: &User, _: &str, _: &str) -> bool {
        Self::allows_all(user)
    }
}

/// Starts memkube with the custom kinds. Call this function on one thread with paused time: then watches end without
/// waiting, and responses depend only on the calls.
pub async fn ours() -> anyhow::Result<MemKube> {
    // Run no controllers. The real server for these cases also runs without kube-controller-manager.
    ours_cleaned_by(Cleaners { namespaces: false, garbage: false }).await
}

/// Starts memkube as [`ours`] does, with the controllers that collect garbage and empty namespaces that are being
/// deleted.
pub async fn ours_cleaned() -> anyhow::Result<MemKube> {
    ours_cleaned_by(Cleaners { namespaces: true, garbage: true }).await
}

/// Controllers of memkube that delete objects.
pub struct Cleaners {
    /// True to empty namespaces that are being deleted.
    pub namespaces: bool,
    /// True to collect garbage.
    pub garbage: bool,
}

/// Starts memkube as [`ours`] does, with these controllers.
pub async fn ours_cleaned_by(cleaners: Cleaners) -> anyhow::Result<MemKube> {
    let clock = memkube::clock::TokioClock::starting_at(EPOCH.parse()?);
    let mut options = memkube::Options::new(Arc::new(clock), 1);
    (options.namespace_controller, options.garbage_collector) = (cleaners.namespaces, cleaners.garbage);
    options.policy = Arc::new(OfMasters);
    let server = MemKube::new(options);
    server.set_token(TOKEN, Some(admin()));
    let client = server.client(admin());
    for document in documents() {
        define(&client, &document).await?;
    }
    Ok(server)
}

/// Starts memkube as [`ours`] does, with a short watch history.
pub async fn ours_forgetful() -> anyhow::Result<MemKube> {
    Ok(forgetting(ours().await?))
}

/// Makes memkube compact its store every [`COMPACTION`], so that its watch history is short.
#[must_use]
pub fn forgetting(server: MemKube) -> MemKube {
    let forgetful = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(COMPACTION).await;
            forgetful.compact();
        }
    });
    server
}

async fn define(client: &Client, document: &str) -> anyhow::Result<()> {
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/yaml")
        .body(document.as_bytes().to_vec())?;
    let answer = client.request::<Value>(request).await;
    answer.map(drop).with_context(|| format!("memkube refuses {}", document.lines().take(6).collect::<String>()))
}

/// Runs cases on the real server, up to `AT_ONCE` at once. Returns the normalized responses.
pub async fn run_real(client: &Client, cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    let results = futures::stream::iter(cases).map(|case| run_one(client, case));
    results.buffered(AT_ONCE).try_collect().await
}

/// Runs cases on memkube, one after the other. Returns the normalized responses.
pub async fn run_ours(client: &Client, cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    let mut results = Vec::new();
    for case in cases {
        results.push(run_one(client, case).await?);
    }
    Ok(results)
}

/// Runs one case. Returns its normalized responses.
pub async fn run_one(client: &Client, case: &Case) -> anyhow::Result<Vec<Value>> {
    let run = run_case(client, case).await.with_context(|| format!("{} ({})", case.title, case.theme))?;
    Ok(normal(case, &run))
}

/// Runs a future on a runtime of one thread with paused time.
pub fn paused<T>(run: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(run)
}
