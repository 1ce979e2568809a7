//! Servers for `--real`. A build without the feature `real` has no such servers, and [`crate::args`] rejects the
//! option.

#[cfg(not(feature = "real"))]
mod absent;
#[cfg(feature = "real")]
mod present;

#[cfg(not(feature = "real"))]
pub(crate) use absent::{OnProcesses, start};
#[cfg(feature = "real")]
pub(crate) use present::{OnProcesses, start};
