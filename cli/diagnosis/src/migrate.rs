//! Migration between Go agents and fleetnet: what a change of agents does not carry over, and the changes of objects
//! that prepare a return to Go agents.
//!
//! | file | contents |
//! |---|---|
//! | `to_fleetnet.rs`, `to_go.rs` | tables of items: differences that an object can show, one table for each direction |
//! | `item.rs` | type of the items |
//! | `find.rs` | objects that show an item |
//! | `rollback.rs` | changes of objects before Go agents start |
//! | `write.rs` | writes that make these changes |

mod find;
mod item;
mod rollback;
mod to_fleetnet;
mod to_go;
pub mod write;

pub use rollback::{
    Annotated, Change, Object, Refused, Rollback, is_go_export, is_go_form, is_judged, of_hub, of_member,
};

use crate::explain::{Site, Stop};
use crate::report::{API_VERSION, Direction, Evidence, Impact, Migration, MigrationItem, Outcome, Verdict};
use crate::snapshot::{Snapshot, why};
use crate::status::not_known_of;
use item::{Find, Item};

/// Lists what a change of agents in this direction does not carry over.
#[must_use]
pub fn check(snapshot: &Snapshot, direction: Direction) -> Migration {
    let items = match direction {
        Direction::ToFleetnet => to_fleetnet::ITEMS,
        Direction::ToGo => to_go::ITEMS,
    };
    let mut unknown = not_known_of(snapshot, &[("Namespaces", why(&snapshot.hub.namespaces))]);
    let items: Vec<MigrationItem> = items.iter().map(|item| checked(snapshot, item, &mut unknown)).collect();
    unknown.sort();
    unknown.dedup();
    let changes_traffic = |item: &MigrationItem| item.outcome == Outcome::Broken && item.impact == Impact::Traffic;
    let verdict = match () {
        () if items.iter().any(changes_traffic) => Verdict::Fault,
        () if !unknown.is_empty() => Verdict::NotKnown,
        () => Verdict::Healthy,
    };
    Migration { api_version: API_VERSION, kind: "MigrationCheck", direction, items, verdict, not_known: unknown }
}

/// Looks for the objects of an item. Adds to `unknown` what could not be read.
fn checked(snapshot: &Snapshot, item: &Item, unknown: &mut Vec<String>) -> MigrationItem {
    let members = || snapshot.members.iter();
    let found: Vec<Result<Vec<Evidence>, Stop>> = match item.find {
        Find::Hub(find) => vec![find(snapshot)],
        Find::Member(find) => members().map(|member| find(snapshot, member)).collect(),
        Find::Cluster(find) => {
            let sites = std::iter::once(Site::Hub(&snapshot.hub)).chain(members().map(Site::Member));
            sites.map(|site| find(snapshot, site)).collect()
        }
    };
    let (mut objects, mut outcome) = (Vec::new(), Outcome::Ok);
    for found in found {
        match found {
            Ok(found) => objects.extend(found),
            // A server without the kind has no objects of it.
            Err(Stop::Skipped(_)) => {}
            Err(Stop::Broken(evidence)) => objects.push(*evidence),
            Err(Stop::Waiting(why) | Stop::Unknown(why)) => {
                outcome = Outcome::Unknown;
                unknown.push(why);
            }
        }
    }
    if !objects.is_empty() {
        outcome = Outcome::Broken;
    }
    let Item { id, impact, agents, effect, remedy, .. } = *item;
    MigrationItem { id, impact, agents, effect, remedy, outcome, objects }
}

#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod rollback_tests;
