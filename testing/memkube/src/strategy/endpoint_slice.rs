//! Rules of EndpointSlices.

use super::typed::{self, default};
use super::{Context, Findings, Generation, Strategy, Undecodable, addresses};
use crate::columns::{AGE, Column, NAME};
use crate::object::validate::broken;
use crate::object::{Object, at, names, text_at};
use crate::status::FieldError;
use k8s_openapi::api::discovery::v1;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::EndpointSlice>(object, findings)?;
        // kube-apiserver returns an empty list from storage as null.
        for name in ["endpoints", "ports"] {
            if list(object, name).is_empty() {
                object.insert(name.to_owned(), Value::Null);
            }
        }
        for endpoint in items_mut(object, "endpoints") {
            default(endpoint, "conditions", json!({}));
            // Clients of `v1` may not write this field.
            endpoint.remove("deprecatedTopology");
        }
        Ok(())
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        for port in items_mut(object, "ports") {
            default(port, "name", json!(""));
            default(port, "protocol", json!("TCP"));
        }
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors = ports_errors(object);
        let address_type = text_at(object, "addressType");
        if address_type.is_empty() {
            errors.push(FieldError::required("addressType", ""));
        } else if let Some(error) = addresses::unsupported("addressType", &json!(address_type), &ADDRESS_TYPES) {
            errors.push(error);
        } else {
            errors.extend(endpoints_errors(list(object, "endpoints"), address_type));
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        if object.get("addressType") == old.get("addressType") {
            return self.validate(context, object);
        }
        let mut errors = ports_errors(object);
        let shown = object.get("addressType").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("addressType", &shown, "field is immutable"));
        errors
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![
            Column::text(NAME.0, NAME.1),
            Column::text("AddressType", "addressType"),
            Column::text("Ports", "ports[*].port"),
            Column::text("Endpoints", "endpoints[*].addresses[*]"),
            Column::age(AGE.0, AGE.1),
        ]
    }

    fn generation(&self) -> Generation {
        Generation::ContentAndLabels
    }
}

fn list<'a>(object: &'a Object, name: &str) -> &'a [Value] {
    at(object, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn items_mut<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    let items = object.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn endpoints_errors(endpoints: &[Value], address_type: &str) -> Vec<FieldError> {
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![FieldError::too_many("endpoints", endpoints.len(), ENDPOINTS_MAX)];
    }
    let all = endpoints.iter().enumerate();
    all.flat_map(|(index, endpoint)| endpoint_errors(endpoint, address_type, index)).collect()
}

fn endpoint_errors(endpoint: &Value, address_type: &str, index: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |name: &str| format!("endpoints[{index}].{name}");
    let all = endpoint["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        errors.push(FieldError::required(field("addresses"), "must contain at least 1 address"));
    } else if all.len() > ADDRESSES_MAX {
        errors.push(FieldError::too_many(field("addresses"), all.len(), ADDRESSES_MAX));
    }
    for (at, address) in all.iter().enumerate().take(ADDRESSES_MAX) {
        errors.extend(address_errors(address.as_str().unwrap_or_default(), address_type, index, at));
    }
    if let Some(name) = endpoint["nodeName"].as_str() {
        errors.extend(broken(field("nodeName"), name, names::subdomain(name, false)));
    }
    if let Some(name) = endpoint["hostname"].as_str() {
        errors.extend(broken(field("hostname"), name, names::label(name, false)));
    }
    errors
}

/// Returns the errors of an address. Fields are formatted only for an error, because a slice can have up to 100,000
/// addresses.
fn address_errors(text: &str, address_type: &str, endpoint: usize, at: usize) -> Vec<FieldError> {
    let field = || format!("endpoints[{endpoint}].addresses[{at}]");
    if address_type == "FQDN" {
        let rule = names::subdomain(text, false);
        let dotted = if text.contains('.') { None } else { Some("must be a domain with at least two segments") };
        return rule.or(dotted).and_then(|rule| broken(field(), text, Some(rule))).into_iter().collect();
    }
    let address = match addresses::parse(field, text) {
        Ok(address) => address,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    if address.is_ipv4() != (address_type == "IPv4") {
        // In this error of kube-apiserver, the field has no index.
        let place = format!("endpoints[{endpoint}].addresses");
        errors.push(FieldError::invalid(place, &json!(text), &format!("must be an {address_type} address")));
    }
    errors.extend(addresses::special(address).and_then(|rule| broken(field(), text, Some(rule))));
    errors
}

fn ports_errors(object: &Object) -> Vec<FieldError> {
    let ports = list(object, "ports");
    if ports.len() > PORTS_MAX {
        return vec![FieldError::too_many("ports", ports.len(), PORTS_MAX)];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("ports[{index}].{name}");
        let name = port["name"].as_str().unwrap_or_default();
        if !name.is_empty() {
            errors.extend(broken(field("name"), name, names::label(name, false)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(field("name"), &json!(name)));
        }
        errors.extend(addresses::unsupported(field("protocol"), &port["protocol"], &PROTOCOLS));
        if let Some(protocol) = port["appProtocol"].as_str() {
            errors.extend(broken(field("appProtocol"), protocol, names::qualified(protocol)));
        }
    }
    errors
}
