//! Type of the functions that decode objects from watch events and from responses to writes.

use fleetnet_types::{Observed, Undecodable};
use std::sync::Arc;

/// Decodes the JSON of one object into the compact form that the agent's view keeps. If the source watches metadata
/// only, the JSON has only metadata.
///
/// Fails if the object is undecodable: its metadata is malformed, or another value is malformed that the agent must not
/// treat as absent.
pub type Decoder<O> = Arc<dyn Fn(&[u8]) -> Result<Observed<O>, Undecodable> + Send + Sync>;
