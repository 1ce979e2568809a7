//! The word between a member and the hub (design section 4, MemberAgent): the member says every few seconds that it is there,
//! and each side says what it understands beside the Go form ([`crate::features`]).
//!
//! One object says both, so that it needs no other channel: `spec` is the member's, `status` the hub's. It is a heartbeat
//! (the member renews it only while it follows its own slices), the handshake, and what `kubectl get memberagents -A` shows.

use crate::hub;
use crate::ids::{ObjectName, Text, Timestamp};
use crate::limits::RENEW_MICROS;
use crate::member;
use crate::model::{Announcement, Kind, MemberAgent, MemberCounts};
use crate::names;
use crate::plan::{Desired, Patch, Plan, Write};

/// Plans the member's own object: made, and renewed while this cluster's slices are followed.
pub fn plan_heartbeat(view: &member::View, now: Timestamp) -> Plan {
    let Some(announcement) = &view.settings.announces else { return Plan::default() };
    if !view.watches.complete(&[Kind::MemberAgent]) || !view.follows_slices() {
        return Plan::default(); // a change of these wakes us
    }
    let name = view.in_hub(view.settings.cluster.clone());
    if view.unreadable.has(Kind::MemberAgent, &name) {
        return Plan::default();
    }
    match view.member_agents.get(&name) {
        None => {
            let desired = Desired::MemberAgent { announcement: announcement.clone(), renewed: now };
            Plan::one(Write::create(Kind::MemberAgent, name, desired))
        }
        Some(held) if held.meta.deleting => Plan::default(), // its end wakes us
        Some(held) => match next_renewal(held, announcement, now) {
            Some(later) => Plan { again: Some(later), ..Plan::default() },
            None => Plan::one(renewal(held, announcement, now)),
        },
    }
}

/// When it is to be renewed, if not now. A time in the future is of a clock that was set back since.
fn next_renewal(held: &MemberAgent, announcement: &Announcement, now: Timestamp) -> Option<Timestamp> {
    let renewed = held.renewed.filter(|renewed| *renewed <= now)?;
    let next = renewed.plus_micros(RENEW_MICROS);
    (held.member == *announcement && held.stopped.is_none() && now < next).then_some(next)
}

fn renewal(held: &MemberAgent, announcement: &Announcement, now: Timestamp) -> Write {
    let patch = Patch::MemberAgent { announcement: announcement.clone(), renewed: now, stopped: None };
    Write::patch(Kind::MemberAgent, &held.meta, patch)
}

/// The last word of a member that stops as planned: it is not silent, it is away.
pub fn farewell(view: &member::View, now: Timestamp) -> Option<Write> {
    let announcement = view.settings.announces.as_ref()?;
    let held = view.member_agents.live(&view.in_hub(view.settings.cluster.clone()))?;
    let renewed = held.renewed.unwrap_or(now);
    let patch = Patch::MemberAgent { announcement: announcement.clone(), renewed, stopped: Some(now) };
    Some(Write::patch(Kind::MemberAgent, &held.meta, patch))
}

const COUNTED: [Kind; 4] =
    [Kind::InternalServiceExport, Kind::InternalServiceImport, Kind::EndpointSliceExport, Kind::EndpointSliceImport];

/// Plans the hub's answer to the member of that cluster. It is planned when the member renews, so what is counted is never
/// older than that, and costs at most one write for each renewal.
pub fn plan_member(view: &hub::View, cluster: &Text) -> Plan {
    let namespace = names::member_namespace(cluster);
    let name = ObjectName::new(namespace.clone(), cluster.clone());
    if !view.watches.complete(&[Kind::MemberAgent]) {
        return Plan::default(); // while the kind is not served there is nothing to answer
    }
    let Some(held) = view.member_agents.live(&name) else { return Plan::default() };
    let announcement = &view.announces;
    let counts = view.watches.complete(&COUNTED).then(|| counts(view, &namespace)).or(held.counts);
    let said = held.hub == *announcement && held.counts == counts;
    if said || announcement.version.is_empty() {
        return Plan::default();
    }
    let patch = Patch::MemberAgentStatus { announcement: announcement.clone(), counts };
    Plan::one(Write::patch(Kind::MemberAgent, &held.meta, patch))
}

fn counts(view: &hub::View, namespace: &Text) -> MemberCounts {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let slices = || view.slice_exports.in_namespace(namespace);
    let claims = view.internal_imports.in_namespace(namespace);
    MemberCounts {
        exported_services: number(view.internal_exports.in_namespace(namespace).count()),
        exported_slices: number(slices().count()),
        exported_endpoints: number(slices().map(|slice| slice.spec.content.endpoints.len()).sum()),
        imported_services: number(claims.filter(|claim| !claim.status.clusters.is_empty()).count()),
        imported_slices: number(view.slice_imports.in_namespace(namespace).count()),
    }
}
