//! Programs that pods run: a server that answers with its name, and a client that counts lost requests.

pub mod client;
pub mod result;
pub mod serve;
mod server;
mod target;
