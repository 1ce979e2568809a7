//! What the hub agent and the member agent share: the way from core's plans to the runtime's requests and back, and the
//! flags that both take.
//!
//! The agents never know each other; what either of them needs of this crate is here, and nothing else.

pub mod flags;
pub mod glue;
pub mod go;
pub mod hindrances;
pub mod launch;
pub mod metrics;
