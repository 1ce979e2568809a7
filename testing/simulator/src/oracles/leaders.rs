//! Only the replica that holds the Lease writes. The last requests of another replica may be late. No replica takes the
//! Lease of another one that has renewed it in time.

use super::{Oracle, Seen};
use serde_json::Value;
use std::time::Duration;

/// Longest time that a request is on its way: an agent waits 10 s for an answer.
const ON_ITS_WAY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct OnlyLeaders;

impl Oracle for OnlyLeaders {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let (Some(agent), Some(replica), Some((leader, since))) = (seen.agent, seen.replica, seen.leader) else {
            return Ok(false);
        };
        if replica != leader && !seen.is_late && seen.at.since(since) > ON_ITS_WAY {
            let name = seen.newest().map(|object| object.meta().name.to_string()).unwrap_or_default();
            return Err(format!(
                "replica {replica} of the agent of {agent:?} wrote {:?} {name}, and {leader} leads",
                seen.kind
            ));
        }
        Ok(true)
    }
}

/// Holder of a Lease.
#[derive(Debug, Default)]
pub(super) struct LeaseHolder {
    /// Identity of the holder; empty if there is none.
    pub(super) holder: String,
    /// Time without a renewal after which the Lease is free.
    duration: Duration,
}

impl LeaseHolder {
    pub(super) fn of(lease: &serde_json::Map<String, Value>) -> Self {
        let spec = lease.get("spec").unwrap_or(&Value::Null);
        Self {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
        }
    }

    fn pod(&self) -> Option<&str> {
        Some(self.holder.rsplit_once('.')?.0)
    }
}

/// Checks the change of a Lease that was last written so long ago. A Lease of a process that lives is not taken.
pub(super) fn may_follow(before: &LeaseHolder, after: &LeaseHolder, unchanged: Duration) -> Result<(), String> {
    let is_taken = !before.holder.is_empty() && !after.holder.is_empty() && before.holder != after.holder;
    if is_taken && before.pod() != after.pod() && unchanged < before.duration {
        return Err(format!("{} took it from {} after {unchanged:?}", after.holder, before.holder));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::support::{seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;
    use sim::fleet::Place;

    #[test]
    fn only_the_leader_writes_apart_from_requests_on_their_way() {
        let service = state(Kind::Service, "fleet-system/work-app", &json!({"spec": {"ports": []}}));
        let change = seen(Place::Member(0), Some(Place::Member(0)), None, Some(&service));
        let just_after = Seen { at: change.at + Duration::from_secs(10), ..change };
        let later = Seen { at: change.at + Duration::from_secs(11), ..change };
        for (why, change, replica, is_right) in [
            ("the leader", later, 1, true),
            ("another replica", later, 0, false),
            ("another replica, whose request was on its way", just_after, 0, true),
            ("another replica, whose request was held back", Seen { is_late: true, ..later }, 0, true),
        ] {
            let leads_since = Some((1, seen(Place::Hub, None, None, Some(&service)).at));
            let committed = OnlyLeaders.committed(&Seen { replica: Some(replica), leader: leads_since, ..change });
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
        }
    }

    #[test]
    fn the_lease_of_a_process_that_lives_is_not_taken() {
        let held = |holder: &str| {
            let spec = json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 3}});
            LeaseHolder::of(spec.as_object().expect("an object"))
        };
        let second = Duration::from_secs(1);
        for (from, to, unchanged, is_right) in [
            ("pod-1.a", "pod-1.a", second, true),
            ("pod-1.a", "pod-2.b", 3 * second, true),
            ("pod-1.a", "pod-1.b", second, true),
            ("pod-1.a", "", second, true),
            ("", "pod-1.a", second, true),
            ("pod-1.a", "pod-2.b", second, false),
        ] {
            assert_eq!(may_follow(&held(from), &held(to), unchanged).is_ok(), is_right, "{from} {to} {unchanged:?}");
        }
    }
}
