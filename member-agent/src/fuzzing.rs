//! Entry points of the fuzz targets to decoders that are private. Only the feature `fuzzing` has this module.

use fleetnet_core::ranges::IpNet;
use fleetnet_types::ClusterId;
use std::collections::BTreeMap;

/// Parses the values of `--source-ranges`.
///
/// # Errors
/// If a value is malformed. The text names the value and the reason.
pub fn source_ranges(written: &[String]) -> Result<BTreeMap<ClusterId, Vec<IpNet>>, String> {
    crate::source_ranges::parse(written).map_err(|error| error.to_string())
}
