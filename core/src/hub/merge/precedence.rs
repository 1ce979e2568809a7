//! Precedence of the exports of a Service by the standard API: a pure function of the exports.
//!
//! KEP-1645 orders exports by the creationTimestamp of their ServiceExports. A member writes this time itself. So it
//! counts only where it takes no place from an export that the hub knows:
//!
//! | export | age |
//! |---|---|
//! | has a place in a record, its own or that of another export | as in the record |
//! | new to the hub | its own creation in the hub or that of its ServiceExport, whichever is later |
//! | lost by the hub and created again by its member | creation of its ServiceExport |
//!
//! An export without a place also comes after each export that the hub knows. The only exception are two exports that
//! the hub has lost and that come back within [`RECREATION_MICROS`]: their ServiceExports decide. The hub agent records
//! the places in the status of the InternalServiceExports, which no member can write. The younger exports remember the
//! place of an export that is created again.

use crate::conditions;
use crate::limits::{EXPORT_CREATED_MAX, PLACES_MAX, RECREATION_MICROS};
use crate::model::{InternalServiceExport, McsExport, Place};
use fleetnet_types::{ClusterId, Timestamp};
use std::collections::BTreeMap;

/// Export of a Service by the standard API.
#[derive(Clone, Copy)]
pub struct Exported<'a> {
    /// Exporting cluster, from the export's namespace.
    pub cluster: &'a ClusterId,
    pub export: &'a InternalServiceExport,
    pub mcs: &'a McsExport,
}

/// Returns the exports of a Service with their places, the oldest first.
pub(super) fn ordered(exports: Vec<Exported<'_>>) -> Vec<(Exported<'_>, Place)> {
    let recorded = recorded(&exports);
    let known_since = |it: &Exported<'_>| {
        let since = recorded.get(&(it.cluster, export_created(it))).copied();
        // An earlier version recorded no place: the creation of the InternalServiceExport decided.
        let was_merged = it.export.precedence.is_empty() && conditions::merge_outcome(&it.export.conditions).is_some();
        since.or(was_merged.then_some(it.export.meta.created))
    };
    let (known, mut new): (Vec<_>, Vec<_>) = exports.into_iter().partition(|it| known_since(it).is_some());
    let known: Vec<_> = known.into_iter().map(|it| (it, known_since(&it).unwrap_or_default())).collect();
    new.sort_by_key(|it| (arrival(it), it.cluster));
    let mut placed: Vec<(Exported<'_>, Timestamp)> = Vec::with_capacity(new.len());
    // The first `arrived` new exports arrived before the present one. `latest` is the latest place of these and of the
    // known exports.
    let (mut arrived, mut latest) = (0, known.iter().map(|(_, since)| *since).max());
    for it in new {
        while let Some((_, since)) = placed.get(arrived).filter(|(other, _)| arrival(other) < arrival(&it)) {
            (arrived, latest) = (arrived + 1, latest.max(Some(*since)));
        }
        let of_others = || {
            let others = known.iter().chain(&placed[..arrived]).filter(|(other, _)| !came_back_with(other, &it));
            others.map(|(_, since)| *since).max()
        };
        // Only an export that the hub has lost need not come after each other one.
        let before = if it.mcs.is_recreated { of_others() } else { latest };
        let after_others = before.map(|since| since.plus_micros(1));
        let since = age(&it).max(after_others.unwrap_or(Timestamp(i64::MIN)));
        placed.push((it, since));
    }
    placed.extend(known);
    placed.sort_by_key(|(it, since)| (*since, export_created(it), it.cluster));
    let placed = placed.into_iter().map(|(it, since)| {
        let place = Place { cluster: it.cluster.clone(), export_created: export_created(&it), since };
        (it, place)
    });
    placed.collect()
}

/// Returns the record of an export: its own place, and those of the oldest exports before it. Exports of the existing
/// record that are gone keep their places.
pub(in crate::hub) fn record(existing: &[Place], places: &[Place], cluster: &ClusterId) -> Vec<Place> {
    let Some(own) = places.iter().find(|place| place.cluster == *cluster) else { return existing.to_vec() };
    let is_gone = |place: &&Place| places.iter().all(|present| present.cluster != place.cluster);
    let gone = existing.iter().filter(is_gone).filter(|place| place.since <= own.since);
    let mut record: Vec<Place> =
        places.iter().take_while(|place| place.cluster != *cluster).chain(gone).cloned().collect();
    record.sort_by(|one, other| (one.since, &one.cluster).cmp(&(other.since, &other.cluster)));
    record.truncate(PLACES_MAX - 1);
    record.push(own.clone());
    record
}

/// True if the existing record of an export lacks a place of `record`, the present one. An older export that comes back
/// changes the records of the younger ones. Otherwise they could not remember its place.
pub(in crate::hub) fn is_outdated(existing: &[Place], record: &[Place]) -> bool {
    !existing.is_empty() && record.iter().any(|place| !existing.contains(place))
}

/// Returns the recorded age of each cluster with the creation of its ServiceExport.
fn recorded<'a>(exports: &[Exported<'a>]) -> BTreeMap<(&'a ClusterId, Timestamp), Timestamp> {
    let mut recorded = BTreeMap::new();
    for place in exports.iter().flat_map(|it| &it.export.precedence) {
        let since = recorded.entry((&place.cluster, place.export_created)).or_insert(place.since);
        *since = place.since.min(*since);
    }
    recorded
}

/// Returns the creation of the ServiceExport, as far as it is known.
fn export_created(it: &Exported<'_>) -> Timestamp {
    it.mcs.export_created.unwrap_or(it.export.meta.created).min(EXPORT_CREATED_MAX)
}

/// Returns the time since which the hub has an export that is new to it. An InternalServiceExport of the fleet's API
/// can be older than the ServiceExport of the standard API.
fn arrival(it: &Exported<'_>) -> Timestamp {
    export_created(it).max(it.export.meta.created)
}

/// Returns the age of an export that has no place yet, without regard to others.
fn age(it: &Exported<'_>) -> Timestamp {
    if it.mcs.is_recreated { export_created(it) } else { arrival(it) }
}

/// True if the hub had lost this export too, and its member has created it again at about the same time as the member
/// of `lost`.
fn came_back_with(it: &Exported<'_>, lost: &Exported<'_>) -> bool {
    let micros = it.export.meta.created.0.abs_diff(lost.export.meta.created.0);
    it.mcs.is_recreated && micros <= RECREATION_MICROS.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::MCS_CONFLICT;
    use crate::support::build::{
        Build as _, BuildInternalExport as _, condition, internal_export, mcs_part, seconds, service,
    };

    fn place(cluster: &str, since: i64) -> Place {
        Place { cluster: cluster.into(), export_created: seconds(1), since: seconds(since) }
    }

    fn clusters(places: &[Place]) -> Vec<&str> {
        places.iter().map(|place| &*place.cluster).collect()
    }

    #[test]
    fn a_record_has_the_older_places_in_order_also_of_exports_that_are_gone() {
        let existing = [place("older", 1), place("same", 10), place("younger", 20)];
        let record = record(&existing, &[place("first", 5), place("own", 10), place("last", 30)], &"own".into());
        assert_eq!(clusters(&record), ["older", "first", "same", "own"]);
    }

    /// Returns an export whose ServiceExport was created at second 1, and that the hub has had since this second.
    fn export(cluster: &str, created: i64) -> InternalServiceExport {
        let of_member = McsExport { export_created: Some(seconds(1)), ..mcs_part() };
        internal_export(cluster, &service("work/app")).created(seconds(created)).mcs(of_member)
    }

    fn lost(export: InternalServiceExport) -> InternalServiceExport {
        let of_member = McsExport { export_created: Some(seconds(1)), is_recreated: true, ..mcs_part() };
        export.mcs(of_member)
    }

    /// Asserts the places of exports of member-1, member-2 and so on, in microseconds.
    fn assert_places(exports: &[InternalServiceExport], expected: &[(&str, i64)]) {
        let clusters: Vec<ClusterId> = (1..=exports.len()).map(|it| format!("member-{it}").into()).collect();
        let exported = |(export, cluster)| Exported { cluster, export, mcs: export_part(export) };
        let placed = ordered(exports.iter().zip(&clusters).map(exported).collect());
        let placed: Vec<_> = placed.iter().map(|(_, place)| (&*place.cluster, place.since.0)).collect();
        assert_eq!(placed, expected);
    }

    fn export_part(export: &InternalServiceExport) -> &McsExport {
        export.mcs.as_ref().expect("an export of the standard API")
    }

    #[test]
    fn an_export_comes_after_all_that_the_hub_had_before_it() {
        let known = InternalServiceExport {
            precedence: vec![Place { cluster: "member-1".into(), export_created: seconds(1), since: seconds(100) }],
            ..export("member-1", 2)
        };
        let new = [known.clone(), export("member-2", 3), export("member-3", 4)];
        assert_places(&new, &[("member-1", 100_000_000), ("member-2", 100_000_001), ("member-3", 100_000_002)]);
        // member-3 returns after a loss, and comes after those that the hub did not lose.
        let one_lost = [known.clone(), export("member-2", 3), lost(export("member-3", 4))];
        assert_places(&one_lost, &[("member-1", 100_000_000), ("member-2", 100_000_001), ("member-3", 100_000_002)]);
        // A new export comes after one that has returned, also soon after it.
        let lost_first = [known.clone(), lost(export("member-2", 3)), export("member-3", 4)];
        assert_places(&lost_first, &[("member-1", 100_000_000), ("member-2", 100_000_001), ("member-3", 100_000_002)]);
        // Both return: their ServiceExports decide between them.
        let two_lost = [known, lost(export("member-2", 3)), lost(export("member-3", 4))];
        assert_places(&two_lost, &[("member-1", 100_000_000), ("member-2", 100_000_001), ("member-3", 100_000_001)]);
    }

    #[test]
    fn the_outcome_of_an_earlier_merge_counts_only_without_a_record() {
        let outcome = condition(MCS_CONFLICT, "False", "NoConflicts", "", 1);
        let merged = export("member-1", 2).judged(outcome);
        assert_places(std::slice::from_ref(&merged), &[("member-1", 2_000_000)]);
        let other = Place { cluster: "member-2".into(), export_created: seconds(1), since: seconds(9) };
        let created_again = InternalServiceExport { precedence: vec![other], ..merged };
        let both = [created_again, export("member-2", 3)];
        assert_places(&both, &[("member-2", 9_000_000), ("member-1", 9_000_001)]);
    }

    #[test]
    fn of_two_records_of_a_place_the_older_one_counts() {
        let export = |cluster, since| InternalServiceExport {
            precedence: vec![place("member-9", since)],
            ..internal_export(cluster, &service("work/app"))
        };
        let (exports, part) = ([export("member-1", 9), export("member-2", 3), export("member-3", 5)], mcs_part());
        let cluster = ClusterId::from("member");
        let exported = exports.iter().map(|export| Exported { cluster: &cluster, export, mcs: &part });
        let exported: Vec<_> = exported.collect();
        assert_eq!(recorded(&exported).into_values().collect::<Vec<_>>(), [seconds(3)]);
    }
}
