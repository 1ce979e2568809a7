//! The two servers, with the custom kinds that the table speaks of.

use super::normal::normal;
use super::play::play;
use super::script::Case;
use crate::control_plane::{ADMIN, ControlPlane, Options};
use crate::process::Process;
use crate::turn::Turn;
use anyhow::Context as _;
use fleetnet_api::crds::{Form, all, yaml};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use memkube::auth::{Call, Policy, Target};
use memkube::{MemKube, User};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// Custom kinds that show what a schema can say.
pub const DEFINITIONS: &str = include_str!("definitions.yaml");
/// Cases at once on the real server: most of their time is waiting for watches to end.
const AT_ONCE: usize = 16;
const MASTERS: &str = "system:masters";
/// Of the admin, as [`ControlPlane`] makes it.
const TOKEN: &str = "token-of-admin";
/// When memkube's clock begins.
const EPOCH: &str = "2026-06-01T12:00:00Z";

fn documents() -> Vec<String> {
    let own = DEFINITIONS.split("\n---\n").map(str::to_owned);
    own.chain(all(Form::Full).iter().map(yaml)).collect()
}

/// Between two compactions of a server that forgets soon. What is asked of the last moment must come within it.
pub const COMPACTION: Duration = Duration::from_secs(5);

/// A real server with the custom kinds, for one test at a time. What a test leaves there is in namespaces of its own.
pub struct Real {
    /// The server.
    pub server: Arc<ControlPlane>,
    _cleaners: Option<Process>,
    // The last field: the next test's turn comes when all else of this one is gone.
    _turn: Turn,
}

/// The real server that all tests share.
///
/// # Errors
/// Where it does not come up.
pub async fn real() -> anyhow::Result<Real> {
    static SHARED: OnceCell<Arc<ControlPlane>> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = Turn::of(&TURN).await;
    let server = SHARED.get_or_try_init(|| real_with(None)).await?;
    Ok(Real { server: Arc::clone(server), _cleaners: None, _turn: turn })
}

/// The same, and beside it what empties deleted namespaces and collects garbage, for this one test.
///
/// # Errors
/// Where one of the two does not come up.
pub async fn real_cleaned() -> anyhow::Result<Real> {
    let real = real().await?;
    let cleaners = real.server.start_cleaners().await?;
    Ok(Real { _cleaners: Some(cleaners), ..real })
}

/// Starts a real server that forgets soon.
///
/// # Errors
/// Where it does not come up.
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

/// Who plays, on both servers.
#[must_use]
pub fn admin() -> User {
    User::new(ADMIN).with_groups(vec![MASTERS.to_owned()])
}

/// Who is in the group of masters may do everything, and nobody else anything, as on a real server without roles.
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

/// Starts memkube with the custom kinds. It must be on a runtime of one thread whose time is paused: then watches end at
/// once and answers depend on nothing but the calls.
///
/// # Errors
/// Where it refuses a definition.
pub async fn ours() -> anyhow::Result<MemKube> {
    // The real server runs without kube-controller-manager.
    ours_cleaned_by(false, false).await
}

/// Starts memkube as [`ours`] does, with what empties deleted namespaces and collects garbage.
///
/// # Errors
/// Where it refuses a definition.
pub async fn ours_cleaned() -> anyhow::Result<MemKube> {
    ours_cleaned_by(true, true).await
}

/// Starts memkube as [`ours`] does, with either of the two that clean up or without.
///
/// # Errors
/// Where it refuses a definition.
pub async fn ours_cleaned_by(namespace_controller: bool, garbage_collector: bool) -> anyhow::Result<MemKube> {
    let clock = memkube::clock::TokioClock::starting_at(EPOCH.parse()?);
    let mut options = memkube::Options::new(Arc::new(clock), 1);
    (options.namespace_controller, options.garbage_collector) = (namespace_controller, garbage_collector);
    options.policy = Arc::new(OfMasters);
    let server = MemKube::new(options);
    server.set_token(TOKEN, Some(admin()));
    let client = server.client(admin());
    for document in documents() {
        define(&client, &document).await?;
    }
    Ok(server)
}

/// Starts memkube as [`ours`] does, and it forgets soon.
///
/// # Errors
/// Where it refuses a definition.
pub async fn ours_forgetful() -> anyhow::Result<MemKube> {
    Ok(forgetting(ours().await?))
}

/// Makes a memkube forget soon.
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

/// Plays cases on the real server, many at once.
///
/// # Errors
/// Where one has no answer.
pub async fn play_real(client: &Client, cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    let played = futures::stream::iter(cases).map(|case| play_one(client, case));
    played.buffered(AT_ONCE).try_collect().await
}

/// Plays cases one after the other.
///
/// # Errors
/// Where one has no answer.
pub async fn play_ours(client: &Client, cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    let mut played = Vec::new();
    for case in cases {
        played.push(play_one(client, case).await?);
    }
    Ok(played)
}

/// Plays one case; the answers are normal.
///
/// # Errors
/// Where it has no answer.
pub async fn play_one(client: &Client, case: &Case) -> anyhow::Result<Vec<Value>> {
    let played = play(client, case).await.with_context(|| format!("{} ({})", case.title, case.theme))?;
    Ok(normal(case, &played))
}

/// Runs something on a runtime of one thread whose time is paused.
///
/// # Errors
/// Where there is no such runtime, or what is run fails.
pub fn paused<T>(run: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(run)
}
