//! Requests to API servers: watches, writes, Events, and the clients that send them.

pub(crate) mod answers;
pub mod client;
pub(crate) mod decoder;
pub mod events;
pub(crate) mod response;
pub(crate) mod restores;
pub(crate) mod rivals;
pub(crate) mod source;
pub mod token;
pub(crate) mod watch;
pub(crate) mod writer;
