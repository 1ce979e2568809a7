//! A member is judged silent only after it has not renewed its MemberAgent for the limits, and withdrawn only after a
//! silence. The time counts on the clock of the hub's API server.

use super::{Oracle, Seen};
use fleetnet_core::model::{MemberAgent, Object, SilencePhase, Treatment};
use fleetnet_types::{ObjectName, Timestamp};
use sim::fleet::Place;
use std::collections::BTreeMap;
use std::time::Duration;

/// Limits of the hub agent, less the second in which a watch delivers a renewal and a write of the hub agent arrives.
const SOFT: Duration = Duration::from_secs(59);
const HARD: Duration = Duration::from_secs(599);

/// Last renewal of each MemberAgent: the time that the member wrote, and the time at which the hub's API server stored
/// it. `None` for a renewal that the rule has not seen, because the hub was restored since.
#[derive(Debug, Default)]
pub(super) struct OnlyOverdue(BTreeMap<ObjectName, (Option<Timestamp>, Option<Timestamp>)>);

/// Returns how importers treat the member, if the hub agent says so and not because the member must prove itself.
fn judged(agent: &MemberAgent) -> Option<Treatment> {
    let silence = agent.status.silence.filter(|silence| silence.phase != SilencePhase::Returning);
    silence.and_then(|silence| silence.phase.treatment())
}

impl Oracle for OnlyOverdue {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(Object::MemberAgent(newest)) = seen.newest() else { return Ok(false) };
        let name = &newest.meta.name;
        let Some(Object::MemberAgent(agent)) = seen.after else {
            self.0.remove(name);
            return Ok(false);
        };
        let last = self.0.entry(name.clone()).or_insert((agent.renewed, seen.before.is_none().then_some(seen.at)));
        if last.0 != agent.renewed {
            *last = (agent.renewed, Some(seen.at));
        }
        let before = match seen.before {
            Some(Object::MemberAgent(before)) => judged(before),
            _ => return Ok(false),
        };
        let limit = match judged(agent) {
            Some(Treatment::Draining) => SOFT,
            Some(Treatment::Withdrawn) => HARD,
            None => return Ok(false),
        };
        if before == judged(agent) || seen.agent != Some(Place::Hub) || seen.is_late {
            return Ok(false);
        }
        let Some(renewed) = last.1 else { return Ok(false) };
        let overdue = seen.at.since(renewed);
        if overdue < limit {
            let phase = agent.status.silence.map(|silence| silence.phase);
            return Err(format!("{name}: {phase:?} {} s after its last renewal", overdue.as_secs()));
        }
        Ok(true)
    }

    fn restored(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    fn agent(renewed: &str, phase: &str) -> State {
        let time = format!("2026-11-23T06:{renewed}.000000Z");
        let silence = json!({"phase": phase, "phaseTime": time, "lastRenewTime": time, "count": 1});
        let status = if phase.is_empty() { json!({}) } else { json!({"silence": silence}) };
        let spec = json!({"version": "1", "renewTime": time});
        state(Kind::MemberAgent, "fleet-member-member-1/member-1", &json!({"spec": spec, "status": status}))
    }

    #[test]
    fn a_member_is_judged_only_after_the_limits() {
        let (alive, renewed) = (agent("00:00", ""), agent("00:10", ""));
        let of = |phase| agent("00:10", phase);
        for (why, phase, seconds, is_right) in [
            ("too early", "Draining", 58, false),
            ("at the limit", "Draining", 60, true),
            ("nothing changes for others", "Postponed", 1, true),
            ("it must prove itself", "Returning", 1, true),
            ("withdrawn too early", "Withdrawn", 590, false),
            ("withdrawn at the limit", "Withdrawn", 600, true),
        ] {
            let mut rule = OnlyOverdue::default();
            let hub = Place::Hub;
            let start = seen(hub, Some(Place::Member(0)), Some(&alive), Some(&renewed));
            assert!(rule.committed(&seen(hub, None, None, Some(&alive))).is_ok());
            assert!(rule.committed(&start).is_ok());
            let after = of(phase);
            let judged = seen(hub, Some(hub), Some(&renewed), Some(&after));
            let judged = Seen { at: start.at + Duration::from_secs(seconds), ..judged };
            assert_eq!(rule.committed(&judged).is_ok(), is_right, "{why}");
        }
    }
}
