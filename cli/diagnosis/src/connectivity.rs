//! Connectivity: do connections to an imported Service arrive? Which targets to try, and what the results mean.
//!
//! ```text
//! Snapshot ─> pairs ─> targets ─> script (a pod of the importer runs it) ─> log ─> parse ─> judge ─> findings
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `target.rs`, `result.rs` | targets, outcomes and results |
//! | `plan.rs` | targets of each pair of exporter and importer |
//! | `script.rs` | script of the pod, and its log |
//! | `judge.rs` | fault codes of the results |
//!
//! Only TCP is tried: a connection shows that packets arrive in both directions. Without an answer of the program, UDP
//! shows nothing.

mod judge;
mod plan;
mod result;
mod script;
mod target;
#[cfg(test)]
mod tests;

pub use judge::{drop_gone, judge};
pub use plan::{pairs, targets};
pub use result::{Connectivity, PairResult, TargetResult};
pub use script::{outcome, parse, script};
pub use target::{By, Outcome, Outcomes, Pair, Target};
