//! Type of the functions that decode objects from watch events and from answers to writes.

use fleetnet_types::{Observed, Undecodable};
use std::sync::Arc;

/// Decodes the JSON of one object into the compact form that the agent's view keeps. The JSON is metadata only if the source
/// says so.
///
/// Fails only if the metadata does not decode. A value out of range is for the object type to express.
pub type Decoder<O> = Arc<dyn Fn(&[u8]) -> Result<Observed<O>, Undecodable> + Send + Sync>;
