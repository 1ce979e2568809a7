//! Random histories of a fleet, for tests: the actions of users ([`users`]), and the expected state of the fleet at
//! rest ([`oracle`] of a [`fleet`]). Tests of core play histories on a model of servers and agents. The simulator plays
//! them on memkube with the real agents.

pub mod fleet;
pub mod oracle;
pub mod users;
