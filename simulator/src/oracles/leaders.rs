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
