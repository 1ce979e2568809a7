//! Waits until the holder of a Lease releases it.

use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::{Client, Error};
use tokio::time::sleep;

use crate::limits::{LEASE_WATCH_PAUSE, LEASE_WATCH_RETRY};

/// Watches the Lease after this resourceVersion until it has no holder. Also returns if the watch ends or fails, the latter after a
/// wait. The caller reads the Lease again in each case, so a failed watch only delays the caller.
pub(super) async fn released(client: Client, namespace: String, name: String, after: String) {
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let watch = async {
        let mut events = std::pin::pin!(leases.watch(&only, &after).await?);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) if is_held(&lease) => {}
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(Error::Api(status)),
                WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_) => return Ok(true),
            }
        }
        Ok(false)
    };
    match watch.await {
        Ok(true) => {}
        // The server ended the watch. The wait bounds the requests to a server that ends each watch at once.
        Ok(false) => sleep(LEASE_WATCH_PAUSE).await,
        Err(error) => {
            tracing::debug!(
                lease = format!("{namespace}/{name}"),
                %error,
                "the release of a Lease cannot be watched, so a takeover takes longer (grant watch on this Lease)"
            );
            sleep(LEASE_WATCH_RETRY).await;
        }
    }
}

fn is_held(lease: &Lease) -> bool {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    holder.is_some_and(|holder| !holder.is_empty())
}
