//! Which program makes the EndpointSlices of a member from its pods.

use super::age::age;
use super::evidence::missing_right;
use super::installed::{flag_value, holder, is_expired, written};
use super::step_result::{Site, StepResult, Stop};
use crate::limits::LEASE_SECONDS;
use crate::report::SliceMaker;
use crate::snapshot::{Member, Snapshot};
use fleetnet_core::limits::SLICES_TAKEOVER;
use fleetnet_core::names::ENDPOINT_SLICE_LEASE;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

/// Flag of the member agent with the mode of its EndpointSlice controller.
const MODE: &str = "endpointslices";
/// Flag of the member agent with the time after which its EndpointSlice controller takes over.
const TAKEOVER_AFTER: &str = "endpointslices-takeover-after";

/// Returns the program that makes the EndpointSlices of a member; `None` if nothing shows it. A cluster without a Lease
/// of kube-controller-manager may have one all the same.
pub(crate) fn slice_maker(snapshot: &Snapshot, member: &Member) -> Option<SliceMaker> {
    let site = Site::Member(member);
    let silence = || age(site, renewed(member.controller_manager.known()?.first()?));
    let agent_makes = || Some(leads(snapshot, member)? && member.agent.missing_slice_rights.known()?.is_empty());
    match flag_value(site, MODE).unwrap_or("auto") {
        "on" if agent_makes()? => Some(SliceMaker::MemberAgent),
        // Without its leader, kube-controller-manager may still make them.
        "on" if silence().is_some_and(|silence| silence <= LEASE_SECONDS) => None,
        "on" => Some(SliceMaker::Nobody),
        mode => {
            let silence = silence()?;
            if mode == "auto" && silence > takeover_after(site) && agent_makes()? {
                return Some(SliceMaker::MemberAgent);
            }
            Some(if silence <= LEASE_SECONDS { SliceMaker::KubeControllerManager } else { SliceMaker::Nobody })
        }
    }
}

/// Returns the time after which the member agent takes over, in seconds.
fn takeover_after(site: Site<'_>) -> i64 {
    let of_flag = flag_value(site, TAKEOVER_AFTER).and_then(|value| value.parse::<SignedDuration>().ok());
    of_flag.map_or_else(|| i64::try_from(SLICES_TAKEOVER.as_secs()).unwrap_or(i64::MAX), |it| it.as_secs())
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
pub(super) fn slices_are_made(snapshot: &Snapshot, member: &Member) -> StepResult {
    let site = Site::Member(member);
    let not_shown = || Stop::Skipped("nothing shows who makes the EndpointSlices of the cluster".to_owned());
    if slice_maker(snapshot, member).ok_or_else(not_shown)? != SliceMaker::Nobody {
        return Ok(());
    }
    if let Some(right) = member.agent.missing_slice_rights.objects().next() {
        return Err(missing_right(site, right));
    }
    match member.controller_manager.objects().next() {
        Some(lease) if flag_value(site, MODE) != Some("on") => {
            let renewed = renewed(lease);
            let value = renewed.map_or_else(|| "never".to_owned(), |renewed| renewed.to_string());
            Err(site.broken(lease, "spec.renewTime", value).at(renewed))
        }
        _ => Err(site.lacks::<Lease>(&member.agent.namespace, ENDPOINT_SLICE_LEASE)),
    }
}
