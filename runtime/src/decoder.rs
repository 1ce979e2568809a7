//! Decoders of what watches and answers bring.

use fleetnet_types::{Observed, Undecodable};
use std::sync::Arc;

/// Turns the JSON of one object into the compact value. The JSON has metadata only if the source asks for that.
///
/// Fails only if the metadata does not decode. A value out of range is for the object type to express.
pub type Decoder<O> = Arc<dyn Fn(&[u8]) -> Result<Observed<O>, Undecodable> + Send + Sync>;
