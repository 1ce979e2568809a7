//! Protocol of the slice stream: the messages and the service of `fleetnet/v1/slice_stream.proto`, and their conversion
//! to the model of `fleetnet_core`.

mod convert;

pub use convert::Malformed;

/// Version of the protocol that this crate speaks, in [`v1::Hello`].
pub const PROTOCOL_VERSION: u32 = 1; // no limit: it counts versions

/// Audience of the tokens with which member agents authenticate.
pub const TOKEN_AUDIENCE: &str = "fleetnet-slice-stream";

/// Encoded descriptor of the protocol, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slice_stream.binpb"));

/// Generated code of the package `fleetnet.v1`.
#[allow(clippy::all, clippy::pedantic, unreachable_pub, missing_docs, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("fleetnet.v1");
}

pub use v1::slice_stream_client::SliceStreamClient;
pub use v1::slice_stream_server::{SliceStream, SliceStreamServer};

#[cfg(test)]
mod tests;
