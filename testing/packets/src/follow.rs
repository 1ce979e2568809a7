//! Watch of pods that never ends: [`follow`].

use crate::limits::RETRY;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Annotation of the bookmark that ends the initial objects of a watch.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Change of a pod that a watch shows.
#[derive(Debug)]
pub(crate) enum Change {
    /// The pod is new, or has changed.
    Applied(Box<Pod>),
    /// The pod with this UID does not exist any more, or is not selected any more.
    Gone(String),
}

/// Follows the pods that `selection` selects, and calls `see` for each change. After an error, it begins again.
pub(crate) async fn follow(pods: &Api<Pod>, selection: &WatchParams, mut see: impl FnMut(Change)) -> Infallible {
    // Versions of the pods that `see` knows, by UID.
    let mut known = BTreeMap::new();
    loop {
        // Pods that the previous watch has seen and the next one has not yet.
        let mut missing = std::mem::take(&mut known);
        if let Err(error) = watch(pods, selection, &mut known, &mut missing, &mut see).await {
            eprintln!("the watch of pods begins again: {error:#}");
        }
        known.append(&mut missing);
        tokio::time::sleep(RETRY).await;
    }
}

async fn watch(
    pods: &Api<Pod>,
    selection: &WatchParams,
    known: &mut BTreeMap<String, Option<String>>,
    missing: &mut BTreeMap<String, Option<String>>,
    see: &mut impl FnMut(Change),
) -> anyhow::Result<()> {
    let mut events = pods.watch(&selection.clone().initial_events(), "").await?.boxed();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                let uid = pod.uid().unwrap_or_default();
                let version = pod.resource_version();
                if missing.remove(&uid).is_none_or(|before| before != version) {
                    see(Change::Applied(Box::new(pod)));
                }
                known.insert(uid, version);
            }
            WatchEvent::Deleted(pod) => {
                let uid = pod.uid().unwrap_or_default();
                known.remove(&uid);
                see(Change::Gone(uid));
            }
            WatchEvent::Bookmark(bookmark) if bookmark.metadata.annotations.contains_key(INITIAL_END) => {
                std::mem::take(missing).into_keys().for_each(|uid| see(Change::Gone(uid)));
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => anyhow::bail!("{status:?}"),
        }
    }
    Ok(())
}
