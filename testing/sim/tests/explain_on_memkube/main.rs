//! Tests of the diagnosis on simulated fleets: each fault gives exactly its code, healthy fleets give none, and a
//! cluster that does not answer is not known.
//!
//! | file | faults |
//! |---|---|
//! | `live.rs` | injected into running fleets, through their API servers |
//! | `both.rs` | the same, with each of the two APIs |
//! | `mcs.rs` | the same two ways, in fleets of the standard API |
//! | `altered.rs` | written into the snapshot of a healthy fleet, if memkube does not have the kind or cannot show the fault |
//! | `reading.rs` | of the connection, with listeners on this machine |
//! | `mistakes.rs` | mistakes of users |
//! | `changes.rs` | random changes of healthy fleets |
//! | `healthy.rs` | none |
//!
//! `fault.rs` has the list of faults that several files use.

mod altered;
mod both;
mod changes;
mod fault;
mod healthy;
mod live;
mod mcs;
mod mistakes;
mod reading;
mod world;

use diagnosis::Code;
use std::collections::BTreeSet;

/// Codes that no test here can give: only `test connectivity` sees the pod network.
const NOT_SEEN: [Code; 4] = [Code::FN704, Code::FN708, Code::FN709, Code::FN710];

#[test]
fn each_code_has_a_fault_that_gives_exactly_it() {
    let live = live::FAULTS.iter().map(|fault| fault.code);
    let altered = altered::FAULTS.iter().map(|fault| fault.code);
    let of_both = both::FAULTS.iter().map(|fault| fault.code);
    let of_fleet_api = live.chain(of_both).chain(altered).chain(reading::CODES.iter().copied());
    let of_users = mistakes::MISTAKES.iter().map(|mistake| mistake.code);
    let covered: BTreeSet<Code> = of_fleet_api.chain(mcs::codes_of_faults()).chain(of_users).collect();
    let missing: Vec<&Code> =
        Code::ALL.iter().filter(|code| !covered.contains(code) && !NOT_SEEN.contains(code)).collect();
    assert!(missing.is_empty(), "no fault gives {missing:?}");
    println!("{} of {} codes have a fault: all but {NOT_SEEN:?}", covered.len(), Code::ALL.len());
}
