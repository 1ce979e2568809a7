//! The agents of a member answer what the fleet manager asks for, and send heartbeats until they have left.

use super::{Oracle, Seen};
use fleetnet_core::model::{AgentStatus, InternalMemberCluster, MembershipAgent, MembershipState, Object};
use fleetnet_core::reasons::Reason;
use fleetnet_types::ObjectName;
use std::collections::BTreeMap;
use std::time::Duration;

/// Calm time at which each InternalMemberCluster was last answered. `None` while its agents have left and need send
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Answered(BTreeMap<ObjectName, Option<Duration>>);

/// True if all agents have answered the present specification.
pub(super) fn is_answered(membership: &InternalMemberCluster) -> bool {
    let expected = match membership.state {
        MembershipState::Join => Reason::AgentJoined,
        MembershipState::Leave => Reason::AgentLeft,
        MembershipState::Other => return true,
    };
    let has_answered = |wanted: &MembershipAgent| {
        membership.agents.iter().any(|status| match status {
            AgentStatus::Known { agent, joined: Some(joined), .. } => {
                agent == wanted
                    && *joined.reason == *expected.as_str()
                    && joined.observed_generation == membership.meta.generation
            }
            AgentStatus::Known { .. } | AgentStatus::Other(_) => false,
        })
    };
    MembershipAgent::ALL.iter().all(has_answered)
}

impl Oracle for Answered {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(Object::InternalMemberCluster(newest)) = seen.newest() else { return Ok(false) };
        let name = newest.meta.name.clone();
        let Some(Object::InternalMemberCluster(membership)) = seen.after else {
            self.0.remove(&name);
            return Ok(false);
        };
        let last = self.0.entry(name).or_insert(Some(seen.calm));
        if is_answered(membership) {
            *last = (membership.state == MembershipState::Join).then_some(seen.calm);
        } else if last.is_none() {
            *last = Some(seen.calm);
        }
        Ok(true)
    }

    fn passed(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        for (name, last) in &self.0 {
            if let Some(seconds) = last.filter(|last| calm > *last + freshness).map(|last| (calm - last).as_secs()) {
                return Err(format!("the agents of {name} have not answered for {seconds} calm seconds"));
            }
        }
        Ok(())
    }

    fn restored(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;
    use sim::fleet::Place;

    /// Returns the InternalMemberCluster of the first member, in its second generation, with an answer of its agents.
    pub(in crate::oracles) fn membership(state_asked: &str, reason: &str, generation: i64) -> State {
        let condition = json!({
            "type": "Joined", "status": "True", "reason": reason, "message": "",
            "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let agents = MembershipAgent::ALL.map(|agent| json!({"type": agent.name(), "conditions": [condition]}));
        let rest = json!({
            "metadata": {"generation": 2}, "spec": {"state": state_asked}, "status": {"agentStatus": agents},
        });
        state(Kind::InternalMemberCluster, "fleet-member-member-1/member-1", &rest)
    }

    #[test]
    fn a_member_must_answer_and_then_send_heartbeats_until_it_has_left() {
        let (start, freshness) = (Duration::from_secs(1_000), Duration::from_secs(240));
        for (why, asked, reason, generation, is_right_for_ever) in [
            ("it has left", "Leave", "AgentLeft", 2, true),
            ("it has not left", "Leave", "AgentJoined", 2, false),
            ("it sends no heartbeat", "Join", "AgentJoined", 2, false),
            ("its answer is old", "Leave", "AgentLeft", 1, false),
        ] {
            let mut rule = Answered::default();
            let object = membership(asked, reason, generation);
            assert_eq!(rule.committed(&seen(Place::Hub, Some(Place::Member(0)), None, Some(&object))), Ok(true));
            assert!(rule.passed(start + freshness, freshness).is_ok(), "{why}");
            let late = rule.passed(start + freshness + Duration::from_secs(1), freshness);
            assert_eq!(late.is_ok(), is_right_for_ever, "{why}");
        }
        // A heartbeat in time is enough.
        let mut rule = Answered::default();
        let object = membership("Join", "AgentJoined", 2);
        let first = seen(Place::Hub, Some(Place::Member(0)), None, Some(&object));
        for seconds in [0, 200, 400] {
            let calm = start + Duration::from_secs(seconds);
            assert!(rule.passed(calm, freshness).is_ok());
            assert!(rule.committed(&Seen { calm, ..first }).is_ok());
        }
        let deleted = seen(Place::Hub, None, Some(&object), None);
        assert!(rule.committed(&deleted).is_ok());
        assert!(rule.passed(start * 10, freshness).is_ok(), "nobody asks for anything");
    }
}
