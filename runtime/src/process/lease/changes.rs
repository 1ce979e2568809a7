//! Changes of a Lease, from a watch.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _, unfold};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::sleep;

use crate::limits::{LEASE_WATCH_PAUSE, LEASE_WATCH_RETRY};

/// resourceVersion of a watch that begins with the Lease as the API server has it in its cache.
const AS_IT_IS: &str = "0";

struct Watch {
    leases: Api<DynamicObject>,
    /// `namespace/name` of the Lease.
    lease: String,
    only: WatchParams,
    /// resourceVersion after which the next watch begins.
    after: String,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>>,
}

/// Returns the Lease after each of its changes since the resourceVersion `after`; `None` after a deletion. When a watch
/// ends, another one begins after a pause, with the Lease as it then is. So a failed watch only delays the caller, who
/// also reads the Lease.
pub(super) fn of(
    client: Client,
    namespace: &str,
    name: &str,
    after: Option<&str>,
) -> BoxStream<'static, Option<Value>> {
    let watch = Watch {
        leases: Api::namespaced_with(client, namespace, &ApiResource::erase::<Lease>(&())),
        lease: format!("{namespace}/{name}"),
        only: WatchParams::default().fields(&format!("metadata.name={name}")),
        after: after.unwrap_or(AS_IT_IS).to_owned(),
        events: None,
    };
    unfold(watch, |mut watch| async { Some((watch.next().await, watch)) }).boxed()
}

impl Watch {
    async fn next(&mut self) -> Option<Value> {
        loop {
            let event = match &mut self.events {
                Some(events) => events.next().await,
                None => match self.leases.watch(&self.only, &self.after).await {
                    Ok(events) => self.events.insert(events.boxed()).next().await,
                    Err(error) => Some(Err(error)),
                },
            };
            let pause = match event {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                    return serde_json::to_value(lease).ok();
                }
                Some(Ok(WatchEvent::Deleted(_))) => return None,
                Some(Ok(WatchEvent::Bookmark(_))) => continue,
                Some(Ok(WatchEvent::Error(status))) => self.failed(&Error::Api(status)),
                Some(Err(error)) => self.failed(&error),
                None => LEASE_WATCH_PAUSE,
            };
            (self.events, self.after) = (None, AS_IT_IS.to_owned());
            // The wait bounds the requests to a server that ends each watch at once.
            sleep(pause).await;
        }
    }

    /// Returns the time until the next attempt.
    fn failed(&self, error: &Error) -> Duration {
        let is_denied = matches!(error, Error::Api(status) if status.code == 403);
        tracing::debug!(
            lease = self.lease,
            %error,
            "a Lease cannot be watched, so a takeover takes up to two retry periods longer (grant watch on this Lease)"
        );
        if is_denied { LEASE_WATCH_RETRY } else { LEASE_WATCH_PAUSE }
    }
}
