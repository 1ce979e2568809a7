//! Ports of the imported slices of one exporting cluster.

use crate::model::{EndpointPort, MergedCluster, SliceContent};
use fleetnet_types::Text;
use std::borrow::Cow;

/// Returns the part of a slice's content that an exporting cluster serves, with the names of the ports in the merged
/// import.
///
/// kube-proxy finds the endpoints of a port by its name. So clients reach a cluster only at the ports for which its
/// export agrees with the merged import. A slice without such a port has no endpoints for clients.
pub(crate) fn served<'a>(content: Cow<'a, SliceContent>, exporter: &MergedCluster) -> Cow<'a, SliceContent> {
    let Some(served) = &exporter.ports else { return content };
    let has = |name: &Text| content.ports.iter().any(|port| port.name == *name);
    let renamed = |port: &EndpointPort| {
        let by_own_name = || served.iter().find(|served| served.own_name == port.name);
        // Perhaps the exporter has renamed its port, and the slice with the new name arrived before the
        // MergedServiceImport.
        let by_name = || served.iter().find(|served| served.name == port.name && !has(&served.own_name));
        let served = by_own_name().or_else(by_name)?;
        Some(EndpointPort { name: served.name.clone(), ..port.clone() })
    };
    let ports: Vec<EndpointPort> = content.ports.iter().filter_map(renamed).collect();
    if ports == content.ports {
        return content;
    }
    let mut content = content.into_owned();
    if ports.is_empty() {
        content.endpoints.clear();
        content.draining.clear();
    }
    content.ports = ports;
    Cow::Owned(content)
}
