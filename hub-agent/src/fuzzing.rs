//! Entry points of the fuzz targets to decoders that are private. Only the feature `fuzzing` has this module.

use fleetnet_proto::v1::SubscribeRequest;
use tonic::Status;

/// Reads the first request of a slice stream. Returns the member namespace of its member.
///
/// # Errors
/// If the request is refused.
pub fn first_request(request: SubscribeRequest) -> Result<String, Status> {
    crate::stream::service::read_first(request).map(|(_, importer)| importer)
}
