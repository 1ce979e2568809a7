//! Client of one cluster that only sends requests: it decodes and caches nothing. The bench uses this client for the
//! writes of users and of the baseline.

use crate::limits::IN_FLIGHT_PER_CLUSTER;
use anyhow::Context as _;
use fleetnet_runtime::io::client::Cluster;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Client of one cluster. Uses the same connector as the agents, so the connections of the baseline are as fast as the
/// agents' connections.
pub struct Bare {
    cluster: Cluster,
    slots: Semaphore,
    writes: AtomicUsize,
}

impl Bare {
    /// Returns a client. It must be the only user of the connections of `cluster`, because it limits their parallel
    /// requests.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, slots: Semaphore::new(IN_FLIGHT_PER_CLUSTER), writes: AtomicUsize::new(0) }
    }

    /// Creates an object in the collection at `path`. Returns its resourceVersion.
    pub async fn create(&self, path: &str, body: &Value) -> anyhow::Result<u64> {
        self.write(http::Request::post(path).header(CONTENT_TYPE, "application/json"), path, body).await
    }

    /// Patches the object at `path`. Returns the object's new resourceVersion.
    pub async fn patch(&self, path: &str, body: &Value) -> anyhow::Result<u64> {
        self.write(http::Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json"), path, body).await
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = http::Request::get(path).body(Vec::new())?;
        self.cluster.requests.request(request).await.with_context(|| path.to_owned())
    }

    /// Returns the number of writes that this client has made.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn watches(&self) -> kube::Client {
        self.cluster.watches.clone()
    }

    async fn write(&self, request: http::request::Builder, path: &str, body: &Value) -> anyhow::Result<u64> {
        let request = request.body(body.to_string().into_bytes())?;
        let _slot = self.slots.acquire().await?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        let answer = self.cluster.requests.request_text(request).await.with_context(|| path.to_owned())?;
        resource_version(&answer).with_context(|| format!("no resourceVersion in the answer to {path}: {answer}"))
    }
}

/// Returns the resourceVersion of an object that is given as one line of JSON. The first field of this name in the JSON
/// is the field in the object's metadata.
#[must_use]
pub fn resource_version(json: &str) -> Option<u64> {
    const FIELD: &str = "\"resourceVersion\":\"";
    let rest = &json[json.find(FIELD)? + FIELD.len()..];
    rest[..rest.find('"')?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::resource_version;

    #[test]
    fn the_objects_own_version_is_found() {
        let line = r#"{"metadata":{"name":"a","resourceVersion":"17"},"spec":{"resourceVersion":"3"}}"#;
        assert_eq!(resource_version(line), Some(17));
        assert_eq!(resource_version(r#"{"kind":"Status"}"#), None);
    }
}
