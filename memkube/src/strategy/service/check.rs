//! Validation of Services.

use super::super::addresses;
use super::{externally_accessible, is_headless, list, needs_health_check_port, spec, text};
use crate::object::{Object, at, names, text_at};
use crate::status::{FieldError, FieldReason, shown_struct};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const TRAFFIC_POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const BALANCED_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
/// Port of the kubelet.
const KUBELET_PORT: i64 = 10_250;

pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = list(object, "spec.ports");
    if ports.is_empty() && !is_headless(object) && text_at(object, "spec.type") != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    errors.extend(type_errors(object));
    errors.extend(port_errors(ports));
    errors.extend(addresses::labels("spec.selector", at(object, "spec.selector")));
    errors.extend(affinity_errors(object));
    if text_at(object, "spec.type") == "ExternalName" {
        errors.extend(super::addresses::errors(object));
    }
    errors.extend(external_address_errors(object));
    errors.extend(unsupported(object, "spec.type", &TYPES));
    errors.extend(node_port_errors(object));
    errors.extend(duplicate_ports(ports));
    errors.extend(balancer_errors(object));
    errors.extend(traffic_errors(object));
    errors
}

fn unsupported(object: &Object, field: &str, supported: &[&str]) -> Option<FieldError> {
    let value = at(object, field)?;
    let known = supported.iter().any(|known| value == known);
    (!known).then(|| FieldError::not_supported(field, value, supported))
}

fn type_errors(object: &Object) -> Vec<FieldError> {
    let kind = text_at(object, "spec.type");
    let mut errors = Vec::new();
    match kind {
        "LoadBalancer" | "NodePort" => {
            let kubelet = |(_, port): &(usize, &Value)| kind == "LoadBalancer" && port["port"] == KUBELET_PORT;
            for (index, port) in list(object, "spec.ports").iter().enumerate().filter(kubelet) {
                let why = "may not expose port 10250 externally since it is used by kubelet";
                errors.push(FieldError::invalid(format!("spec.ports[{index}]"), &port["port"], why));
            }
            if is_headless(object) {
                let why = format!("may not be set to 'None' for {kind} services");
                errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!("None"), &why));
            }
        }
        "ExternalName" => {
            let name = text_at(object, "spec.externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required("spec.externalName", ""));
            } else {
                let wrong = names::subdomain(name, false).into_iter();
                errors.extend(wrong.map(|why| FieldError::invalid("spec.externalName", &json!(name), &why)));
            }
        }
        _ => {}
    }
    errors
}

fn port_errors(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else if !name.is_empty() {
            let wrong = names::label(name, false).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(format!("{at}.name"), &json!(name), &why)));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), &json!(name)));
            }
        }
        errors.extend(addresses::port_number(&format!("{at}.port"), &port["port"]));
        if !PROTOCOLS.iter().any(|known| port["protocol"] == *known) {
            errors.push(FieldError::not_supported(format!("{at}.protocol"), &port["protocol"], &PROTOCOLS));
        }
        errors.extend(addresses::port_or_name(&format!("{at}.targetPort"), &port["targetPort"]));
        if let Some(protocol) = port["appProtocol"].as_str() {
            errors.extend(addresses::qualified(&format!("{at}.appProtocol"), protocol));
        }
    }
    errors
}

fn affinity_errors(object: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = unsupported(object, "spec.sessionAffinity", &AFFINITIES).into_iter().collect();
    let timeout = at(object, "spec.sessionAffinityConfig.clientIP.timeoutSeconds");
    if let ("ClientIP", Some(timeout)) = (text_at(object, "spec.sessionAffinity"), timeout) {
        let fits = timeout.as_i64().is_some_and(|seconds| (1..=86_400).contains(&seconds));
        if !fits {
            let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            errors.push(FieldError::invalid(field, timeout, "must be greater than 0 and less than 86400"));
        }
    }
    errors
}

fn external_address_errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, address) in list(object, "spec.externalIPs").iter().enumerate() {
        let field = format!("spec.externalIPs[{index}]");
        let text = address.as_str().unwrap_or_default();
        match addresses::parse(text) {
            None => errors.push(addresses::no_address(&field, text)),
            Some(_) => errors.extend(addresses::special(&field, text)),
        }
    }
    errors
}

fn node_port_errors(object: &Object) -> Vec<FieldError> {
    if text_at(object, "spec.type") != "ClusterIP" {
        return Vec::new();
    }
    let ports = list(object, "spec.ports").iter().enumerate();
    let exposed = ports.filter(|(_, port)| port["nodePort"].as_i64().unwrap_or(0) != 0);
    exposed
        .map(|(index, _)| {
            let field = format!("spec.ports[{index}].nodePort");
            FieldError::forbidden(field, "may not be used when `type` is 'ClusterIP'")
        })
        .collect()
}

fn duplicate_ports(ports: &[Value]) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let (number, protocol) = (&port["port"], &port["protocol"]);
        if !seen.insert((number.to_string(), protocol.to_string())) {
            let shown = shown_struct(&[
                ("Name", "\"\"".to_owned()),
                ("Protocol", protocol.to_string()),
                ("AppProtocol", "null".to_owned()),
                ("Port", number.to_string()),
                ("TargetPort", "0".to_owned()),
                ("NodePort", "0".to_owned()),
            ]);
            let message = format!("Duplicate value: {shown}");
            errors.push(FieldError { field: format!("spec.ports[{index}]"), reason: FieldReason::Duplicate, message });
        }
    }
    errors
}

fn balancer_errors(object: &Object) -> Vec<FieldError> {
    let balanced = text_at(object, "spec.type") == "LoadBalancer";
    let mut errors = Vec::new();
    // In this message of kube-apiserver, the field name starts with an upper case letter.
    let ranges = list(object, "spec.loadBalancerSourceRanges");
    if !ranges.is_empty() && !balanced {
        errors.push(FieldError::forbidden("spec.LoadBalancerSourceRanges", BALANCED_ONLY));
    }
    for (index, range) in ranges.iter().enumerate().filter(|_| balanced) {
        let text = range.as_str().unwrap_or_default().trim();
        let parts = text.split_once('/').and_then(|(address, bits)| {
            let most = if addresses::parse(address)?.is_ipv4() { 32 } else { 128 };
            bits.parse::<u8>().ok().filter(|bits| *bits <= most)
        });
        if parts.is_none() {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(format!("spec.LoadBalancerSourceRanges[{index}]"), range, why));
        }
    }
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let field = format!("spec.{name}");
        if at(object, &field).is_some() && !balanced {
            errors.push(FieldError::forbidden(field, BALANCED_ONLY));
        }
    }
    if let Some(class) = at(object, "spec.loadBalancerClass").and_then(Value::as_str).filter(|_| balanced) {
        errors.extend(addresses::qualified("spec.loadBalancerClass", class));
    }
    errors
}

fn traffic_errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = spec(object);
    let policy = text(&spec, "externalTrafficPolicy");
    if externally_accessible(&spec) {
        errors.extend(unsupported(object, "spec.externalTrafficPolicy", &TRAFFIC_POLICIES));
    } else if !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid("spec.externalTrafficPolicy", &json!(policy), why));
    }
    if let Some(port) = at(object, "spec.healthCheckNodePort").filter(|_| !needs_health_check_port(object)) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid("spec.healthCheckNodePort", port, why));
    }
    errors.extend(unsupported(object, "spec.internalTrafficPolicy", &TRAFFIC_POLICIES));
    errors.extend(unsupported(object, "spec.trafficDistribution", &DISTRIBUTIONS));
    errors
}
