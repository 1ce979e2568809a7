//! Target for Lease records.

use crate::server::{Answer, block_on, body, client};
use bytes::Bytes;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::limits::LeaseTimes;
use fleetnet_runtime::metrics::Metrics;
use fleetnet_runtime::process::lease::{LeaseConfig, elect};
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response};
use kube::client::Body;
use prometheus::Registry;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Identity of the candidate.
const IDENTITY: &str = "candidate";

static METRICS: LazyLock<Metrics> =
    LazyLock::new(|| Metrics::new(&Registry::new()).expect("an empty registry takes every name"));

/// Runs an election on a Lease whose record is the input. The server answers each request with the input.
///
/// A candidate never leads while the record names another holder that renews, so it does not lead before the lease
/// duration in the record. The election ends when it is asked to.
pub fn lease(bytes: &[u8]) {
    block_on(election(Bytes::copy_from_slice(bytes)));
}

async fn election(record: Bytes) {
    let (answered, watched) = (record.clone(), AtomicBool::new(false));
    let server = client(move |request| answer(request, &answered, &watched));
    let config = LeaseConfig {
        client: server,
        namespace: "fleet-system".to_owned(),
        names: vec!["agent".to_owned()],
        identity: IDENTITY.to_owned(),
        times: LeaseTimes::default(),
    };
    let (release, released) = oneshot::channel();
    let (leadership, task) = elect(config, &Clock::system(), METRICS.clone(), released).expect("valid settings");
    // Shorter than the shortest lease duration, 1 s.
    sleep(Duration::from_millis(900)).await;
    let leads = leadership.borrow().may_write();
    assert!(!leads || !names_another(&record), "a candidate leads though another process holds the Lease");
    sleep(Duration::from_secs(30)).await;
    release.send(()).expect("the election goes on");
    let ended = timeout(Duration::from_mins(5), task).await.expect("an election ends in time");
    ended.expect("an election does not panic");
}

/// Returns the answer to a request. The first watch of the Lease shows the record. No watch ends.
fn answer(request: &Request<Body>, record: &Bytes, watched: &AtomicBool) -> Response<Answer> {
    let is_watch =
        request.method() == Method::GET && request.uri().query().is_some_and(|query| query.contains("watch"));
    let shows = !is_watch || !watched.swap(true, Ordering::Relaxed);
    let once = stream::iter(shows.then(|| record.clone()));
    Response::new(if is_watch { body(once.chain(stream::pending())) } else { body(once) })
}

/// True if the record has another holder.
fn names_another(record: &[u8]) -> bool {
    let record: serde_json::Value = serde_json::from_slice(record).unwrap_or_default();
    record["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty() && holder != IDENTITY)
}
