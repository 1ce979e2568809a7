//! Ports of the imported slices of one exporting cluster.

use crate::model::{EndpointPort, MergedCluster, SliceContent};
use std::borrow::Cow;

/// Returns the part of a slice's content that an exporting cluster serves, with the names of the ports in the merged import.
///
/// kube-proxy finds the endpoints of a port by its name. So clients reach a cluster only at the ports for which its export agrees with
/// the merged import. A slice without such a port has no endpoints for clients.
pub(crate) fn served<'a>(content: Cow<'a, SliceContent>, exporter: &MergedCluster) -> Cow<'a, SliceContent> {
    let Some(served) = &exporter.ports else { return content };
    let renamed = |port: &EndpointPort| {
        // fault MI11.2: served.own_name == port.name ~> served.name == port.name
        let served = served.iter().find(|served| served.own_name == port.name)?;
        Some(EndpointPort { name: served.name.clone(), ..port.clone() })
    };
    let ports: Vec<EndpointPort> = content.ports.iter().filter_map(renamed).collect();
    if ports == content.ports {
        return content;
    }
    let mut content = content.into_owned();
    // fault MI11.3: if ports.is_empty() { ~> if false {
    if ports.is_empty() {
        content.endpoints.clear();
        content.draining.clear();
    }
    content.ports = ports;
    Cow::Owned(content)
}
