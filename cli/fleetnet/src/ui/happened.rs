//! Changes between two readings of a fleet, as lines for people. Does no I/O.

use crate::cli::output::table::Tone;
use crate::cli::{services, status};
use diagnosis::report::{Api, Arrival, MemberStatus, ServiceRow, Services, Status};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the hub in lines.
pub(super) const HUB: &str = "hub";

/// Knowledge about a fleet after a reading.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// True if the hub was reached; `None` before the first reading.
    pub(super) is_hub_reached: Option<bool>,
    /// Last status, of a reading that listed all members.
    pub(super) status: Option<Status>,
    /// Last Services, of a reading that listed all exports and imports.
    pub(super) services: Option<Services>,
}

impl Seen {
    /// Takes the knowledge after the next reading. Lists that it does not have stay the last ones.
    pub(super) fn renew(&mut self, next: Self) {
        self.is_hub_reached = next.is_hub_reached;
        self.status = next.status.or(self.status.take());
        self.services = next.services.or(self.services.take());
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Change {
    /// Cluster id of a member, or `hub`.
    pub(super) cluster: String,
    pub(super) kind: Cow<'static, str>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) reason: Cow<'static, str>,
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// Returns the changes from one reading to the next. A part that only one of them knows is no change.
pub(super) fn changes(old: &Seen, new: &Seen) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(hub(old.is_hub_reached, new.is_hub_reached));
    if let (Some(old), Some(new)) = (&old.status, &new.status) {
        changes.extend(leader(old, new));
        changes.extend(members(old, new));
    }
    if let (Some(old), Some(new)) = (&old.services, &new.services) {
        changes.extend(of_services(old, new));
    }
    changes
}

/// Returns the change of the connection to the hub.
fn hub(was_reached: Option<bool>, is_reached: Option<bool>) -> Option<Change> {
    match (was_reached?, is_reached?) {
        (true, false) => Some(of_hub("Unreachable", "the hub does not answer".to_owned(), Tone::Bad)),
        (false, true) => Some(of_hub("Reachable", "the hub answers again".to_owned(), Tone::Good)),
        _ => None,
    }
}

fn of_hub(reason: &'static str, text: String, tone: Tone) -> Change {
    let [cluster, name] = [HUB; 2].map(str::to_owned);
    Change { cluster, kind: "Hub".into(), namespace: String::new(), name, reason: reason.into(), text, tone }
}

fn leader(old: &Status, new: &Status) -> Option<Change> {
    let (before, now) = (old.hub.leader.as_deref(), new.hub.leader.as_deref());
    if before == now {
        return None;
    }
    let before = before.unwrap_or("none");
    Some(match now {
        Some(now) => of_hub("Leader", format!("the leader is {now}, before: {before}"), Tone::Plain),
        None => of_hub("Leader", format!("there is no leader, before: {before}"), Tone::Warning),
    })
}

fn members(old: &Status, new: &Status) -> Vec<Change> {
    let (old, new) = (by_id(&old.members), by_id(&new.members));
    let mut changes = Vec::new();
    for (id, now) in &new {
        let Some(before) = old.get(id) else {
            let text = format!("a new member, its state is {}", status::state(now.state).0);
            changes.push(of_member(id, "Joined", text, Tone::Good));
            continue;
        };
        if before.state != now.state {
            let [(now, tone), (before, _)] = [now.state, before.state].map(status::state);
            changes.push(of_member(id, "State", format!("the state is {now}, before: {before}"), tone));
        }
        if let (Some(before), Some(now)) = (&before.version, &now.version)
            && before != now
        {
            changes.push(of_member(id, "Version", format!("the version is {now}, before: {before}"), Tone::Plain));
        }
    }
    let left = old.keys().filter(|id| !new.contains_key(*id));
    changes.extend(
        left.map(|id| of_member(id, "Left", "the fleet has no such member any more".to_owned(), Tone::Warning)),
    );
    changes
}

fn by_id(members: &[MemberStatus]) -> BTreeMap<&str, &MemberStatus> {
    members.iter().map(|member| (member.member.as_str(), member)).collect()
}

fn of_member(id: &str, reason: &'static str, text: String, tone: Tone) -> Change {
    let [cluster, name] = [id; 2].map(str::to_owned);
    Change { cluster, kind: "Member".into(), namespace: String::new(), name, reason: reason.into(), text, tone }
}

/// Namespace, name and API of a row.
type Key = (String, String, Api);

fn of_services(old: &Services, new: &Services) -> Vec<Change> {
    let by_key = |row: &ServiceRow| -> Key { (row.namespace.clone(), row.name.clone(), row.api) };
    let old: BTreeMap<Key, &ServiceRow> = old.services.iter().map(|row| (by_key(row), row)).collect();
    let new: BTreeMap<Key, &ServiceRow> = new.services.iter().map(|row| (by_key(row), row)).collect();
    let mut changes = Vec::new();
    for (key, now) in &new {
        match old.get(key) {
            Some(before) => service(before, now, &mut changes),
            None => {
                let text = format!("a new Service, {}", parties(now));
                changes.push(of_service(now, HUB, "Appeared", text, Tone::Good));
            }
        }
    }
    let gone = old.iter().filter(|(key, _)| !new.contains_key(*key));
    changes.extend(gone.map(|(_, row)| {
        let text = "no cluster exports or imports it any more".to_owned();
        of_service(row, HUB, "Disappeared", text, Tone::Warning)
    }));
    changes
}

/// Adds the changes of one Service.
fn service(before: &ServiceRow, now: &ServiceRow, changes: &mut Vec<Change>) {
    let mut add =
        |cluster: &str, reason, text: String, tone| changes.push(of_service(now, cluster, reason, text, tone));
    if before.state != now.state {
        let [(state, tone), (was, _)] = [now.state, before.state].map(services::state);
        add(HUB, "State", format!("the state is {state}, before: {was}"), tone);
    }
    if before.endpoints != now.endpoints {
        let tone = match (before.endpoints, now.endpoints) {
            (_, 0) => Tone::Bad,
            (0, _) => Tone::Good,
            _ => Tone::Plain,
        };
        add(HUB, "Endpoints", format!("ready endpoints: {}, before: {}", now.endpoints, before.endpoints), tone);
    }
    for (cluster, is_there) in difference(&before.exporters, &now.exporters) {
        let (reason, text, tone) = if is_there {
            ("Exported", "the cluster exports the Service", Tone::Good)
        } else {
            ("NotExported", "the cluster exports the Service no more", Tone::Warning)
        };
        add(cluster, reason, text.to_owned(), tone);
    }
    for (cluster, is_there) in difference(&before.importers, &now.importers) {
        let (reason, text, tone) = if is_there {
            ("Imported", "the cluster imports the Service", Tone::Good)
        } else {
            ("NotImported", "the cluster imports the Service no more", Tone::Warning)
        };
        add(cluster, reason, text.to_owned(), tone);
    }
    for (cluster, is_there) in difference(&before.conflicts, &now.conflicts) {
        let (reason, text, tone) = match (is_there, now.api) {
            (true, Api::Fleet) => ("Conflict", "the export is in conflict with another one", Tone::Bad),
            (true, Api::Mcs) => ("Conflict", "the export is in conflict with another one", Tone::Warning),
            (false, _) => ("NoConflict", "the conflict of the export is over", Tone::Good),
        };
        add(cluster, reason, text.to_owned(), tone);
    }
    for (importer, exporter, is_missing) in arrivals(&before.arrived, &now.arrived) {
        let (reason, text, tone) = if is_missing {
            ("Missing", format!("the cluster has no endpoints of {exporter}"), Tone::Bad)
        } else {
            ("Arrived", format!("the cluster misses no endpoints of {exporter} any more"), Tone::Good)
        };
        add(importer, reason, text, tone);
    }
}

/// Returns the names that only one of two lists has, and true for those of the second list.
fn difference<'a>(before: &'a [String], now: &'a [String]) -> Vec<(&'a str, bool)> {
    let came = now.iter().filter(|name| !before.contains(name)).map(|name| (name.as_str(), true));
    let went = before.iter().filter(|name| !now.contains(name)).map(|name| (name.as_str(), false));
    came.chain(went).collect()
}

/// Returns the pairs of importer and exporter whose endpoints began to be missing (true) or are missing no more, of the
/// importers that both readings know.
fn arrivals<'a>(before: &'a [Arrival], now: &'a [Arrival]) -> Vec<(&'a str, &'a str, bool)> {
    let mut changes = Vec::new();
    for arrival in now {
        let Some(old) = before.iter().find(|old| old.importer == arrival.importer) else { continue };
        let missing: BTreeSet<(&str, bool)> =
            difference(&old.missing_exporters, &arrival.missing_exporters).into_iter().collect();
        changes.extend(missing.into_iter().map(|(exporter, is)| (arrival.importer.as_str(), exporter, is)));
    }
    changes
}

fn parties(row: &ServiceRow) -> String {
    let list = |names: &[String]| if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
    format!("exported by {}, imported by {}", list(&row.exporters), list(&row.importers))
}

fn of_service(row: &ServiceRow, cluster: &str, reason: &'static str, text: String, tone: Tone) -> Change {
    let (namespace, name) = (row.namespace.clone(), row.name.clone());
    Change { cluster: cluster.to_owned(), kind: "Service".into(), namespace, name, reason: reason.into(), text, tone }
}

#[cfg(test)]
#[path = "happened_tests.rs"]
mod tests;
