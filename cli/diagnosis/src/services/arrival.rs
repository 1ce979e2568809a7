//! Endpoints of a Service that its importers have.

use crate::explain::{is_elsewhere, is_imported, named, ready_endpoints};
use crate::order::sorted;
use crate::report::{Api, Arrival};
use crate::snapshot::{Member, Snapshot};
use fleetnet_types::ObjectName;
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::BTreeSet;

/// Exported slice in the hub. The imported slice has the same name.
pub(super) struct Exported {
    pub(super) exporter: String,
    pub(super) name: String,
    /// Number of ready endpoints.
    pub(super) endpoints: usize,
    pub(super) has_ports: bool,
    pub(super) changed: Option<Timestamp>,
}

/// Returns the endpoints that each importer has, of those importers whose slices were read.
pub(super) fn arrived(
    snapshot: &Snapshot,
    service: &ObjectName,
    api: Api,
    importers: &[String],
    slices: &[Exported],
) -> Vec<Arrival> {
    let members = importers.iter().filter_map(|id| snapshot.member(id)).filter(|it| it.slices.known().is_some());
    let arrival = |member| match api {
        Api::Fleet if is_elsewhere(snapshot, member) => None,
        Api::Fleet => Some(arrival(member, &member.agent.namespace, slices)),
        Api::Mcs => Some(arrival(member, &service.namespace, slices)),
    };
    members.filter_map(arrival).collect()
}

fn arrival(member: &Member, namespace: &str, slices: &[Exported]) -> Arrival {
    let endpoints_of = |slice: &Exported| {
        let slices = member.slices.known().unwrap_or_default();
        let imported = named(slices, namespace, &slice.name).filter(|imported| is_imported(imported));
        imported.map_or(0, |imported| ready(imported, slice.has_ports))
    };
    let (mut endpoints, mut has_some, mut exporters) = (0, BTreeSet::new(), BTreeSet::new());
    for slice in slices {
        let found = endpoints_of(slice);
        endpoints += found;
        if slice.endpoints > 0 {
            exporters.insert(slice.exporter.clone());
        }
        if found > 0 {
            has_some.insert(slice.exporter.clone());
        }
    }
    let missing_exporters = sorted(exporters.difference(&has_some).cloned());
    Arrival { importer: member.id.clone(), endpoints, missing_exporters }
}

/// Returns the number of ready endpoints of a slice. Clients reach none of them without a port, if the exported slice
/// has ports.
fn ready(slice: &EndpointSlice, has_ports: bool) -> usize {
    if has_ports && slice.ports.iter().flatten().next().is_none() {
        return 0;
    }
    ready_endpoints(slice).count()
}
