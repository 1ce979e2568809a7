//! Option `--packets`: a fleet whose pods have real traffic. A build without the feature `real` has no such fleet, and
//! [`crate::args`] rejects the option.
//!
//! ```text
//! outside (kubeconfigs, ports of the machine, signals) ── starts this program again in namespaces of its own
//!   └─ bed (fleet, Service, client) ── counts (outcomes of requests), access (kubeconfigs)
//! ```

#[cfg(feature = "real")]
mod access;
#[cfg(feature = "real")]
mod bed;
#[cfg(feature = "real")]
mod counts;
#[cfg(feature = "real")]
mod outside;

#[cfg(feature = "real")]
pub(super) use outside::run;

/// Runs the sandbox in a build without the feature `real`.
#[cfg(not(feature = "real"))]
pub(super) async fn run(_: &crate::args::Options, _: &super::stop::Stop) -> anyhow::Result<super::Ending> {
    anyhow::bail!(crate::args::NO_PACKETS)
}
