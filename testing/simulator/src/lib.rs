//! The simulator: plays a whole fleet from one seed, and checks it at each change.
//!
//! ```text
//! seed ── script (what users do, and what goes wrong when) ──► run (the real agents on memkube, paused time) ──► finding?
//!                                                               └─ oracles: at each commit, and in the end
//! ```
//!
//! | file | contents |
//! |---|---|
//! | [`script`] | everything that a seed decides |
//! | [`users`] | the actions of users, as requests to the API servers |
//! | [`disturbances`] | what goes wrong: a file for each fault |
//! | [`oracles`] | what must be true: a file for each rule |
//! | [`run`] | a script from its first step to its finding |
//! | [`shrink`] | a smaller script with the same finding |
//! | [`coverage`] | what occurred in many runs |
//! | [`mcs`] | users of the standard API, and what must be true of their Service |
//! | [`trace`] | what happened in one run, line by line |

pub mod coverage;
pub mod disturbances;
pub mod limits;
pub mod mcs;
pub mod oracles;
pub mod run;
pub mod script;
pub mod shrink;
pub mod trace;
pub mod users;
pub mod world;

pub use run::{Outcome, run};
pub use script::Script;
