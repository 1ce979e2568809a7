//! Objects that the bench writes as a user, and markers in them. A marker is an address in 11.0.0.0/8 that identifies
//! the state of a slice in every step.

use serde_json::{Value, json};

/// Returns the name of the Service with this number.
#[must_use]
pub fn service_name(number: u32) -> String {
    format!("app-{number:03}")
}

/// Returns the name of a slice, from the numbers of its Service and of the slice.
#[must_use]
pub fn slice_name(service: u32, slice: u32) -> String {
    format!("{}-{slice}", service_name(service))
}

/// Returns a Service without a selector, so that no controller makes slices for it.
#[must_use]
pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// Returns a slice of a Service. `marker` is a number that identifies the state of the slice. The address of the first
/// endpoint contains this number.
#[must_use]
pub fn slice(service: &str, name: &str, marker: u32, endpoints: usize) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "bench"},
        },
        "addressType": "IPv4",
        "endpoints": ready_endpoints(marker, endpoints),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    })
}

/// Returns endpoints in the form of EndpointSlices. `marker` is a number that identifies their state. The address of
/// the first endpoint contains this number.
#[must_use]
pub fn ready_endpoints(marker: u32, count: usize) -> Value {
    let endpoint = |address: String| json!({"addresses": [address], "conditions": {"ready": true}});
    addresses(marker, count).map(endpoint).collect()
}

/// Returns endpoints in the form of the slices in the hub. `marker` is a number that identifies their state. The
/// address of the first endpoint contains this number.
#[must_use]
pub fn hub_endpoints(marker: u32, count: usize) -> Value {
    addresses(marker, count).map(|address| json!({"addresses": [address]})).collect()
}

fn addresses(marker: u32, count: usize) -> impl Iterator<Item = String> {
    let [_, high, middle, low] = marker.to_be_bytes();
    let rest = (1..count).map(move |index| format!("10.1.{}.{index}", marker % 250));
    std::iter::once(format!("11.{high}.{middle}.{low}")).chain(rest)
}

/// Returns the number in the first address in 11.0.0.0/8, which identifies the state of a slice. `json` is the slice as
/// one line of JSON. `None` if there is no such address.
#[must_use]
pub fn marker_in(json: &str) -> Option<u32> {
    const MARKED: &str = "\"11.";
    let rest = &json[json.find(MARKED)? + MARKED.len()..];
    let octets = rest[..rest.find('"')?].split('.').map(str::parse);
    let octets: Result<Vec<u8>, _> = octets.collect();
    match octets.ok()?[..] {
        [high, middle, low] => Some(u32::from_be_bytes([0, high, middle, low])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{hub_endpoints, marker_in, ready_endpoints};

    #[test]
    fn a_marker_is_found_in_either_form() {
        for marker in [0, 1, 255, 256, 70_000, 16_777_215] {
            assert_eq!(marker_in(&ready_endpoints(marker, 3).to_string()), Some(marker));
            assert_eq!(marker_in(&hub_endpoints(marker, 1).to_string()), Some(marker));
        }
        assert_eq!(marker_in(r#"{"version":"11.0"}"#), None);
        assert_eq!(marker_in(r#"{"address":"10.1.1.1"}"#), None);
    }
}
