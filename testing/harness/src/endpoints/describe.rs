//! EndpointSlices as text: a sorted line for each slice, with its endpoints, and without names, labels and versions.
//!
//! ```text
//! IPv4 http 8080/TCP: 10.1.0.1 ready web-0, 10.1.0.2 unready web-1
//! IPv6 no ports: nobody
//! ```

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};

pub(super) fn slices<'a>(slices: impl IntoIterator<Item = &'a EndpointSlice>) -> Vec<String> {
    let mut lines: Vec<String> = slices.into_iter().map(line).collect();
    lines.sort();
    lines
}

fn line(slice: &EndpointSlice) -> String {
    let mut ports: Vec<String> = slice.ports.iter().flatten().map(port).collect();
    ports.sort();
    let mut endpoints: Vec<String> = slice.endpoints.iter().flatten().map(endpoint).collect();
    endpoints.sort();
    let or = |drawn: Vec<String>, nothing: &str| if drawn.is_empty() { nothing.to_owned() } else { drawn.join(", ") };
    format!("{} {}: {}", slice.address_type, or(ports, "no ports"), or(endpoints, "nobody"))
}

fn port(port: &EndpointPort) -> String {
    let number = port.port.map(|number| number.to_string()).unwrap_or_default();
    let (name, protocol) = (port.name.as_deref().unwrap_or_default(), port.protocol.as_deref().unwrap_or_default());
    format!("{name} {number}/{protocol}").trim_start().to_owned()
}

fn endpoint(endpoint: &Endpoint) -> String {
    let pod = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
    let pod = pod.and_then(|pod| pod.name.as_ref()).map(|name| format!(" {name}")).unwrap_or_default();
    format!("{} {}{pod}", endpoint.addresses.join("+"), conditions(endpoint))
}

/// Returns the meaning of an endpoint's three conditions in words. Other combinations are shown unchanged.
fn conditions(endpoint: &Endpoint) -> String {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let known = match (conditions.ready, conditions.serving, conditions.terminating) {
        (Some(true), Some(true), Some(false)) => "ready",
        (Some(false), Some(false), Some(false)) => "unready",
        other => return format!("{other:?}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::slices;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::{Value, json};

    fn slice(ports: Value, endpoints: Value) -> EndpointSlice {
        serde_json::from_value(json!({"addressType": "IPv4", "ports": ports, "endpoints": endpoints})).expect("a slice")
    }

    #[test]
    fn a_description_shows_what_matters_for_routing() {
        let web = slice(
            json!([{"name": "http", "port": 8080, "protocol": "TCP"}]),
            json!([
                {"addresses": ["10.1.0.2"], "conditions": {"ready": false, "serving": false, "terminating": false}},
                {"addresses": ["10.1.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
                 "targetRef": {"kind": "Pod", "name": "web-0"}},
            ]),
        );
        let placeholder = slice(json!([]), json!([]));
        assert_eq!(
            slices([&placeholder, &web]),
            ["IPv4 http 8080/TCP: 10.1.0.1 ready web-0, 10.1.0.2 unready", "IPv4 no ports: nobody"]
        );
    }
}
