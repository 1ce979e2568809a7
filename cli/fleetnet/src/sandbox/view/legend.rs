//! Legend of the terminal view, and a small picture of the hub and its members. Does no I/O.

use super::state::State;
use crate::limits::CLUSTERS_NAMED;
use chrono::{DateTime, Local};

/// Keys of the terminal view.
const KEYS: &str = "q quit  p pause  k kill an agent  h hub down or up  ? legend";

/// Explanation of the words in the picture.
const LEGEND: [&str; 10] = [
    "member-1 --write--> hub --write--> each importer: the way of a change of endpoints, by three agents",
    "export      a Service of a member that other members can import, with its EndpointSlices",
    "import      the Service of all exporting members, for the clients of one member",
    "slice       EndpointSlice: a list of endpoints (addresses of pods) of a Service",
    "draining    used only if no other endpoint is ready, because the member is silent or the pod ends",
    "itself      a member imports its own export too; this change also passes through the hub",
    "writes      accepted writes of the agents for one change: 1 into the hub, and 2 for each importer",
    "stream      the hub agent sends a change by gRPC before it writes the object; the last member gets objects only",
    "Lease       a new agent waits until the Lease of an agent that was killed expires",
    KEYS,
];

pub(super) fn lines() -> Vec<String> {
    LEGEND.map(str::to_owned).to_vec()
}

/// Draws the hub and its members. A large fleet has one line for all members.
pub(super) fn fleet(state: &State, now: DateTime<Local>) -> Vec<(bool, String)> {
    let Some((hub, members)) = state.names.split_first() else { return Vec::new() };
    let of_hub = match state.hub_down_since {
        Some(since) => format!("DOWN for {} s", (now - since).num_seconds()),
        None => agent(state, "hub-agent"),
    };
    let (left, is_hub_down) = (format!("{hub} {of_hub}"), state.hub_down_since.is_some());
    let is_hub_well = !is_hub_down && condition(state, "hub-agent").is_none();
    let link = if is_hub_down { "-/ " } else { "---" };
    if members.len() > CLUSTERS_NAMED {
        let ill: Vec<&str> =
            members.iter().filter(|it| condition(state, &agent_of(it)).is_some()).map(String::as_str).collect();
        let ill_names =
            if ill.is_empty() { "all agents run".to_owned() } else { format!("not well: {}", ill.join(", ")) };
        return vec![(is_hub_well && ill.is_empty(), format!("{left} {link} {} members ({ill_names})", members.len()))];
    }
    let gap = " ".repeat(left.chars().count());
    let rows = members.iter().enumerate().map(|(row, member)| {
        let name = agent_of(member);
        let is_well = condition(state, &name).is_none() && (is_hub_well || row > 0) && !is_hub_down;
        let start = if row == 0 { &left } else { &gap };
        (
            is_well,
            format!("{start} {}{link} {member} {}", if members.len() > 1 { "+" } else { "" }, agent(state, &name)),
        )
    });
    rows.collect()
}

fn agent_of(member: &str) -> String {
    format!("member-agent of {member}")
}

/// Returns the condition of an agent that does not work now.
fn condition(state: &State, agent: &str) -> Option<&'static str> {
    match (state.down.contains(agent), state.waiting.contains(agent)) {
        (true, _) => Some("agent DOWN"),
        (false, true) => Some("waits for its Lease"),
        (false, false) => None,
    }
}

fn agent(state: &State, name: &str) -> String {
    format!("[{}]", condition(state, name).unwrap_or("agent runs"))
}
