//! Bad answers: what servers, networks and people do to a fleet while its users go on using it. In each of these tests
//! nothing that was imported is lost, the agents ask ever more seldom, a line of the log, a condition, an Event or a
//! metric names what is wrong, and when it is over the fleet comes without a restart to what an undisturbed one comes to,
//! and writes nothing more. `docs/failures.md` tells the same to operators.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod edited;
mod fights;
mod heartbeats;
mod hub;
mod trial;
mod unreadable;
mod watches;
mod weather;
mod webhooks;
