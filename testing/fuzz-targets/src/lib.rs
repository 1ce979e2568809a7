//! Fuzz targets: one function for each kind of bytes that other programs write and fleetnet decodes.
//!
//! A target gets any bytes, and panics if a decoder breaks a promise. `testing/fuzz/` runs the targets with cargo-fuzz.
//! `tests/corpus.rs` runs the files of `testing/fuzz/corpus/` and simple changes of them, on the stable compiler.

pub mod annotations;
pub mod connection;
pub mod endpoints;
pub mod leases;
mod message;
pub mod objects;
pub mod plans;
pub mod ranges;
mod server;
pub mod stream;
pub mod watch;
pub mod writes;

/// Function that decodes any bytes, and panics if a decoder breaks a promise.
pub type Target = fn(&[u8]);

/// All targets, by the names of their files in `testing/fuzz/fuzz_targets/` and of their folders in
/// `testing/fuzz/corpus/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("annotations", annotations::annotations),
    ("cidr_list", ranges::cidr_list),
    ("claims", annotations::claims),
    ("endpoint_objects", endpoints::endpoint_objects),
    ("error_answer", watch::error_answer),
    ("hub_connection", connection::hub_connection),
    ("kubeconfig", connection::kubeconfig),
    ("latency_summary", objects::latency_summary),
    ("lease", leases::lease),
    ("list_page", watch::list_page),
    ("managed_fields", writes::managed_fields),
    ("objects", objects::objects),
    ("plans", plans::plans),
    ("subscribe_request", stream::subscribe_request),
    ("subscribe_response", stream::subscribe_response),
    ("token", connection::token),
    ("watch_stream", watch::watch_stream),
    ("write_answer", writes::write_answer),
];
