//! Which program makes the EndpointSlices of a member from its pods.

use super::installed::{flag_value, is_expired, written};
use super::membership::holder;
use super::walk::age;
use super::{Found, Site, Stop};
use crate::limits::{LEASE_SECONDS, SLICES_TAKEOVER_SECONDS};
use crate::report::SliceMaker;
use crate::snapshot::{Member, Snapshot};
use fleetnet_core::names::ENDPOINT_SLICE_LEASE;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

/// Flag of the member agent with the mode of its EndpointSlice controller.
const MODE: &str = "endpointslices";

/// Returns the program that makes the EndpointSlices of a member; `None` if nothing shows it. A cluster without a Lease of
/// kube-controller-manager may have one all the same.
pub(crate) fn slice_maker(snapshot: &Snapshot, member: &Member) -> Option<SliceMaker> {
    let site = Site::Member(member);
    if flag_value(site, MODE) == Some("on") {
        return Some(SliceMaker::MemberAgent);
    }
    let silence = age(site, renewed(member.controller_manager.known()?.first()?))?;
    if silence <= LEASE_SECONDS {
        return Some(SliceMaker::KubeControllerManager);
    }
    let may_take_over = flag_value(site, MODE) != Some("off") && leads(snapshot, member)?;
    let is_active = may_take_over && silence > SLICES_TAKEOVER_SECONDS;
    Some(if is_active { SliceMaker::MemberAgent } else { SliceMaker::Nobody })
}

/// Returns the time of the last renewal of the Lease of kube-controller-manager, whose clock is that of the API server.
fn renewed(lease: &Lease) -> Option<Timestamp> {
    written(lease).or_else(|| Some(lease.spec.as_ref()?.renew_time.as_ref()?.0))
}

/// True if a member agent leads with its EndpointSlice controller. `None` if its Leases were not read.
fn leads(snapshot: &Snapshot, member: &Member) -> Option<bool> {
    let site = Site::Member(member);
    let is_held = |lease: &Lease| holder(lease).is_some_and(|it| !it.is_empty()) && !is_expired(snapshot, site, lease);
    Some(member.agent.leases.known()?.iter().any(|lease| lease.name_any() == ENDPOINT_SLICE_LEASE && is_held(lease)))
}

/// FN112.
pub(super) fn slices_are_made(snapshot: &Snapshot, member: &Member) -> Found {
    match slice_maker(snapshot, member) {
        Some(SliceMaker::Nobody) => {}
        Some(SliceMaker::KubeControllerManager | SliceMaker::MemberAgent) => return Ok(()),
        None => return Err(Stop::Skipped("nothing shows who makes the EndpointSlices of the cluster".to_owned())),
    }
    let site = Site::Member(member);
    let Some(lease) = member.controller_manager.objects().next() else { return Ok(()) };
    let renewed = renewed(lease);
    let value = renewed.map_or_else(|| "never".to_owned(), |renewed| renewed.to_string());
    Err(site.broken(lease, "spec.renewTime", value).at(renewed))
}
