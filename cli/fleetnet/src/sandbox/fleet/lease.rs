//! Wait for the Leases of an agent.

use crate::limits::{WATCH_AGAIN, WATCH_SECONDS};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ResourceExt as _, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Client};
use sim::server::FLEET_SYSTEM;
use std::collections::BTreeMap;
use tokio::time::sleep;

/// Waits until all Leases in `fleet-system` of a cluster were renewed after `since`. Then a running agent holds them.
pub(super) async fn until_renewed(client: Client, since: Timestamp) {
    let leases: Api<Lease> = Api::namespaced(client, FLEET_SYSTEM);
    let all = WatchParams::default().initial_events().timeout(WATCH_SECONDS);
    loop {
        if let Ok(events) = leases.watch(&all, "").await {
            let mut events = events.boxed();
            let mut renewed = BTreeMap::new();
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                        renewed.insert(lease.name_any(), is_held_since(&lease, since));
                    }
                    WatchEvent::Deleted(lease) => _ = renewed.remove(&lease.name_any()),
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
                if !renewed.is_empty() && renewed.values().all(|renewed| *renewed) {
                    return;
                }
            }
        }
        sleep(WATCH_AGAIN).await;
    }
}

/// True if somebody holds the Lease and has renewed it after `since`.
fn is_held_since(lease: &Lease, since: Timestamp) -> bool {
    let Some(spec) = &lease.spec else { return false };
    let is_held = spec.holder_identity.as_deref().is_some_and(|holder| !holder.is_empty());
    is_held && spec.renew_time.as_ref().is_some_and(|time| time.0 > since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    #[test]
    fn a_lease_counts_if_it_was_renewed_later_by_a_holder() {
        let lease = |holder: &str, seconds: i64| {
            let renew_time = Some(MicroTime(Timestamp::from_second(seconds).unwrap()));
            let spec = LeaseSpec { holder_identity: Some(holder.to_owned()), renew_time, ..LeaseSpec::default() };
            Lease { spec: Some(spec), ..Lease::default() }
        };
        let since = Timestamp::from_second(100).unwrap();
        for (holder, seconds, expected) in [("a", 101, true), ("a", 99, false), ("", 101, false)] {
            assert_eq!(is_held_since(&lease(holder, seconds), since), expected, "{holder} at {seconds}");
        }
        assert!(!is_held_since(&Lease::default(), since));
    }
}
