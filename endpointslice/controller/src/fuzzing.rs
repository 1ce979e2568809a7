//! Entry points of the fuzz targets to decoders that are private. Only the feature `fuzzing` has this module.

use crate::source::{Source, Watched, decoder_of};
use crate::takeover::LeaseSeen;
use crate::{Input, Object};
use fleetnet_runtime::{Observed, Undecodable};

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
