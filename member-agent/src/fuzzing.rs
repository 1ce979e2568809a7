//! Entry points of the fuzz targets to decoders that are private. Only the feature `fuzzing` has this module.

use crate::endpoints::source::{Source, Watched, decoder_of};
use crate::endpoints::takeover::LeaseSeen;
use crate::endpoints::{Input, Object};
use fleetnet_core::ranges::IpNet;
use fleetnet_runtime::{Observed, Undecodable};
use fleetnet_types::ClusterId;
use std::collections::BTreeMap;

/// Decodes an object of the EndpointSlice controller.
///
/// # Errors
/// If the object is undecodable.
pub fn endpoint_object(input: Input, controller: &str, json: &[u8]) -> Result<Observed<Object>, Undecodable> {
    let observed = decoder_of(Source::Input(input), controller)(json)?;
    let Watched::Input(object) = observed.object else { unreachable!("the decoder of an input returns inputs") };
    Ok(Observed {
        name: observed.name,
        uid: observed.uid,
        resource_version: observed.resource_version,
        object: *object,
    })
}

/// Decodes the Lease of kube-controller-manager.
///
/// # Errors
/// If the Lease is undecodable.
pub fn controller_manager_lease(json: &[u8]) -> Result<LeaseSeen, Undecodable> {
    let observed = decoder_of(Source::KubeControllerManagerLease, "")(json)?;
    let Watched::Lease(lease) = observed.object else { unreachable!("the decoder of the Lease returns Leases") };
    Ok(lease)
}

/// Parses the values of `--source-ranges`.
///
/// # Errors
/// If a value is malformed. The text names the value and the reason.
pub fn source_ranges(written: &[String]) -> Result<BTreeMap<ClusterId, Vec<IpNet>>, String> {
    crate::source_ranges::parse(written).map_err(|error| error.to_string())
}
