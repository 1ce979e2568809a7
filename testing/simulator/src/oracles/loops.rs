//! No object is written again and again without an end.

use super::{Oracle, Seen};
use crate::limits::WRITES_IN_A_MINUTE;
use fleetnet_core::model::Kind;
use fleetnet_types::{ObjectName, Timestamp};
use sim::fleet::Place;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);

/// Times of the agents' last writes to each object.
#[derive(Debug, Default)]
pub(super) struct NoLoop(BTreeMap<(Place, Kind, ObjectName), VecDeque<Timestamp>>);

impl Oracle for NoLoop {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let (Some(object), Some(agent)) = (seen.newest(), seen.agent) else { return Ok(false) };
        let name = object.meta().name.clone();
        let times = self.0.entry((seen.server, seen.kind, name.clone())).or_default();
        times.push_back(seen.at);
        while times.front().is_some_and(|first| seen.at.since(*first) > MINUTE) {
            times.pop_front();
        }
        if times.len() > WRITES_IN_A_MINUTE {
            return Err(format!(
                "the agent of {agent:?} wrote {:?} {name} {} times in a minute",
                seen.kind,
                times.len()
            ));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{seen, state};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_agent_writes_an_object_at_most_60_times_in_a_minute() {
        let service = state(Kind::Service, "fleet-system/work-app", &json!({"spec": {"ports": []}}));
        let (mut rule, change) = (NoLoop::default(), seen(Place::Hub, Some(Place::Hub), None, Some(&service)));
        for _ in 0..60 {
            rule.committed(&change).expect("60 writes");
        }
        let user = Seen { agent: None, ..change };
        assert_eq!(rule.committed(&user), Ok(false), "users may write");
        let later = Seen { at: change.at + MINUTE + Duration::from_millis(1), ..change };
        assert_eq!(NoLoop(rule.0.clone()).committed(&later), Ok(true), "another minute");
        assert!(rule.committed(&change).is_err(), "61 writes");
    }
}
