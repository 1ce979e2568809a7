//! Ready endpoints of an exporter that an importer does not have, by cause.

use crate::codes::Code::{self, *};
use crate::explain::{Walk, is_broken, member_agent_of, of_slice, of_slice_export};
use fleetnet_core::model::{Address, SliceContent};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::BTreeSet;

/// Codes of rules and limits that exclude endpoints from an import.
const NOT_SELECTED: [Code; 10] = [
    FN307, // the namespace does not allow the exporter
    FN312, // conflict with another exporter
    FN323, // conflict of a port, by the standard API
    FN404, // the namespace does not allow the importer
    FN405, // another cluster has the exclusive claim
    FN502, // another cluster exports the same slice
    FN504, // a cluster does not support IPv6
    FN607, // the addresses are refused, for example by the declared ranges
    FN608, // the ports are refused
    FN618, // limits of the importer
];

/// Cause for which an importer does not have an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    Withdrawn,
    NotSelected,
    Missing,
}

/// Returns the number of endpoints of an exporter that are absent in a pair, with their cause. The objects show the
/// cause of a pair, and not that of each endpoint.
pub(super) fn absent(walk: &Walk<'_>, exported: &[SliceContent], imported: &[&EndpointSlice]) -> (usize, Absence) {
    let endpoints = imported.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let present: BTreeSet<Address> =
        endpoints.flat_map(|it| it.addresses.iter().map(|it| it.as_str().into())).collect();
    let ready = exported.iter().flat_map(|content| &content.endpoints);
    let absent = ready.filter(|endpoint| !endpoint.addresses.iter().any(|address| present.contains(address)));
    match absent.count() {
        0 => (0, Absence::Missing),
        number => (number, absence(walk)),
    }
}

/// Returns the content of the exporter's slices. The hub has the last known state of an exporter that was not read.
pub(super) fn exported(walk: &Walk<'_>) -> Vec<SliceContent> {
    match walk.source_slices() {
        Ok(slices) => slices.into_iter().filter_map(of_slice).collect(),
        Err(_) => walk.slice_exports().unwrap_or_default().into_iter().filter_map(of_slice_export).collect(),
    }
}

/// True if a rule, a limit, a weight of 0 or the silence of the exporter keeps endpoints from the importer.
pub(crate) fn is_left_out(walk: &Walk<'_>) -> bool {
    absence(walk) != Absence::Missing
}

fn absence(walk: &Walk<'_>) -> Absence {
    if is_broken(walk, FN306) || is_withdrawn_as_silent(walk) {
        Absence::Withdrawn
    } else if NOT_SELECTED.into_iter().any(|code| is_broken(walk, code)) {
        Absence::NotSelected
    } else {
        Absence::Missing
    }
}

/// True if the hub agent asks the importer to withdraw the endpoints of the exporter, because it is silent.
fn is_withdrawn_as_silent(walk: &Walk<'_>) -> bool {
    let (Some(exporter), Some(importer)) = (walk.exporter, walk.importer) else { return false };
    let status = member_agent_of(walk.snapshot, importer).and_then(|agent| agent.status.as_ref());
    let silent = status.and_then(|status| status.silent_members.as_ref()).into_iter().flatten();
    silent.into_iter().any(|member| member.cluster == exporter.id && member.treatment == "Withdrawn")
}
