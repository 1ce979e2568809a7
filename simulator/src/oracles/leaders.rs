//! Only the replica that holds the Lease writes. The last requests of another replica may be late.

use super::{Oracle, Seen};
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
}
