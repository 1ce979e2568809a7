//! Tests of the fleet's rules: tables of single plans, a test for each known bug of the Go agents, and random histories
//! of fleets in memory.

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod blocked;
mod bugs;
mod bugs_of_exports;
mod bugs_of_imports;
mod by_hand;
mod change_of_type;
mod claims;
mod conflict_cases;
mod conflicts;
mod disputed;
mod distribution;
mod edited;
mod events_once;
mod excess;
mod export;
mod fidelity;
mod fleet;
mod flips;
mod handover;
mod handshake;
mod histories;
mod hostile;
mod hub;
mod identity;
mod import;
mod interleavings;
mod ledger;
mod life_cycles_of_exports;
mod life_cycles_of_imports;
mod limits;
mod lost_definition;
mod membership;
mod merge;
mod merged;
mod merged_slices;
mod messages;
mod oracle;
mod precedence;
mod preview;
mod proved;
mod reworded;
mod rights;
mod silence;
mod silent_exporters;
mod source_ranges;
mod standard_export;
mod standard_import;
mod standard_slices;
mod trust;
mod undecodable;
mod views;
