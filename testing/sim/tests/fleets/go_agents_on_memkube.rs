//! Takeover of a fleet of Go agents, and the way back, on paused time.
//!
//! | file | tests |
//! |---|---|
//! | `takeover.rs` | our agents start on the objects that Go agents left. No endpoint is lost, no export gets another name, and no write is made without need |
//! | `rollback.rs` | after the changes of `fleetnet migrate to-go`, Go agents find all exports by their annotations |

mod rollback;
mod taken;
mod takeover;

use sim::fleet::Place;
use std::time::Duration;

const EXPORTER: Place = Place::Member(0);
const IMPORTER: Place = Place::Member(1);
/// Time in which the agents take over. It is longer than the grace periods for objects that disappeared.
const SETTLES: Duration = Duration::from_secs(120);
